//! Parked fetches: which fetches of a queue wait, and when the queue is polled for them.
//!
//! A *poll* is the call in a transaction that leases turns or activities for fetches. A fetch is *parked* while no running poll has
//! it, *new* until a poll has found nothing for it, *tried* from then on. [`ParkedFetches`] is a value: it reads no clock, takes no
//! lock and sends nothing. Calls pass the events, with the time where it matters, and return the effects.
//!
//! | state of the queue | stored as | next state |
//! |---|---|---|
//! | quiet | neither of the two below | by any event |
//! | scheduled | `poll_at` | due, when `on_time` sees that the time has come |
//! | due | `poll_due`, or a new fetch while no poll runs | polling, by `start_poll` |
//! | polling | `running` polls, each with its fetches | by `on_poll_done` or `on_poll_lost` |
//!
//! | event | its fetches | the poll |
//! |---|---|---|
//! | `on_fetch`: a caller fetches | parked as new; as tried if a tried fetch asks for the same and no poll is due | due if new |
//! | `on_notification`: another process committed | | due; forwarded if no fetch is parked here and no poll runs |
//! | `schedule_poll(LocalCommit)`: a transaction of this process committed | | due if a tried fetch is parked |
//! | `schedule_poll(RemoteChange)`: a change that no poll of this process has seen | | due |
//! | `schedule_poll(Due or Periodic, at)` | | scheduled, no later than `at` |
//! | `start_poll`: a lane takes requests | at most `most` leases' worth leave; the rest stays | due only if a fetch that stays asks for other items |
//! | `on_poll_done`, every fetch served | leave | due if a fetch is parked: the store may have more |
//! | `on_poll_done`, a fetch not served | parked as tried, and so is every new fetch that asks for the same | due if a change came after `start_poll`, else scheduled |
//! | `on_poll_lost`: the transaction failed | parked as they were | due |
//!
//! **Invariant:** while a turn or activity is fetchable for a parked fetch, a poll is due, scheduled or running, or a
//! notification is in flight or put off. `parked/model.rs` explores this for several processes.

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

use crate::ask::Ask;
use crate::notify::{Hops, IDLE_AFTER};
pub(crate) use outlast_provider_kit::fetch::{Caller, Fetch};
use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::Instant;

/// The reason for a poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    /// A change that no poll of this process has seen may have made an item fetchable.
    RemoteChange,
    /// A transaction of this process made an item fetchable; the poll in that transaction has seen it.
    LocalCommit,
    /// A poll served every fetch, so the store may have more.
    MoreLeft,
    /// A change came while the poll ran, which may not have seen it.
    MissedChange,
    /// The transaction of the poll failed.
    Retry,
    /// A lease, a delay or a timer ends at that time.
    Due,
    /// No item is known to become fetchable: the queue is polled periodically.
    Periodic,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    Now,
    At(Instant),
}

/// The parked fetches of one queue, and the next poll.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ParkedFetches<A, C> {
    fetches: VecDeque<Fetch<A, C>>,
    poll_due: bool,
    poll_at: Option<Instant>,
    /// Counts the events after which an item may be fetchable that a running poll has not seen.
    changes: u64,
    /// The number of running polls.
    running: usize,
    /// The hops of a notification that no finished poll has covered yet.
    notified: Option<Hops>,
    /// Whether the last poll that served too few fetches found no activity with a session.
    no_sessions: bool,
    /// The time at which a fetch was served last.
    served_at: Option<Instant>,
}

/// The fetches of one poll, in groups that one call of the server's function serves.
pub(crate) struct Poll<A, C> {
    pub(crate) groups: Vec<Vec<Fetch<A, C>>>,
    /// The count of changes when the poll started.
    pub(crate) changes: u64,
}

/// The results of a poll for one group of fetches.
#[derive(Debug)]
pub(crate) struct GroupDone<A, C> {
    pub(crate) unserved: Vec<Fetch<A, C>>,
    pub(crate) is_served: bool,
    /// The duration of the leases, after which they may end.
    pub(crate) lock_ms: u64,
    /// The time until an item becomes fetchable, if the poll asked for it and there is one.
    pub(crate) due_ms: Option<u64>,
    /// Whether the poll found no activity with a session. `None`: the queue has no sessions.
    pub(crate) no_sessions: Option<bool>,
}

/// The effects of a finished poll.
#[derive(Debug)]
pub(crate) struct PollEffects<A, C> {
    /// The notification to forward to another process.
    pub(crate) forward: Option<Hops>,
    /// Fetches that do not wait: their callers get an empty reply.
    pub(crate) empty: Vec<Fetch<A, C>>,
}

/// The facts about a queue that the listener reads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Idleness {
    pub(crate) has_fetches: bool,
    pub(crate) served_at: Option<Instant>,
}

impl<A, C> Default for Poll<A, C> {
    fn default() -> Self {
        Self { groups: Vec::new(), changes: 0 }
    }
}

impl<A, C> Poll<A, C> {
    pub(crate) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    pub(crate) fn into_fetches(self) -> impl Iterator<Item = Fetch<A, C>> {
        self.groups.into_iter().flatten()
    }
}

