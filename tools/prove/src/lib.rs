//! `cargo xtask prove`: repeats the attempts to break the promises, in chunks, until each has its target on the code that ships.
//! Every chunk that succeeds is added to the record of its row in `testdata/scoreboard`, so that several goes add up.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool prints to its terminal")]

mod board;
mod chunk;
mod figures;
mod go;
mod jobs;
mod listing;
mod quotes;
mod record;
mod stamp;

use std::process::ExitCode;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use outlast_toolkit::process;

pub use board::{FOLDER, Scoreboard, show};
pub use quotes::mistakes;
pub use stamp::stamped;

use go::Go;
use jobs::{JOBS, Job};
use stamp::Stamp;

/// The arguments of `cargo xtask prove`.
#[derive(clap::Args)]
pub struct Args {
    /// Runs a small part of each job that has parts
    #[arg(long)]
    quick: bool,
    /// Starts no chunk that is expected to end after this time
    #[arg(long, value_name = "N")]
    minutes: Option<u64>,
    /// Runs these jobs only
    #[arg(long, value_name = "JOB,..", value_delimiter = ',', value_parser = job_names())]
    only: Vec<String>,
    /// Prints the jobs, what is done, and whether shipped code changed since; runs nothing
    #[arg(long)]
    list: bool,
}

fn job_names() -> PossibleValuesParser {
    JOBS.iter().map(|job| job.name).into()
}

/// Runs the next chunks of the jobs, or lists the jobs. `write_page` writes the scoreboard from the records.
pub fn run(args: &Args, write_page: impl FnOnce() -> Result<ExitCode, String>) -> Result<ExitCode, String> {
    let is_chosen = |job: &&Job<'_>| args.only.is_empty() || args.only.iter().any(|name| name == job.name);
    let jobs: Vec<&Job<'_>> = JOBS.iter().filter(is_chosen).collect();
    let (board, scratch) = (process::root().join(FOLDER), process::target().join("prove"));
    if args.list {
        print!("{}", listing::table(&jobs, args.quick, &board, &Stamp::take()?.code)?);
        return Ok(ExitCode::SUCCESS);
    }
    let limit = args.minutes.map(|minutes| Duration::from_secs(minutes * 60));
    let go = Go { board: &board, scratch: &scratch, stamp: &Stamp::take, is_quick: args.quick, limit };
    let failures = go.run(&jobs)?;
    write_page()?;
    print!("\n{}", listing::table(&jobs, args.quick, &board, &Stamp::take()?.code)?);
    for failure in &failures {
        println!("\nFAILED {failure}");
    }
    Ok(if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: Args,
    }

    fn parse(line: &str) -> Result<Args, clap::Error> {
        Cli::try_parse_from(["prove"].into_iter().chain(line.split_whitespace())).map(|cli| cli.args)
    }

    #[test]
    fn known_jobs_are_accepted_and_unknown_jobs_are_refused() {
        let args = parse("--quick --minutes 90 --only sim,power").unwrap();
        assert!(args.quick && !args.list);
        assert_eq!(
            (args.minutes, args.only.as_slice()),
            (Some(90), &["sim".to_string(), "power".to_string()][..])
        );
        for line in ["--only simulator", "--minutes soon", "sim"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
