//! Elapsed real time.

use std::time::{Duration, Instant};

/// Measures real time, for reports and for limits of waiting.
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts to measure.
    #[allow(clippy::disallowed_methods, reason = "build tools measure real time")]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// The time since the start.
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}
