//! The command line of the simulator.

use outlast_sim::{Bug, Cut, Fault, Level, Sweep, recorded_first, script_names, sweep_fault_names};
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

pub(crate) const USAGE: &str = "\
usage: cargo xtask sim [--seeds A..B | --minutes N | --seed S | --score A..B | --sweep LEVEL] [--bug NAME] [--json FILE]
  --seeds A..B           run these worlds, those that once failed first (default 0..500)
  --minutes N            run worlds for N minutes: those that once failed, then from the first seed of --seeds on
  --seed S               run one world and print its trace
  --without FAULT,..     leave these faults out of the world
  --without-roots ID,..  leave these instances out of the world
  --score A..B           run each known defect until one of these worlds finds it
  --defects A..B         score only these of the known defects, which are numbered from 0
  --page FILE            write the table of the score to this page; defects that were not scored keep their cells
  --sweep LEVEL          run 37 scripts with a fault at each moment: calls, statements, polls or all
  --script NAME          sweep only this script
  --scripts A..B         sweep only these scripts, which are numbered from 0
  --at K --fault NAME    inject only this fault at only this moment
  --seed S --one-in N    sweep one moment in N, chosen by the seed
  --bug NAME             give the world a defect, which must then be found
  --json FILE            write the figures of the run to this file";

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
    pub(crate) json: Option<PathBuf>,
    pub(crate) page: Option<PathBuf>,
}

impl Args {
    pub(crate) fn parse(args: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let mut args = args.into_iter();
        let mut seeds = 0..500;
        let mut mode = None;
        let mut sweep = Sweep::default();
        let mut is_sweep = false;
        let mut parsed = Self {
            mode: Mode::Many(Vec::new()),
            bug: None,
            defects: None,
            cut: Cut::default(),
            json: None,
            page: None,
        };
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or_else(|| format!("{arg} needs a value"));
            match arg.as_str() {
                "--seeds" => seeds = range(&value()?)?,
                "--minutes" => mode = Some(Mode::Minutes(0, minutes(&value()?)?)),
                "--seed" => mode = Some(Mode::One(number(&value()?)?)),
                "--score" => mode = Some(Mode::Score(range(&value()?)?.collect())),
                "--without" => parsed.cut.faults = list(&value()?, fault)?,
                "--without-roots" => parsed.cut.roots = list(&value()?, |id| Ok(id.to_string()))?,
                "--bug" => {
                    let name = value()?;
                    parsed.bug = Some(Bug::parse(&name).ok_or_else(|| format!("there is no bug '{name}'"))?);
                }
                "--sweep" => {
                    sweep.levels = levels(&value()?)?;
                    is_sweep = true;
                }
                "--script" => sweep.script = Some(one_of(value()?, &script_names(), "script")?),
                "--scripts" => sweep.scripts = Some(positions(&value()?)?),
                "--defects" => parsed.defects = Some(positions(&value()?)?),
                "--at" => sweep.at = Some(value()?.parse().map_err(|_| "--at needs a number")?),
                "--fault" => sweep.fault = Some(one_of(value()?, &sweep_fault_names(), "fault")?),
                "--one-in" => sweep.one_in = number(&value()?)?.max(1),
                "--json" => parsed.json = Some(value()?.into()),
                "--page" => parsed.page = Some(value()?.into()),
                _ => return Err(format!("unknown argument '{arg}'")),
            }
        }
        parsed.mode = match mode {
            Some(Mode::One(seed)) if is_sweep => Mode::Sweep(Sweep { seed, ..sweep }),
            _ if is_sweep => Mode::Sweep(sweep),
            Some(Mode::Minutes(_, time)) => Mode::Minutes(seeds.start, time),
            Some(mode) => mode,
            None => Mode::Many(recorded_first(seeds).collect()),
        };
        Ok(parsed)
    }
}

fn levels(text: &str) -> Result<Vec<Level>, String> {
    match text {
        "all" => Ok(Level::ALL.to_vec()),
        "calls" => Ok(vec![Level::Calls, Level::SqliteCalls]),
        other => {
            let level = Level::ALL.iter().find(|level| level.name() == other);
            level.map(|level| vec![*level]).ok_or_else(|| format!("there is no level '{other}'"))
        }
    }
}

fn one_of(text: String, known: &[impl AsRef<str>], kind: &str) -> Result<String, String> {
    match known.iter().any(|known| known.as_ref() == text) {
        true => Ok(text),
        false => Err(format!("there is no {kind} '{text}'")),
    }
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("'{text}' is not a seed"))
}

fn minutes(text: &str) -> Result<Duration, String> {
    let minutes = text.parse::<f64>().ok().filter(|minutes| *minutes > 0.0 && *minutes < 1e6);
    minutes
        .map(|minutes| Duration::from_secs_f64(minutes * 60.0))
        .ok_or(format!("'{text}' is not a number of minutes"))
}

fn range(text: &str) -> Result<Range<u64>, String> {
    let (from, to) = text.split_once("..").ok_or_else(|| format!("'{text}' is not a range: write A..B"))?;
    let range = number(from)?..number(to)?;
    if range.is_empty() { Err(format!("'{text}' holds no seed")) } else { Ok(range) }
}

/// A range of positions in a list.
fn positions(text: &str) -> Result<Range<usize>, String> {
    let range = range(text)?;
    let position = |at: u64| usize::try_from(at).map_err(|_| format!("'{text}' is too large"));
    Ok(position(range.start)?..position(range.end)?)
}

fn fault(name: &str) -> Result<Fault, String> {
    Fault::parse(name).ok_or_else(|| format!("there is no fault '{name}'"))
}

fn list<C: FromIterator<T>, T>(text: &str, item: impl Fn(&str) -> Result<T, String>) -> Result<C, String> {
    text.split(',').filter(|part| !part.is_empty()).map(item).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Args, String> {
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
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
