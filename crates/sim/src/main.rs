//! `cargo xtask sim`: runs worlds and reports the broken invariants.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool prints to its terminal")]

mod args;
mod defect_page;
mod report;
mod sweep_report;

use args::{Args, Mode};
use outlast_sim::{
    BUGS, Bug, Settings, first_failures, recorded_first, run, run_many, run_while, shipped_bugs, sweep,
};
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

fn main() -> ExitCode {
    let args = Args::parse(std::env::args().skip(1)).unwrap_or_else(|error| error.exit());
    let Args { mode, bug, defects, cut, postgres, json, page } = args;
    let settings = Settings { bug, cut, postgres, ..Settings::default() };
    let json = json.as_deref();
    match mode {
        Mode::One(seed) => run_one(seed, &Settings { keep_lines: usize::MAX, ..settings }),
        Mode::Many(seeds) => report::summary(&run_many(&seeds, &settings), &settings, json),
        Mode::Minutes(first, time) => report::summary(&run_for(first, time, &settings), &settings, json),
        Mode::Sweep(what) => {
            let is_single = what.at.is_some();
            let keep_lines = if is_single { usize::MAX } else { settings.keep_lines };
            sweep_report::swept(&sweep(&what, &Settings { keep_lines, ..settings }), json, is_single)
        }
        Mode::Score(seeds) => {
            let known = shipped_bugs().into_iter().chain(BUGS.iter().copied()).enumerate();
            let chosen = known.filter(|(at, known)| {
                bug.is_none_or(|bug| bug == *known) && defects.as_ref().is_none_or(|range| range.contains(at))
            });
            let bugs: Vec<Bug> = chosen.map(|(_, known)| known).collect();
            score(&seeds, &bugs, json, page.as_deref())
        }
    }
}

#[allow(clippy::disallowed_methods, reason = "the run is limited by real time")]
fn run_for(first: u64, time: Duration, settings: &Settings) -> outlast_sim::Summary {
    let (began, seeds) = (Instant::now(), Mutex::new(recorded_first(first..)));
    let next = || seeds.lock().unwrap_or_else(PoisonError::into_inner).next();
    run_while(|| if began.elapsed() < time { next() } else { None }, settings)
}

/// Runs one world and prints its whole trace.
fn run_one(seed: u64, settings: &Settings) -> ExitCode {
    let outcome = run(seed, settings);
    println!("seed {seed}: {}", outcome.setting);
    outcome.lines.iter().for_each(|line| println!("{line}"));
    println!("{}", outcome.tally.table());
    let same = run(seed, settings).digest == outcome.digest;
    println!("trace {:016x}, {} when run again", outcome.digest, if same { "the same" } else { "ANOTHER" });
    if !outcome.tally.is_counted() {
        println!("no lease was lost and no commit was in doubt: this world does not count");
    }
    outcome.failures.iter().for_each(|failure| println!("FAILED: {failure}"));
    report::exit_code(outcome.failures.is_empty() && same)
}

/// Prints for each of these defects the first seed whose world finds it.
fn score(seeds: &[u64], bugs: &[Bug], json: Option<&Path>, page: Option<&Path>) -> ExitCode {
    let found = first_failures(bugs, seeds);
    let mut rows = Vec::new();
    for (bug, found) in bugs.iter().zip(found) {
        match found {
            Some(outcome) => {
                let text: String = outcome.failures.join("; ").chars().take(150).collect();
                println!("{:<34} seed {:>4}  {text}", bug.name(), outcome.seed);
                let needed = seeds.iter().take_while(|seed| **seed != outcome.seed).count() as u64 + 1;
                rows.push((*bug, needed, outcome.failures[0].clone()));
            }
            None => println!("{:<34} NOT FOUND in {} seeds", bug.name(), seeds.len()),
        }
    }
    let is_written = page.is_none_or(|page| defect_page::write(page, bugs, &rows));
    report::score(&rows, bugs.len(), seeds.len(), json, is_written)
}
