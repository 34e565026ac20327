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
}

impl SkewedClock {
    pub(crate) fn new(true_clock: &Arc<TokioClock>, skew_ms: i64) -> Arc<Self> {
        Arc::new(Self {
            true_clock: Arc::clone(true_clock),
            skew_ms: AtomicI64::new(skew_ms),
            set_back_ms: AtomicU64::new(0),
        })
    }

    /// Moves the clock by `ms`; a negative value sets it back.
    pub(crate) fn jump(&self, ms: i64) {
        self.skew_ms.fetch_add(ms, Relaxed);
        if ms < 0 {
            self.set_back_ms.fetch_add(ms.unsigned_abs(), Relaxed);
        }
    }

    /// A time that the clock has never been after: now, and the sum of all jumps back.
    pub(crate) fn latest_ms(&self) -> u64 {
        self.now_ms().saturating_add(self.set_back_ms())
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
