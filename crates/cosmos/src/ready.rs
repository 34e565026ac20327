//! What this process knows of waiting messages and activities.
//!
//! The documents in the partitions are the truth; this is an index of them in memory. Own writes enter it at once; the repair
//! query ([`crate::repair`]) brings the writes of other processes. An entry that is wrong costs a request, never a message: a
//! fetch reads the partition before it takes a lease.

use crate::document::{Address, Item, Versioned};
use outlast_provider::TagFilter;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// The place of a message in the line: when it is visible, and the number of its arrival.
type Place = (u64, u64);

/// The key of an activity in the line: order, instance, document.
pub(crate) type WorkKey = (String, String, String);

#[derive(Default)]
pub(crate) struct Ready {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    turns: HashMap<String, Turns>,
    /// The first message of every instance.
    line: BTreeSet<(Place, String)>,
    work: BTreeMap<WorkKey, Work>,
    /// Counts changes, so that a fetch does not forget a message that arrived while it read.
    generation: u64,
}

#[derive(Default)]
struct Turns {
    /// No message is delivered until then.
    until: u64,
    /// A fetch of this process reads the instance.
    is_busy: bool,
    /// Another fetch passed over it meanwhile, and must look again.
    is_wanted: bool,
    messages: BTreeMap<String, (Place, u64)>,
    first: Option<Place>,
    /// Changes when the instance may be of interest to a fetch that refused it.
    version: u64,
}

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

/// A message as a fetch read it.
pub(crate) struct Seen {
    pub(crate) id: String,
    pub(crate) visible_at: u64,
    pub(crate) sequence: u64,
}

/// The instance that a fetch tries next, or when there may be one.
pub(crate) enum Next {
    Instance(String),
    Nothing { due: Option<u64> },
}