impl<A, C> Default for ParkedFetches<A, C> {
    fn default() -> Self {
        Self {
            fetches: VecDeque::new(),
            poll_due: false,
            poll_at: None,
            changes: 0,
            running: 0,
            notified: None,
            no_sessions: false,
            served_at: None,
        }
    }
}

/// Events.
impl<A: Ask, C: Caller> ParkedFetches<A, C> {
    /// Parks a fetch. It counts as tried if a tried fetch asks for the same: the poll for that one found nothing for this one.
    pub(crate) fn on_fetch(&mut self, mut fetch: Fetch<A, C>) {
        let covers =
            |tried: &Fetch<A, C>| !tried.is_new && fetch.ask.fails_with(&tried.ask, self.no_sessions);
        if fetch.parks && !self.poll_due && self.fetches.iter().any(covers) {
            fetch.is_new = false;
        }
        self.fetches.push_back(fetch);
    }

    pub(crate) fn schedule_poll(&mut self, reason: Reason, when: When) {
        self.changes += u64::from(matches!(reason, Reason::RemoteChange | Reason::LocalCommit));
        match (when, reason) {
            (When::At(at), _) => self.poll_at = Some(self.poll_at.map_or(at, |known| known.min(at))),
            // New fetches learn from the poll of the same transaction.
            (When::Now, Reason::LocalCommit) => {
                self.poll_due |= self.fetches.iter().any(|fetch| !fetch.is_new)
            }
            (When::Now, Reason::Retry) => self.poll_due = true,
            (When::Now, _) => self.poll_due |= !self.fetches.is_empty(),
        }
    }

    /// Another process notifies this one, after `hops` processes that polled and found nothing. Returns the hops to forward the
    /// notification with if no fetch here can use it.
    pub(crate) fn on_notification(&mut self, hops: Hops) -> Option<Hops> {
        self.drop_gone();
        self.schedule_poll(Reason::RemoteChange, When::Now);
        self.notified = Some(self.notified.map_or(hops, |known| known.min(hops)));
        self.unusable_notification()
    }

    /// Makes the poll due whose time has come.
    pub(crate) fn on_time(&mut self, now: Instant) {
        if self.poll_at.is_some_and(|at| at <= now) {
            self.poll_at = None;
            self.poll_due = true;
        }
    }

    /// Starts a poll if one is due or `brings`: the same transaction makes an item fetchable. Takes fetches that want no more
    /// than `most` leases together.
    pub(crate) fn start_poll(&mut self, brings: bool, most: usize) -> Poll<A, C> {
        self.drop_gone();
        let mut poll = Poll { groups: Vec::new(), changes: self.changes };
        if !(brings || self.poll_due || self.fetches.iter().any(|fetch| self.polls_at_once(fetch))) {
            return poll;
        }
        self.poll_due = false;
        let mut wanted = 0;
        while let Some(fetch) = self.fetches.pop_front() {
            wanted += fetch.ask.wants();
            match poll.groups.iter_mut().find(|group| group[0].ask.is_like(&fetch.ask)) {
                Some(group) => group.push(fetch),
                None => poll.groups.push(vec![fetch]),
            }
            if wanted >= most {
                // A fetch that this poll can speak for is polled again only if the poll serves every fetch.
                let is_covered =
                    |ask: &A| poll.groups.iter().any(|group| ask.fails_with(&group[0].ask, self.no_sessions));
                self.poll_due = self.fetches.iter().any(|fetch| !is_covered(&fetch.ask));
                break;
            }
        }
        if !poll.is_empty() {
            self.running += 1;
            // Times that are scheduled from now on are not known to this poll.
            self.poll_at = None;
        }
        poll
    }

    /// The server has answered a poll, or its transaction has failed.
    pub(crate) fn on_poll_ended(&mut self) {
        self.running -= 1;
    }

    /// A poll is over. `changes`: the count when it started, plus the change of its own transaction. `periodic`: the longest
    /// time until the next poll.
    pub(crate) fn on_poll_done(
        &mut self,
        done: GroupDone<A, C>,
        changes: u64,
        periodic: Duration,
        now: Instant,
    ) -> PollEffects<A, C> {
        let GroupDone { unserved, is_served, due_ms, no_sessions, .. } = done;
        self.no_sessions = no_sessions.unwrap_or(self.no_sessions);
        if is_served {
            self.served_at = Some(now);
        }
        let mut effects = PollEffects { forward: None, empty: Vec::new() };
        let missed_change = self.changes != changes;
        if unserved.is_empty() || !missed_change {
            // The store may have more than this process needs, or an item that no fetch here may have.
            let forward = |hops: Hops| if is_served { 0 } else { hops.saturating_add(1) };
            effects.forward = self.notified.take().map(forward);
        }
        let Some(first) = unserved.first() else {
            self.schedule_poll(Reason::MoreLeft, When::Now);
            return effects;
        };
        self.mark_tried_like(&first.ask);
        for mut fetch in unserved.into_iter().rev() {
            if fetch.parks {
                fetch.is_new = false;
                self.fetches.push_front(fetch);
            } else {
                effects.empty.push(fetch);
            }
        }
        if missed_change {
            // Also for fetches that came meanwhile and count as tried by this poll.
            self.schedule_poll(Reason::MissedChange, When::Now);
        }
        match due_ms.map(due_in).filter(|due| *due < periodic) {
            Some(due) => self.schedule_poll(Reason::Due, When::At(now + due)),
            None => self.schedule_poll(Reason::Periodic, When::At(now + periodic)),
        }
        effects
    }

