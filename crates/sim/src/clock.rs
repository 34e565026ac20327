//! Clocks that jump.

use outlast_conformance::TokioClock;
use outlast_provider::Clock;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

/// When worlds begin.
pub(crate) const EPOCH_MS: u64 = 1_700_000_000_000;

/// The clock of a store, or of a process: another clock, and how far it is off.
pub(crate) struct OffClock {
    truth: Arc<TokioClock>,
    off_ms: AtomicI64,
    back_ms: AtomicU64,
}

impl OffClock {
    pub(crate) fn new(truth: &Arc<TokioClock>, off_ms: i64) -> Arc<Self> {
        Arc::new(Self {
            truth: Arc::clone(truth),
            off_ms: AtomicI64::new(off_ms),
            back_ms: AtomicU64::new(0),
        })
    }

    /// Back is negative.
    pub(crate) fn jump(&self, ms: i64) {
        self.off_ms.fetch_add(ms, Relaxed);
        if ms < 0 {
            self.back_ms.fetch_add(ms.unsigned_abs(), Relaxed);
        }
    }

    /// How far it was set back so far, altogether.
    pub(crate) fn back_ms(&self) -> u64 {
        self.back_ms.load(Relaxed)
    }
}

impl Clock for OffClock {
    fn now_ms(&self) -> u64 {
        self.truth.now_ms().saturating_add_signed(self.off_ms.load(Relaxed))
    }
}
