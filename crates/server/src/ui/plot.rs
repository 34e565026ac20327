//! Plots of the samples of a store, as areas.

use crate::view::Sample;
use std::fmt::Write;

/// The size of a plot in its own units.
const WIDTH: f64 = 600.0;
const HEIGHT: f64 = 80.0;

/// One figure over time.
pub(super) struct Plot {
    pub(super) name: &'static str,
    pub(super) now: String,
    pub(super) most: String,
    pub(super) path: String,
}

/// The plots of the screen System; none if there are fewer than two samples.
pub(super) fn plots(samples: &[Sample]) -> Vec<Plot> {
    if samples.len() < 2 {
        return Vec::new();
    }
    let of = |figure: fn(&Sample) -> u64| samples.iter().map(|one| (one.at_ms, figure(one) as f64)).collect();
    vec![
        Plot::of("running instances", of(|one| one.running)),
        Plot::of("instances that ended per second", ended_per_second(samples)),
        Plot::of("messages that wait for turns", of(|one| one.turns)),
        Plot::of("activities that wait for workers", of(|one| one.activities)),
    ]
}

/// The instances that ended between two samples, per second. Deleted instances do not make it negative.
fn ended_per_second(samples: &[Sample]) -> Vec<(u64, f64)> {
    let ended = |one: &Sample| one.completed + one.failed;
    let rate = |pair: &[Sample]| {
        let seconds = (pair[1].at_ms - pair[0].at_ms).max(1) as f64 / 1_000.0;
        (pair[1].at_ms, ended(&pair[1]).saturating_sub(ended(&pair[0])) as f64 / seconds)
    };
    samples.windows(2).map(rate).collect()
}

impl Plot {
    fn of(name: &'static str, points: Vec<(u64, f64)>) -> Self {
        let most = points.iter().map(|(_, value)| *value).fold(0.0, f64::max);
        let now = points.last().map_or(0.0, |(_, value)| *value);
        Self { name, now: number(now), most: number(most), path: area(&points, most.max(1.0)) }
    }
}

/// One decimal for small values that have one.
fn number(value: f64) -> String {
    match value < 10.0 && value.fract() > 0.05 {
        true => format!("{value:.1}"),
        false => format!("{value:.0}"),
    }
}

/// The path of an area under the line through all samples.
fn area(points: &[(u64, f64)], most: f64) -> String {
    let (first, last) = match points {
        [first, .., last] => (first.0, last.0),
        _ => (0, 0),
    };
    let scale = WIDTH / (last - first).max(1) as f64;
    let mut path = format!("M0 {HEIGHT}");
    for (at_ms, value) in points {
        let (x, y) = ((at_ms - first) as f64 * scale, HEIGHT - (HEIGHT - 4.0) * value / most);
        // Writing to a String cannot fail.
        let _ = write!(path, "L{x:.1} {y:.1}");
    }
    path + &format!("H{WIDTH}V{HEIGHT}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at_ms: u64, running: u64, completed: u64) -> Sample {
        Sample { at: String::new(), at_ms, running, completed, failed: 0, turns: 0, activities: 0 }
    }

    #[test]
    fn plots_have_the_newest_and_the_largest_value() {
        assert_eq!(plots(&[sample(0, 1, 1)]).len(), 0);
        let plots = plots(&[sample(0, 2, 10), sample(5_000, 8, 20), sample(10_000, 4, 13)]);
        assert_eq!((plots[0].now.as_str(), plots[0].most.as_str()), ("4", "8"));
        assert_eq!(plots[0].path, "M0 80L0.0 61.0L300.0 4.0L600.0 42.0H600V80Z");
        assert_eq!(
            (plots[1].now.as_str(), plots[1].most.as_str()),
            ("0", "2"),
            "deleted instances are no rate"
        );
        assert_eq!(number(0.24), "0.2");
    }
}
