//! The knowledge of this process about waiting activities.

use crate::document::{Address, Item, Versioned};
use crate::ready::Ready;
use outlast_provider::TagFilter;

/// The key of an activity in the line: order, instance, document.
pub(crate) type ActivityKey = (String, String, String);

#[derive(Clone, Debug)]
pub(crate) struct IndexedActivity {
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

impl IndexedActivity {
    fn fetchable_at(&self) -> u64 {
        self.visible_at.max(self.until)
    }
}

impl Ready {
    /// Adds an activity that is stored or that this process has changed.
    pub(crate) fn stored_activity(&self, address: &Address, item: &Item, etag: &str) {
        let key = (item.o.clone(), address.id.clone(), item.id.clone());
        let document = Some(Versioned { etag: etag.to_string(), document: item.clone() });
        {
            let mut state = self.state();
            let (is_busy, is_wanted) = state
                .activities
                .get(&key)
                .map_or((false, false), |activity| (activity.is_busy, activity.is_wanted));
            state
                .activities
                .insert(key, IndexedActivity { document, is_busy, is_wanted, ..indexed(address, item) });
        }
        self.wake();
    }

    /// Adds an activity from a hint with its document.
    pub(crate) fn hinted_activity(&self, address: &Address, item: &Item, etag: &str) -> bool {
        let key = (item.o.clone(), address.id.clone(), item.id.clone());
        let mut state = self.state();
        let is_new = !state.activities.contains_key(&key);
        if is_new {
            let document = Some(Versioned { etag: etag.to_string(), document: item.clone() });
            state.activities.insert(key, IndexedActivity { document, ..indexed(address, item) });
        }
        is_new
    }

    /// Records the name and version of the orchestration of an instance.
    pub(crate) fn named(&self, instance: &str, name: &str, version: &str) {
        let mut state = self.state();
        for (_, activity) in state.activities.iter_mut().filter(|((_, owner, _), _)| owner == instance) {
            if let Some(known) = &mut activity.document {
                known.document.orchestration = Some((name.to_string(), version.to_string()));
            }
        }
    }

    /// Adds an activity that a query found.
    pub(crate) fn found_activity(&self, address: &Address, item: &Item, skew: u64) -> bool {
        let key = (item.o.clone(), address.id.clone(), item.id.clone());
        let mut state = self.state();
        let activity = indexed(address, item);
        let until = if activity.until == 0 { 0 } else { activity.until.saturating_add(skew) };
        match state.activities.get_mut(&key) {
            Some(_) => false,
            None => {
                state.activities.insert(key, IndexedActivity { until, ..activity });
                true
            }
        }
    }

    /// Activities that the caller may try, oldest first.
    pub(crate) fn activities(
        &self,
        now: u64,
        tags: &TagFilter,
        with_sessions: bool,
        most: usize,
    ) -> Vec<(ActivityKey, IndexedActivity)> {
        let state = self.state();
        // A reserved activity is a candidate too: its reservation may end without a lease.
        let free = state.activities.iter().filter(|(_, activity)| {
            activity.fetchable_at() <= now
                && tags.matches(activity.tag.as_deref())
                && (with_sessions || activity.session_id.is_none())
        });
        free.take(most).map(|(key, activity)| (key.clone(), activity.clone())).collect()
    }

    /// The time at which the next activity can be fetched.
    pub(crate) fn activity_due(&self, now: u64, tags: &TagFilter) -> Option<u64> {
        let state = self.state();
        let later = state.activities.values().filter(|activity| tags.matches(activity.tag.as_deref()));
        later.map(IndexedActivity::fetchable_at).filter(|due| *due > now).min()
    }

    /// Reserves an activity; false if another fetch has it.
    pub(crate) fn reserve_activity(&self, key: &ActivityKey) -> bool {
        match self.state().activities.get_mut(key) {
            Some(activity) if !activity.is_busy => {
                (activity.is_busy, activity.is_wanted) = (true, false);
                true
            }
            Some(activity) => {
                activity.is_wanted = true;
                false
            }
            None => false,
        }
    }

    pub(crate) fn release_activity(&self, key: &ActivityKey) {
        let is_wanted = self.state().activities.get_mut(key).is_some_and(|activity| {
            activity.is_busy = false;
            std::mem::take(&mut activity.is_wanted)
        });
        if is_wanted {
            self.wake();
        }
    }

    /// Leaves an activity to other workers until a time.
    pub(crate) fn yield_activity(&self, address: &Address, item: &Item, until: u64) {
        let key = (item.o.clone(), address.id.clone(), item.id.clone());
        if let Some(activity) = self.state().activities.get_mut(&key) {
            activity.until = activity.until.max(until);
        }
    }

    pub(crate) fn remove_activity(&self, key: &ActivityKey) {
        self.state().activities.remove(key);
    }

    #[cfg(feature = "test-hooks")]
    pub(crate) fn forget_documents(&self) {
        self.state().activities.values_mut().for_each(|activity| activity.document = None);
    }

    /// Removes an activity by its document.
    pub(crate) fn remove_activity_of(&self, instance: &str, id: &str) {
        self.state().activities.retain(|(_, owner, document), _| owner != instance || document != id);
    }
}

fn indexed(address: &Address, item: &Item) -> IndexedActivity {
    IndexedActivity {
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
