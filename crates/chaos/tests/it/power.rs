//! A store on a machine that loses its power.

use outlast_chaos::power::{Sabotage, Settings, Summary, run_many};
use outlast_sqlite::Synchronous;

const FULL: Settings = Settings { synchronous: Synchronous::Full, sabotage: None, cuts: 8 };

/// The findings, for the message of a failed assertion.
fn findings(summary: &Summary) -> Vec<String> {
    let runs = summary.lossy.iter().chain(&summary.broken);
    let lines = runs.flat_map(|run| {
        run.lost.iter().chain(&run.broken).take(5).map(|line| format!("seed {}: {line}", run.seed))
    });
    lines.take(20).collect()
}

/// P1 of docs/promises.md.
#[test]
fn full_keeps_every_acknowledged_call() {
    let summary = run_many(0, 240, FULL);
    let tally = &summary.tally;
    println!("{tally:#?}");
    assert_eq!(findings(&summary), [""; 0]);
    assert_eq!((tally.cuts, tally.lost), (240, 0));
    // The faults happened as often as intended.
    assert!(tally.acknowledged > 2_000 && tally.looked_for > tally.acknowledged);
    assert!(tally.writes_dropped > 100 && tally.writes_torn > 50 && tally.names_dropped > 0);
    assert!(tally.cuts_while_created > 0 && tally.cuts_while_reopened > 0);
    assert!(tally.cuts_while_checkpointing > 0 && tally.cuts_while_preallocating > 3);
    assert!(tally.instances > 100);
}

/// The documentation of `Synchronous::Normal` allows lost calls, and promises that all stored data is consistent.
#[test]
fn normal_loses_the_newest_calls_and_breaks_nothing() {
    let summary = run_many(10_000, 64, Settings { synchronous: Synchronous::Normal, ..FULL });
    println!("{:#?}", summary.tally);
    assert!(summary.broken.is_empty(), "{:?}", findings(&summary));
    assert!(summary.tally.lost > 0, "no cut lost a call");
}

/// A disk that ignores syncs must lose calls; otherwise the other tests prove nothing.
#[test]
fn a_disk_that_ignores_syncs_is_detected() {
    let ignores_syncs = Settings { sabotage: Some(Sabotage::IgnoresSyncs), ..FULL };
    let summary = run_many(20_000, 32, ignores_syncs);
    assert!(summary.tally.lost > 0, "a lost call was overlooked: {:#?}", summary.tally);
}

/// The defect loses the last commits, or damages the database if a part of them was moved into it before the cut.
#[test]
fn preallocation_that_overwrites_a_commit_is_detected() {
    let too_early = Settings { sabotage: Some(Sabotage::PreallocatesTooEarly), ..FULL };
    let summary = run_many(30_000, 64, too_early);
    let is_found = summary.tally.lost > 0 || !summary.broken.is_empty();
    assert!(is_found, "an overwritten commit was overlooked: {:#?}", summary.tally);
}
