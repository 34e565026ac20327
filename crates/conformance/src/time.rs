//! A clock that follows tokio's, so that a store under test sees paused time.

use outlast_provider::{Clock, SystemClock};
use tokio::time::Instant;

/// The wall clock at creation plus the time that has passed by tokio's clock, paused or not.
#[derive(Debug, Clone, Copy)]
pub struct TokioClock {
    base_ms: u64,
    base: Instant,
}

impl TokioClock {
    /// Starts at the machine's time. Call it inside the tokio runtime whose time it shall follow.
    pub fn start() -> Self {
        Self::start_at(SystemClock.now_ms())
    }

    /// Starts at a given time.
    #[allow(clippy::disallowed_methods, reason = "this clock is built on tokio's")]
    pub fn start_at(base_ms: u64) -> Self {
        Self { base_ms, base: Instant::now() }
    }
}

impl Clock for TokioClock {
    fn now_ms(&self) -> u64 {
        let passed = u64::try_from(self.base.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.base_ms.saturating_add(passed)
    }
}
