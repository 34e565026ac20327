//! The targets of the figures. Most targets are ratios within one run.

mod cosmos;
mod postgres;

use super::row::{Row, digits};
use super::scenario::Backend;

/// Identifies a figure of a row.
#[derive(Clone, Copy)]
pub(super) struct Figure {
    pub(super) scenario: &'static str,
    /// The result of [`Row::label`].
    pub(super) label: &'static str,
    pub(super) metric: &'static str,
    pub(super) round: Round,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Round {
    Median,
    /// The round with the largest figure, and the round with the smallest: a target compares the best round of a peer.
    Most,
    Least,
}

#[derive(Clone, Copy)]
pub(super) enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

/// One figure, or one divided by another, against a bound.
pub(super) struct Target {
    pub(super) scenario: &'static str,
    pub(super) of: Figure,
    pub(super) over: Option<Figure>,
    pub(super) unit: &'static str,
    pub(super) bound: Bound,
}

const FULL: &str = "outlast FULL";
const NORMAL: &str = "outlast NORMAL";
const DUROXIDE: &str = "duroxide NORMAL";
const DURARE: &str = "durare NORMAL";
const DURARE_FULL: &str = "durare FULL";
const DEFAULTS: &str = "outlast-defaults FULL";

const fn figure(scenario: &'static str, label: &'static str, metric: &'static str, round: Round) -> Figure {
    Figure { scenario, label, metric, round }
}

const fn median(scenario: &'static str, label: &'static str, metric: &'static str) -> Figure {
    figure(scenario, label, metric, Round::Median)
}

/// Our throughput over that of the peer's best round.
const fn more(scenario: &'static str, ours: &'static str, theirs: &'static str, times: f64) -> Target {
    Target {
        scenario,
        of: median(scenario, ours, "throughput"),
        over: Some(figure(scenario, theirs, "throughput", Round::Most)),
        unit: "x",
        bound: Bound::AtLeast(times),
    }
}

/// Our throughput at the defaults of the runtime over that of our best setting.
const fn at_defaults(scenario: &'static str, defaults: &'static str, best: &'static str) -> Target {
    Target {
        scenario,
        of: median(scenario, defaults, "throughput"),
        over: Some(median(scenario, best, "throughput")),
        unit: "x",
        bound: Bound::AtLeast(0.85),
    }
}

/// The time of the peer's best round over ours.
const fn faster(
    scenario: &'static str,
    metric: &'static str,
    ours: &'static str,
    theirs: &'static str,
    times: f64,
) -> Target {
    Target {
        scenario,
        of: figure(scenario, theirs, metric, Round::Least),
        over: Some(median(scenario, ours, metric)),
        unit: "x",
        bound: Bound::AtLeast(times),
    }
}

const fn within(scenario: &'static str, of: Figure, over: Figure, times: f64) -> Target {
    Target { scenario, of, over: Some(over), unit: "x", bound: Bound::AtMost(times) }
}

const fn at_most(scenario: &'static str, metric: &'static str, unit: &'static str, value: f64) -> Target {
    not_above(scenario, FULL, metric, unit, value)
}

const fn not_above(
    scenario: &'static str,
    label: &'static str,
    metric: &'static str,
    unit: &'static str,
    value: f64,
) -> Target {
    Target { scenario, of: median(scenario, label, metric), over: None, unit, bound: Bound::AtMost(value) }
}

const fn share(scenario: &'static str, metric: &'static str, value: f64) -> Target {
    Target {
        scenario,
        of: median(scenario, FULL, metric),
        over: None,
        unit: "%",
        bound: Bound::AtLeast(value),
    }
}

/// A floor that is slower than its limit makes all ratios too good: then the run is invalid.
const fn sound(floor: &'static str) -> Target {
    Target {
        scenario: "hello",
        of: median("hello", floor, "throughput"),
        over: Some(median("hello", floor, "pin")),
        unit: "x",
        bound: Bound::AtLeast(1.0),
    }
}

/// All targets, store by store.
pub(super) fn all() -> impl Iterator<Item = &'static Target> {
    TARGETS.iter().chain(postgres::TARGETS).chain(cosmos::TARGETS)
}

