//! `cargo xtask fuzz`: runs the fuzz targets, guided by coverage. The nightly toolchain builds them in the package `fuzz`.
//! `cargo test -p outlast-fuzz` replays the kept inputs without that toolchain.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool prints to its terminal")]

mod tally;
mod tool;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use clap::builder::PossibleValuesParser;
use outlast_toolkit::{files, process};

use tally::Tally;
use tool::Tool;

/// The names of the targets in fuzz/Cargo.toml.
const TARGETS: [&str; 9] = [
    "connection_url",
    "decode_event",
    "decode_work_item",
    "http_request",
    "import_file",
    "list_filter_cursor",
    "migration_table",
    "replay_history",
    "row_corruption",
];

/// Runs the fuzz targets, guided by coverage.
#[derive(Parser)]
#[command(
    name = "fuzz",
    bin_name = "cargo xtask fuzz",
    after_help = "\
An input that fails is kept in fuzz/artifacts/TARGET. When the failure is fixed, copy the input to fuzz/corpus/TARGET: the
tests of outlast-fuzz replay all inputs in that folder."
)]
struct Args {
    /// The targets to run; default: all
    #[arg(value_name = "TARGET", value_parser = PossibleValuesParser::new(TARGETS))]
    targets: Vec<String>,
    /// How long each target runs
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    minutes: u32,
    /// How long each target runs, in seconds
    #[arg(long, value_name = "N", conflicts_with = "minutes", value_parser = clap::value_parser!(u32).range(1..))]
    seconds: Option<u32>,
    /// Afterwards removes the inputs that add no coverage from the corpus
    #[arg(long)]
    minimise: bool,
    /// Writes the counts to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

fn main() -> ExitCode {
    run(&Args::parse()).unwrap_or_else(|message| {
        eprintln!("fuzz: {message}");
        ExitCode::from(2)
    })
}

fn run(args: &Args) -> Result<ExitCode, String> {
    let tool = Tool::find_or_install()?;
    let mut tallies = Vec::new();
    let is_wanted = |target: &str| args.targets.is_empty() || args.targets.iter().any(|name| name == target);
    for target in TARGETS.into_iter().filter(|target| is_wanted(target)) {
        let tally = tool.run(target, args.seconds.unwrap_or(args.minutes * 60))?;
        if args.minimise {
            tool.minimise(target)?;
        }
        tallies.push((target, Tally { corpus: tool.corpus_size(target), ..tally }));
    }
    print!("{}", tally::table(&tallies));
    if let Some(path) = &args.json {
        files::write(&process::root().join(path), &tally::json(&tallies))?;
    }
    let is_clean = tallies.iter().all(|(_, tally)| tally.crashes == 0);
    Ok(if is_clean { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_has_a_program_and_a_corpus() {
        let folder = process::root().join("fuzz");
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        assert_eq!(manifest.matches("[[bin]]").count(), TARGETS.len());
        for target in TARGETS {
            assert!(manifest.contains(&format!("name = \"{target}\"")), "{target}");
            assert!(folder.join("fuzz_targets").join(format!("{target}.rs")).is_file(), "{target}");
            assert!(folder.join("corpus").join(target).is_dir(), "{target}");
        }
    }

    #[test]
    fn documented_command_lines_are_valid_and_unknown_targets_are_refused() {
        let parse = |line: &str| Args::try_parse_from(["fuzz"].into_iter().chain(line.split_whitespace()));
        for line in ["", "--minutes 60", "row_corruption --minimise", "--seconds 15 --json out.json"] {
            assert!(parse(line).is_ok(), "{line}");
        }
        for line in ["rows", "--minutes 0", "--minutes 1 --seconds 9", "--fast"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