    /// Parks the fetches of a failed transaction again, in their order, and polls for them.
    pub(crate) fn on_poll_lost(&mut self, fetches: impl DoubleEndedIterator<Item = Fetch<A, C>>) {
        fetches.rev().for_each(|fetch| self.fetches.push_front(fetch));
        self.schedule_poll(Reason::Retry, When::Now);
    }

    /// A hand-off to this fetch was refused: the item belongs to another process, or is fetchable for this one.
    pub(crate) fn on_hand_off_refused(&mut self, fetch: Fetch<A, C>) {
        self.fetches.push_front(fetch);
        self.schedule_poll(Reason::RemoteChange, When::Now);
    }

    /// A hand-off served a fetch. A queue with more parked fetches stays idle: other processes notify it of their commits.
    pub(crate) fn on_handed_off(&mut self, now: Instant) {
        if self.fetches.is_empty() {
            self.served_at = Some(now);
        }
    }

    /// The server cannot be reached: removes the new fetches, whose callers get an error, and polls again for the others.
    pub(crate) fn on_server_away(&mut self) -> Vec<Fetch<A, C>> {
        let (new, tried) = std::mem::take(&mut self.fetches).into_iter().partition(|fetch| fetch.is_new);
        self.fetches = tried;
        self.schedule_poll(Reason::Retry, When::Now);
        Vec::from(new)
    }

    /// The hops to forward a notification with that no fetch here can use: none is parked, and no poll runs.
    pub(crate) fn unusable_notification(&mut self) -> Option<Hops> {
        if !self.fetches.is_empty() || self.running > 0 {
            return None;
        }
        self.notified.take().map(|hops| hops.saturating_add(1))
    }

    /// Whether fetches can be handed items. Not while a poll is due: items that are stored already go first.
    pub(crate) fn takes_hand_offs(&mut self) -> bool {
        self.drop_gone();
        !self.poll_due
    }

    /// Removes the first tried fetch that `may_have` accepts, for a hand-off.
    pub(crate) fn take_tried(&mut self, may_have: impl Fn(&A) -> bool) -> Option<Fetch<A, C>> {
        let place = self.fetches.iter().position(|fetch| !fetch.is_new && may_have(&fetch.ask))?;
        self.fetches.remove(place)
    }

    fn drop_gone(&mut self) {
        self.fetches.retain(|fetch| !fetch.is_gone());
    }

    /// A new fetch that parks waits for a running poll, and learns from it.
    fn polls_at_once(&self, fetch: &Fetch<A, C>) -> bool {
        fetch.is_new && (self.running == 0 || !fetch.parks)
    }

    /// A poll found nothing for `ask`, so there was nothing for new fetches that ask for the same.
    fn mark_tried_like(&mut self, ask: &A) {
        let no_sessions = self.no_sessions;
        for fetch in self.fetches.iter_mut().filter(|fetch| fetch.is_new && fetch.parks) {
            fetch.is_new = !fetch.ask.fails_with(ask, no_sessions);
        }
    }
}

/// One millisecond more than the server said, since its times are whole milliseconds.
pub(crate) fn due_in(ms: u64) -> Duration {
    Duration::from_millis(ms.saturating_add(1))
}

/// Questions.
impl<A, C> ParkedFetches<A, C> {
    pub(crate) fn asks(&self) -> impl Iterator<Item = &A> {
        self.fetches.iter().map(|fetch| &fetch.ask)
    }

    pub(crate) fn new_fetches(&self) -> usize {
        self.fetches.iter().filter(|fetch| fetch.is_new).count()
    }

    /// Whether a poll is due for the fetches that are parked when it starts.
    pub(crate) fn is_poll_due(&self) -> bool {
        self.poll_due
    }

    /// Whether a poll is due for a fetch that is parked now.
    pub(crate) fn has_due_fetches(&self) -> bool {
        self.poll_due && !self.fetches.is_empty()
    }

    /// The time of the next poll for a fetch that is parked now.
    pub(crate) fn next_poll_at(&self) -> Option<Instant> {
        self.poll_at.filter(|_| !self.fetches.is_empty())
    }

    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// Whether fetches of this process take items of the queue now: one is parked or polled for, or was served a moment ago.
    pub(crate) fn takes_items(&self, now: Instant) -> bool {
        let was_served = |at: Instant| now.saturating_duration_since(at) < IDLE_AFTER;
        !self.fetches.is_empty() || self.running > 0 || self.served_at.is_some_and(was_served)
    }

    pub(crate) fn idleness(&self) -> Idleness {
        Idleness { has_fetches: !self.fetches.is_empty(), served_at: self.served_at }
    }
}
