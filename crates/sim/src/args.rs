//! The command line of the simulator.

use outlast_sim::Bug;

pub(crate) const USAGE: &str = "\
usage: cargo xtask sim [--seeds A..B | --seed S | --score A..B] [--bug NAME]
  --seeds A..B   run these worlds, those that once failed first (default 0..500)
  --seed S       run one world and print its trace
  --score A..B   run each known defect until one of these worlds finds it
  --bug NAME     give the store a defect, which must then be found";

/// What to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Job {
    One(u64),
    Many(Vec<u64>),
    Score(Vec<u64>),
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Args {
    pub(crate) job: Job,
    pub(crate) bug: Option<Bug>,
}

/// Seeds that found something once. They come first, for ever.
const FAILED_BEFORE: &str = include_str!("../../../testdata/seeds.txt");

impl Args {
    pub(crate) fn parse(args: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let mut args = args.into_iter();
        let mut parsed = Self { job: Job::Many(with_old_failures(0..500)), bug: None };
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or_else(|| format!("{arg} needs a value"));
            match arg.as_str() {
                "--seeds" => parsed.job = Job::Many(with_old_failures(range(&value()?)?)),
                "--seed" => parsed.job = Job::One(number(&value()?)?),
                "--score" => parsed.job = Job::Score(range(&value()?)?.collect()),
                "--bug" => {
                    let name = value()?;
                    parsed.bug = Some(Bug::parse(&name).ok_or_else(|| format!("there is no bug '{name}'"))?);
                }
                _ => return Err(format!("unknown argument '{arg}'")),
            }
        }
        Ok(parsed)
    }
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("'{text}' is not a seed"))
}

fn range(text: &str) -> Result<std::ops::Range<u64>, String> {
    let (from, to) = text.split_once("..").ok_or_else(|| format!("'{text}' is not a range: write A..B"))?;
    let range = number(from)?..number(to)?;
    if range.is_empty() { Err(format!("'{text}' holds no seed")) } else { Ok(range) }
}

fn with_old_failures(seeds: std::ops::Range<u64>) -> Vec<u64> {
    let mut all = old_failures(FAILED_BEFORE);
    all.retain(|seed| !seeds.contains(seed));
    all.extend(seeds);
    all
}

/// A seed at the start of a line; the rest of the line says what it found.
fn old_failures(text: &str) -> Vec<u64> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split_whitespace().next()?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Args, String> {
        Args::parse(line.split_whitespace().map(str::to_string))
    }

    #[test]
    fn a_range_comes_after_old_failures() {
        let Ok(Args { job: Job::Many(seeds), bug: None, .. }) = parse("--seeds 1000000..1000003") else {
            panic!("many seeds")
        };
        assert!(seeds.ends_with(&[1_000_000, 1_000_001, 1_000_002]));
        assert_eq!(seeds.len(), 3 + old_failures(FAILED_BEFORE).len());
        assert_eq!(old_failures("# why\n7 a lost message\n\n9\n"), [7, 9]);
    }

    #[test]
    fn one_seed_and_a_bug() {
        let parsed = parse("--seed 7 --bug MessageTwice").unwrap();
        assert_eq!(parsed, Args { job: Job::One(7), bug: Some(Bug::MessageTwice) });
        assert!(parse("--bug TokensRepeat").unwrap().bug.is_some(), "defects of the store have names too");
    }

    #[test]
    fn mistakes_are_named() {
        for line in ["--seeds 5", "--seeds 5..5", "--seed x", "--seed", "--bug Nothing", "--fast"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
