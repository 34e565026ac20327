//! `cargo xtask sim`: runs worlds and says what they found.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool talks to its terminal")]

mod args;
mod report;
mod sweep_report;

use args::{Args, Job};
use outlast_sim::{BUGS, Bug, Settings, first_failures, run, run_many, run_while, sweep};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

fn main() -> ExitCode {
    let Args { job, bug, cut, json } = match Args::parse(std::env::args().skip(1)) {
        Ok(args) => args,
        Err(message) => {
            eprintln!("sim: {message}\n\n{}", args::USAGE);
            return ExitCode::from(2);
        }
    };
    let settings = Settings { bug, cut, ..Settings::default() };
    let json = json.as_deref();
    match job {
        Job::One(seed) => one(seed, &Settings { keep_lines: usize::MAX, ..settings }),
        Job::Many(seeds) => report::summary(&run_many(&seeds, &settings), &settings, json),
        Job::Minutes(first, time) => report::summary(&for_minutes(first, time, &settings), &settings, json),
        Job::Sweep(what) => {
            let one = what.at.is_some();
            let keep_lines = if one { usize::MAX } else { settings.keep_lines };
            sweep_report::swept(&sweep(&what, &Settings { keep_lines, ..settings }), json, one)
        }
        Job::Score(seeds) => score(&seeds, bug, json),
    }
}

#[allow(clippy::disallowed_methods, reason = "how long to run is a matter of real time")]
fn for_minutes(first: u64, time: Duration, settings: &Settings) -> outlast_sim::Summary {
    let (began, next) = (Instant::now(), AtomicU64::new(first));
    run_while(|| (began.elapsed() < time).then(|| next.fetch_add(1, Relaxed)), settings)
}

/// One world, with all of its trace.
fn one(seed: u64, settings: &Settings) -> ExitCode {
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
    report::exit_code(outcome.failures.is_empty() && same)
}

/// How soon each known defect is found.
fn score(seeds: &[u64], bug: Option<Bug>, json: Option<&Path>) -> ExitCode {
    let bugs: Vec<Bug> = BUGS.iter().copied().filter(|known| bug.is_none_or(|bug| bug == *known)).collect();
    let found = first_failures(&bugs, seeds);
    let mut needed = Vec::new();
    for (bug, found) in bugs.iter().zip(found) {
        match found {
            Some(outcome) => {
                let text: String = outcome.failures.join("; ").chars().take(150).collect();
                println!("{:<30} seed {:>4}  {text}", bug.name(), outcome.seed);
                needed.push(seeds.iter().take_while(|seed| **seed != outcome.seed).count() as u64 + 1);
            }
            None => println!("{:<30} NOT FOUND in {} seeds", bug.name(), seeds.len()),
        }
    }
    report::score(&needed, bugs.len(), seeds.len(), json)
}
