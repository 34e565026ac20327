//! Dispatch slots: they decide which runtime looks for ready work of which instances. In this crate "slot" is short for it; the
//! slots of a runtime are its tasks.
//!
//! An instance belongs to one of 256 slots by the hash of its id. One document, the slot table, says which runtime owns which
//! slot; a runtime that owns a slot looks for the slot's work. **Slots are advisory**: while a slot moves two runtimes may serve
//! it, and the lock in the document of the instance lets one of them win.
//!
//! Every live runtime computes the next table from the stored one ([`Table::rebalanced`]) and replaces it under `If-Match`:
//!
//! | slots | may be given away by |
//! |---|---|
//! | of no runtime, or of a dead one | any live runtime |
//! | of a live runtime that has more than its share | that runtime |
//!
//! A slot moves only if its owner is dead or has too many, and slots move in contiguous ranges where possible, so that a query
//! for the slots of a runtime has few conditions.

use crate::ids::Uid;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

/// The number of slots.
pub(crate) const SLOTS: usize = 256;

/// A runtime writes a heartbeat at this interval.
pub(crate) const HEARTBEAT_MS: u64 = 5_000;

/// A runtime whose last heartbeat is older is dead.
pub(crate) const LEASE_MS: u64 = 15_000;

/// The delay of a takeover by another runtime: the clocks of the two differ by less.
pub(crate) const SKEW_MS: u64 = 500;

/// The slot of an instance. Stored, so it never changes.
pub(crate) fn slot_of(instance_id: &str) -> u8 {
    // The low byte of FNV-1a depends on the low bits of the text alone, and the high byte hardly on the last characters.
    fnv1a(instance_id.as_bytes()).to_le_bytes().into_iter().fold(0, |slot, byte| slot ^ byte)
}

/// FNV-1a with 64 bits.
pub(crate) fn fnv1a(bytes: &[u8]) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    bytes.iter().fold(OFFSET, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME))
}

/// Whether a runtime may serve its slots. `renewed_ms` is the time at which its last accepted heartbeat was sent, and both times
/// are of the runtime's own monotonic clock.
pub(crate) fn may_serve(renewed_ms: u64, now_ms: u64) -> bool {
    now_ms.saturating_sub(renewed_ms) < LEASE_MS
}

/// Whether every runtime serves the work of any slot: the owner of the slot has not served it for two leases.
pub(crate) fn is_overdue(due_ms: u64, now_ms: u64) -> bool {
    now_ms >= due_ms.saturating_add(2 * LEASE_MS)
}

/// The last heartbeat of a runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Heartbeat {
    pub(crate) runtime: Uid,
    /// In the time of the service.
    pub(crate) at_ms: u64,
}

impl Heartbeat {
    /// Whether other runtimes regard the runtime as live.
    pub(crate) fn is_live(&self, now_ms: u64) -> bool {
        now_ms < self.expires_at()
    }

    pub(crate) fn expires_at(&self) -> u64 {
        self.at_ms.saturating_add(LEASE_MS + SKEW_MS)
    }
}

/// One slot of the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Slot {
    pub(crate) owner: Option<Uid>,
    /// Grows with every change of the owner. A runtime that finds another epoch knows that it lost the slot in between.
    pub(crate) epoch: u32,
}

/// The slot table.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "Vec<Run>", try_from = "Vec<Run>")]
pub(crate) struct Table {
    slots: Vec<Slot>,
}

/// Equal slots in a row, as the table is stored.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Run {
    count: usize,
    owner: Option<Uid>,
    epoch: u32,
}

impl Default for Table {
    fn default() -> Self {
        Self::with_slots(SLOTS)
    }
}

impl Table {
    /// A table of slots without owners.
    pub(crate) fn with_slots(count: usize) -> Self {
        Self { slots: vec![Slot::default(); count] }
    }

    pub(crate) fn slots(&self) -> &[Slot] {
        &self.slots
    }

    #[cfg(test)]
    pub(crate) fn slots_mut(&mut self) -> &mut [Slot] {
        &mut self.slots
    }

    /// The slots of a runtime, as ranges.
    pub(crate) fn ranges(&self, runtime: Uid) -> Vec<RangeInclusive<usize>> {
        self.runs(|slot| slot.owner == Some(runtime))
    }

