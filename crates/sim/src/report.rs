//! Prints the result of a run of worlds and writes its figures.

use outlast_sim::{Bug, Cut, Outcome, Settings, Summary, Tally, shrink};
use outlast_testkit::figures;
use serde_json::{Value, json};
use std::path::Path;
use std::process::ExitCode;

/// Number of trace lines that are printed for a failing world.
const TRACE_LINES: usize = 40;
/// Number of failing worlds that are shrunk and printed in full.
const SHOWN_FAILURES: usize = 3;
/// Runs of at least this many worlds must inject every fault into every call it applies to ..
const ENOUGH_SEEDS: usize = 10_000;
/// .. at least this often.
const LEAST_PER_CELL: u64 = 50;

pub(crate) fn summary(summary: &Summary, settings: &Settings, json: Option<&Path>) -> ExitCode {
    for outcome in summary.failed.iter().take(SHOWN_FAILURES) {
        failure(outcome, settings);
    }
    for outcome in summary.failed.iter().skip(SHOWN_FAILURES) {
        println!("seed {} failed: {}", outcome.seed, outcome.failures.join("; "));
    }
    let tally = &summary.tally;
    println!("{}\n", tally.table());
    println!(
        "{:.1} virtual hours, {} faults, {} leases lost, {} commits in doubt",
        virtual_hours(summary),
        tally.fault_count(),
        tally.leases_lost,
        tally.commits_in_doubt
    );
    println!(
        "{} instances, {} turns, {} of them run again from cold, {} replays at random moments, {} orphans, \
         {} seeds run twice",
        tally.instances, tally.turns, tally.turns_compared, tally.replays, tally.orphans, summary.repeated
    );
    println!(
        "{} of {} worlds count: in the others no lease was lost and no commit was in doubt",
        summary.counted, summary.seeds
    );
    let mix: Vec<String> = tally.worlds.iter().map(|(store, worlds)| format!("{worlds} {store}")).collect();
    println!("worlds by store: {}; {} recoveries of a file", mix.join(", "), tally.recoveries);
    println!(
        "{} openings of a busy file; {} calls waited for its lock or were refused",
        tally.busy_openings, tally.calls_at_busy_files
    );
    println!(
        "{} outputs judged, {} not: their instance was cancelled, or an activity or a child was poisoned",
        tally.outputs_judged, tally.outputs_not_judged
    );
    println!(
        "{} contradictions between rows explained: the clock was set back behind the time of an activity",
        tally.rows_ahead_of_clock
    );
    println!(
        "{} worlds waited for an event longer than an item may wait, and no longer than workers may be in use",
        tally.worlds_of_long_waits
    );
    let thin = tally.thin_cells(LEAST_PER_CELL);
    let is_covered = summary.seeds < ENOUGH_SEEDS || thin.is_empty();
    if !is_covered {
        println!("too few faults injected: {}", thin.join(", "));
    }
    let failed = summary.failed.len();
    let written = write(json, || summary_figures(summary));
    // `cargo xtask test` parses this line.
    println!("sim: {} seeds passed, {failed} failed", summary.seeds - failed);
    exit_code(failed == 0 && is_covered && written)
}

fn failure(outcome: &Outcome, settings: &Settings) {
    let (cut, smallest) = shrink(outcome.seed, settings);
    println!("seed {} failed; {}", smallest.seed, smallest.setting);
    let skipped = smallest.lines.len().saturating_sub(TRACE_LINES);
    smallest.lines.iter().skip(skipped).for_each(|line| println!("  {line}"));
    smallest.failures.iter().for_each(|failure| println!("  FAILED: {failure}"));
    println!(
        "  to repeat with the whole trace: cargo xtask sim --seed {}{}\n",
        outcome.seed,
        options(&cut, settings)
    );
}

