//! Fetches on their way to a lease.

use crate::in_doubt::release;
use crate::request::{Lease, Seen};
use crate::shared::Shared;
use outlast_provider::{
    ClassifiedError, DispatcherCapabilityFilter, MessageBound, SessionFetchConfig, TagFilter,
};
use outlast_provider_kit::token::Secret;
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// What a fetch of a turn asks for.
#[derive(Debug, Clone)]
pub(crate) struct TurnAsk {
    pub(crate) lock_ms: u64,
    pub(crate) filter: Option<DispatcherCapabilityFilter>,
    pub(crate) bound: MessageBound,
}

/// A leased turn as the server hands it out; its caller decodes it.
#[derive(Debug)]
pub(crate) struct RawTurn {
    pub(crate) secret: Secret,
    pub(crate) instance: String,
    /// Name, version, execution and last event, if the instance has a row.
    pub(crate) row: Option<(String, String, u64, u64)>,
    pub(crate) created_at: Option<u64>,
    pub(crate) has_ended: bool,
    /// Whether an instance without a row has a history.
    pub(crate) has_history: bool,
    /// When a start that waits becomes visible, for an instance without a row.
    pub(crate) start_due: Option<u64>,
    pub(crate) now: u64,
    /// Visible messages were left behind, since there were more than a fetch takes.
    pub(crate) is_partial: bool,
    pub(crate) messages: Vec<RawMessage>,
}

#[derive(Debug)]
pub(crate) struct RawMessage {
    pub(crate) id: i64,
    pub(crate) text: String,
    pub(crate) available_at: u64,
    pub(crate) attempts: u32,
}

/// What a fetch of activities asks for.
#[derive(Debug, Clone)]
pub(crate) struct ActivityAsk {
    pub(crate) max_items: usize,
    pub(crate) lock_ms: u64,
    pub(crate) session: Option<SessionFetchConfig>,
    pub(crate) tags: TagFilter,
}

/// A leased activity as the server hands it out.
#[derive(Debug)]
pub(crate) struct RawActivity {
    pub(crate) secret: Secret,
    pub(crate) id: i64,
    pub(crate) text: String,
    pub(crate) instance: String,
    pub(crate) attempts: u32,
    pub(crate) orchestration: Option<(String, String)>,
    pub(crate) now: u64,
}

/// What a fetch asks for.
pub(crate) trait Ask: Clone + Send {
    /// What it is given.
    type Leases: Leases;
    /// Whether one call can serve both.
    fn is_like(&self, other: &Self) -> bool;
    /// How many leases it asks for.
    fn wants(&self) -> usize;
    /// For how long.
    fn lock_ms(&self) -> u64;
    /// Whether a look that found nothing for the other, and no activities with a session if `sessionless`, would find nothing for it.
    fn fails_with(&self, other: &Self, sessionless: bool) -> bool;
}

impl Ask for TurnAsk {
    type Leases = RawTurn;

    fn is_like(&self, other: &Self) -> bool {
        let same_filter = match (&self.filter, &other.filter) {
            (Some(ours), Some(theirs)) => {
                ours.supported_duroxide_versions == theirs.supported_duroxide_versions
            }
            (ours, theirs) => ours.is_none() && theirs.is_none(),
        };
        same_filter && self.lock_ms == other.lock_ms
    }

    fn wants(&self) -> usize {
        1
    }

    fn lock_ms(&self) -> u64 {
        self.lock_ms
    }

    fn fails_with(&self, other: &Self, _sessionless: bool) -> bool {
        self.is_like(other)
    }
}

impl Ask for ActivityAsk {
    type Leases = Vec<RawActivity>;

    fn is_like(&self, other: &Self) -> bool {
        self.tags == other.tags && self.lock_ms == other.lock_ms
    }

    fn wants(&self) -> usize {
        self.max_items
    }

    fn lock_ms(&self) -> u64 {
        self.lock_ms
    }

    fn fails_with(&self, other: &Self, sessionless: bool) -> bool {
        let owner = |ask: &Self| ask.session.as_ref().map(|session| session.owner_id.clone());
        self.is_like(other) && (sessionless || owner(self) == owner(other))
    }
}

/// A fetch that waits for its answer.
pub(crate) struct Waiter<A: Ask> {
    pub(crate) ask: A,
    /// Whether it stays when there is nothing.
    pub(crate) parks: bool,
    /// Whether it has not been tried yet.
    pub(crate) fresh: bool,
    pub(crate) reply: oneshot::Sender<Result<Option<Guarded<A::Leases>>, ClassifiedError>>,
}

