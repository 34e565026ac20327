//! `cargo xtask mutants`: the code is changed in one place at a time, and a fast test must notice. A run may be stopped
//! and goes on where it stopped: what is known of a mutant is kept until its function changes.

mod choice;
mod fences;
mod judge;
mod ledger;
mod listed;
mod report;
mod statements;
mod target;
mod tool;
mod woven;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::command::listing;
use crate::process;
use ledger::Ledger;
use listed::Mutant;
use report::Figures;
use target::{TARGETS, Target};
use tool::Tool;

pub(crate) fn details() -> String {
    let options = listing([
        ("--target NAME", "mutate this part only; may be given several times"),
        ("--shard K/N", "only every N-th mutant, from the K-th on, counted from 0"),
        ("--fences", "only the checks of tokens and leases"),
        ("--again", "only those that nobody noticed, once more"),
        ("--list", "print the mutants and what is known of them, run nothing"),
        ("--survivors", "print those that nobody noticed, run nothing"),
        ("--json FILE", "write the figures of all runs so far to this file"),
    ]);
    let targets = listing(TARGETS.iter().map(|target| (target.name, target.about)));
    format!("{options}\ntargets:\n{targets}")
}

pub(crate) fn run(args: &[String]) -> Result<ExitCode, String> {
    let plan = Plan::parse(args)?;
    let tool = tool::find_or_install()?;
    let mut figures = Vec::new();
    for target in TARGETS {
        let home = home().join(target.name);
        let mut ledger = Ledger::open(&home)?;
        let mutants = tool.list(target)?;
        if plan.targets.contains(&target.name) {
            let chosen: Vec<&Mutant> = plan.choose(&mutants, &ledger).collect();
            match plan.show {
                Show::All => report::print_all(&chosen, &ledger),
                Show::Survivors => report::print_survivors(&chosen, &ledger),
                Show::Nothing if chosen.is_empty() => println!("{}: nothing is left to try", target.name),
                Show::Nothing if target.is_sql => statements::run(target, &home, &chosen, &mut ledger)?,
                Show::Nothing => try_all(&tool, target, &home, &mutants, &chosen, &mut ledger)?,
            }
        }
        figures.push((target.name, Figures::of(&mutants, &ledger)));
    }
    println!("{}", report::table(&figures));
    if let Some(file) = &plan.json {
        report::write(file, &figures)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// In one build those that can be chosen when a test runs, in a build for each the others.
fn try_all(
    tool: &Tool,
    target: &Target,
    home: &Path,
    mutants: &[Mutant],
    chosen: &[&Mutant],
    ledger: &mut Ledger,
) -> Result<(), String> {
    let (chosen, built): (Vec<&Mutant>, Vec<&Mutant>) =
        chosen.iter().partition(|mutant| mutant.spot.is_some());
    ledger.begin(&built)?;
    if !chosen.is_empty() {
        woven::run(target, home, mutants, &chosen, ledger)?;
    }
    if !built.is_empty() {
        tool.run(target, home, &built)?;
        ledger.absorb()?;
    }
    Ok(())
}

/// Where results are kept, and where mutants are built, away from everybody else's artefacts.
fn home() -> PathBuf {
    let target = process::target();
    process::root().join(target).join("mutants")
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Show {
    Nothing,
    All,
    Survivors,
}

struct Plan {
    targets: Vec<&'static str>,
    /// K and N.
    shard: (usize, usize),
    fences: bool,
    again: bool,
    show: Show,
    json: Option<PathBuf>,
}

impl Plan {
    fn parse(args: &[String]) -> Result<Self, String> {
        let mut plan = Self {
            targets: Vec::new(),
            shard: (0, 1),
            fences: false,
            again: false,
            show: Show::Nothing,
            json: None,
        };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or_else(|| wrong(&format!("{arg} needs a value")));
            match arg.as_str() {
                "--target" => plan.targets.push(named(value()?)?.name),
                "--shard" => plan.shard = shard(value()?)?,
                "--json" => plan.json = Some(Path::new(value()?).to_path_buf()),
                "--fences" => plan.fences = true,
                "--again" => plan.again = true,
                "--list" => plan.show = Show::All,
                "--survivors" => plan.show = Show::Survivors,
                _ => return Err(wrong(&format!("unknown argument `{arg}`"))),
            }
        }
        if plan.targets.is_empty() {
            plan.targets = TARGETS.iter().map(|target| target.name).collect();
        }
        Ok(plan)
    }

    /// What to run or to print. Shards take turns along the list, so that one of them is a fair sample of all.
    fn choose<'a>(&self, mutants: &'a [Mutant], ledger: &Ledger) -> impl Iterator<Item = &'a Mutant> {
        let (shard, shards) = self.shard;
        let wanted = |mutant: &Mutant| match (self.show, ledger.outcome(mutant)) {
            (Show::All | Show::Survivors, _) => true,
            (Show::Nothing, None) => !self.again,
            (Show::Nothing, Some(outcome)) => self.again && outcome == ledger::MISSED,
        };
        let mine = mutants.iter().enumerate().filter(move |(at, _)| at % shards == shard).map(|(_, m)| m);
        let chosen: Vec<&Mutant> =
            mine.filter(|mutant| (!self.fences || fences::guards(mutant)) && wanted(mutant)).collect();
        chosen.into_iter()
    }
}

fn named(name: &str) -> Result<&'static Target, String> {
    TARGETS.iter().find(|target| target.name == name).ok_or_else(|| wrong(&format!("there is no `{name}`")))
}

fn shard(text: &str) -> Result<(usize, usize), String> {
    let parts = text.split_once('/').and_then(|(k, n)| Some((k.parse().ok()?, n.parse().ok()?)));
    parts.filter(|(k, n)| k < n).ok_or_else(|| wrong(&format!("`{text}` is no shard: try 0/8")))
}

fn wrong(what: &str) -> String {
    format!("mutants: {what}\n\n{}", details())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(line: &str) -> Result<Plan, String> {
        Plan::parse(&line.split_whitespace().map(str::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn arguments_are_understood_or_refused() {
        let all = plan("").unwrap();
        assert_eq!((all.targets.len(), all.shard, all.show), (TARGETS.len(), (0, 1), Show::Nothing));
        let some = plan("--target engine --shard 3/8 --again --json f").unwrap();
        assert_eq!((some.targets.as_slice(), some.shard, some.again), (&["engine"][..], (3, 8), true));
        assert_eq!(some.json.as_deref(), Some(Path::new("f")));
        for line in ["--target nobody", "--shard 8/8", "--shard 1", "--shard", "--jobs 2"] {
            assert!(plan(line).is_err(), "{line}");
        }
    }

    #[test]
    fn shards_take_turns_and_leave_out_what_is_known() {
        let mutants: Vec<Mutant> = (0..6).map(|at| Mutant::sample("crates/a/src/b.rs", "f", at)).collect();
        let mut ledger = Ledger::default();
        ledger.record(mutants[1].key.clone(), "caught");
        ledger.record(mutants[3].key.clone(), ledger::MISSED);
        let chosen = |line: &str| -> Vec<usize> {
            let plan = plan(line).unwrap();
            let chosen = plan.choose(&mutants, &ledger);
            chosen.map(|mutant| mutants.iter().position(|m| m.key == mutant.key).unwrap()).collect()
        };
        assert_eq!(chosen("--shard 0/2"), [0, 2, 4]);
        assert_eq!(chosen("--shard 1/2"), [5]);
        assert_eq!(chosen("--shard 1/2 --again"), [3]);
        assert_eq!(chosen("--list").len(), 6);
        assert!(chosen("--fences").is_empty());
    }
}