/// The options of the command that repeats a world.
fn options(cut: &Cut, settings: &Settings) -> String {
    let mut options = String::new();
    if !cut.faults.is_empty() {
        let names: Vec<String> = cut.faults.iter().map(|fault| fault.name().replace(' ', "-")).collect();
        options.push_str(&format!(" --without {}", names.join(",")));
    }
    if !cut.roots.is_empty() {
        let ids: Vec<&str> = cut.roots.iter().map(String::as_str).collect();
        options.push_str(&format!(" --without-roots {}", ids.join(",")));
    }
    if settings.postgres {
        options.push_str(" --postgres");
    }
    if let Some(bug) = settings.bug {
        options.push_str(&format!(" --bug {}", bug.name()));
    }
    options
}

fn virtual_hours(summary: &Summary) -> f64 {
    summary.tally.virtual_ms as f64 / 3_600_000.0
}

fn mix_of(tally: &Tally) -> serde_json::Map<String, Value> {
    let by_store = tally.worlds.iter();
    by_store.map(|(store, worlds)| (store.replace(' ', "_").to_lowercase(), json!(worlds))).collect()
}

fn summary_figures(summary: &Summary) -> Value {
    let tally = &summary.tally;
    let by_fault = tally.by_fault();
    let faults: serde_json::Map<String, Value> =
        by_fault.iter().map(|(fault, count)| (fault.name().replace(' ', "_"), json!(count))).collect();
    json!({
        "seeds": summary.seeds,
        "counted_seeds": summary.counted,
        "failing_seeds": summary.failed.iter().map(|outcome| outcome.seed).collect::<Vec<_>>(),
        "repeated_seeds": summary.repeated,
        "virtual_hours": virtual_hours(summary),
        "instances": tally.instances,
        "turns": tally.turns,
        "turns_compared": tally.turns_compared,
        "replays": tally.replays,
        "leases_lost": tally.leases_lost,
        "commits_in_doubt": tally.commits_in_doubt,
        "worlds_by_store": mix_of(tally),
        "recoveries": tally.recoveries,
        "outputs_judged": tally.outputs_judged,
        "outputs_not_judged": tally.outputs_not_judged,
        "rows_ahead_of_clock": tally.rows_ahead_of_clock,
        "worlds_of_long_waits": tally.worlds_of_long_waits,
        "faults": tally.fault_count(),
        "faults_by_kind": faults,
    })
}

/// A defect that was found, the number of seeds until then, and the broken invariant.
pub(crate) type Found = (Bug, u64, String);

pub(crate) fn score(
    found: &[Found],
    defects: usize,
    seeds: usize,
    json: Option<&Path>,
    is_written: bool,
) -> ExitCode {
    let needed: Vec<u64> = found.iter().map(|(_, needed, _)| *needed).collect();
    let shipped = found.iter().filter(|(bug, ..)| bug.shipped().is_some()).count();
    let mut sorted = needed.clone();
    sorted.sort_unstable();
    let median = sorted.get(sorted.len() / 2).copied().unwrap_or(0);
    let worst = sorted.last().copied().unwrap_or(0);
    let written = write(json, || {
        json!({
            "defects": defects,
            "found": needed.len(),
            "found_in_shipped_code": shipped,
            "worst_seeds_allowed": seeds,
            "seeds_to_find": needed.iter().sum::<u64>(),
            "worst_seeds_to_find": worst,
        })
    });
    println!(
        "sim: {} of {} defects found, {shipped} of them in shipped code, {median} seeds in the median, {worst} at worst",
        needed.len(),
        defects
    );
    exit_code(needed.len() == defects && written && is_written)
}

/// Writes the figures if a file is given. Returns `false` if the file cannot be written.
pub(crate) fn write(file: Option<&Path>, figures: impl FnOnce() -> Value) -> bool {
    let Some(file) = file else { return true };
    figures::write(file, &figures()).map_err(|error| eprintln!("sim: {error}")).is_ok()
}

pub(crate) fn exit_code(good: bool) -> ExitCode {
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
