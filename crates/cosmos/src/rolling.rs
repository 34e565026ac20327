//! Counts over all dispatch slots. Each read counts only some dispatch slots again.
//!
//! Cosmos DB returns a row for each counted document, so a count of a whole store costs as much as the store has documents. A
//! rolling count remembers the count of each dispatch slot. A read counts the dispatch slots again that were counted the longest
//! time ago, about as many as have [`Rolling::rows`] rows together. The other dispatch slots keep their last counts.

use crate::slots::SLOTS;
use std::collections::BTreeMap;

/// The slots of the first read, when the number of rows in a slot is not known.
const FIRST: usize = 4;

/// Slots with [`Rolling::rows`] rows are counted at most once in this time.
const PAUSE_MS: u64 = 30_000;

/// The counts of one slot, for each kind of rows.
pub(crate) type Counts<const KINDS: usize> = [u64; KINDS];

pub(crate) struct Rolling<const KINDS: usize> {
    /// About the number of rows of one read.
    rows: usize,
    slots: BTreeMap<u8, Slot<KINDS>>,
    /// The slot that is counted next.
    next: u8,
    /// No slot is counted before this time.
    paused_until: u64,
}

#[derive(Clone, Copy)]
struct Slot<const KINDS: usize> {
    rows: usize,
    counts: Counts<KINDS>,
}

impl<const KINDS: usize> Rolling<KINDS> {
    pub(crate) fn new(rows: usize) -> Self {
        Self { rows: rows.max(1), slots: BTreeMap::new(), next: 0, paused_until: 0 }
    }

    /// The slots to count now; none during the pause after a read.
    pub(crate) fn due(&self, now: u64) -> Vec<u8> {
        if now < self.paused_until {
            return Vec::new();
        }
        let number = match self.slots.len() {
            0 => FIRST,
            known => (self.rows * known / self.known_rows().max(1)).clamp(1, SLOTS),
        };
        (0..number).map(|nth| self.next.wrapping_add(nth as u8)).collect()
    }

    /// Takes the counts of slots, by the slot of each row.
    pub(crate) fn counted(&mut self, slots: &[u8], rows: &[(u8, Counts<KINDS>)], now: u64) {
        let mut found: BTreeMap<u8, Slot<KINDS>> = BTreeMap::new();
        for slot in slots {
            found.insert(*slot, Slot { rows: 0, counts: [0; KINDS] });
        }
        for (slot, counts) in rows {
            let Some(slot) = found.get_mut(slot) else { continue };
            slot.rows += 1;
            for (sum, count) in slot.counts.iter_mut().zip(counts) {
                *sum += count;
            }
        }
        self.slots.append(&mut found);
        self.next = slots.last().map_or(self.next, |last| last.wrapping_add(1));
        // A slot with more rows than one read should have is followed by a longer pause.
        let reads = rows.len().div_ceil(self.rows).max(1) as u64;
        self.paused_until = now.saturating_add(reads.saturating_mul(PAUSE_MS));
    }

    /// The counts over all slots. Slots that were never counted count as the average of the others.
    pub(crate) fn sum(&self) -> Counts<KINDS> {
        let mut sum = [0; KINDS];
        for slot in self.slots.values() {
            for (sum, count) in sum.iter_mut().zip(slot.counts) {
                *sum += count;
            }
        }
        sum.map(|count| count.saturating_mul(SLOTS as u64) / self.slots.len().max(1) as u64)
    }

    /// The rows of all slots, estimated in the same way.
    pub(crate) fn estimated_rows(&self) -> usize {
        self.known_rows().saturating_mul(SLOTS) / self.slots.len().max(1)
    }

    fn known_rows(&self) -> usize {
        self.slots.values().map(|slot| slot.rows).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts a store that has `each` rows in every slot until all slots were counted; returns the rows of each read.
    fn pass(rolling: &mut Rolling<1>, each: usize, now: &mut u64) -> Vec<usize> {
        let (mut reads, mut seen) = (Vec::new(), 0);
        while seen < SLOTS {
            let slots = rolling.due(*now);
            let rows: Vec<(u8, [u64; 1])> =
                slots.iter().flat_map(|slot| (0..each).map(|_| (*slot, [1]))).collect();
            rolling.counted(&slots, &rows, *now);
            seen += slots.len();
            reads.push(rows.len());
            *now = rolling.paused_until;
        }
        reads
    }

    #[test]
    fn a_read_counts_about_the_given_number_of_rows_in_stores_of_every_size() {
        for each in [2, 40, 250] {
            let (mut rolling, mut now) = (Rolling::new(250), 0);
            let reads = pass(&mut rolling, each, &mut now);
            assert!(reads[1..].iter().all(|rows| *rows <= 250.max(each)), "{each}: {reads:?}");
            assert_eq!(rolling.sum(), [256 * each as u64]);
            assert_eq!(rolling.estimated_rows(), 256 * each);
        }
    }

    #[test]
    fn a_slot_with_many_rows_is_followed_by_a_longer_pause() {
        let (mut rolling, mut now) = (Rolling::new(250), 0);
        let reads = pass(&mut rolling, 4_000, &mut now);
        let rate = reads.iter().sum::<usize>() as u64 * PAUSE_MS / now;
        assert!(rate <= 250, "{rate} rows in the time of one read");
        assert!(rolling.due(now - 1).is_empty() && rolling.due(now) == [0]);
    }

    #[test]
    fn slots_that_were_not_counted_count_as_the_average() {
        let mut rolling: Rolling<2> = Rolling::new(250);
        assert_eq!((rolling.sum(), rolling.due(0)), ([0, 0], vec![0, 1, 2, 3]));
        rolling.counted(&[0, 1, 2, 3], &[(0, [1, 0]), (2, [1, 1])], 0);
        assert_eq!((rolling.sum(), rolling.estimated_rows()), ([128, 64], 128));
        // The next read has all 256 slots: 128 rows are less than 250.
        assert_eq!(rolling.due(PAUSE_MS).len(), SLOTS);
    }

    #[test]
    fn the_slots_that_were_counted_first_are_counted_again_after_the_last_slot() {
        let mut rolling: Rolling<1> = Rolling::new(10);
        rolling.counted(&[254, 255], &[(254, [1]), (255, [1])], 0);
        let slots = rolling.due(PAUSE_MS);
        assert_eq!((slots.len(), slots[0]), (10, 0));
        rolling.counted(&slots, &[], PAUSE_MS);
        assert_eq!(rolling.due(2 * PAUSE_MS)[0], 10);
    }
}