/// The fetches of one queue that nobody is looking for.
pub(crate) struct Parked<A: Ask> {
    pub(crate) waiters: VecDeque<Waiter<A>>,
    /// Whether something may have become available since they were tried.
    pub(crate) look: bool,
    /// Counts what may have become available, so that a look that was on its way meanwhile is repeated.
    pub(crate) news: u64,
    /// Another process has told of something that has not been looked for yet, after so many had looked in vain.
    told: Option<u32>,
    /// How many lanes are looking just now.
    pub(crate) looking: usize,
    /// Whether the last look that found too little found no activities with a session.
    pub(crate) sessionless: bool,
    /// When one of them was given something last.
    pub(crate) served_at: Option<Instant>,
}

impl<A: Ask> Default for Parked<A> {
    fn default() -> Self {
        Self {
            waiters: VecDeque::new(),
            look: false,
            news: 0,
            told: None,
            looking: 0,
            sessionless: false,
            served_at: None,
        }
    }
}

impl<A: Ask> Parked<A> {
    /// One more. It need not look if one that asks for the same has just looked in vain, and nothing has happened since.
    pub(crate) fn push(&mut self, mut waiter: Waiter<A>) {
        let looked =
            |parked: &Waiter<A>| !parked.fresh && waiter.ask.fails_with(&parked.ask, self.sessionless);
        if waiter.parks && !self.look && self.waiters.iter().any(looked) {
            waiter.fresh = false;
        }
        self.waiters.push_back(waiter);
    }

    /// How many have not been tried yet.
    pub(crate) fn due(&self) -> usize {
        self.waiters.iter().filter(|waiter| waiter.fresh).count()
    }

    /// Those who ask for no more than `most` leases together, if there is a reason to look; in groups that one call can serve.
    pub(crate) fn take(&mut self, news: bool, most: usize) -> Vec<Vec<Waiter<A>>> {
        self.waiters.retain(|waiter| !waiter.reply.is_closed());
        // Who has just come waits for a look that is on its way, and learns from it.
        let is_due = |waiter: &Waiter<A>| waiter.fresh && (self.looking == 0 || !waiter.parks);
        if !(news || self.look || self.waiters.iter().any(is_due)) {
            return Vec::new();
        }
        self.look = false;
        let mut groups: Vec<Vec<Waiter<A>>> = Vec::new();
        let mut wanted = 0;
        while let Some(waiter) = self.waiters.pop_front() {
            wanted += waiter.ask.wants();
            match groups.iter_mut().find(|group| group[0].ask.is_like(&waiter.ask)) {
                Some(group) => group.push(waiter),
                None => groups.push(vec![waiter]),
            }
            if wanted >= most {
                // Who asks for something else looks next time, which is soon. The others only if all of these are served.
                let follows =
                    |ask: &A| groups.iter().any(|group| ask.fails_with(&group[0].ask, self.sessionless));
                self.look = self.waiters.iter().any(|waiter| !follows(&waiter.ask));
                break;
            }
        }
        self.looking += usize::from(!groups.is_empty());
        groups
    }

    /// A look has found something for all who asked: there may be more.
    pub(crate) fn all_served(&mut self) {
        self.look |= !self.waiters.is_empty();
    }

    /// A look has found nothing for this: nor would it have for those who came meanwhile and ask for the same.
    pub(crate) fn learn(&mut self, empty: &A) {
        let sessionless = self.sessionless;
        for waiter in self.waiters.iter_mut().filter(|waiter| waiter.fresh && waiter.parks) {
            waiter.fresh = !waiter.ask.fails_with(empty, sessionless);
        }
    }

    /// This process has made something available, and has looked itself: those who have just come learn from that.
    pub(crate) fn freed(&mut self) {
        self.news += 1;
        self.look |= self.waiters.iter().any(|waiter| !waiter.fresh);
    }

    /// Something may have become available.
    pub(crate) fn tell(&mut self) {
        self.news += 1;
        self.look = !self.waiters.is_empty();
    }

