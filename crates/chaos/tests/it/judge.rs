//! The judge convicts whoever misbehaves: without that, its silence would mean nothing.
// A test fails by panicking.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::process::Command;

/// A short run; gives what it printed and whether it was content.
fn run(args: &[&str]) -> (String, bool) {
    let short = ["supervise", "sqlite", "--phases", "kills", "--instances", "100"];
    let done = Command::new(env!("CARGO_BIN_EXE_outlast-chaos")).args(short).args(args).output().unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    // A run that fails keeps its folder, which here nobody looks at.
    if let Some((_, folder)) = said.split_once("are kept in ") {
        std::fs::remove_dir_all(folder.lines().next().unwrap()).unwrap();
    }
    (said, done.status.success())
}

fn convicts(sabotage: &str, findings: &[&str]) {
    let (said, success) = run(&["--kills", "0", "--sabotage", sabotage]);
    assert!(!success, "{sabotage} was not found:\n{said}");
    for finding in findings {
        let line = format!("  FAILED  {finding}");
        assert!(said.lines().any(|said| said.starts_with(&line)), "`{line}` is missing:\n{said}");
    }
}

#[test]
fn a_short_run_is_good_and_writes_its_figures() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("figures.json");
    let (said, success) = run(&["--kills", "3", "--pace", "400", "--json", file.to_str().unwrap()]);
    assert!(success, "{said}");
    let figures: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let number = |key: &str| figures[key].as_u64().unwrap_or_else(|| panic!("{key} is missing: {figures}"));
    assert!(number("kills") >= 3 && number("instances") >= 100, "{figures}");
    assert_eq!((number("lost"), number("stuck"), number("double_completions")), (0, 0, 0));
    assert!(said.contains(&format!("chaos: {} checks passed, 0 failed", number("checks_passed"))), "{said}");
}

#[test]
fn an_effect_that_is_missing_is_found() {
    convicts("lose-effect", &["the ledger holds every effect once"]);
}

#[test]
fn an_activity_that_is_completed_twice_is_found() {
    convicts("double-complete", &["what was acknowledged to a worker is stored, and to one worker only"]);
}

#[test]
fn a_commit_that_is_acknowledged_and_not_stored_is_found() {
    convicts("silent-ok", &["what was acknowledged to a worker is stored, and to one worker only"]);
}

#[test]
fn a_start_that_is_acknowledged_and_not_stored_is_found() {
    convicts("forget-start", &["0 lost", "the ledger holds every effect once"]);
}

#[test]
fn targets_that_are_not_reached_are_found() {
    let (said, success) = run(&["--kills", "1000", "--minutes", "0.05"]);
    assert!(!success && said.contains("  FAILED  the targets were reached"), "{said}");
}
