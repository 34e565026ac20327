//! Leasing ahead: how many slots fetch for a queue.
//!
//! A queue has as many slots as permits. While its items run in less than a millisecond or so and the store always has another
//! item, the runtime starts further slots, so that the store can lease many items in one transaction. A further slot ends when a
//! fetch returns nothing, when an item cannot start in time, and when items take longer to run.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// The most slots of a queue whose concurrency option is lower.
const MOST_SLOTS: usize = 32;

/// Items that never started may be counted as delivered once or twice: for the first deliveries of another item that ends the
/// process, in a turn and in the activity that leads to it.
const LEAST_ATTEMPTS: u32 = 4;

/// The time in which a runtime expects to run the items that it leases ahead.
const AHEAD_TIME: Duration = Duration::from_millis(10);

/// A fetch that returns an item within this time found it waiting.
pub(super) const QUICK_FETCH: Duration = Duration::from_millis(10);

/// The number of quick fetches in a row after which a slot starts further slots.
pub(super) const QUICK_FETCHES: u32 = 2;

/// An average that is not known yet.
const UNKNOWN: u64 = u64::MAX;

/// The slots of one queue.
pub(crate) struct FurtherSlots {
    /// The concurrency option of the queue.
    permits: usize,
    /// The most slots.
    most: usize,
    /// The slots beyond one per permit.
    further: AtomicUsize,
    /// The average time for which an item runs, in nanoseconds.
    average_ns: AtomicU64,
}

impl FurtherSlots {
    /// A crash counts a delivery of every leased item, so a runtime with a low `max_attempts` leases nothing ahead.
    pub(crate) fn new(permits: usize, max_attempts: u32) -> Self {
        let most = if max_attempts < LEAST_ATTEMPTS { permits } else { MOST_SLOTS.max(permits) };
        Self { permits, most, further: AtomicUsize::new(0), average_ns: AtomicU64::new(UNKNOWN) }
    }

    /// Whether the slot is one of those that run as long as the runtime.
    pub(super) fn is_permanent(&self, slot: usize) -> bool {
        slot < self.permits
    }

    /// Records for how long an item ran.
    pub(super) fn record(&self, ran: Duration) {
        let ran = u64::try_from(ran.as_nanos()).unwrap_or(UNKNOWN - 1);
        let old = self.average_ns.load(Relaxed);
        // Concurrent calls may lose a value, which changes the average by little.
        let new = if old == UNKNOWN { ran } else { old - old / 8 + ran / 8 };
        self.average_ns.store(new.min(UNKNOWN - 1), Relaxed);
    }

    /// An item could not start in time: no further slots until items are known to run fast again.
    pub(super) fn stop(&self) {
        let slow = u64::try_from(AHEAD_TIME.as_nanos()).unwrap_or(UNKNOWN - 1);
        self.average_ns.store(slow.max(self.average_ns.load(Relaxed)), Relaxed);
    }

    /// The most slots for items that run as long as the recent ones did.
    fn most_slots(&self) -> usize {
        let average = self.average_ns.load(Relaxed);
        if average == UNKNOWN {
            return self.permits;
        }
        let per_permit = AHEAD_TIME.as_nanos() / u128::from(average.max(1));
        let within_time = self.permits.saturating_mul(usize::try_from(per_permit).unwrap_or(usize::MAX));
        within_time.clamp(self.permits, self.most)
    }

    /// Whether the slot is one of the further slots and there are more of them than there should be.
    pub(super) fn is_excess(&self, slot: usize) -> bool {
        !self.is_permanent(slot) && self.permits + self.further.load(Relaxed) > self.most_slots()
    }

    /// Reserves further slots: at most as many as there are slots. Returns their numbers.
    pub(super) fn grow(&self) -> std::ops::Range<usize> {
        let most = self.most_slots();
        let reserved = self.further.fetch_update(Relaxed, Relaxed, |further| {
            let slots = self.permits + further;
            (slots < most).then(|| (slots * 2).min(most) - self.permits)
        });
        match reserved {
            Ok(before) => {
                let first = self.permits + before;
                first..((first * 2).min(most))
            }
            Err(_) => 0..0,
        }
    }

    /// A further slot has ended.
    pub(super) fn ended(&self) {
        self.further.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAST: Duration = Duration::from_micros(50);

    #[test]
    fn slots_double_up_to_the_most_while_items_run_fast() {
        let slots = FurtherSlots::new(2, 10);
        assert_eq!(slots.grow(), 0..0, "nothing is known of the items yet");
        slots.record(FAST);
        assert_eq!(slots.grow(), 2..4);
        assert_eq!(slots.grow(), 4..8);
        assert_eq!((slots.grow(), slots.grow(), slots.grow()), (8..16, 16..32, 0..0));
        assert!(!slots.is_excess(31));
        (0..30).for_each(|_| slots.ended());
        assert_eq!(slots.grow(), 2..4);
    }

    #[test]
    fn slow_items_and_items_that_start_late_end_the_growth() {
        let slots = FurtherSlots::new(2, 10);
        slots.record(FAST);
        slots.grow();
        slots.record(Duration::from_secs(1));
        assert!(slots.is_excess(2) && !slots.is_excess(1));
        assert_eq!(slots.grow(), 0..0);
        (0..100).for_each(|_| slots.record(FAST));
        assert_eq!(slots.grow(), 4..8);
        slots.stop();
        assert!(slots.is_excess(7));
        slots.record(Duration::MAX);
        assert_eq!(slots.grow(), 0..0);
    }

    #[test]
    fn items_of_some_milliseconds_are_leased_ahead_in_small_numbers() {
        let slots = FurtherSlots::new(2, 10);
        slots.record(Duration::from_millis(4));
        assert_eq!((slots.grow(), slots.grow()), (2..4, 0..0));
    }

    #[test]
    fn a_queue_with_many_permits_has_no_further_slots() {
        let slots = FurtherSlots::new(64, 10);
        slots.record(FAST);
        assert_eq!(slots.grow(), 0..0);
    }

    #[test]
    fn a_runtime_with_few_attempts_leases_nothing_ahead() {
        for (max_attempts, further) in [(1, 0..0), (3, 0..0), (4, 2..4)] {
            let slots = FurtherSlots::new(2, max_attempts);
            slots.record(FAST);
            assert_eq!(slots.grow(), further, "{max_attempts}");
        }
    }
}
