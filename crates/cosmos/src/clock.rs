//! The time of the service, estimated from its answers.
//!
//! Cosmos DB stamps every write with `_ts`, in whole seconds of its own clock. A write that was sent at local time `s` and
//! answered at `r` with the stamp `t` was executed between `s` and `r` locally, and between `t` and `t + 1 s` in the service. So
//! the service is ahead of the local clock by more than `t - r` and by less than `t + 1 s - s`. The bounds of several writes
//! overlap in an interval about as wide as a round trip.
//!
//! A machine's time within these bounds is used unchanged; any other time is moved to the nearest bound. The time decides when a
//! lease is over and in which order messages are taken. The time is never a fence: a wrong clock costs a second attempt, and
//! `If-Match` refuses one of the two attempts.

/// A monotonic clock of a machine runs this much faster or slower than the clock of the service, in millionths.
const DRIFT_PPM: i64 = 200;

/// Estimates the time of the service. Local times are milliseconds of the machine's clock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ServiceClock {
    offset: Option<Offset>,
}

/// The service is ahead of the local clock by `low..=high` milliseconds, seen at a local time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Offset {
    low: i64,
    high: i64,
    at_ms: i64,
}

impl Offset {
    /// The bounds at a later time: the clocks may have drifted apart.
    fn at(self, local_ms: i64) -> Self {
        let drift = (local_ms - self.at_ms).max(0) * DRIFT_PPM / 1_000_000 + 1;
        Self { low: self.low - drift, high: self.high + drift, at_ms: local_ms }
    }
}

impl ServiceClock {
    /// Learns from a write: its local times of sending and receiving, and the `_ts` of the answer.
    pub(crate) fn observe(&mut self, sent_ms: u64, received_ms: u64, ts_seconds: u64) {
        let (sent, received) = (signed(sent_ms), signed(received_ms.max(sent_ms)));
        let ts = signed(ts_seconds.saturating_mul(1_000));
        let seen = Offset { low: ts - received, high: ts + 1_000 - sent, at_ms: received };
        let known = self.offset.map(|known| known.at(received));
        let both = known.map(|known| Offset {
            low: known.low.max(seen.low),
            high: known.high.min(seen.high),
            ..seen
        });
        // Bounds that contradict each other: the service moved to another machine, or a clock was set.
        self.offset = Some(both.filter(|both| both.low <= both.high).unwrap_or(seen));
    }

    /// The time of the machine's clock, moved into the bounds that are known of the service's time.
    pub(crate) fn corrected_ms(&self, local_ms: u64) -> u64 {
        let Some(offset) = self.offset else { return local_ms };
        let offset = offset.at(signed(local_ms));
        let correction = 0_i64.clamp(offset.low, offset.high.max(offset.low));
        local_ms.saturating_add_signed(correction)
    }
}

fn signed(ms: u64) -> i64 {
    // Sums of a few such times stay in range.
    i64::try_from(ms).unwrap_or(i64::MAX).min(i64::MAX / 8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_clock_is_not_corrected_before_the_first_observation() {
        assert_eq!(ServiceClock::default().corrected_ms(5), 5);
    }

    #[test]
    fn a_clock_within_the_bounds_is_not_corrected() {
        let mut clock = ServiceClock::default();
        clock.observe(10_000, 10_040, 10);
        assert_eq!(clock.corrected_ms(10_040), 10_040);
    }

    #[test]
    fn a_clock_out_of_the_bounds_is_moved_to_the_nearest_one() {
        let mut clock = ServiceClock::default();
        clock.observe(10_000, 10_040, 50);
        assert!(clock.corrected_ms(10_040).abs_diff(50_000) <= 2, "{clock:?}");
        let mut clock = ServiceClock::default();
        clock.observe(10_000, 10_040, 2);
        assert!(clock.corrected_ms(10_040).abs_diff(3_040) <= 2, "{clock:?}");
    }

    #[test]
    fn the_bounds_of_several_writes_are_narrower_than_those_of_one() {
        // The service is 600 ms ahead.
        let mut clock = ServiceClock::default();
        for (sent, ts) in [(10_000, 10), (10_500, 11), (10_800, 11)] {
            clock.observe(sent, sent + 10, ts);
        }
        assert!(clock.corrected_ms(10_810).abs_diff(10_810 + 490) <= 4, "{clock:?}");
    }

    #[test]
    fn a_clock_that_was_set_is_learned_anew() {
        let mut clock = ServiceClock::default();
        clock.observe(10_000, 10_040, 50);
        clock.observe(20_000, 20_040, 3_000);
        assert!(clock.corrected_ms(20_040).abs_diff(3_000_000) <= 2, "{clock:?}");
    }

    #[test]
    fn huge_times_do_not_overflow() {
        let mut clock = ServiceClock::default();
        for (sent, received, ts) in [(u64::MAX, 0, u64::MAX), (0, u64::MAX, 0), (u64::MAX, u64::MAX, 0)] {
            clock.observe(sent, received, ts);
            clock.corrected_ms(u64::MAX);
            clock.corrected_ms(0);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// The corrected time is never farther from the true time than a second and a round trip.
        #[test]
        fn the_error_is_at_most_a_second_and_a_round_trip(
            ahead in 0..10_000_000_u64,
            ppm in -150..=150_i64,
            beats in proptest::collection::vec((4_000..6_000_u64, 1..80_u64, 0..100_u64), 1..60),
        ) {
            let service = |local: u64| {
                let drift = i64::try_from(local).unwrap() * ppm / 1_000_000;
                (local + ahead).checked_add_signed(drift).unwrap()
            };
            let (mut clock, mut local, mut longest) = (ServiceClock::default(), 1_000_000_u64, 0);
            for (pause, round_trip, percent) in beats {
                local += pause;
                let executed = local + round_trip * percent / 100;
                clock.observe(local, local + round_trip, service(executed) / 1_000);
                local += round_trip;
                longest = longest.max(round_trip);
                let error = clock.corrected_ms(local).abs_diff(service(local));
                prop_assert!(error <= 1_005 + longest, "{} {}", error, longest);
            }
        }
    }
}
