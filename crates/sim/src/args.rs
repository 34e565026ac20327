//! The command line of the simulator.

use clap::Parser;
use outlast_sim::{Bug, Cut, Fault, Level, Sweep, recorded_first, script_names, sweep_fault_names};
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

/// Runs simulated worlds, and reports the invariants that they break.
#[derive(Parser)]
#[command(name = "sim", bin_name = "cargo xtask sim")]
struct Options {
    /// Runs these worlds, those that once failed first
    #[arg(long, value_name = "A..B", value_parser = range, default_value = "0..500")]
    seeds: Range<u64>,
    /// Runs worlds for N minutes: those that once failed, then from the first seed of --seeds on
    #[arg(long, value_name = "N", value_parser = minutes, conflicts_with_all = ["seed", "score", "sweep"])]
    minutes: Option<Duration>,
    /// Runs one world and prints its trace; with --sweep, chooses the moments of --one-in
    #[arg(long, value_name = "S", conflicts_with = "score")]
    seed: Option<u64>,
    /// Leaves these faults out of the world
    #[arg(long, value_name = "FAULT,..", value_parser = faults, default_value = "", hide_default_value = true)]
    without: BTreeSet<Fault>,
    /// Leaves these instances out of the world
    #[arg(long, value_name = "ID,..", value_parser = roots, default_value = "", hide_default_value = true)]
    without_roots: BTreeSet<String>,
    /// Runs each known defect until one of these worlds finds it
    #[arg(long, value_name = "A..B", value_parser = range, conflicts_with = "sweep")]
    score: Option<Range<u64>>,
    /// Scores only these of the known defects, which are numbered from 0
    #[arg(long, value_name = "A..B", value_parser = positions)]
    defects: Option<Range<usize>>,
    /// Writes the table of the score to this page; defects that were not scored keep their cells
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
    /// Runs 37 scripts with a fault at each moment: calls, statements, polls or all
    #[arg(long, value_name = "LEVEL", value_parser = levels)]
    sweep: Option<Levels>,
    /// Sweeps only this script
    #[arg(long, value_name = "NAME", value_parser = script)]
    script: Option<String>,
    /// Sweeps only these scripts, which are numbered from 0
    #[arg(long, value_name = "A..B", value_parser = positions)]
    scripts: Option<Range<usize>>,
    /// Injects a fault at only this moment
    #[arg(long, value_name = "K")]
    at: Option<usize>,
    /// Injects only this fault
    #[arg(long, value_name = "NAME", value_parser = sweep_fault)]
    fault: Option<String>,
    /// Sweeps one moment in N
    #[arg(long, value_name = "N", default_value_t = 1)]
    one_in: u64,
    /// Gives the world a defect, which must then be found
    #[arg(long, value_name = "NAME", value_parser = bug)]
    bug: Option<Bug>,
    /// Gives every world the PostgreSQL store
    #[arg(long, conflicts_with = "sweep")]
    postgres: bool,
    /// Writes the figures of the run to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

type Levels = Vec<Level>;

/// The mode of the command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    One(u64),
    Many(Vec<u64>),
    /// The recorded seeds and then all seeds from this one on, for this long.
    Minutes(u64, Duration),
    Score(Vec<u64>),
    Sweep(Sweep),
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Args {
    pub(crate) mode: Mode,
    pub(crate) bug: Option<Bug>,
    /// The defects of a score, by their numbers.
    pub(crate) defects: Option<Range<usize>>,
    pub(crate) cut: Cut,
    /// Whether every world has the PostgreSQL store.
    pub(crate) postgres: bool,
    pub(crate) json: Option<PathBuf>,
    pub(crate) page: Option<PathBuf>,
}

impl Args {
    pub(crate) fn parse(args: impl IntoIterator<Item = String>) -> Result<Self, clap::Error> {
        let options = Options::try_parse_from(["sim".to_string()].into_iter().chain(args))?;
        let mode = match (options.sweep, options.seed, options.minutes, options.score) {
            (Some(levels), seed, ..) => Mode::Sweep(Sweep {
                levels,
                script: options.script,
                scripts: options.scripts,
                at: options.at,
                fault: options.fault,
                seed: seed.unwrap_or_default(),
                one_in: options.one_in.max(1),
            }),
            (None, Some(seed), ..) => Mode::One(seed),
            (None, None, Some(time), _) => Mode::Minutes(options.seeds.start, time),
            (None, None, None, Some(seeds)) => Mode::Score(seeds.collect()),
            (None, None, None, None) => Mode::Many(recorded_first(options.seeds).collect()),
        };
        let cut = Cut { faults: options.without, roots: options.without_roots };
        Ok(Self {
            mode,
            bug: options.bug,
            defects: options.defects,
            cut,
            postgres: options.postgres,
            json: options.json,
            page: options.page,
        })
    }
}

fn levels(text: &str) -> Result<Levels, String> {
    match text {
        "all" => Ok(Level::ALL.to_vec()),
        "calls" => Ok(vec![Level::Calls, Level::SqliteCalls]),
        other => {
            let level = Level::ALL.iter().find(|level| level.name() == other);
            level.map(|level| vec![*level]).ok_or_else(|| format!("there is no level '{other}'"))
        }
    }
}

fn script(name: &str) -> Result<String, String> {
    one_of(name, &script_names(), "script")
}

fn sweep_fault(name: &str) -> Result<String, String> {
    one_of(name, &sweep_fault_names(), "fault")
}

fn one_of(name: &str, known: &[impl AsRef<str>], kind: &str) -> Result<String, String> {
    match known.iter().any(|known| known.as_ref() == name) {
        true => Ok(name.to_string()),
        false => Err(format!("there is no {kind} '{name}'")),
    }
}

fn minutes(text: &str) -> Result<Duration, String> {
    let minutes = text.parse::<f64>().ok().filter(|minutes| *minutes > 0.0 && *minutes < 1e6);
    minutes
        .map(|minutes| Duration::from_secs_f64(minutes * 60.0))
        .ok_or(format!("'{text}' is not a number of minutes"))
}

fn range(text: &str) -> Result<Range<u64>, String> {
    let (from, to) = text.split_once("..").ok_or_else(|| format!("'{text}' is not a range: write A..B"))?;
    let number = |text: &str| text.parse().map_err(|_| format!("'{text}' is not a seed"));
    let range: Range<u64> = number(from)?..number(to)?;
    if range.is_empty() { Err(format!("'{text}' holds no seed")) } else { Ok(range) }
}

/// A range of positions in a list.
fn positions(text: &str) -> Result<Range<usize>, String> {
    let range = range(text)?;
    let position = |at: u64| usize::try_from(at).map_err(|_| format!("'{text}' is too large"));
    Ok(position(range.start)?..position(range.end)?)
}

fn bug(name: &str) -> Result<Bug, String> {
    Bug::parse(name).ok_or_else(|| format!("there is no bug '{name}'"))
}

fn faults(list: &str) -> Result<BTreeSet<Fault>, String> {
    let fault = |name| Fault::parse(name).ok_or_else(|| format!("there is no fault '{name}'"));
    parts(list).map(fault).collect()
}

fn roots(list: &str) -> Result<BTreeSet<String>, String> {
    Ok(parts(list).map(str::to_string).collect())
}

fn parts(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').filter(|part| !part.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Args, clap::Error> {
        Args::parse(line.split_whitespace().map(str::to_string))
    }

