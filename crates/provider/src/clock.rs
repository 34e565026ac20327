//! Time as a value: a store is given its clock, so that it runs under virtual time too.

use std::time::Duration;

/// Where a store reads the time. Two readings may be equal or, when the machine's clock is set back, decrease;
/// no rule of the contract may depend on more than that.
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
