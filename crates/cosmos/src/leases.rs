//! Dispatch slots that a program hands out itself.
//!
//! Runtimes share the 256 dispatch slots of a container through a table in the container, and need no setting for it. A program
//! with its own assignment of dispatch slots to runtimes, such as one with a fixed number of replicas, sets a [`LeaseProvider`] in
//! [`CosmosDBOptions::leases`](crate::CosmosDBOptions::leases).
//!
//! Dispatch slots only decide which runtime looks for which instances. If a provider hands a dispatch slot to two runtimes, both
//! try its work, and the lease in the instance lets one of them run it. If it hands a dispatch slot to none, the work of the
//! dispatch slot is found when it is overdue by 30 seconds.

use crate::ids::Uid;
use crate::slots::SLOTS;
use crate::store::locked;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

/// Hands out dispatch slots of instances to runtimes.
pub trait LeaseProvider: Send + Sync {
    /// The dispatch slots that the caller serves until its next call. A store calls this with each heartbeat, every five seconds,
    /// while it fetches turns. `caller_id` stays the same while the store is open, and no other open store has it.
    fn acquire_slots(&self, caller_id: u64) -> Vec<u8>;

    /// The caller has stopped fetching turns, and its dispatch slots are free.
    fn release_slots(&self, caller_id: u64);
}

/// Hands out the dispatch slots of one process: the n-th of `callers` gets each `callers`-th dispatch slot, beginning with dispatch
/// slot n.
///
/// Callers beyond that number share the dispatch slots of the first ones. The assignment of a caller stays until the caller
/// releases it.
#[derive(Debug)]
pub struct InMemoryLeaseProvider {
    callers: usize,
    /// The places of the callers.
    places: Mutex<BTreeMap<u64, usize>>,
}

impl InMemoryLeaseProvider {
    /// Shares the dispatch slots among this number of callers; 0 counts as 1, and more than 256 as 256.
    pub fn new(callers: u32) -> Self {
        let callers = usize::try_from(callers).unwrap_or(SLOTS).clamp(1, SLOTS);
        Self { callers, places: Mutex::default() }
    }
}

impl LeaseProvider for InMemoryLeaseProvider {
    fn acquire_slots(&self, caller_id: u64) -> Vec<u8> {
        let mut places = locked(&self.places);
        let taken: BTreeSet<usize> = places.values().copied().collect();
        let free = (0..=taken.len()).find(|place| !taken.contains(place)).unwrap_or_default();
        let place = *places.entry(caller_id).or_insert(free);
        (0..=u8::MAX).skip(place % self.callers).step_by(self.callers).collect()
    }

    fn release_slots(&self, caller_id: u64) {
        locked(&self.places).remove(&caller_id);
    }
}

/// The dispatch slots that a store has from the provider of a program.
pub(crate) struct Leases {
    provider: Arc<dyn LeaseProvider>,
    caller_id: u64,
    has_acquired: Mutex<bool>,
}

impl Leases {
    pub(crate) fn new(provider: Arc<dyn LeaseProvider>, own: Uid) -> Self {
        let [low, high] = [own.0 & u128::from(u64::MAX), own.0 >> 64].map(|half| half as u64);
        Self { provider, caller_id: low ^ high, has_acquired: Mutex::default() }
    }

    /// The dispatch slots of a store that fetches turns; none of a store that does not.
    pub(crate) fn renew(&self, takes_turns: bool) -> BTreeSet<u8> {
        if !takes_turns {
            self.release();
            return BTreeSet::new();
        }
        *locked(&self.has_acquired) = true;
        self.provider.acquire_slots(self.caller_id).into_iter().collect()
    }

    pub(crate) fn release(&self) {
        if std::mem::take(&mut *locked(&self.has_acquired)) {
            self.provider.release_slots(self.caller_id);
        }
    }
}

impl Drop for Leases {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_get_every_nth_slot_and_keep_it() {
        let leases = InMemoryLeaseProvider::new(3);
        let shares = [7, 8, 9].map(|caller| leases.acquire_slots(caller));
        assert_eq!(shares.each_ref().map(Vec::len), [86, 85, 85]);
        assert_eq!((&shares[0][..3], shares[0].last()), (&[0, 3, 6][..], Some(&255)));
        assert_eq!((shares[1].last(), shares[2].last()), (Some(&253), Some(&254)));
        assert_eq!(leases.acquire_slots(8), shares[1]);
        let all: BTreeSet<u8> = shares.iter().flatten().copied().collect();
        assert_eq!(all.len(), SLOTS, "no slot is without a caller");
        assert_eq!(leases.acquire_slots(10), shares[0], "one caller more than planned");
    }

    #[test]
    fn a_released_share_goes_to_the_next_caller() {
        let leases = InMemoryLeaseProvider::new(2);
        let first = leases.acquire_slots(1);
        leases.acquire_slots(2);
        leases.release_slots(1);
        assert_eq!(leases.acquire_slots(3), first);
        assert_eq!(InMemoryLeaseProvider::new(0).acquire_slots(1).len(), SLOTS);
        assert_eq!(InMemoryLeaseProvider::new(1_000).acquire_slots(1), [0]);
    }

    #[test]
    fn a_store_that_ends_releases_its_slots_once() {
        #[derive(Default)]
        struct Counted(Mutex<(u32, u32)>);
        impl LeaseProvider for Counted {
            fn acquire_slots(&self, _: u64) -> Vec<u8> {
                locked(&self.0).0 += 1;
                vec![1, 1, 2]
            }
            fn release_slots(&self, _: u64) {
                locked(&self.0).1 += 1;
            }
        }
        let counted = Arc::new(Counted::default());
        let leases = Leases::new(Arc::clone(&counted) as Arc<dyn LeaseProvider>, Uid(1));
        assert_eq!(leases.renew(false), BTreeSet::new(), "a store that takes no turns");
        assert_eq!(*locked(&counted.0), (0, 0));
        assert_eq!((leases.renew(true), leases.renew(true)), ([1, 2].into(), [1, 2].into()));
        leases.renew(false);
        drop(leases);
        assert_eq!(*locked(&counted.0), (2, 1));
    }
}