    /// Another process tells of something that `hops` others have looked for in vain. Gives how many have if somebody else is
    /// to be told instead, since nobody waits here.
    pub(crate) fn hear(&mut self, hops: u32) -> Option<u32> {
        self.waiters.retain(|waiter| !waiter.reply.is_closed());
        self.tell();
        if self.waiters.is_empty() && self.looking == 0 {
            return Some(hops.saturating_add(1));
        }
        self.told = Some(self.told.map_or(hops, |told| told.min(hops)));
        None
    }

    /// A look is over; `news` is the count when it began. Gives how many have looked in vain if somebody else is to be told of
    /// what this process was told of: there may be more than was needed here, or what nobody here may have.
    pub(crate) fn passes_on(&mut self, is_served: bool, is_unserved: bool, news: u64) -> Option<u32> {
        if is_unserved && self.news != news {
            // It was told of after the look, and there is another one.
            return None;
        }
        let hops = self.told.take()?;
        Some(if is_served { 0 } else { hops.saturating_add(1) })
    }

    /// A fetch that found nothing: it stays if it wants to. `news`: the count when it was taken.
    pub(crate) fn return_empty(&mut self, mut waiter: Waiter<A>, news: u64) {
        if !waiter.parks {
            // A caller that went away does not want to know.
            let _ = waiter.reply.send(Ok(None));
            return;
        }
        waiter.fresh = false;
        self.waiters.push_front(waiter);
        if self.news != news {
            self.look = true;
        }
    }
}

/// Something that holds leases.
pub(crate) trait Leases: Send {
    fn leases(&self) -> Vec<Lease>;
}

impl Leases for RawTurn {
    fn leases(&self) -> Vec<Lease> {
        let messages = i32::try_from(self.messages.len()).unwrap_or(i32::MAX);
        let (current_execution, is_partial) = (0, self.is_partial);
        let seen = Seen { current_execution, messages, is_partial, instance: self.instance.clone() };
        vec![Lease::Turn { secret: self.secret, seen }]
    }
}

impl Leases for Vec<RawActivity> {
    fn leases(&self) -> Vec<Lease> {
        self.iter()
            .map(|activities| Lease::Activity { secret: activities.secret, id: activities.id })
            .collect()
    }
}

/// Leases on their way to a caller. If the caller goes away before it takes them, they are given back without counting the
/// delivery.
pub(crate) struct Guarded<L: Leases> {
    leases: Option<L>,
    owner: Arc<Shared>,
}

impl<L: Leases> Guarded<L> {
    pub(crate) fn new(leases: L, owner: Arc<Shared>) -> Self {
        Self { leases: Some(leases), owner }
    }

    /// A look at them while they are guarded.
    pub(crate) fn peek(&self) -> Option<&L> {
        self.leases.as_ref()
    }

    /// The caller has it now.
    pub(crate) fn take(mut self) -> Option<L> {
        self.leases.take()
    }
}

impl<L: Leases> Drop for Guarded<L> {
    fn drop(&mut self) {
        for lease in self.leases.take().iter().flat_map(Leases::leases) {
            release(&self.owner, lease);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fetches of turns with leases of so many milliseconds, which one call can serve if they are the same.
    fn parked(asks: &[u64]) -> (Parked<TurnAsk>, Vec<impl Sized>) {
        let mut parked = Parked::default();
        let mut callers = Vec::new();
        for lock_ms in asks {
            let (reply, caller) = oneshot::channel();
            let ask = TurnAsk { lock_ms: *lock_ms, filter: None, bound: MessageBound::default() };
            parked.waiters.push_back(Waiter { ask, parks: true, fresh: false, reply });
            callers.push(caller);
        }
        (parked, callers)
    }

    #[test]
    fn those_who_were_left_behind_look_if_there_is_enough_or_they_ask_for_something_else() {
        let (mut alike, _callers) = parked(&[1, 1, 1]);
        assert!(alike.take(false, 2).is_empty(), "no news");
        assert_eq!(lengths(&alike.take(true, 2)), [2]);
        assert!(!alike.look, "what the first ones do not find, the last one does not find");
        alike.all_served();
        assert!(alike.look);
        assert_eq!(lengths(&alike.take(false, 2)), [1]);
        alike.all_served();
        assert!(!alike.look, "nobody is left");

        let (mut different, _callers) = parked(&[1, 1, 2]);
        assert_eq!(lengths(&different.take(true, 2)), [2]);
        assert!(different.look);
    }

    fn lengths(groups: &[Vec<Waiter<TurnAsk>>]) -> Vec<usize> {
        groups.iter().map(Vec::len).collect()
    }
}