const TARGETS: &[Target] = &[
    sound("floor-1 FULL"),
    sound("floor-64 FULL"),
    more("hello", DEFAULTS, "duroxide-defaults NORMAL", 30.0),
    more("hello", FULL, DUROXIDE, 30.0),
    at_defaults("hello", DEFAULTS, FULL),
    Target {
        scenario: "hello",
        of: median("hello", FULL, "throughput"),
        over: Some(median("hello", "floor-64-hellos FULL", "throughput")),
        unit: "x",
        bound: Bound::AtLeast(0.5),
    },
    Target {
        scenario: "hello",
        of: median("hello", FULL, "throughput"),
        over: Some(median("hello", "floor-64 FULL", "throughput")),
        unit: "x",
        bound: Bound::AtLeast(0.25),
    },
    more("hello", FULL, DURARE, 1.0),
    more("hello-closed", FULL, DUROXIDE, 100.0),
    at_defaults("hello-closed", DEFAULTS, FULL),
    more("fan-out-5", FULL, DUROXIDE, 20.0),
    at_defaults("fan-out-5", DEFAULTS, FULL),
    more("chain-10", FULL, DUROXIDE, 20.0),
    at_defaults("chain-10", DEFAULTS, FULL),
    more("chain-10", FULL, DURARE, 1.0),
    faster("long-chain", "step", FULL, DUROXIDE, 25.0),
    at_most("long-chain", "growth", "x", 1.2),
    // Two, and a little for the start and the end.
    at_most("long-chain", "syncs", "per step", 2.05),
    within(
        "long-chain",
        median("long-chain", FULL, "step"),
        median("long-chain", "floor-1 FULL", "transaction"),
        2.6,
    ),
    faster("long-chain", "step", FULL, DURARE_FULL, 1.0),
    faster("long-chain", "step", NORMAL, DURARE, 1.0),
    more("fan-out-1000", FULL, DUROXIDE, 20.0),
    at_defaults("fan-out-1000", DEFAULTS, FULL),
    more("fan-out-5000", FULL, DUROXIDE, 20.0),
    at_defaults("fan-out-5000", DEFAULTS, FULL),
    within("fan-out-5000", median("fan-out-5000", FULL, "each"), median("fan-out-1000", FULL, "each"), 1.3),
    faster("hello-idle", "p50", FULL, DUROXIDE, 30.0),
    // Two, and a little for the warm-up.
    at_most("hello-idle", "syncs", "per orchestration", 2.05),
    // At most 0.75 of durare's time.
    faster("hello-idle", "p50", FULL, DURARE_FULL, 1.0 / 0.75),
    faster("hello-idle", "p50", NORMAL, DURARE, 1.0),
    at_most("asleep", "memory_above_bound", "MB", 8.0),
    at_most("asleep", "idle_cpu", "% of a core", 0.3),
    within("asleep", median("asleep", FULL, "p50"), median("asleep", FULL, "p50_alone"), 1.2),
    at_most("asleep-uncached", "memory_each", "B", 1_700.0),
    at_most("asleep-uncached", "idle_cpu", "% of a core", 0.3),
    more("hello-memory", "outlast sqlite::memory:", "duroxide sqlite::memory:", 60.0),
    share("sweep", "lowest_median", 80.0),
    share("sweep", "lowest_round", 50.0),
];

