//! Tests of the simulator: runs repeat, known defects are found, and faults happen.

mod model;
mod sweep;

use outlast_sim::{
    BUGS, Bug, Fault, Outcome, Settings, first_failure, recorded_seeds, run, run_many, shipped_bugs, shrink,
};

#[test]
fn two_runs_of_a_seed_have_the_same_trace() {
    let settings = Settings { keep_lines: usize::MAX, ..Settings::default() };
    for seed in [3, 47, 2_500, 11_300] {
        let (first, second) = (run(seed, &settings), run(seed, &settings));
        assert!(first.lines.len() > 100, "the trace of seed {seed} is short");
        for (one, other) in first.lines.iter().zip(&second.lines) {
            assert_eq!(one, other, "seed {seed}");
        }
        assert_eq!(first, second, "seed {seed}");
    }
    assert_ne!(run(3, &settings).digest, run(4, &settings).digest);
}

#[test]
fn worlds_that_once_failed_pass() {
    let seeds = recorded_seeds();
    let summary = run_many(&seeds, &Settings::default());
    assert_eq!(summary.failed, []);
    assert_eq!(summary.seeds, seeds.len());
}

/// `OUTLAST_SIM_WORLDS` sets the number of worlds; `cargo xtask mutants` needs more of them.
#[test]
fn worlds_without_a_defect_pass_and_have_faults() {
    let worlds = std::env::var("OUTLAST_SIM_WORLDS").map_or(40, |worlds| worlds.parse().unwrap());
    let seeds: Vec<u64> = (10_000..).take(worlds).collect();
    let summary = run_many(&seeds, &Settings::default());
    assert_eq!(summary.failed, []);
    assert_eq!(summary.seeds, worlds);
    assert!(summary.counted * 4 >= worlds * 3, "only {} of {worlds} worlds count", summary.counted);
    assert!(summary.tally.turns_compared > 50 && summary.tally.replays > 100, "{:?}", summary.tally);
    assert!(summary.tally.most_records > 2, "{:?}", summary.tally);
    let on_files = summary.tally.worlds.get(&"SQLite file");
    assert!(on_files * 10 >= summary.seeds as u64 * 6, "{on_files} of {worlds} worlds have a SQLite file");
    assert!(summary.tally.recoveries > 0 && summary.tally.outputs_judged > 100, "{:?}", summary.tally);
    let table = summary.tally.table();
    for op in
        ["fetch_turn", "ack_turn", "renew_turn", "fetch_work", "ack_work", "renew_work", "enqueue", "start"]
    {
        assert!(table.contains(op), "{table}");
    }
}

#[test]
fn worlds_with_the_postgresql_store_pass_and_lose_connections() {
    let seeds: Vec<u64> = (10_000..10_020).collect();
    let summary = run_many(&seeds, &Settings { postgres: true, ..Settings::default() });
    assert_eq!(summary.failed, []);
    assert_eq!(summary.tally.worlds.get(&"PostgreSQL scheduler"), 20);
    let faults = summary.tally.by_fault();
    for fault in [Fault::LinkUnreachable, Fault::LinkConflict, Fault::LinkLostBefore, Fault::LinkLostAfter] {
        assert!(faults.get(&fault) > 0, "{fault:?} in {faults:?}");
    }
    assert!(faults.get(&Fault::ListenerLost) > 0, "{faults:?}");
}

/// `cargo xtask sim --score` checks all defects; these are found soonest.
#[test]
fn known_defects_are_found_and_their_worlds_shrunk() {
    for bug in [
        "CommitForgetsWork",
        "CompletionTwice",
        "CancelsChildThatNeverStarted",
        "LivingTakenForDead",
        "shipped-SecondOutcome",
        "shipped-TimerVisibleAtOnce",
        "shipped-CommitLosesMessage",
        "shipped-RecordLost",
        "shipped-RecordTwice",
        "shipped-PauseNotRecorded",
        "shipped-HeldTurnRuns",
        "shipped-ClientRequestLost",
        "shipped-NotificationUnseen",
        "NoteKeepsFirstError",
    ] {
        let settings = Settings { bug: Bug::parse(bug), ..Settings::default() };
        let found = first_failure(0..20, &settings).unwrap_or_else(|| panic!("{bug} is not found"));
        let (cut, smallest) = shrink(found.seed, &settings);
        let code = |outcome: &Outcome| outcome.failures[0].split(':').next().map(str::to_string);
        assert_eq!(code(&smallest), code(&found), "{bug}");
        assert!(!cut.faults.is_empty() || !cut.roots.is_empty(), "{bug}: nothing could be left out");
        let again = run(found.seed, &Settings { cut, ..settings });
        assert_eq!(again.digest, smallest.digest, "{bug}");
    }
    assert!(BUGS.len() >= 25 && shipped_bugs().len() >= 40);
}
