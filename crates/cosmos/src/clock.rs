//! The time of the service, estimated from its answers.
//!
//! Cosmos DB stamps every write with `_ts`, in whole seconds of its own clock. A write that was sent at local time `s` and
//! answered at `r` with the stamp `t` was executed between `s` and `r` locally, and between `t` and `t + 1 s` in the service. So
//! the service is ahead of the local clock by more than `t - r` and by less than `t + 1 s - s`. The bounds of several writes
//! overlap in an interval about as wide as a round trip.
//!
//! The estimate decides when a lease is over and in which order messages are taken. It is never a fence: a wrong clock costs a
//! second attempt, and `If-Match` refuses one of the two.

/// A monotonic clock of a machine runs this much faster or slower than the clock of the service, in millionths.
const DRIFT_PPM: i64 = 200;

/// Estimates the time of the service. Local times are milliseconds of a monotonic clock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ServiceClock {
    offset: Option<Offset>,
    /// The last stamp of a message.
    stamped_ms: u64,
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

    fn middle(self) -> i64 {
        self.low + (self.high - self.low) / 2
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

    /// The time of the service; `None` before the first observation.
    pub(crate) fn now_ms(&self, local_ms: u64) -> Option<u64> {
        let offset = self.offset?.at(signed(local_ms));
        Some(u64::try_from(signed(local_ms) + offset.middle()).unwrap_or(0))
    }

    /// The largest difference between the estimate and the time of the service.
    pub(crate) fn error_ms(&self, local_ms: u64) -> Option<u64> {
        let offset = self.offset?.at(signed(local_ms));
        u64::try_from((offset.high - offset.low + 1) / 2).ok()
    }

    /// The stamp of a message: the time of the service, and later than every stamp before it.
    pub(crate) fn stamp_ms(&mut self, local_ms: u64) -> Option<u64> {
        self.stamped_ms = self.now_ms(local_ms)?.max(self.stamped_ms.saturating_add(1));
        Some(self.stamped_ms)
    }
}

/// Whether the holder of a lease regards it as over.
pub(crate) fn is_over_for_holder(deadline_ms: u64, now_ms: u64) -> bool {
    now_ms >= deadline_ms
}

/// Whether another process may take the lease over: later than the holder stops, by more than their clocks differ.
pub(crate) fn is_over_for_others(deadline_ms: u64, now_ms: u64, skew_ms: u64) -> bool {
    now_ms >= deadline_ms.saturating_add(skew_ms)
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
    fn there_is_no_time_before_the_first_observation() {
        let mut clock = ServiceClock::default();
        assert_eq!((clock.now_ms(5), clock.error_ms(5), clock.stamp_ms(5)), (None, None, None));
    }

    #[test]
    fn one_observation_bounds_the_error_by_half_of_a_second_and_a_round_trip() {
        let mut clock = ServiceClock::default();
        clock.observe(10_000, 10_040, 50);
        assert!(clock.error_ms(10_040).unwrap() <= 522, "{clock:?}");
        assert!(clock.now_ms(10_040).unwrap().abs_diff(50_500) <= 21, "{clock:?}");
    }

    #[test]
    fn a_clock_that_was_set_is_learned_anew() {
        let mut clock = ServiceClock::default();
        clock.observe(10_000, 10_040, 50);
        clock.observe(20_000, 20_040, 3_000);
        assert!(clock.now_ms(20_040).unwrap().abs_diff(3_000_500) <= 21, "{clock:?}");
    }

    #[test]
    fn stamps_increase_even_if_time_does_not() {
        let mut clock = ServiceClock::default();
        clock.observe(10_000, 10_040, 50);
        let stamps: Vec<u64> = (0..3).map(|_| clock.stamp_ms(10_040).unwrap()).collect();
        assert!(stamps.is_sorted_by(|one, other| one < other), "{stamps:?}");
        clock.observe(10_041, 10_042, 1);
        assert!(clock.stamp_ms(10_042).unwrap() > stamps[2], "the service went back");
    }

    #[test]
    fn huge_times_do_not_overflow() {
        let mut clock = ServiceClock::default();
        for (sent, received, ts) in [(u64::MAX, 0, u64::MAX), (0, u64::MAX, 0), (u64::MAX, u64::MAX, 0)] {
            clock.observe(sent, received, ts);
            clock.stamp_ms(u64::MAX);
            clock.error_ms(0);
        }
    }

    #[test]
    fn another_process_takes_a_lease_later_than_its_holder_gives_it_up() {
        assert!(!is_over_for_holder(100, 99) && is_over_for_holder(100, 100));
        assert!(!is_over_for_others(100, 599, 500) && is_over_for_others(100, 600, 500));
        assert!(!is_over_for_others(u64::MAX, u64::MAX - 1, 500));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// The true time is never farther from the estimate than the error, and the error approaches half of a round trip.
        #[test]
        fn the_error_bounds_the_difference(
            ahead in 0..10_000_000_u64,
            ppm in -150..=150_i64,
            beats in proptest::collection::vec((4_000..6_000_u64, 1..80_u64, 0..100_u64), 1..60),
        ) {
            let service = |local: u64| {
                let drift = i64::try_from(local).unwrap() * ppm / 1_000_000;
                (local + ahead).checked_add_signed(drift).unwrap()
            };
            let (mut clock, mut local, mut longest) = (ServiceClock::default(), 1_000_000_u64, 0);
            let count = beats.len();
            for (pause, round_trip, percent) in beats {
                local += pause;
                let executed = local + round_trip * percent / 100;
                clock.observe(local, local + round_trip, service(executed) / 1_000);
                local += round_trip;
                longest = longest.max(round_trip);
                let (now, error) = (clock.now_ms(local).unwrap(), clock.error_ms(local).unwrap());
                prop_assert!(now.abs_diff(service(local)) <= error, "{} {} {}", now, service(local), error);
                prop_assert!(error <= 503 + longest / 2, "{}", error);
            }
            if count >= 50 {
                let error = clock.error_ms(local).unwrap();
                prop_assert!(error <= 250 + longest, "{} after {} heartbeats", error, count);
            }
        }
    }
}
