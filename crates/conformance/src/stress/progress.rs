//! The progress of a run.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Counts of a run that can be read while it runs, and the durations of its instances.
#[derive(Debug, Default)]
pub struct StressProgress {
    launched: AtomicUsize,
    completed: AtomicUsize,
    failed: AtomicUsize,
    latencies: Mutex<Vec<Duration>>,
}

impl StressProgress {
    /// Instances started.
    pub fn launched(&self) -> usize {
        self.launched.load(Ordering::Relaxed)
    }

    /// Instances that completed.
    pub fn completed(&self) -> usize {
        self.completed.load(Ordering::Relaxed)
    }

    /// Instances that failed, could not be started or did not end in time.
    pub fn failed(&self) -> usize {
        self.failed.load(Ordering::Relaxed)
    }

    /// The percentile of the durations of completed instances, from the start to the notification of the end: 0.5 is the median. Zero if
    /// none completed.
    pub fn latency(&self, share: f64) -> Duration {
        let mut sorted = self.latencies.lock().unwrap_or_else(PoisonError::into_inner).clone();
        sorted.sort_unstable();
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index, and bounded")]
        let index = ((sorted.len() as f64 * share).ceil() as usize).clamp(1, sorted.len().max(1)) - 1;
        sorted.get(index).copied().unwrap_or_default()
    }

    #[cfg(feature = "runtime")]
    pub(super) fn launch(&self) {
        self.launched.fetch_add(1, Ordering::Relaxed);
    }

    #[cfg(any(feature = "runtime", test))]
    pub(super) fn complete(&self, latency: Duration) {
        self.completed.fetch_add(1, Ordering::Relaxed);
        self.latencies.lock().unwrap_or_else(PoisonError::into_inner).push(latency);
    }

    #[cfg(feature = "runtime")]
    pub(super) fn fail(&self, instances: usize) {
        self.failed.fetch_add(instances, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_computed_from_completed_instances() {
        let progress = StressProgress::default();
        assert_eq!(progress.latency(0.5), Duration::ZERO);
        for ms in (1..=100).rev() {
            progress.complete(Duration::from_millis(ms));
        }
        let ms = [0.0, 0.01, 0.5, 0.99, 1.0].map(|share| progress.latency(share).as_millis());
        assert_eq!(ms, [1, 1, 50, 99, 100]);
        assert_eq!(progress.completed(), 100);
    }
}
