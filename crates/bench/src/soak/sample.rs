//! The figures of one second, and figures of many.

use crate::measure::percentile;
use std::time::Duration;

#[derive(Debug, Clone, Default)]
pub(super) struct Sample {
    /// Since the load began.
    pub(super) second: usize,
    /// Orchestrations that ended in this second.
    pub(super) throughput: f64,
    /// Milliseconds from the time at which the start was due to the end.
    pub(super) p50: f64,
    pub(super) p99: f64,
    pub(super) p999: f64,
    /// Of this process, in MiB, as the following ones.
    pub(super) memory: f64,
    pub(super) store: f64,
    /// The write-ahead log.
    pub(super) log: f64,
    /// Checkpoints and runs of autovacuum since the store was opened; 0 on SQLite, which reports neither.
    pub(super) checkpoints: f64,
    pub(super) vacuums: f64,
}

impl Sample {
    /// A sample of the times of the orchestrations that ended within `elapsed`.
    pub(super) fn of(second: usize, elapsed: Duration, times: &[Duration]) -> Self {
        let ms: Vec<f64> = times.iter().map(|time| time.as_secs_f64() * 1e3).collect();
        Self {
            second,
            throughput: ms.len() as f64 / elapsed.as_secs_f64(),
            p50: percentile(&ms, 50),
            p99: percentile(&ms, 99),
            p999: permille(&ms, 999),
            ..Self::default()
        }
    }
}

/// The smallest value that `permille` of a thousand values do not exceed.
fn permille(values: &[f64], permille: usize) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (sorted.len() * permille).div_ceil(1_000).max(1);
    sorted.get(rank - 1).copied().unwrap_or(f64::NAN)
}

/// Orchestrations per second, over all samples.
pub(super) fn throughput(samples: &[Sample]) -> f64 {
    samples.iter().map(|sample| sample.throughput).sum::<f64>() / samples.len().max(1) as f64
}

/// The median of a figure, of the samples in which an orchestration ended.
pub(super) fn median_of(samples: &[Sample], figure: impl Fn(&Sample) -> f64) -> f64 {
    let figures: Vec<f64> = samples.iter().map(figure).filter(|figure| !figure.is_nan()).collect();
    percentile(&figures, 50)
}

/// The most memory of all samples.
pub(super) fn memory(samples: &[Sample]) -> f64 {
    samples.iter().map(|sample| sample.memory).fold(0.0, f64::max)
}
