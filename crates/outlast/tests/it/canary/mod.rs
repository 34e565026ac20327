//! Payloads are not logged. A process runs every operation of a runtime, with success and with errors, with a canary in every
//! payload, password and URL, and logs at TRACE. The canary must not occur in its output.

mod background;
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

/// The text that every payload holds.
const CANARY: &str = "7f3acanary";

/// A payload that must not be logged.
fn secret(what: &str) -> String {
    format!("{CANARY}-{what}")
}

const TEST: &str = "canary::no_payload_is_logged";

/// Warnings and errors that are logged as values, which [`sites`] does not find.
const SEEN: &[&str] = &[
    "nondeterministic",
    "is lost: continue-as-new carries over",
    "limits.payload_bytes",
    "the author's own words",
    "not logged (",
];

/// The environment variable that selects the mode of the child process.
const MODE: &str = "OUTLAST_TEST_CANARY";

/// Runs the child process and returns its output.
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

/// Checks that no line holds the canary.
fn assert_no_canary(text: &str) {
    let leaks: Vec<&str> = text.lines().filter(|line| line.contains(CANARY)).collect();
    assert!(leaks.is_empty(), "{} lines have a secret in them:\n{}", leaks.len(), leaks.join("\n"));
}

/// Checks that every log call of these libraries was reached.
fn assert_all_sites_logged(text: &str, libraries: &[&str], unreached: &[&str]) {
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
        return tokio.unwrap().block_on(everything(mode == "log_error_texts"));
    }
    let text = child(TEST, "quiet", &[]);
    assert_no_canary(&text);
    for seen in SEEN {
        assert!(text.contains(seen), "nothing was logged about: {seen}");
    }
    assert!(sites::of(LIBRARIES).len() > 40, "only {} places were found", sites::of(LIBRARIES).len());
    assert_all_sites_logged(&text, LIBRARIES, sites::UNREACHED);
    // The search finds the canary if it is there: with `log_error_texts` the log holds it.
    assert!(child(TEST, "log_error_texts", &[]).contains(CANARY));
}

/// Writes the log to the output of the process.
fn install_log() {
    // The message of a panic goes to the panic hook of the process, which the runtime does not set.
    std::panic::set_hook(Box::new(|_| {}));
    let config = ObservabilityConfig { log_format: LogFormat::Compact, ..ObservabilityConfig::default() };
    init_logging(&config).unwrap();
}

async fn everything(log_error_texts: bool) {
    install_log();
    for kind in ALL {
        good::run(kind, log_error_texts).await;
        bad::run(kind, log_error_texts).await;
    }
    stored::run(log_error_texts).await;
    trouble::run(log_error_texts).await;
    background::run(log_error_texts).await;
    urls::run().await;
}