    /// The table after the changes that `own` may make and that bring the table closer to equal shares; `None` if there are none.
    pub(crate) fn rebalanced(&self, own: Uid, heartbeats: &[Heartbeat], now_ms: u64) -> Option<Self> {
        let live = heartbeats.iter().filter(|heartbeat| heartbeat.is_live(now_ms));
        let live: BTreeSet<Uid> = live.map(|heartbeat| heartbeat.runtime).chain([own]).collect();
        let mut shares = self.shares(&live);
        let mut next = self.clone();
        for slot in &mut next.slots {
            slot.owner = slot.owner.filter(|owner| live.contains(owner));
        }
        if let Some(share) = shares.get_mut(&own) {
            next.release(own, share);
        }
        next.share_out(&mut shares);
        for (slot, before) in next.slots.iter_mut().zip(&self.slots) {
            slot.epoch = before.epoch.wrapping_add(u32::from(slot.owner != before.owner));
        }
        (next != *self).then_some(next)
    }

    /// For every live runtime, its number of slots and its share. Shares differ by at most one, and the larger ones go to the
    /// runtimes with the most slots, so that few slots move.
    fn shares(&self, live: &BTreeSet<Uid>) -> BTreeMap<Uid, Share> {
        let count = |runtime: Uid| self.slots.iter().filter(|slot| slot.owner == Some(runtime)).count();
        let mut counts: Vec<(usize, Uid)> = live.iter().map(|runtime| (count(*runtime), *runtime)).collect();
        counts.sort_unstable_by_key(|(has, runtime)| (std::cmp::Reverse(*has), *runtime));
        let (least, larger) = (self.slots.len() / live.len(), self.slots.len() % live.len());
        let share = |(nth, (has, runtime)): (usize, (usize, Uid))| {
            (runtime, Share { has, target: least + usize::from(nth < larger) })
        };
        counts.into_iter().enumerate().map(share).collect()
    }

    /// Frees the slots that exceed the share of a runtime: its smallest ranges, and the end of a range.
    fn release(&mut self, own: Uid, share: &mut Share) {
        let mut ranges = self.ranges(own);
        ranges.sort_by_key(|range| range.clone().count());
        for index in ranges.into_iter().flat_map(Iterator::rev) {
            if share.has <= share.target {
                return;
            }
            self.slots[index].owner = None;
            share.has -= 1;
        }
    }

    /// Gives every slot without an owner to a runtime below its share: first to the owner of a neighbour, else to the runtime
    /// that lacks most.
    fn share_out(&mut self, shares: &mut BTreeMap<Uid, Share>) {
        while let Some(run) = self.runs(|slot| slot.owner.is_none()).into_iter().next() {
            let (first, last) = (*run.start(), *run.end());
            let lacks = |runtime: Uid| shares.get(&runtime).map_or(0, Share::lacks);
            let neighbour = |index: Option<usize>| {
                let owner = index.and_then(|index| self.slots.get(index)).and_then(|slot| slot.owner);
                owner.filter(|owner| lacks(*owner) > 0)
            };
            let (before, after) = (neighbour(first.checked_sub(1)), neighbour(last.checked_add(1)));
            let neediest =
                shares.iter().max_by_key(|(runtime, share)| (share.lacks(), std::cmp::Reverse(**runtime)));
            let Some(runtime) = before.or(after).or(neediest.map(|(runtime, _)| *runtime)) else { return };
            let Some(share) = shares.get_mut(&runtime).filter(|share| share.lacks() > 0) else { return };
            let count = share.lacks().min(run.count());
            share.has += count;
            let given = match before.is_none() && after.is_some() {
                true => last + 1 - count..=last,
                false => first..=first + count - 1,
            };
            self.slots[given].iter_mut().for_each(|slot| slot.owner = Some(runtime));
        }
    }

    /// The longest ranges of slots that fulfil a condition.
    fn runs(&self, is_member: impl Fn(&Slot) -> bool) -> Vec<RangeInclusive<usize>> {
        let mut runs: Vec<RangeInclusive<usize>> = Vec::new();
        for index in (0..self.slots.len()).filter(|index| is_member(&self.slots[*index])) {
            match runs.last_mut() {
                Some(run) if run.end() + 1 == index => *run = *run.start()..=index,
                _ => runs.push(index..=index),
            }
        }
        runs
    }
}

struct Share {
    has: usize,
    target: usize,
}

impl Share {
    fn lacks(&self) -> usize {
        self.target.saturating_sub(self.has)
    }
}

