//! Tests of the sweep: runs repeat, all scripts pass, and known defects are found.

use outlast_sim::{Bug, Level, Settings, Sweep, script_names, sweep};

fn some(levels: &[Level], script: Option<&str>, one_in: u64) -> Sweep {
    Sweep { levels: levels.to_vec(), script: script.map(str::to_string), one_in, ..Sweep::default() }
}

/// `cargo xtask sim --sweep` runs all moments in a release build; this test runs a sample.
#[test]
fn scripts_pass_with_any_single_fault() {
    let swept = sweep(&some(Level::ALL, None, 100), &Settings::default());
    assert_eq!(swept.failures, []);
    assert_eq!(swept.rows.len(), script_names().len() * Level::ALL.len());
    for level in Level::ALL {
        assert!(swept.runs(*level) > 20, "{} runs of {}", swept.runs(*level), level.name());
    }
    let moments = |row: &outlast_sim::Row| row.moments;
    assert!(swept.rows.iter().map(moments).min() > Some(10), "{:?}", swept.rows);
}

#[test]
fn two_runs_of_a_sweep_are_equal() {
    let what = some(&[Level::Calls, Level::Polls], Some("child-race-cancelled"), 10);
    let settings = Settings::default();
    assert_eq!(sweep(&what, &settings), sweep(&what, &settings));
}

/// Some defects show without a fault; the others need the one fault of the sweep.
#[test]
fn known_defects_are_found() {
    for (bug, script, needs_a_fault) in [
        ("CommitForgetsWork", "chain", false),
        ("AcknowledgedNotDurable", "queue", false),
        ("WorkAckLosesCompletion", "hello", false),
        ("LeaseNotExclusive", "fan-out", true),
        ("AckSkipsTokenCheck", "fan-out", true),
        ("AckDeletesLateMessages", "fan-out", true),
        ("ResetMergesKeys", "reset", false),
        ("HoldIgnored", "orchestration-paused", false),
    ] {
        let settings = Settings { bug: Bug::parse(bug), ..Settings::default() };
        assert!(settings.bug.is_some(), "{bug}");
        let swept = sweep(&some(&[Level::Calls], Some(script), 1), &settings);
        let found = swept.failures.first().unwrap_or_else(|| panic!("{bug} is not found"));
        assert!(!needs_a_fault || found.command.contains("--at"), "{bug}: {found:?}");
    }
}
