//! The clock of a test.

use outlast_conformance::TokioClock;
use outlast_provider::Clock;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The time at which every test begins: 2023-11-14 22:13:20 UTC.
pub const EPOCH_MS: u64 = 1_700_000_000_000;

/// The clock of a store and of the processes that use it one after the other. Each process has a tokio runtime with its own paused
/// time; this clock goes on where the last process ended.
pub(crate) struct RunClock(Mutex<TokioClock>);

impl RunClock {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(TokioClock::start_at(EPOCH_MS)))
    }

    fn lock(&self) -> MutexGuard<'_, TokioClock> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Goes on at this time by the paused time of the current tokio runtime.
    pub(crate) fn resume_at(&self, now_ms: u64) {
        *self.lock() = TokioClock::start_at(now_ms);
    }
}

impl Clock for RunClock {
    fn now_ms(&self) -> u64 {
        self.lock().now_ms()
    }
}
