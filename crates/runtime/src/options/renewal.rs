//! When leases are renewed.

use super::RuntimeOptions;
use std::time::Duration;

/// Renewing more often than this helps nobody; it also keeps a lease of nothing from becoming a busy loop.
const SHORTEST: Duration = Duration::from_millis(1);

/// How long after a lease was taken or renewed it is renewed again: as api 7.3 says, but never later than half of the
/// lease, so that one failed renewal does not lose it (ruling 18).
///
/// For leases under 15 s the formula is half of the lease rounded up to seconds, so there half of the lease decides.
pub(crate) fn renewal_interval(lock_timeout: Duration, buffer: Duration) -> Duration {
    let half = lock_timeout / 2;
    let interval = if lock_timeout >= Duration::from_secs(15) {
        lock_timeout.saturating_sub(buffer).max(Duration::from_secs(1)).min(half)
    } else {
        half
    };
    interval.max(SHORTEST)
}

impl RuntimeOptions {
    /// How often a turn's lease is renewed.
    pub(crate) fn turn_renewal_interval(&self) -> Duration {
        renewal_interval(self.orchestrator_lock_timeout, self.orchestrator_lock_renewal_buffer)
    }

    /// How often an activity's lease is renewed.
    pub(crate) fn activity_renewal_interval(&self) -> Duration {
        renewal_interval(self.worker_lock_timeout, self.worker_lock_renewal_buffer)
    }

    /// How often the leases of sessions are renewed.
    pub(crate) fn session_renewal_interval(&self) -> Duration {
        renewal_interval(self.session_lock_timeout, self.session_lock_renewal_buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_later_than_the_formula_or_half_of_the_lease() {
        // Lease, buffer and interval in milliseconds.
        let rows = [
            (30_000, 5_000, 15_000),
            (30_000, 20_000, 10_000),
            (30_000, 29_500, 1_000),
            (30_000, 60_000, 1_000),
            (15_000, 14_000, 1_000),
            (14_999, 14_000, 7_499),
            (5_000, 2_000, 2_500),
            (4_000, 0, 2_000),
            (1_000, 0, 500),
            (300, 5_000, 150),
            (1, 0, 1),
            (0, 0, 1),
        ];
        for (lease, buffer, expected) in rows {
            let interval = renewal_interval(Duration::from_millis(lease), Duration::from_millis(buffer));
            assert_eq!(interval.as_millis(), expected, "lease {lease}, buffer {buffer}");
        }
        assert_eq!(renewal_interval(Duration::MAX, Duration::ZERO), Duration::MAX / 2);
    }

    #[test]
    fn each_lease_has_its_own() {
        let options = RuntimeOptions {
            orchestrator_lock_timeout: Duration::from_secs(2),
            worker_lock_timeout: Duration::from_secs(4),
            session_lock_timeout: Duration::from_secs(6),
            ..RuntimeOptions::default()
        };
        let seconds = [
            options.turn_renewal_interval(),
            options.activity_renewal_interval(),
            options.session_renewal_interval(),
        ]
        .map(|interval| interval.as_secs());
        assert_eq!(seconds, [1, 2, 3]);
    }
}
