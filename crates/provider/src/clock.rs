//! The clock that a store is given, so that it also runs under virtual time.

use std::time::Duration;

/// The clock of a store. Two readings may be equal, and the time decreases when the machine's clock is set back. No rule of
/// the contract depends on more than that.
pub trait Clock: Send + Sync + 'static {
    /// Milliseconds since the Unix epoch.
    fn now_ms(&self) -> u64;
}

/// The machine's wall clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_ms(&self) -> u64 {
        outlast_model::wall_clock_ms()
    }
}

/// A duration in whole milliseconds, at most `u64::MAX`. Callers may pass any duration, `Duration::MAX` included.
pub fn saturating_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
