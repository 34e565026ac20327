//! Measures durations.

use std::time::Duration;
use tokio::time::Instant;

/// Measures by tokio's clock, which a test can pause.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    /// The time since the start in whole milliseconds.
    pub(crate) fn whole_ms(&self) -> u64 {
        u64::try_from(self.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// The time since the start in seconds, for histograms.
    pub(crate) fn seconds(&self) -> f64 {
        self.elapsed().as_secs_f64()
    }
}
