//! The command `chaos power`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool prints to its terminal")]

use super::{CutCounts, Sabotage, Settings, Summary, run_many};
use crate::PowerArgs;
use outlast_sqlite::Synchronous;
use outlast_testkit::figures;
use serde_json::{Value, json};
use std::process::ExitCode;

/// Power cuts of one run.
const CUTS_PER_RUN: u64 = 8;

/// Cuts the power with the default setting, with `Synchronous::Normal`, and with each defect, and prints the losses. Fails
/// if the default setting lost a call, if a run without a defect is broken, or if another setting lost nothing, because
/// then the tool could not detect losses.
pub fn run(args: &PowerArgs) -> ExitCode {
    let full = Settings { synchronous: Synchronous::Full, sabotage: None, cuts: CUTS_PER_RUN };
    let few = args.cuts.div_ceil(5);
    let full_sync = run_many(args.seed, args.cuts, full);
    report("synchronous = FULL", &full_sync);
    let normal = run_many(args.seed, few, Settings { synchronous: Synchronous::Normal, ..full });
    report("synchronous = NORMAL", &normal);
    let sabotaged = |sabotage| run_many(args.seed, few, Settings { sabotage: Some(sabotage), ..full });
    let ignoring_syncs = sabotaged(Sabotage::IgnoresSyncs);
    report("synchronous = FULL on a disk that ignores syncs", &ignoring_syncs);
    let too_early = sabotaged(Sabotage::PreallocatesTooEarly);
    report("synchronous = FULL with preallocations that overwrite a commit", &too_early);
    show_all("FULL lost", &full_sync.lossy);
    show_all("FULL broke", &full_sync.broken);
    show_all("NORMAL broke", &normal.broken);

    let is_found = |sabotaged: &Summary| sabotaged.tally.lost > 0 || !sabotaged.broken.is_empty();
    let good = full_sync.lossy.is_empty()
        && full_sync.broken.is_empty()
        && normal.broken.is_empty()
        && normal.tally.lost > 0
        && is_found(&ignoring_syncs)
        && is_found(&too_early);
    if let Some(path) = &args.json
        && let Err(error) =
            figures::write(path, &all_figures(args, &full_sync, &normal, &ignoring_syncs, &too_early))
    {
        eprintln!("power: {error}");
        return ExitCode::FAILURE;
    }
    println!("power: {}", if good { "passed" } else { "FAILED" });
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn report(setting: &str, summary: &Summary) {
    let CutCounts { cuts, acknowledged, looked_for, lost, instances, .. } = summary.tally;
    let tally = &summary.tally;
    println!("{setting}");
    println!("  {cuts} power cuts: {:?}", tally.cuts_by_call.as_map());
    println!(
        "  {} of them while a store was created, {} while it was opened after a cut, {} during a checkpoint, \
         {} while the log was preallocated",
        tally.cuts_while_created,
        tally.cuts_while_reopened,
        tally.cuts_while_checkpointing,
        tally.cuts_while_preallocating
    );
    println!(
        "  unsynced writes: {} dropped, {} torn, {} kept; {} names dropped",
        tally.writes_dropped, tally.writes_torn, tally.writes_kept, tally.names_dropped
    );
    println!("  {acknowledged} calls acknowledged, looked for {looked_for} times, {lost} lost");
    println!("  {instances} instances finished, {} runs broken\n", summary.broken.len());
}

fn show_all(title: &str, outcomes: &[super::Outcome]) {
    for outcome in outcomes {
        for line in outcome.lost.iter().chain(&outcome.broken).take(10) {
            println!("{title}, seed {}: {line}", outcome.seed);
        }
    }
}

fn all_figures(
    args: &PowerArgs,
    full: &Summary,
    normal: &Summary,
    ignoring_syncs: &Summary,
    too_early: &Summary,
) -> Value {
    let tally = &full.tally;
    json!({
        "seed": args.seed,
        "cuts": tally.cuts,
        "cuts_while_created": tally.cuts_while_created,
        "cuts_while_reopened": tally.cuts_while_reopened,
        "cuts_while_checkpointing": tally.cuts_while_checkpointing,
        "cuts_while_preallocating": tally.cuts_while_preallocating,
        "unsynced_writes_dropped": tally.writes_dropped,
        "unsynced_writes_kept": tally.writes_kept,
        "torn": tally.writes_torn,
        "names_dropped": tally.names_dropped,
        "acknowledged": tally.acknowledged,
        "acknowledged_looked_for": tally.looked_for,
        "instances_finished": tally.instances,
        "lost_full": tally.lost,
        "broken_full": full.broken.len(),
        "cuts_normal": normal.tally.cuts,
        "acknowledged_normal": normal.tally.acknowledged,
        "lost_normal": normal.tally.lost,
        "broken_normal": normal.broken.len(),
        "cuts_sabotaged": ignoring_syncs.tally.cuts,
        "lost_sabotaged": ignoring_syncs.tally.lost,
        "broken_sabotaged": ignoring_syncs.broken.len(),
        "cuts_sabotaged_preallocation": too_early.tally.cuts,
        "lost_sabotaged_preallocation": too_early.tally.lost,
        "broken_sabotaged_preallocation": too_early.broken.len(),
    })
}
