//! The knowledge of this process about waiting activities.

use crate::document::{Address, Item, Versioned};
use crate::ready::Ready;
use outlast_provider::TagFilter;

/// The key of an activity in the line: order, instance, document.
pub(crate) type WorkKey = (String, String, String);

#[derive(Clone, Debug)]
pub(crate) struct Work {
    pub(crate) address: Address,
    pub(crate) visible_at: u64,
    pub(crate) until: u64,
    pub(crate) tag: Option<String>,
    pub(crate) session_id: Option<String>,
    /// The document, if this process wrote it last.
    pub(crate) document: Option<Versioned<Item>>,
    is_busy: bool,
    is_wanted: bool,
}

impl Work {
    fn fetchable_at(&self) -> u64 {
        self.visible_at.max(self.until)
    }
}

impl Ready {
    /// An activity is stored, or was changed by this process.
    pub(crate) fn stored_work(&self, address: &Address, item: &Item, etag: &str) {
        let key = (item.o.clone(), address.id.clone(), item.id.clone());
        let document = Some(Versioned { etag: etag.to_string(), document: item.clone() });
        {
            let mut state = self.state();
            let (is_busy, is_wanted) =
                state.work.get(&key).map_or((false, false), |work| (work.is_busy, work.is_wanted));
            state.work.insert(key, Work { document, is_busy, is_wanted, ..work_of(address, item) });
        }
        self.wake();
    }

    /// A hint of an activity with its document was read.
    pub(crate) fn hinted_work(&self, address: &Address, item: &Item, etag: &str) -> bool {
        let key = (item.o.clone(), address.id.clone(), item.id.clone());
        let mut state = self.state();
        let is_new = !state.work.contains_key(&key);
        if is_new {
            let document = Some(Versioned { etag: etag.to_string(), document: item.clone() });
            state.work.insert(key, Work { document, ..work_of(address, item) });
        }
        is_new
    }

    /// The orchestration of an instance has this name and version from now on.
    pub(crate) fn named(&self, instance: &str, name: &str, version: &str) {
        let mut state = self.state();
        for (_, work) in state.work.iter_mut().filter(|((_, owner, _), _)| owner == instance) {
            if let Some(known) = &mut work.document {
                known.document.orchestration = Some((name.to_string(), version.to_string()));
            }
        }
    }

    /// An activity was found by a query.
    pub(crate) fn found_work(&self, address: &Address, item: &Item, skew: u64) -> bool {
        let key = (item.o.clone(), address.id.clone(), item.id.clone());
        let mut state = self.state();
        let work = work_of(address, item);
        let until = if work.until == 0 { 0 } else { work.until.saturating_add(skew) };
        match state.work.get_mut(&key) {
            Some(_) => false,
            None => {
                state.work.insert(key, Work { until, ..work });
                true
            }
        }
    }

    /// Activities that the caller may try, oldest first.
    pub(crate) fn work(
        &self,
        now: u64,
        tags: &TagFilter,
        with_sessions: bool,
        most: usize,
    ) -> Vec<(WorkKey, Work)> {
        let state = self.state();
        // A reserved activity is a candidate too: its reservation may end without a lease.
        let free = state.work.iter().filter(|(_, work)| {
            work.fetchable_at() <= now
                && tags.matches(work.tag.as_deref())
                && (with_sessions || work.session_id.is_none())
        });
        free.take(most).map(|(key, work)| (key.clone(), work.clone())).collect()
    }

    /// The time at which the next activity can be fetched.
    pub(crate) fn work_due(&self, now: u64, tags: &TagFilter) -> Option<u64> {
        let state = self.state();
        let later = state.work.values().filter(|work| tags.matches(work.tag.as_deref()));
        later.map(Work::fetchable_at).filter(|due| *due > now).min()
    }

    /// Reserves an activity; false if another fetch has it.
    pub(crate) fn reserve_work(&self, key: &WorkKey) -> bool {
        match self.state().work.get_mut(key) {
            Some(work) if !work.is_busy => {
                (work.is_busy, work.is_wanted) = (true, false);
                true
            }
            Some(work) => {
                work.is_wanted = true;
                false
            }
            None => false,
        }
    }

    pub(crate) fn release_work(&self, key: &WorkKey) {
        let is_wanted = self.state().work.get_mut(key).is_some_and(|work| {
            work.is_busy = false;
            std::mem::take(&mut work.is_wanted)
        });
        if is_wanted {
            self.wake();
        }
    }

    /// Leaves an activity to other workers until a time.
    pub(crate) fn yield_work(&self, address: &Address, item: &Item, until: u64) {
        let key = (item.o.clone(), address.id.clone(), item.id.clone());
        if let Some(work) = self.state().work.get_mut(&key) {
            work.until = work.until.max(until);
        }
    }

    pub(crate) fn remove_work(&self, key: &WorkKey) {
        self.state().work.remove(key);
    }

    #[cfg(feature = "test-hooks")]
    pub(crate) fn forget_documents(&self) {
        self.state().work.values_mut().for_each(|work| work.document = None);
    }

    /// Removes an activity by its document.
    pub(crate) fn remove_work_of(&self, instance: &str, id: &str) {
        self.state().work.retain(|(_, owner, document), _| owner != instance || document != id);
    }
}

fn work_of(address: &Address, item: &Item) -> Work {
    Work {
        address: address.clone(),
        visible_at: item.visible_at,
        until: item.lock.as_ref().map_or(0, |lock| lock.until),
        tag: item.tag.clone(),
        session_id: item.session_id.clone(),
        document: None,
        is_busy: false,
        is_wanted: false,
    }
}
