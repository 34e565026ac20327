//! Payloads stay out of logs. A process does everything that can be done with a runtime, well and badly, with a canary in
//! every payload, password and URL, and logs at TRACE: the canary must not be in anything that it writes.

mod bad;
mod good;
mod needs_postgres;
mod sites;
mod stored;
mod trouble;
mod urls;

use crate::support::{ALL, activities, orchestrations};
use outlast::runtime::observability::{LogFormat, ObservabilityConfig, init_logging};
use std::process::Command;

/// In every payload, and nowhere else.
const CANARY: &str = "7f3acanary";

/// A payload that nobody may read in a log.
fn secret(what: &str) -> String {
    format!("{CANARY}-{what}")
}

const TEST: &str = "canary::no_payload_is_logged";

/// What is logged as the value of a warning or of an error, beside what [`sites`] finds.
const SEEN: &[&str] = &[
    "nondeterministic",
    "is lost: continue-as-new carries over",
    "limits.payload_bytes",
    "the author's own words",
    "not logged (",
];

/// The variable that makes a process the one that is read.
const MODE: &str = "OUTLAST_TEST_CANARY";

/// Runs the process; what it wrote.
fn child(test: &str, mode: &str, variables: &[(&str, &str)]) -> String {
    let child = Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture", "--test-threads", "1"])
        .env(MODE, mode)
        .env("RUST_LOG", "trace")
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let text =
        format!("{}\n{}", String::from_utf8_lossy(&child.stdout), String::from_utf8_lossy(&child.stderr));
    assert!(child.status.success(), "{mode}:\n{text}");
    text
}

/// The canary is in no line.
fn forbid(text: &str) {
    let leaks: Vec<&str> = text.lines().filter(|line| line.contains(CANARY)).collect();
    assert!(leaks.is_empty(), "{} lines have a secret in them:\n{}", leaks.len(), leaks.join("\n"));
}

/// Every line that these libraries can log was logged with a canary around it.
fn reach(text: &str, libraries: &[&str], unreached: &[&str]) {
    let missing = sites::of(libraries);
    let missing =
        missing.iter().filter(|(_, said)| !text.contains(said) && !unreached.contains(&said.as_str()));
    let missing: Vec<_> = missing.collect();
    assert!(missing.is_empty(), "not a line from these places: {missing:#?}");
}

const LIBRARIES: &[&str] = &["model", "engine", "provider", "provider-kit", "memory", "sqlite", "runtime"];

#[test]
fn no_payload_is_logged() {
    if let Ok(mode) = std::env::var(MODE) {
        let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        return tokio.unwrap().block_on(everything(mode == "telling"));
    }
    let text = child(TEST, "quiet", &[]);
    forbid(&text);
    for seen in SEEN {
        assert!(text.contains(seen), "nothing was logged about: {seen}");
    }
    assert!(sites::of(LIBRARIES).len() > 40, "only {} places were found", sites::of(LIBRARIES).len());
    reach(&text, LIBRARIES, sites::UNREACHED);
    // The search finds what is there: texts of errors, once they are asked for.
    assert!(child(TEST, "telling", &[]).contains(CANARY));
}

/// Logs go to what the process writes.
fn be_heard() {
    // What a panic says goes through the process's own hook, which is none of ours.
    std::panic::set_hook(Box::new(|_| {}));
    let config = ObservabilityConfig { log_format: LogFormat::Compact, ..ObservabilityConfig::default() };
    init_logging(&config).unwrap();
}

async fn everything(telling: bool) {
    be_heard();
    for kind in ALL {
        good::run(kind, telling).await;
        bad::run(kind, telling).await;
    }
    stored::run(telling).await;
    trouble::run(telling).await;
    urls::run().await;
}