impl From<Table> for Vec<Run> {
    fn from(table: Table) -> Self {
        let mut runs: Self = Vec::new();
        for slot in table.slots {
            match runs.last_mut() {
                Some(run) if (run.owner, run.epoch) == (slot.owner, slot.epoch) => run.count += 1,
                _ => runs.push(Run { count: 1, owner: slot.owner, epoch: slot.epoch }),
            }
        }
        runs
    }
}

impl TryFrom<Vec<Run>> for Table {
    type Error = String;

    fn try_from(runs: Vec<Run>) -> Result<Self, String> {
        let count = runs.iter().try_fold(0_usize, |sum, run| sum.checked_add(run.count));
        if count != Some(SLOTS) {
            return Err(format!("the slot table has {count:?} slots, not {SLOTS}"));
        }
        let slots = runs
            .into_iter()
            .flat_map(|run| std::iter::repeat_n(Slot { owner: run.owner, epoch: run.epoch }, run.count));
        Ok(Self { slots: slots.collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn hashes_have_the_published_vectors() {
        let vectors = [
            ("", 0xcbf2_9ce4_8422_2325),
            ("a", 0xaf63_dc4c_8601_ec8c),
            ("foobar", 0x8594_4171_f739_67e8),
            ("chongo was here!\n", 0x46810940eff5f915),
        ];
        for (text, hash) in vectors {
            assert_eq!(fnv1a(text.as_bytes()), hash, "{text}");
        }
    }

    /// A slot is stored in documents: another function would hide them from their owners.
    #[test]
    fn slots_of_ids_do_not_change() {
        let slots = ["", "a", "order-1", "order-2", "naïve 🦀"].map(slot_of);
        assert_eq!(slots, [225, 187, 42, 229, 11]);
    }

    #[test]
    fn consecutive_ids_are_spread_evenly() {
        for prefix in ["order-", "", "sub::2::", "00000000-0000-0000-0000-"] {
            let mut counts = [0_i32; SLOTS];
            (0..25_600).for_each(|n| counts[usize::from(slot_of(&format!("{prefix}{n}")))] += 1);
            let squares: i32 = counts.iter().map(|count| (count - 100).pow(2)).sum();
            // Chi-square with 255 degrees of freedom: 99.9 % of random assignments stay below 330.5.
            assert!(squares / 100 < 331, "{prefix}: {}", squares / 100);
        }
    }

    const NOW_MS: u64 = 1_000_000;

    fn beats(runtimes: &BTreeSet<u128>) -> Vec<Heartbeat> {
        runtimes.iter().map(|runtime| Heartbeat { runtime: Uid(*runtime), at_ms: NOW_MS }).collect()
    }

    fn counts(table: &Table, runtimes: &BTreeSet<u128>) -> Vec<usize> {
        let count = |runtime: &u128| table.ranges(Uid(*runtime)).into_iter().map(Iterator::count).sum();
        runtimes.iter().map(count).collect()
    }

    /// Lets every live runtime replace the table once, in this order.
    fn round(table: &mut Table, order: &[u128], live: &BTreeSet<u128>) {
        for runtime in order {
            if let Some(next) = table.rebalanced(Uid(*runtime), &beats(live), NOW_MS) {
                *table = next;
            }
        }
    }

    #[test]
    fn the_first_runtime_gets_all_slots_and_a_second_one_half() {
        let mut table = Table::default();
        round(&mut table, &[1], &BTreeSet::from([1]));
        assert_eq!(table.ranges(Uid(1)), [0..=255]);
        assert_eq!(
            table.rebalanced(Uid(2), &beats(&BTreeSet::from([1])), NOW_MS),
            None,
            "only its owner releases a slot"
        );
        round(&mut table, &[2, 1], &BTreeSet::from([1, 2]));
        assert_eq!((table.ranges(Uid(1)), table.ranges(Uid(2))), (vec![0..=127], vec![128..=255]));
        assert_eq!((table.slots()[0].epoch, table.slots()[200].epoch), (1, 2));
    }

    #[test]
    fn survivors_share_the_range_of_a_dead_runtime_in_contiguous_parts() {
        let live = BTreeSet::from([1, 2, 3, 4]);
        let mut table = Table::default();
        round(&mut table, &[1], &live);
        let before: Vec<usize> = live.iter().map(|runtime| table.ranges(Uid(*runtime)).len()).collect();
        assert_eq!(before, [1, 1, 1, 1]);
        let survivors = BTreeSet::from([1, 3, 4]);
        round(&mut table, &[4], &survivors);
        assert_eq!(counts(&table, &survivors), [86, 85, 85]);
        assert!(survivors.iter().all(|runtime| table.ranges(Uid(*runtime)).len() <= 2), "{table:?}");
        assert_eq!(table.ranges(Uid(2)), []);
    }

    #[test]
    fn a_heartbeat_counts_for_a_lease_and_the_skew() {
        const { assert!(2 * HEARTBEAT_MS < LEASE_MS, "one lost heartbeat does not cost the slots") }
        let beat = Heartbeat { runtime: Uid(1), at_ms: NOW_MS };
        assert!(beat.is_live(NOW_MS + 15_499) && !beat.is_live(NOW_MS + 15_500));
        assert!(Heartbeat { runtime: Uid(1), at_ms: u64::MAX }.is_live(u64::MAX - 1));
        assert!(may_serve(NOW_MS, NOW_MS + 14_999) && !may_serve(NOW_MS, NOW_MS + 15_000));
        assert!(!is_overdue(NOW_MS, NOW_MS + 29_999) && is_overdue(NOW_MS, NOW_MS + 30_000));
    }

    #[test]
    fn a_stored_table_is_read_back_and_another_size_is_refused() {
        let mut table = Table::default();
        round(&mut table, &[1, 2, 3], &BTreeSet::from([1, 2, 3]));
        let text = serde_json::to_string(&table).unwrap();
        assert!(text.len() < 1_000, "{text}");
        assert_eq!(serde_json::from_str::<Table>(&text).unwrap(), table);
        for runs in
            ["[]", r#"[{"count":255,"owner":null,"epoch":0}]"#, r#"[{"count":257,"owner":null,"epoch":0}]"#]
        {
            assert!(serde_json::from_str::<Table>(runs).unwrap_err().to_string().contains("not 256"));
        }
    }

    /// The live runtimes at one time, and the order in which they replace the table.
    fn fleets() -> impl Strategy<Value = Vec<(BTreeSet<u128>, Vec<u128>)>> {
        let fleet = proptest::collection::btree_set(0..20_u128, 1..12);
        let ordered = fleet.prop_flat_map(|fleet| {
            let order = Just(fleet.iter().copied().collect::<Vec<_>>()).prop_shuffle();
            (Just(fleet), order)
        });
        proptest::collection::vec(ordered, 1..8)
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn shares_are_equal_after_every_live_runtime_replaced_the_table_twice(fleets in fleets()) {
            let mut table = Table::default();
            for (live, order) in fleets {
                let before = table.clone();
                let stays = |slot: &Slot| slot.owner.is_some_and(|owner| live.contains(&owner.0));
                let lacking = counts(&before, &live).into_iter().map(|has| (SLOTS / live.len()).saturating_sub(has));
                let most_moved = before.slots.iter().filter(|slot| !stays(slot)).count()
                    + lacking.sum::<usize>()
                    + 2 * live.len();
                // The shares that a runtime computes in the first round change with the releases of the runtimes after it.
                round(&mut table, &order, &live);
                round(&mut table, &order, &live);
                let counts = counts(&table, &live);
                prop_assert_eq!(counts.iter().sum::<usize>(), SLOTS);
                prop_assert!(counts.iter().max().unwrap() - counts.iter().min().unwrap() <= 1, "{:?}", counts);
                let moved = table.slots.iter().zip(&before.slots).filter(|(after, before)| after.owner != before.owner);
                prop_assert!(moved.count() <= most_moved);
                let stable = table.clone();
                round(&mut table, &order, &live);
                prop_assert_eq!(&table, &stable, "a balanced table does not change");
            }
        }

        #[test]
        fn a_runtime_changes_its_own_slots_and_those_of_the_dead_only(fleets in fleets(), own in 0..20_u128) {
            let mut table = Table::default();
            for (live, order) in fleets {
                if let Some(next) = table.rebalanced(Uid(own), &beats(&live), NOW_MS) {
                    for (after, before) in next.slots.iter().zip(&table.slots) {
                        let is_anothers = before.owner.is_some_and(|owner| owner.0 != own && live.contains(&owner.0));
                        prop_assert!(!is_anothers || before == after);
                        prop_assert_eq!(after.epoch - before.epoch, u32::from(after.owner != before.owner));
                        prop_assert!(after.owner.is_some(), "a live runtime leaves no slot without an owner");
                    }
                }
                round(&mut table, &order, &live);
            }
        }
    }
}
