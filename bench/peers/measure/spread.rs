//! Percentiles, and the cost of steps along a chain.

use super::Outcome;
use std::time::{Duration, Instant};

/// The number of steps whose median is the cost of the step in their middle.
const WINDOW: usize = 40;
const POINTS: usize = 10;

pub(crate) fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// The percentile: the smallest value that `percent` per cent of all values do not exceed.
pub(crate) fn percentile(values: &[f64], percent: usize) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or(f64::NAN)
}

/// Figures from the times at which the steps of a chain ran: the cost of a step at ten places of the history, and the
/// ratio of the last steps to those around step 20.
pub(crate) fn steps(outcome: &mut Outcome, ran: &[Instant]) {
    let times: Vec<f64> = ran.windows(2).map(|pair| ms(pair[1] - pair[0])).collect();
    if times.len() < 2 * WINDOW {
        return;
    }
    let median = |times: &[f64]| percentile(times, 50);
    outcome.figure("growth", median(&times[times.len() - WINDOW..]) / median(&times[..WINDOW]), "x");
    for point in 1..=POINTS {
        let (from, to) = (times.len() * (point - 1) / POINTS, times.len() * point / POINTS);
        outcome.figure(format!("step_at_{}", ran.len() * point / POINTS), median(&times[from..to]), "ms");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_one_of_the_values() {
        let values = [5.0, 1.0, 4.0, 2.0, 3.0];
        for (percent, expected) in [(0, 1.0), (50, 3.0), (60, 3.0), (61, 4.0), (99, 5.0), (100, 5.0)] {
            assert_eq!(percentile(&values, percent), expected, "{percent}");
        }
        assert!(percentile(&[], 50).is_nan());
    }

    #[test]
    fn the_end_of_a_chain_is_compared_with_its_beginning() {
        let begun = Instant::now();
        // Step n costs n ms.
        let ran: Vec<Instant> =
            (0..=200_u64).map(|n| begun + Duration::from_millis(n * (n + 1) / 2)).collect();
        let mut outcome = Outcome::new("FULL", 1);
        steps(&mut outcome, &ran);
        let figures = &outcome.line()["figures"];
        assert_eq!(figures["growth"]["value"], 180.0 / 20.0);
        assert_eq!(figures["step_at_20"]["value"], 10.0);
        assert_eq!(figures["step_at_201"]["value"], 190.0);
    }
}
