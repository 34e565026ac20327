//! The intervals at which leases are renewed.

use super::RuntimeOptions;
use std::time::Duration;

/// The shortest interval, so that the renewal of a lease of length zero is not a busy loop.
const SHORTEST: Duration = Duration::from_millis(1);

/// The time between two renewals of a lease: the formula of api 7.3, but at most half of the lease, so that the lease survives one
/// failed renewal (ruling 18).
///
/// For leases below 15 s the formula is half of the lease rounded up to seconds, so half of the lease applies.
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
    pub(crate) fn turn_renewal_interval(&self) -> Duration {
        renewal_interval(self.orchestrator_lock_timeout, self.orchestrator_lock_renewal_buffer)
    }

    pub(crate) fn activity_renewal_interval(&self) -> Duration {
        renewal_interval(self.worker_lock_timeout, self.worker_lock_renewal_buffer)
    }

    pub(crate) fn session_renewal_interval(&self) -> Duration {
        renewal_interval(self.session_lock_timeout, self.session_lock_renewal_buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_the_formula_and_at_most_half_of_the_lease() {
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
    fn each_kind_of_lease_has_its_own_interval() {
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
