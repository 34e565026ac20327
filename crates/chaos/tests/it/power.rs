//! A store on a machine that loses its power.

use outlast_chaos::power::{Settings, Summary, run_many};
use outlast_sqlite::Synchronous;

const FULL: Settings = Settings { synchronous: Synchronous::Full, disk_ignores_sync: false, cuts: 8 };

/// What went wrong, for the message of a failed assertion.
fn findings(summary: &Summary) -> Vec<String> {
    let worlds = summary.lossy.iter().chain(&summary.broken);
    let lines = worlds.flat_map(|world| {
        world.lost.iter().chain(&world.broken).take(5).map(|line| format!("seed {}: {line}", world.seed))
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
    // It was as bad as it was meant to be.
    assert!(tally.acknowledged > 2_000 && tally.looked_for > tally.acknowledged);
    assert!(tally.writes_dropped > 100 && tally.writes_torn > 50 && tally.names_dropped > 0);
    assert!(tally.cuts_while_created > 0 && tally.cuts_while_reopened > 0);
    assert!(tally.cuts_while_checkpointing > 0);
    assert!(tally.instances > 100);
}

/// Its documentation says that it may, and that the rest stays sound.
#[test]
fn normal_loses_the_newest_calls_and_breaks_nothing() {
    let summary = run_many(10_000, 64, Settings { synchronous: Synchronous::Normal, ..FULL });
    println!("{:#?}", summary.tally);
    assert!(summary.broken.is_empty(), "{:?}", findings(&summary));
    assert!(summary.tally.lost > 0, "this machine cannot lose anything");
}

/// The machine is believed to test something because it finds this.
#[test]
fn a_disk_that_ignores_syncs_is_found_out() {
    let summary = run_many(20_000, 32, Settings { disk_ignores_sync: true, ..FULL });
    println!("{:#?}", summary.tally);
    assert!(summary.tally.lost > 0, "a lost call was overlooked");
}
