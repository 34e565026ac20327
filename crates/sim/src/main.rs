//! `cargo xtask sim`: runs worlds and says what they found.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool talks to its terminal")]

mod args;

use args::{Args, Job};
use outlast_sim::{BUGS, Outcome, Settings, Summary, first_failure, run, run_many};
use std::process::ExitCode;

fn main() -> ExitCode {
    let Args { job, bug } = match Args::parse(std::env::args().skip(1)) {
        Ok(args) => args,
        Err(message) => {
            eprintln!("sim: {message}\n\n{}", args::USAGE);
            return ExitCode::from(2);
        }
    };
    let settings = Settings { bug, ..Settings::default() };
    match job {
        Job::One(seed) => one(seed, Settings { keep_lines: usize::MAX, ..settings }),
        Job::Many(seeds) => many(&seeds, settings),
        Job::Score(seeds) => score(&seeds),
    }
}

/// One world, with all of its trace.
fn one(seed: u64, settings: Settings) -> ExitCode {
    let outcome = run(seed, settings);
    println!("seed {seed}: {}", outcome.setting);
    outcome.lines.iter().for_each(|line| println!("{line}"));
    println!("{}", outcome.tally.table());
    let same = run(seed, settings).digest == outcome.digest;
    println!("trace {:016x}, {} when run again", outcome.digest, if same { "the same" } else { "ANOTHER" });
    if !outcome.tally.met_trouble() {
        println!("no lease was lost and no commit was in doubt: this world does not count");
    }
    outcome.failures.iter().for_each(|failure| println!("FAILED: {failure}"));
    exit_code(outcome.failures.is_empty() && same)
}

/// Lines of the trace that are shown of a failing world.
const TAIL: usize = 40;
/// Failing worlds that are shown in full.
const SHOWN: usize = 3;

fn many(seeds: &[u64], settings: Settings) -> ExitCode {
    let summary = run_many(seeds, settings);
    for outcome in summary.failed.iter().take(SHOWN) {
        print_failure(outcome);
    }
    for outcome in summary.failed.iter().skip(SHOWN) {
        println!("seed {} failed: {}", outcome.seed, outcome.failures.join("; "));
    }
    print_summary(&summary);
    exit_code(summary.failed.is_empty())
}

fn print_failure(outcome: &Outcome) {
    println!("seed {} failed; {}", outcome.seed, outcome.setting);
    let skipped = outcome.lines.len().saturating_sub(TAIL);
    outcome.lines.iter().skip(skipped).for_each(|line| println!("  {line}"));
    outcome.failures.iter().for_each(|failure| println!("  FAILED: {failure}"));
    println!("  again, with the whole trace: cargo xtask sim --seed {}\n", outcome.seed);
}

fn print_summary(summary: &Summary) {
    let tally = &summary.tally;
    println!("{}\n", tally.table());
    println!(
        "{:.1} virtual hours, {} faults, {} leases lost, {} commits in doubt",
        tally.virtual_ms as f64 / 3_600_000.0,
        tally.fault_count(),
        tally.leases_lost,
        tally.commits_in_doubt
    );
    println!(
        "{} instances, {} turns, {} of them run again from cold, {} replays at random moments, {} seeds run twice",
        tally.instances, tally.turns, tally.turns_compared, tally.replays, summary.repeated
    );
    println!(
        "{} of {} worlds count: in the others no lease was lost and no commit was in doubt",
        summary.counted, summary.seeds
    );
    // Read by `cargo xtask test`.
    let failed = summary.failed.len();
    println!("sim: {} seeds passed, {failed} failed", summary.seeds - failed);
}

/// How soon each known defect is found.
fn score(seeds: &[u64]) -> ExitCode {
    let mut missed = 0;
    for bug in BUGS {
        let settings = Settings { bug: Some(*bug), ..Settings::default() };
        match first_failure(seeds.iter().copied(), settings) {
            Some(outcome) => {
                let text: String = outcome.failures.join("; ").chars().take(150).collect();
                println!("{:<30} seed {:>4}  {text}", bug.name(), outcome.seed);
            }
            None => {
                missed += 1;
                println!("{:<30} NOT FOUND in {} seeds", bug.name(), seeds.len());
            }
        }
    }
    println!("sim: {} of {} defects found", BUGS.len() - missed, BUGS.len());
    exit_code(missed == 0)
}

fn exit_code(good: bool) -> ExitCode {
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
