//! The wall clock, for events that code outside of the runtime builds. No other file of this crate reads a clock.

use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since the Unix epoch by the machine's clock; 0 if that clock is before the epoch.
#[allow(clippy::disallowed_methods, reason = "this file is where the wall clock is read")]
pub fn wall_clock_ms() -> u64 {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since_epoch) => u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX),
        Err(_) => 0,
    }
}
