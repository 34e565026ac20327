//! Payloads stay out of logs. A process does everything that can be done with a runtime, well and badly, with a canary in
//! every payload, password and URL, and logs at TRACE: the canary must not be in anything that it writes.

mod bad;
mod good;
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

/// Runs the process; what it wrote.
fn written(mode: &str) -> String {
    let child = Command::new(std::env::current_exe().unwrap())
        .args([TEST, "--exact", "--nocapture", "--test-threads", "1"])
        .env("OUTLAST_TEST_CANARY", mode)
        .env("RUST_LOG", "trace")
        .output()
        .unwrap();
    let text =
        format!("{}\n{}", String::from_utf8_lossy(&child.stdout), String::from_utf8_lossy(&child.stderr));
    assert!(child.status.success(), "{mode}:\n{text}");
    text
}

#[test]
fn no_payload_is_logged() {
    if let Ok(mode) = std::env::var("OUTLAST_TEST_CANARY") {
        let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        return tokio.unwrap().block_on(everything(mode == "telling"));
    }
    let text = written("quiet");
    let leaks: Vec<&str> = text.lines().filter(|line| line.contains(CANARY)).collect();
    assert!(leaks.is_empty(), "{} lines have a payload in them:\n{}", leaks.len(), leaks.join("\n"));
    for seen in SEEN {
        assert!(text.contains(seen), "nothing was logged about: {seen}");
    }
    // Every line that can be logged was logged with a canary around it.
    let sites = sites::all();
    assert!(sites.len() > 40, "only {} places were found", sites.len());
    let is_known = |text: &str| sites::UNREACHED.contains(&text);
    let missing = sites.iter().filter(|(_, said)| !text.contains(said) && !is_known(said));
    let missing: Vec<_> = missing.collect();
    assert!(missing.is_empty(), "not a line from these places: {missing:#?}");
    // The search finds what is there: texts of errors, once they are asked for.
    assert!(written("telling").contains(CANARY));
}

async fn everything(telling: bool) {
    // What a panic says goes through the process's own hook, which is none of ours.
    std::panic::set_hook(Box::new(|_| {}));
    let config = ObservabilityConfig { log_format: LogFormat::Compact, ..ObservabilityConfig::default() };
    init_logging(&config).unwrap();
    for kind in ALL {
        good::run(kind, telling).await;
        bad::run(kind, telling).await;
    }
    stored::run(telling).await;
    trouble::run(telling).await;
    urls::run().await;
}
