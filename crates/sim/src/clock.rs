//! Clocks that differ from the true time and jump.

use outlast_conformance::TokioClock;
use outlast_provider::Clock;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

/// The time at which every world begins.
pub(crate) const EPOCH_MS: u64 = 1_700_000_000_000;

/// The clock of a store or a node: the true time plus a skew.
pub(crate) struct SkewedClock {
    true_clock: Arc<TokioClock>,
    skew_ms: AtomicI64,
    set_back_ms: AtomicU64,
    /// The latest time before a jump back.
    reached_ms: AtomicU64,
}

impl SkewedClock {
    pub(crate) fn new(true_clock: &Arc<TokioClock>, skew_ms: i64) -> Arc<Self> {
        Arc::new(Self {
            true_clock: Arc::clone(true_clock),
            skew_ms: AtomicI64::new(skew_ms),
            set_back_ms: AtomicU64::new(0),
            reached_ms: AtomicU64::new(0),
        })
    }

    /// Moves the clock by `ms`; a negative value sets it back.
    pub(crate) fn jump(&self, ms: i64) {
        if ms < 0 {
            self.reached_ms.fetch_max(self.now_ms(), Relaxed);
            self.set_back_ms.fetch_add(ms.unsigned_abs(), Relaxed);
        }
        self.skew_ms.fetch_add(ms, Relaxed);
    }

    /// The latest time that the clock has had.
    pub(crate) fn latest_ms(&self) -> u64 {
        self.now_ms().max(self.reached_ms.load(Relaxed))
    }

    /// The sum of all jumps back.
    pub(crate) fn set_back_ms(&self) -> u64 {
        self.set_back_ms.load(Relaxed)
    }
}

impl Clock for SkewedClock {
    fn now_ms(&self) -> u64 {
        self.true_clock.now_ms().saturating_add_signed(self.skew_ms.load(Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_testkit::virtual_time;

    #[test]
    fn latest_time_is_the_greatest_that_the_clock_has_had() {
        virtual_time::run(async {
            let clock = SkewedClock::new(&Arc::new(TokioClock::start_at(EPOCH_MS)), 0);
            let times = [(500, 500), (-300, 500), (-100, 500), (300, 500), (200, 600), (-1, 600)];
            for (jump, latest) in times {
                clock.jump(jump);
                assert_eq!(clock.latest_ms(), EPOCH_MS + latest, "after a jump of {jump} ms");
            }
            assert_eq!((clock.now_ms(), clock.set_back_ms()), (EPOCH_MS + 599, 401));
        });
    }
}
