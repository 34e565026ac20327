//! The delay before a turn or activity without a registered handler is delivered again.

use std::time::Duration;

/// The delay of turns and activities whose handler is not registered in this runtime. During a rolling update another node may have it.
#[derive(Debug, Clone)]
pub struct UnregisteredBackoffConfig {
    /// The delay after the first delivery. It doubles with each further delivery, at most six times.
    pub base_delay: Duration,
    /// The longest delay.
    pub max_delay: Duration,
}

impl Default for UnregisteredBackoffConfig {
    fn default() -> Self {
        Self { base_delay: Duration::from_secs(1), max_delay: Duration::from_secs(60) }
    }
}

impl UnregisteredBackoffConfig {
    /// The delay after this number of deliveries.
    pub fn delay(&self, attempt_count: u32) -> Duration {
        let doublings = attempt_count.saturating_sub(1).min(6);
        self.base_delay.saturating_mul(1 << doublings).min(self.max_delay)
    }
}
