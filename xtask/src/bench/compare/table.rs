//! Medians side by side.

use serde_json::Value;
use std::fmt::Write as _;

use super::case::{Case, Figure, digits};

/// What Outlast uses if it is told nothing.
const DEFAULT_DISPATCHERS: usize = 2;

/// The first words of a complaint that makes the run worthless.
pub(super) const BROKEN: &str = "floor broken";

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Who {
    Floor,
    Peer,
    Ours,
}

impl Who {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Floor => "floor",
            Self::Peer => "duroxide",
            Self::Ours => "outlast",
        }
    }
}

/// The answer of one process.
pub(super) struct Sample {
    pub(super) case: &'static str,
    pub(super) who: Who,
    pub(super) dispatchers: usize,
    pub(super) result: Value,
}

/// A median, and the dispatchers that it took.
type Found = Option<(f64, usize)>;

pub(super) fn render(cases: &[&'static Case], samples: &[Sample]) -> String {
    let head = [
        "case",
        "figure",
        "floor",
        "duroxide",
        "outlast, default",
        "outlast, best",
        "to duroxide",
        "to floor",
    ];
    let mut rows = vec![head.map(str::to_string)];
    for case in cases {
        rows.extend(case.figures.iter().map(|figure| row(case, figure, samples)));
    }
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let mut out = String::new();
    for row in &rows {
        let mut line = format!("{:<1$}  {2:<3$}", row[0], width(0), row[1], width(1));
        for (column, cell) in row.iter().enumerate().skip(2) {
            let _ = write!(line, "  {cell:>0$}", width(column));
        }
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out
}

fn row(case: &Case, figure: &Figure, samples: &[Sample]) -> [String; 8] {
    let floor = at(case, figure, samples, Who::Floor, 0);
    let peer = best(case, figure, samples, Who::Peer);
    let default = at(case, figure, samples, Who::Ours, DEFAULT_DISPATCHERS);
    let ours = best(case, figure, samples, Who::Ours);
    let ratio = |other: Found| Some(figure.ratio(ours?.0, other?.0));
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_string());
    let plain = |found: Found| or_dash(found.map(|(value, _)| digits(value)));
    let with_dispatchers =
        |found: Found| or_dash(found.map(|(value, at)| format!("{} ({at})", digits(value))));
    [
        case.name.to_string(),
        figure.unit.to_string(),
        plain(floor),
        with_dispatchers(peer),
        plain(default),
        with_dispatchers(ours),
        or_dash(ratio(peer).map(|ratio| format!("{} x", digits(ratio)))),
        or_dash(ratio(floor).map(|ratio| format!("{} %", digits(ratio * 100.0)))),
    ]
}

/// The median of a figure at the number of dispatchers where the case's first figure is best.
fn best(case: &Case, figure: &Figure, samples: &[Sample], who: Who) -> Found {
    let first = &case.figures[0];
    let mut tried: Vec<usize> = of(case, samples, who).map(|sample| sample.dispatchers).collect();
    tried.sort_unstable();
    tried.dedup();
    let medians = tried.into_iter().filter_map(|dispatchers| at(case, first, samples, who, dispatchers));
    let (_, dispatchers) =
        medians.reduce(|best, next| if first.ratio(next.0, best.0) > 1.0 { next } else { best })?;
    at(case, figure, samples, who, dispatchers)
}

fn at(case: &Case, figure: &Figure, samples: &[Sample], who: Who, dispatchers: usize) -> Found {
    let values = of(case, samples, who)
        .filter(|sample| sample.dispatchers == dispatchers)
        .filter_map(|sample| sample.result[figure.key].as_f64());
    Some((median(values.collect())?, dispatchers))
}

fn of<'a>(case: &Case, samples: &'a [Sample], who: Who) -> impl Iterator<Item = &'a Sample> {
    let name = case.name;
    samples.iter().filter(move |sample| sample.case == name && sample.who == who)
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    Some(if values.len() % 2 == 1 { upper } else { (values[values.len() / 2 - 1] + upper) / 2.0 })
}

