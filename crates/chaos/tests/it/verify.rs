//! The verification finds every sabotage. Otherwise a passing run would prove nothing.
// A test fails by panicking.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::process::Command;

/// Runs a short phase on SQLite; returns its output and whether it passed.
fn run(args: &[&str]) -> (String, bool) {
    run_on("sqlite", &[&["--instances", "100"], args].concat())
}

fn run_on(store: &str, args: &[&str]) -> (String, bool) {
    let short = ["supervise", store, "--phases", "kills"];
    let done = Command::new(env!("CARGO_BIN_EXE_outlast-chaos")).args(short).args(args).output().unwrap();
    let output =
        format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    // A failed run keeps its folder, which this test does not need.
    if let Some((_, folder)) = output.split_once("are kept in ") {
        std::fs::remove_dir_all(folder.lines().next().unwrap()).unwrap();
    }
    (output, done.status.success())
}

fn finds_sabotage(sabotage: &str, findings: &[&str]) {
    let (output, success) = run(&["--kills", "0", "--sabotage", sabotage]);
    assert!(!success, "{sabotage} was not found:\n{output}");
    for finding in findings {
        let line = format!("  FAILED  {finding}");
        assert!(output.lines().any(|output| output.starts_with(&line)), "`{line}` is missing:\n{output}");
    }
}

#[test]
fn a_short_run_passes_and_writes_its_figures() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("figures.json");
    let (output, success) = run(&["--kills", "3", "--pace", "400", "--json", file.to_str().unwrap()]);
    assert!(success, "{output}");
    let figures: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let number = |key: &str| figures[key].as_u64().unwrap_or_else(|| panic!("{key} is missing: {figures}"));
    assert!(number("kills") >= 3 && number("instances") >= 100, "{figures}");
    // After a kill elsewhere, the next kill waits in a commit.
    assert!(number("kills_in_commit") >= 1, "{figures}");
    assert_eq!((number("lost"), number("stuck"), number("double_completions")), (0, 0, 0));
    assert!(
        output.contains(&format!("chaos: {} checks passed, 0 failed", number("checks_passed"))),
        "{output}"
    );
}

#[test]
fn a_run_on_several_stores_verifies_each_and_adds_up_their_figures() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("figures.json");
    let divided =
        ["--kills", "4", "--kills-per-store", "2", "--pace", "400", "--json", file.to_str().unwrap()];
    let (output, success) = run(&divided);
    assert!(success, "{output}");
    assert_eq!(output.matches("  ok      0 lost").count(), 2, "{output}");
    let figures: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let number = |key: &str| figures[key].as_u64().unwrap_or_else(|| panic!("{key} is missing: {figures}"));
    assert!(number("stores") == 2 && number("kills") >= 4, "{figures}");
    assert!(number("instances") >= 100 && number("instances_in_store") >= number("instances"), "{figures}");
    // Three workers and the replacement of each killed one, on each store.
    assert_eq!(number("worker_processes"), 6 + number("kills"), "{figures}");
    assert!(
        output.contains(&format!("chaos: {} checks passed, 0 failed", number("checks_passed"))),
        "{output}"
    );
}

/// Three runtimes on a rig of its own process: kills before, within and after commits, and deliveries between instances that
/// killed workers leave to the reconcilers of others.
#[cfg(feature = "cosmos")]
#[test]
fn a_short_run_on_cosmos_passes() {
    let load = ["--kills", "9", "--pace", "900", "--instances", "10", "--in-flight", "8"];
    let (output, success) = run_on("cosmos", &[&load[..], &["--kills-per-store", "5"]].concat());
    assert!(success, "{output}");
    assert!(output.contains("  store 2 of 2\n"), "{output}");
    assert!(output.contains(" checks passed, 0 failed"), "{output}");
}

#[test]
fn a_missing_effect_is_found() {
    finds_sabotage("lose-effect", &["the effect ledger holds every effect once"]);
}

#[test]
fn an_activity_completed_twice_is_found() {
    finds_sabotage("double-complete", &["every commit that was acknowledged to a worker is stored"]);
}

#[test]
fn an_acknowledged_commit_that_is_not_stored_is_found() {
    finds_sabotage("silent-ok", &["every commit that was acknowledged to a worker is stored"]);
}

#[test]
fn an_acknowledged_start_that_is_not_stored_is_found() {
    finds_sabotage("forget-start", &["0 lost", "the effect ledger holds every effect once"]);
}

#[test]
fn missed_targets_fail_the_run() {
    let (output, success) = run(&["--kills", "1000", "--minutes", "0.05"]);
    assert!(!success && output.contains("  FAILED  the targets were reached"), "{output}");
}