impl Figure {
    pub(super) fn row<'a>(&self, rows: &'a [Row]) -> Option<&'a Row> {
        rows.iter().find(|row| {
            row.scenario == self.scenario && row.metric == self.metric && row.label() == self.label
        })
    }

    /// The figure of the row in the chosen round.
    pub(super) fn value(&self, rows: &[Row]) -> Option<f64> {
        let row = self.row(rows)?;
        // The figures of a peer or a floor count even if its work is incomplete. Those of Outlast count only if all work
        // was correct.
        let counts = row.ok || !row.is_ours();
        counts.then_some(match self.round {
            Round::Median => row.value,
            Round::Most => row.max,
            Round::Least => row.min,
        })
    }

    /// The value with its system; and with scenario, metric and round, if these differ from the figure beside it.
    pub(super) fn show(&self, rows: &[Row], beside: &Figure) -> String {
        let mut shown =
            format!("{} ({}", self.value(rows).map_or("no figure".to_string(), digits), self.label);
        if self.scenario != beside.scenario {
            shown = format!("{shown}, {}", self.scenario);
        }
        if self.metric != beside.metric {
            shown = format!("{shown}, {}", self.metric);
        }
        if self.round != Round::Median {
            let which = if self.metric == "deadlocks" { "worst" } else { "best" };
            shown.push_str(&format!(", {which} round"));
        }
        shown + ")"
    }
}

impl Target {
    /// Whether a row is of the target's scenario, on the same kind of store.
    pub(super) fn applies_to(&self, row: &Row) -> bool {
        let store = self.of.label.split_once(' ').map_or("", |(_, store)| store);
        row.scenario == self.scenario && Backend::of(&row.store) == Backend::of(store)
    }

    /// The judged value: the figure, or its ratio to the other figure.
    pub(super) fn found(&self, rows: &[Row]) -> Option<f64> {
        let of = self.of.value(rows)?;
        match &self.over {
            None => Some(of),
            Some(over) => Some(of / over.value(rows)?),
        }
    }

    /// The ratio of the medians of both sides, if the judged ratio is not one of medians.
    pub(super) fn found_by_medians(&self, rows: &[Row]) -> Option<f64> {
        let over = self.over.filter(|over| (self.of.round, over.round) != (Round::Median, Round::Median))?;
        let by_median = |figure: Figure| Figure { round: Round::Median, ..figure }.value(rows);
        Some(by_median(self.of)? / by_median(over)?)
    }

    /// A target without a figure is not met.
    pub(super) fn is_met(&self, rows: &[Row]) -> bool {
        self.found(rows).is_some_and(|found| match self.bound {
            Bound::AtLeast(bound) => found >= bound,
            Bound::AtMost(bound) => found <= bound,
        })
    }

    pub(super) fn wanted(&self) -> String {
        match self.bound {
            Bound::AtLeast(bound) => format!("at least {bound} {}", self.unit),
            Bound::AtMost(bound) => format!("at most {bound} {}", self.unit),
        }
    }

    /// Whether the target is for a floor. A floor that is too slow makes the run invalid.
    pub(super) fn is_for_a_floor(&self) -> bool {
        self.of.label.starts_with("floor")
    }
}

/// The collapse of the sweep, in per cent of its best median: the lowest median and the lowest single round from the best
/// number of dispatchers on.
pub(super) fn collapse(rows: &[Row]) -> Vec<Row> {
    let at = |row: &Row| row.metric.strip_prefix("throughput_at_").and_then(|at| at.parse::<u32>().ok());
    let mut sweep: Vec<(u32, &Row)> =
        rows.iter().filter(|row| row.scenario == "sweep").filter_map(|row| Some((at(row)?, row))).collect();
    sweep.sort_by_key(|(at, _)| *at);
    let Some(&(best, top)) = sweep.iter().max_by(|(_, a), (_, b)| a.value.total_cmp(&b.value)) else {
        return Vec::new();
    };
    let beyond = || sweep.iter().filter(|(at, _)| *at >= best).map(|(_, row)| *row);
    let lowest = |metric: &str, of: fn(&Row) -> f64| {
        let share = beyond().map(of).fold(f64::INFINITY, f64::min) / top.value * 100.0;
        Row {
            metric: metric.to_string(),
            unit: "% of the best".to_string(),
            value: share,
            min: share,
            max: share,
            ok: sweep.iter().all(|(_, row)| row.ok),
            setting: format!("--dispatchers {best} and more"),
            ..top.clone()
        }
    };
    vec![lowest("lowest_median", |row| row.value), lowest("lowest_round", |row| row.min)]
}