impl Ready {
    /// Resolves at the next change.
    pub(crate) fn changed(&self) -> tokio::sync::futures::Notified<'_> {
        self.changed.notified()
    }

    pub(crate) fn wake(&self) {
        self.changed.notify_waiters();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The instance whose messages have waited longest, reserved for the caller. `tried` are instances that the caller tried in
    /// this round, `refused` those that its filter refuses, with their versions.
    pub(crate) fn next_turn(
        &self,
        now: u64,
        tried: &HashSet<String>,
        refused: &HashMap<String, u64>,
    ) -> Next {
        let mut state = self.state();
        let State { turns, line, .. } = &mut *state;
        let is_of_interest = |instance: &String, turns: &Turns| {
            !tried.contains(instance) && refused.get(instance) != Some(&turns.version)
        };
        for ((visible_at, _), instance) in line.iter() {
            if *visible_at > now {
                break;
            }
            let Some(found) = turns.get_mut(instance) else { continue };
            if found.until > now || !is_of_interest(instance, found) {
                continue;
            }
            if found.is_busy {
                found.is_wanted = true;
                continue;
            }
            (found.is_busy, found.is_wanted) = (true, false);
            return Next::Instance(instance.clone());
        }
        let due = turns.iter().filter(|(instance, turns)| !turns.is_busy && is_of_interest(instance, turns));
        let due =
            due.filter_map(|(_, turns)| Some(turns.first?.0.max(turns.until))).filter(|due| *due > now).min();
        Next::Nothing { due }
    }

    /// The version of an instance, for a fetch whose filter refuses it.
    pub(crate) fn version(&self, instance: &str) -> u64 {
        self.state().turns.get(instance).map_or(0, |turns| turns.version)
    }

    /// The counter of changes, before a read.
    pub(crate) fn generation(&self) -> u64 {
        self.state().generation
    }

    /// Ends the reservation of an instance.
    pub(crate) fn release(&self, instance: &str) {
        let is_wanted = {
            let mut state = self.state();
            let turns = state.turns.get_mut(instance);
            let is_wanted = turns.is_some_and(|turns| {
                turns.is_busy = false;
                std::mem::take(&mut turns.is_wanted)
            });
            state.place(instance);
            is_wanted
        };
        if is_wanted {
            self.wake();
        }
    }

    /// A message was stored.
    pub(crate) fn arrived(&self, instance: &str, id: &str, visible_at: u64, sequence: u64) {
        self.state().insert(instance, id, (visible_at, sequence));
        self.wake();
    }

    /// A message was found by a query. An entry that is known is not changed: it may hold a newer delay.
    pub(crate) fn found(&self, instance: &str, id: &str, visible_at: u64, sequence: u64) -> bool {
        let mut state = self.state();
        let is_known = state.turns.get(instance).is_some_and(|turns| turns.messages.contains_key(id));
        if !is_known {
            state.insert(instance, id, (visible_at, sequence));
        }
        !is_known
    }

    /// A fetch read the visible messages of an instance, and until when none is delivered. `generation` is of the time before the
    /// read.
    pub(crate) fn learned(&self, instance: &str, now: u64, until: u64, seen: &[Seen], generation: u64) {
        let mut state = self.state();
        let turns = state.turns.entry(instance.to_string()).or_default();
        turns.until = until;
        turns.messages.retain(|id, ((visible_at, _), inserted)| {
            *visible_at > now || *inserted > generation || seen.iter().any(|seen| seen.id == *id)
        });
        for Seen { id, visible_at, sequence } in seen {
            state.insert(instance, id, (*visible_at, *sequence));
        }
        state.place(instance);
    }

    /// The lease or the rest of an instance ends at another time.
    pub(crate) fn locked(&self, instance: &str, until: u64) {
        if let Some(turns) = self.state().turns.get_mut(instance) {
            turns.until = until;
            turns.version += 1;
        }
        self.wake();
    }

    /// A turn is committed: its messages are gone, and the instance is free.
    pub(crate) fn consumed(&self, instance: &str, ids: &[String], until: u64) {
        {
            let mut state = self.state();
            if let Some(turns) = state.turns.get_mut(instance) {
                turns.until = until;
                turns.version += 1;
                turns.messages.retain(|id, _| !ids.contains(id));
            }
            state.place(instance);
        }
        self.wake();
    }

    /// Messages were given back with a delay.
    pub(crate) fn delayed(&self, instance: &str, ids: &[String], until: u64) {
        let mut state = self.state();
        state.generation += 1;
        let generation = state.generation;
        if let Some(turns) = state.turns.get_mut(instance) {
            for id in ids {
                if let Some(((visible_at, _), inserted)) = turns.messages.get_mut(id) {
                    (*visible_at, *inserted) = (until, generation);
                }
            }
        }
        state.place(instance);
    }

    /// An instance is gone.
    pub(crate) fn forget(&self, instance: &str) {
        let mut state = self.state();
        if let Some(turns) = state.turns.remove(instance)
            && let Some(first) = turns.first
        {
            state.line.remove(&(first, instance.to_string()));
        }
        state.work.retain(|(_, owner, _), _| owner != instance);
    }

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

    /// When the next activity can be fetched.
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

impl State {
    fn insert(&mut self, instance: &str, id: &str, place: Place) {
        self.generation += 1;
        let generation = self.generation;
        let turns = self.turns.entry(instance.to_string()).or_default();
        let before = turns.messages.insert(id.to_string(), (place, generation));
        if before.is_none_or(|(before, _)| before != place) {
            turns.version += 1;
        }
        self.place(instance);
    }

    /// Brings the line up to date.
    fn place(&mut self, instance: &str) {
        let Some(turns) = self.turns.get_mut(instance) else { return };
        let first = turns.messages.values().map(|(place, _)| *place).min();
        let before = std::mem::replace(&mut turns.first, first);
        let is_idle = first.is_none() && !turns.is_busy;
        if before != first {
            if let Some(before) = before {
                self.line.remove(&(before, instance.to_string()));
            }
            if let Some(first) = first {
                self.line.insert((first, instance.to_string()));
            }
        }
        if is_idle {
            self.turns.remove(instance);
        }
    }
}