    #[test]
    fn recorded_seeds_run_before_the_range() {
        let Ok(Args { mode: Mode::Many(seeds), bug: None, .. }) = parse("--seeds 1000000..1000003") else {
            panic!("many seeds")
        };
        assert_eq!(seeds, recorded_first(1_000_000..1_000_003).collect::<Vec<_>>());
    }

    #[test]
    fn one_seed_takes_a_bug_and_cuts() {
        let parsed =
            parse("--seed 7 --bug MessageTwice --without lost-answer,crash --without-roots i1").unwrap();
        let cut = Cut { faults: [Fault::LostAnswer, Fault::Crash].into(), roots: ["i1".to_string()].into() };
        assert_eq!(
            parsed,
            Args {
                mode: Mode::One(7),
                bug: Some(Bug::MessageTwice),
                defects: None,
                cut,
                postgres: false,
                json: None,
                page: None
            }
        );
        assert!(parse("--bug TokensRepeat").unwrap().bug.is_some(), "defects of the store have names too");
    }

    #[test]
    fn minutes_start_at_the_first_seed_of_the_range() {
        for line in ["--minutes 2 --seeds 50..60", "--seeds 50..60 --minutes 2"] {
            assert_eq!(parse(line).unwrap().mode, Mode::Minutes(50, Duration::from_secs(120)), "{line}");
        }
    }

    #[test]
    fn sweep_options_select_one_run() {
        let line = "--sweep statements --script hello --at 7 --fault fails-after --seed 3 --one-in 10";
        let sweep = Sweep {
            levels: vec![Level::Statements],
            script: Some("hello".to_string()),
            scripts: None,
            at: Some(7),
            fault: Some("fails-after".to_string()),
            seed: 3,
            one_in: 10,
        };
        assert_eq!(parse(line).unwrap().mode, Mode::Sweep(sweep));
        assert_eq!(parse("--sweep all").unwrap().mode, Mode::Sweep(Sweep::default()));
        for line in ["--sweep nothing", "--sweep calls --script no", "--sweep calls --fault no"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn parts_of_the_scripts_and_of_the_defects_are_ranges() {
        let Mode::Sweep(Sweep { scripts, .. }) = parse("--sweep all --scripts 4..9").unwrap().mode else {
            panic!("a sweep")
        };
        assert_eq!(scripts, Some(4..9));
        assert_eq!(parse("--score 0..9 --defects 3..5").unwrap().defects, Some(3..5));
        assert!(parse("--score 0..9 --defects 5..5").is_err());
    }

    #[test]
    fn every_fault_parses_from_its_name() {
        for fault in Fault::ALL {
            assert_eq!(Fault::parse(&fault.name().replace(' ', "-")), Some(*fault));
        }
    }

    #[test]
    fn invalid_arguments_are_refused() {
        for line in [
            "--seeds 5",
            "--seeds 5..5",
            "--seed x",
            "--seed",
            "--bug Nothing",
            "--fast",
            "--without sun",
            "--minutes soon",
            "--minutes -1",
            "--score 0..1 --sweep all",
        ] {
            let Err(error) = parse(line) else { panic!("{line}") };
            assert_eq!(error.exit_code(), 2, "{line}");
        }
    }
}
