//! The delay before a failed store call is retried.

use super::lease::Lease;
use crate::core::Core;
use outlast_provider::Entropy;
use std::time::Duration;

/// Waits before the end of an activity is reported again, after this number of failures. A lost lease ends the wait.
pub(super) async fn pause_report(core: &Core, lease: &Lease, failures: u32) {
    core.metrics.record_commit_retry("activity");
    let entropy = core.options.entropy.as_ref();
    let pause = backoff(Duration::from_millis(10), Duration::from_secs(1), failures, entropy);
    tokio::select! {
        biased;
        () = lease.lost().cancelled() => {}
        () = tokio::time::sleep(pause) => {}
    }
}

/// The delay after the n-th failure in a row, counted from 1: `first * 2^(n-1)`, at most `longest`, minus a random part of up to a
/// quarter, so that several nodes do not retry at the same moment. Does not overflow for any number of failures.
pub(super) fn backoff(first: Duration, longest: Duration, failures: u32, entropy: &dyn Entropy) -> Duration {
    let doublings = failures.saturating_sub(1).min(16);
    let delay = first.saturating_mul(1 << doublings).min(longest);
    let share = u32::try_from(entropy.next_u128() % 256).unwrap_or(0);
    // Subtracts share / 256 of a quarter.
    delay - delay / 1024 * share
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixed(u128);
    impl Entropy for Fixed {
        fn next_u128(&self) -> u128 {
            self.0
        }
    }

    #[test]
    fn c11_the_delay_grows_to_its_cap_and_never_overflows() {
        let delay = |failures, bits| {
            backoff(Duration::from_millis(100), Duration::from_secs(3), failures, &Fixed(bits)).as_millis()
        };
        let rows = [(0, 100), (1, 100), (2, 200), (5, 1_600), (6, 3_000), (63, 3_000), (u32::MAX, 3_000)];
        for (failures, expected) in rows {
            assert_eq!(delay(failures, 0), expected, "{failures}");
            assert!((expected * 3 / 4..=expected).contains(&delay(failures, 255)), "{failures}");
        }
        let longest = backoff(Duration::MAX, Duration::MAX, u32::MAX, &Fixed(7));
        assert!(longest <= Duration::MAX);
    }
}
