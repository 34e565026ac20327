//! `cargo xtask mutants`: changes the code in one place at a time and checks that a fast test fails. A run can be stopped
//! and continued: the outcome of a mutant is kept until its function, or the test that caught it, changes.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool prints to its terminal")]

mod choice;
mod fences;
mod judge;
mod listed;
mod outcomes;
mod report;
mod sources;
mod statements;
mod target;
mod tool;
mod woven;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use clap::builder::{PossibleValue, PossibleValuesParser};

use listed::Mutant;
use outcomes::Outcomes;
use outlast_toolkit::process;
use report::Figures;
use target::{TARGETS, Target};
use tool::Tool;

/// Changes the code in one place at a time: a test of its target must fail.
#[derive(Parser)]
#[command(name = "mutants", bin_name = "cargo xtask mutants")]
struct Args {
    /// Mutates this part of the code only; may be given several times
    #[arg(long = "target", value_name = "NAME", value_parser = target_names())]
    targets: Vec<String>,
    /// Runs every N-th mutant only, starting with the K-th; K counts from 0
    #[arg(long, value_name = "K/N", value_parser = shard, default_value = "0/1")]
    shard: (usize, usize),
    /// Runs only the mutants of the checks of tokens and leases
    #[arg(long)]
    fences: bool,
    /// Runs the mutants again that no test caught
    #[arg(long)]
    again: bool,
    /// Prints the mutants and their outcomes, and runs nothing
    #[arg(long)]
    list: bool,
    /// Prints the mutants that no test caught, and runs nothing
    #[arg(long, conflicts_with = "list")]
    survivors: bool,
    /// Writes the figures of all runs to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

fn target_names() -> PossibleValuesParser {
    TARGETS.iter().map(|target| PossibleValue::new(target.name).help(target.about)).collect::<Vec<_>>().into()
}

fn shard(text: &str) -> Result<(usize, usize), String> {
    let parts = text.split_once('/').and_then(|(k, n)| Some((k.parse().ok()?, n.parse().ok()?)));
    parts.filter(|(k, n)| k < n).ok_or_else(|| "a shard is K/N with K below N, for example 0/8".to_string())
}

fn main() -> ExitCode {
    run(&Args::parse()).unwrap_or_else(|message| {
        eprintln!("mutants: {message}");
        ExitCode::from(2)
    })
}

/// Runs, prints or lists the mutants of the chosen targets.
fn run(args: &Args) -> Result<ExitCode, String> {
    let tool = tool::find_or_install()?;
    let sources = sources::Sources::read()?;
    let (mut figures, mut survivors) = (Vec::new(), 0);
    for target in TARGETS {
        let home = home().join(target.name);
        let mut outcomes = Outcomes::open(&home, &sources, sources.of_all(target))?;
        let mutants = tool.list(target)?;
        if args.includes(target) {
            let chosen = args.choose(&mutants, &outcomes);
            if args.list {
                report::print_all(&chosen, &outcomes);
            } else if args.survivors {
                report::print_survivors(&chosen, &outcomes);
            } else if chosen.is_empty() {
                println!("{}: every mutant has an outcome", target.name);
            } else if let Some(dialect) = target.sql {
                statements::run(target, dialect, &home, &chosen, &mut outcomes)?;
            } else {
                try_all(&tool, target, &home, &mutants, &chosen, &mut outcomes)?;
            }
        }
        let of_target = Figures::of(&mutants, &outcomes);
        survivors += if args.includes(target) { of_target.missed } else { 0 };
        figures.push((target.name, of_target));
    }
    println!("{}", report::table(&figures));
    if let Some(file) = &args.json {
        report::write(file, &figures)?;
    }
    if args.list || args.survivors || survivors == 0 {
        return Ok(ExitCode::SUCCESS);
    }
    println!(
        "{survivors} mutants survive: `cargo xtask mutants --survivors` lists them; after you wrote a test, `--again` tries them again"
    );
    Ok(ExitCode::FAILURE)
}

/// Judges mutants that a test can select at run time in one build, and the other mutants in one build each.
fn try_all(
    tool: &Tool,
    target: &Target,
    home: &Path,
    mutants: &[Mutant],
    chosen: &[&Mutant],
    outcomes: &mut Outcomes,
) -> Result<(), String> {
    let (chosen, built): (Vec<&Mutant>, Vec<&Mutant>) =
        chosen.iter().partition(|mutant| mutant.spot.is_some());
    outcomes.begin(&built)?;
    if !chosen.is_empty() {
        woven::run(target, home, mutants, &chosen, outcomes)?;
    }
    if !built.is_empty() {
        tool.run(target, home, &built)?;
        outcomes.absorb()?;
    }
    Ok(())
}

/// The folder of the outcomes and of the builds with mutants.
fn home() -> PathBuf {
    process::target().join("mutants")
}

impl Args {
    fn includes(&self, target: &Target) -> bool {
        self.targets.is_empty() || self.targets.iter().any(|name| name == target.name)
    }

    /// The mutants to run or to print. The mutants of a shard are spread over the whole list, so that a shard is a
    /// representative sample.
    fn choose<'a>(&self, mutants: &'a [Mutant], outcomes: &Outcomes) -> Vec<&'a Mutant> {
        let (shard, shards) = self.shard;
        let wanted = |mutant: &Mutant| match outcomes.outcome(mutant) {
            _ if self.list || self.survivors => true,
            None => !self.again,
            Some(outcome) => self.again && outcome == outcomes::MISSED,
        };
        let of_shard = mutants.iter().skip(shard).step_by(shards);
        of_shard.filter(|mutant| (!self.fences || fences::guards(mutant)) && wanted(mutant)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Args, clap::Error> {
        Args::try_parse_from(["mutants"].into_iter().chain(line.split_whitespace()))
    }

    #[test]
    fn valid_arguments_are_read_and_invalid_ones_are_refused() {
        let all = parse("").unwrap();
        assert!(TARGETS.iter().all(|target| all.includes(target)) && all.shard == (0, 1));
        let some = parse("--target engine --shard 3/8 --again --json f").unwrap();
        let included: Vec<&str> =
            TARGETS.iter().filter(|target| some.includes(target)).map(|t| t.name).collect();
        assert_eq!((included.as_slice(), some.shard, some.again), (&["engine"][..], (3, 8), true));
        assert_eq!(some.json.as_deref(), Some(Path::new("f")));
        for line in ["--target unknown", "--shard 8/8", "--shard 1", "--shard", "--jobs 2"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn a_shard_skips_mutants_that_have_an_outcome() {
        let mutants: Vec<Mutant> = (0..6).map(|at| Mutant::sample("crates/a/src/b.rs", "f", at)).collect();
        let mut outcomes = Outcomes::default();
        outcomes.record(mutants[1].key.clone(), "caught");
        outcomes.record(mutants[3].key.clone(), outcomes::MISSED);
        let chosen = |line: &str| -> Vec<usize> {
            let chosen = parse(line).unwrap().choose(&mutants, &outcomes);
            chosen.iter().map(|mutant| mutants.iter().position(|m| m.key == mutant.key).unwrap()).collect()
        };
        assert_eq!(chosen("--shard 0/2"), [0, 2, 4]);
        assert_eq!(chosen("--shard 1/2"), [5]);
        assert_eq!(chosen("--shard 1/2 --again"), [3]);
        assert_eq!(chosen("--list").len(), 6);
        assert!(chosen("--fences").is_empty());
    }
}
