//! The sweep, swept: it repeats itself, it is clean, and it finds what is there.

use outlast_sim::{Bug, Level, Settings, Sweep, script_names, sweep};

fn some(levels: &[Level], script: Option<&str>, one_in: u64) -> Sweep {
    Sweep { levels: levels.to_vec(), script: script.map(str::to_string), one_in, ..Sweep::default() }
}

/// All moments are for `cargo xtask sim --sweep`, which is built to be fast.
#[test]
fn stories_end_as_they_must_whatever_goes_wrong() {
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
fn a_sweep_is_the_same_twice() {
    let what = some(&[Level::Calls, Level::Polls], Some("child-race-cancelled"), 10);
    let settings = Settings::default();
    assert_eq!(sweep(&what, &settings), sweep(&what, &settings));
}

/// Some go wrong now and then without any help; the others need the one fault that the sweep brings.
#[test]
fn defects_are_found() {
    for (bug, script, needs_a_fault) in [
        ("CommitForgetsWork", "chain", false),
        ("AcknowledgedNotDurable", "queue", false),
        ("WorkAckLosesCompletion", "hello", false),
        ("LeaseNotExclusive", "fan-out", true),
        ("AckSkipsTokenCheck", "fan-out", true),
        ("AckDeletesLateArrivals", "fan-out", true),
    ] {
        let settings = Settings { bug: Bug::parse(bug), ..Settings::default() };
        assert!(settings.bug.is_some(), "{bug}");
        let swept = sweep(&some(&[Level::Calls], Some(script), 1), &settings);
        let found = swept.failures.first().unwrap_or_else(|| panic!("{bug} is not found"));
        assert!(!needs_a_fault || found.command.contains("--at"), "{bug}: {found:?}");
    }
}