#[cfg(test)]
mod tests {
    use super::super::row::tests::row;
    use super::super::scenario;
    use super::*;

    fn check(target: &Target, rows: &[Row], found: f64, met: bool) {
        let value = target.found(rows).unwrap();
        assert!((value - found).abs() < 1e-9, "{value} where {found} is expected");
        assert_eq!(target.is_met(rows), met);
    }

    #[test]
    fn throughput_is_compared_with_the_best_round_of_the_peer() {
        let rows = [
            row("hello", "outlast FULL", "throughput", 4500.0),
            row("hello", "duroxide NORMAL", "throughput", 100.0),
        ];
        check(&more("hello", FULL, DUROXIDE, 30.0), &rows, 30.0, true);
        check(&more("hello", FULL, DUROXIDE, 30.1), &rows, 30.0, false);
    }

    #[test]
    fn times_are_compared_the_other_way_round() {
        let rows = [
            row("long-chain", "outlast FULL", "step", 0.5),
            row("long-chain", "duroxide NORMAL", "step", 20.0),
        ];
        check(&faster("long-chain", "step", FULL, DUROXIDE, 20.0), &rows, 20.0, true);
        check(&faster("long-chain", "step", FULL, DUROXIDE, 20.1), &rows, 20.0, false);
    }

    #[test]
    fn a_value_alone_has_a_bound_too() {
        let rows = [row("long-chain", "outlast FULL", "growth", 1.3)];
        check(&at_most("long-chain", "growth", "x", 1.2), &rows, 1.3, false);
        check(&at_most("long-chain", "growth", "x", 1.3), &rows, 1.3, true);
    }

    #[test]
    fn work_of_ours_that_was_not_done_meets_no_target() {
        let ours = Row { ok: false, ..row("hello", "outlast FULL", "throughput", 9000.0) };
        let peer = Row { ok: false, ..row("hello", "duroxide NORMAL", "throughput", 100.0) };
        let target = more("hello", FULL, DUROXIDE, 30.0);
        assert!(!target.is_met(&[ours.clone(), peer.clone()]));
        assert_eq!(target.found(&[ours.clone(), peer.clone()]), None);
        check(&target, &[Row { ok: true, ..ours }, peer], 60.0, true);
        assert!(!target.is_met(&[]));
    }

    #[test]
    fn a_sweep_is_judged_from_its_best_on() {
        let at = |dispatchers: u32, value: f64| {
            row("sweep", "outlast FULL", &format!("throughput_at_{dispatchers}"), value)
        };
        let rows = [at(1, 100.0), at(64, 850.0), at(16, 1000.0), at(32, 990.0)];
        let derived = collapse(&rows);
        assert_eq!((derived[0].metric.as_str(), derived[0].value), ("lowest_median", 85.0));
        assert_eq!((derived[1].metric.as_str(), derived[1].value), ("lowest_round", 42.5));
        assert!(collapse(&[]).is_empty());
    }

    #[test]
    fn every_target_is_about_an_entry_that_exists() {
        let exists = |figure: &Figure| {
            let (system, store) = figure.label.split_once(' ').unwrap();
            let named = |scenario: &&scenario::Scenario| {
                scenario.name == figure.scenario && scenario.backend == Backend::of(store)
            };
            let scenario = scenario::all().find(named);
            scenario.is_some_and(|scenario| scenario.entries.iter().any(|entry| entry.system == system))
        };
        for target in all() {
            assert!(exists(&target.of), "{} {}", target.scenario, target.of.label);
            assert!(target.over.as_ref().is_none_or(exists), "{}", target.scenario);
        }
    }
}
