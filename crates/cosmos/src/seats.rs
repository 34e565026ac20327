//! The fetches of this process: the kinds of work that it takes, and the number of fetches that wait.

use crate::fleet::group_of;
use crate::ids;
use crate::slots::HEARTBEAT_MS;
use crate::store::{Store, locked};
use outlast_provider::TagFilter;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

/// A process that has not fetched for this time leaves the work to others.
const ACTIVE_MS: u64 = HEARTBEAT_MS;

/// The kind of a fetch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Takes {
    Turns,
    Activities(TagFilter),
}

/// The kinds of work that the process takes now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Roles {
    pub(crate) turns: bool,
    /// The filters of its fetches of activities, by [`group_of`].
    pub(crate) activities: BTreeMap<String, TagFilter>,
}

impl Roles {
    pub(crate) fn is_none(&self) -> bool {
        !self.turns && !self.takes_activities()
    }

    pub(crate) fn takes_activities(&self) -> bool {
        !self.activities.is_empty()
    }

    /// Whether a fetch takes activities with this tag.
    pub(crate) fn takes(&self, tag: Option<&str>) -> bool {
        self.activities.values().any(|tags| tags.matches(tag))
    }

    /// The queues of the activities that the fetches take; `None`: all.
    pub(crate) fn queues(&self) -> Option<BTreeSet<String>> {
        let mut queues = BTreeSet::new();
        for filter in self.activities.values() {
            let (tags, has_untagged) = match filter {
                TagFilter::Any => return None,
                TagFilter::None => continue,
                TagFilter::DefaultOnly => (None, true),
                TagFilter::Tags(tags) => (Some(tags), false),
                TagFilter::DefaultAnd(tags) => (Some(tags), true),
            };
            queues.extend(has_untagged.then(|| ids::queue(None)));
            queues.extend(tags.into_iter().flatten().map(|tag| ids::queue(Some(tag))));
        }
        Some(queues)
    }

    /// Whether these roles have a kind of work that `others` lacks.
    pub(crate) fn exceeds(&self, others: &Self) -> bool {
        let is_new = |group: &String| !others.activities.contains_key(group);
        (self.turns && !others.turns) || self.activities.keys().any(is_new)
    }
}

#[derive(Default)]
pub(crate) struct Seats {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    next: u64,
    taken: BTreeMap<u64, Taken>,
    /// The end of the last fetch of turns, and of activities with each filter, by the process's own clock.
    turns_at: Option<u64>,
    activities_at: BTreeMap<String, (u64, TagFilter)>,
}

struct Taken {
    takes: Takes,
    is_waiting: bool,
}

/// A fetch of this process, until it is dropped.
pub(crate) struct Seat<'a> {
    store: &'a Store,
    id: u64,
}

impl Seat<'_> {
    /// Whether the fetch waits for work.
    pub(crate) fn set_waiting(&self, is_waiting: bool) {
        if let Some(taken) = locked(&self.store.seats.state).taken.get_mut(&self.id) {
            taken.is_waiting = is_waiting;
        }
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        let now = self.store.time.monotonic_ms();
        let mut state = locked(&self.store.seats.state);
        match state.taken.remove(&self.id).map(|taken| taken.takes) {
            Some(Takes::Turns) => state.turns_at = Some(now),
            Some(Takes::Activities(tags)) => {
                state.activities_at.retain(|_, (at, _)| now.saturating_sub(*at) < ACTIVE_MS);
                state.activities_at.insert(group_of(&tags), (now, tags));
            }
            None => {}
        }
    }
}

impl Store {
    /// Counts a fetch.
    pub(crate) fn seat(&self, takes: Takes) -> Seat<'_> {
        let mut state = locked(&self.seats.state);
        let id = state.next;
        state.next += 1;
        state.taken.insert(id, Taken { takes, is_waiting: false });
        Seat { store: self, id }
    }

    /// The kinds of work that this process takes.
    pub(crate) fn roles(&self) -> Roles {
        self.seats.roles(self.time.monotonic_ms())
    }
}

impl Seats {
    fn roles(&self, now: u64) -> Roles {
        let state = locked(&self.state);
        let is_recent = |at: u64| now.saturating_sub(at) < ACTIVE_MS;
        let recent = state.activities_at.iter().filter(|(_, (at, _))| is_recent(*at));
        let mut roles = Roles {
            turns: state.turns_at.is_some_and(is_recent),
            activities: recent.map(|(group, (_, tags))| (group.clone(), tags.clone())).collect(),
        };
        for taken in state.taken.values() {
            match &taken.takes {
                Takes::Turns => roles.turns = true,
                Takes::Activities(tags) => drop(roles.activities.insert(group_of(tags), tags.clone())),
            }
        }
        roles
    }

    #[cfg(feature = "test-hooks")]
    pub(crate) fn count_waiting(&self) -> usize {
        locked(&self.state).taken.values().filter(|taken| taken.is_waiting).count()
    }

    /// The filters of the fetches of activities that wait.
    pub(crate) fn waiting_workers(&self) -> Vec<TagFilter> {
        let state = locked(&self.state);
        let waiting = state.taken.values().filter(|taken| taken.is_waiting);
        let tags = waiting.filter_map(|taken| match &taken.takes {
            Takes::Activities(tags) => Some(tags.clone()),
            Takes::Turns => None,
        });
        tags.collect()
    }
}