/// Floors that are too slow to compare with, and orchestrations that did not complete.
pub(super) fn complaints(samples: &[Sample]) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut cases: Vec<&str> = samples.iter().map(|sample| sample.case).collect();
    cases.sort_unstable();
    cases.dedup();
    for case in cases {
        let floors = samples.iter().filter(|sample| sample.case == case && sample.who == Who::Floor);
        let (rates, sound): (Vec<_>, Vec<_>) = floors
            .filter_map(|sample| {
                Some((sample.result["per_second"].as_f64()?, sample.result["sound"].as_f64()?))
            })
            .unzip();
        if let (Some(rate), Some(sound)) = (median(rates), median(sound))
            && rate < sound
        {
            complaints.push(format!(
                "{BROKEN}: {case}: {rate:.0}/s where {sound:.0}/s are expected: these figures mean nothing"
            ));
        }
    }
    for who in [Who::Peer, Who::Ours] {
        let sum = |key: &str| -> u64 {
            let counts = samples.iter().filter(|sample| sample.who == who);
            counts.filter_map(|sample| sample.result[key].as_u64()).sum()
        };
        let (failed, unfinished) = (sum("failed"), sum("unfinished"));
        if failed + unfinished > 0 {
            complaints.push(format!(
                "{}: {failed} orchestrations failed and {unfinished} did not end in time",
                who.name()
            ));
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::super::case::CASES;
    use super::*;
    use serde_json::json;

    fn sample(case: &'static str, who: Who, dispatchers: usize, result: Value) -> Sample {
        Sample { case, who, dispatchers, result }
    }

    fn line(case: &'static str, samples: &[Sample]) -> String {
        let case = CASES.iter().find(|other| other.name == case).unwrap();
        let words: Vec<String> = row(case, &case.figures[0], samples).into_iter().skip(2).collect();
        words.join(" | ")
    }

    #[test]
    fn more_per_second_is_better() {
        let rate = |who, dispatchers, rate: u32| {
            sample("hello-backlog", who, dispatchers, json!({"per_second": rate}))
        };
        let samples = [
            rate(Who::Floor, 0, 20_000),
            rate(Who::Peer, 1, 100),
            rate(Who::Peer, 2, 190),
            rate(Who::Peer, 2, 210),
            rate(Who::Ours, 2, 1000),
            rate(Who::Ours, 32, 5000),
            rate(Who::Ours, 64, 4000),
        ];
        assert_eq!(line("hello-backlog", &samples), "20000 | 200 (2) | 1000 | 5000 (32) | 25.0 x | 25.0 %");
    }

    #[test]
    fn fewer_milliseconds_are_better() {
        let cost = |who, dispatchers, ms: f64| sample("chain-one", who, dispatchers, json!({"step_ms": ms}));
        let samples = [
            cost(Who::Floor, 0, 0.5),
            cost(Who::Peer, 1, 12.0),
            cost(Who::Peer, 2, 10.0),
            cost(Who::Ours, 2, 1.0),
        ];
        assert_eq!(line("chain-one", &samples), "0.50 | 10.0 (2) | 1.00 | 1.00 (2) | 10.0 x | 50.0 %");
    }

    #[test]
    fn what_was_not_measured_is_a_dash() {
        let samples = [sample("chain-many", Who::Peer, 8, json!({"per_second": 400}))];
        assert_eq!(line("chain-many", &samples), "- | 400 (8) | - | - | - | -");
    }

    #[test]
    fn a_slow_floor_and_lost_orchestrations_are_told() {
        let floor =
            |rate: u32| sample("hello-idle", Who::Floor, 0, json!({"per_second": rate, "sound": 640.0}));
        let lost = sample("hello-idle", Who::Peer, 1, json!({"failed": 2, "unfinished": 1}));
        let found = complaints(&[floor(500), floor(600), floor(900), lost]);
        assert!(found[0].starts_with(BROKEN) && found[0].contains("600/s"), "{found:?}");
        assert_eq!(found[1], "duroxide: 2 orchestrations failed and 1 did not end in time");
        assert!(complaints(&[floor(641)]).is_empty());
    }
}
