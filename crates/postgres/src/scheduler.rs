//! The scheduler: which requests and fetches go into which transaction, and when a lane sends it.
//!
//! | data | holds |
//! |---|---|
//! | [`Waiting`] | requests that wait for a lane: those of lease holders, and client requests (messages, activities and starts of clients) |
//! | [`LargeRequests`] | requests of either kind with 1 MiB or more (`scheduler/large.rs`) |
//! | [`LanesInUse`] | how many lanes have sent a transaction, and how much is in them |
//! | [`ParkedFetches`], for each queue | the fetches that wait, and when the queue is polled (`parked.rs`) |
//! | [`Wants`], [`Forward`], [`PutOff`] | the notifications for other processes, and their times (`notify.rs`) |
//!
//! | a lane asks for a transaction, and | it gets |
//! |---|---|
//! | a large request is due | a transaction with this request only |
//! | the transactions in the lanes are light, or [`FULL`] requests wait, or [`PATIENCE`] is over | the transaction that [`Waiting::choose`] and the polls that are due make up |
//! | otherwise | the time at which to ask again: until then more requests come to share its transaction |
//!
//! [`Scheduler`] is a value. Its methods are its transitions: they take the time as a parameter, and leave in [`Wake`] which
//! tasks have something to do. `shared.rs` holds the lock and wakes the tasks. `scheduler/submit.rs` has the transitions by which
//! requests and fetches come in; `scheduler/events.rs` those that follow from commits, notifications and failures.

#[cfg(test)]
#[cfg(feature = "test-hooks")]
mod defect_tests;
mod events;
mod large;
#[cfg(test)]
mod sequences;
mod submit;
#[cfg(test)]
mod tests;

pub(crate) use events::{
    ActivityGroupDone, ActivityHandOffDone, HandOffDone, LaneDone, TurnGroupDone, TurnHandOffDone,
};
pub(crate) use large::SentLarge;

use crate::batch::{Batch, instance_of};
use crate::eligibility::Eligibility;
use crate::hand_off::{hand_off_activities, hand_off_turns};
use crate::leased::{ParkedActivityFetches, ParkedTurnFetches};
use crate::notify::{Forward, PutOff, Wants};
use crate::parked::{Idleness, ParkedFetches, Poll};
use crate::request::{Fence, Lease, Request};
use crate::transaction::{ActivityPoll, Transaction, TurnPoll};
use large::{LargeLanes, LargeRequests};
use outlast_model::defect::{self, Defect};
use outlast_provider::Entropy;
use outlast_provider_kit::queue::PerQueue;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::Instant;

/// Most requests in one transaction.
const MOST_REQUESTS: usize = 256;
/// Most leases of each queue that one transaction hands out.
const MOST_LEASES: usize = 64;

/// A transaction with at most this many requests is light: the next transaction is sent beside it at once.
const LIGHT: usize = 2;
/// A transaction with this many requests does not wait for more: the fixed cost of the transaction is a small share.
const FULL: usize = 64;
/// How long a transaction waits for more requests while heavy transactions are in the lanes.
const PATIENCE: Duration = Duration::from_millis(10);

/// The interval at which polls ask the server for the time of the next due item. Polls in between are repeated that soon.
const ASK_NEXT_DUE_EVERY: Duration = Duration::from_millis(50);

/// The part of the configuration that scheduling depends on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) lanes: usize,
    pub(crate) has_client_lane: bool,
    /// The longest time between polls while notifications cannot be received.
    pub(crate) poll_interval: Duration,
    /// The longest time between polls while notifications can be received.
    pub(crate) idle_poll_interval: Duration,
}

pub(crate) struct Scheduler {
    limits: Limits,
    waiting: Waiting,
    large: LargeRequests,
    /// Whether the last transaction of a lane had a large request.
    was_large: bool,
    lanes: LanesInUse,
    parked: PerQueue<ParkedTurnFetches, ParkedActivityFetches>,
    asked_next_due_at: Option<Instant>,
    /// The time until which parked fetches are not polled for, because the server cannot be reached.
    paused_until: Option<Instant>,
    /// The notifications that other processes want; `None`: unknown, since the listener is not connected.
    others: Option<Wants>,
    forward: Forward,
    put_off: PerQueue<PutOff>,
    is_closed: bool,
    wake: Wake,
}

/// Tasks that have something to do after a transition.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Wake {
    pub(crate) lane: bool,
    pub(crate) client_lane: bool,
    pub(crate) listener: bool,
}

/// The next step of a lane.
pub(crate) enum Next {
    Send(Box<Transaction>),
    /// The lane asks again at this time, or when it is woken.
    WaitUntil(Option<Instant>),
    /// The lane ends: the store is closed, and no request waits.
    End,
}

/// Requests that wait for a lane.
#[derive(Default)]
struct Waiting {
    /// From lease holders: commits, renewals, leases given back.
    holders: VecDeque<Request>,
    /// From clients: messages, activities and starts.
    client_requests: VecDeque<Request>,
}

/// A lane, by the requests that it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lane {
    All,
    /// Takes client requests while the other lanes are in use, and large requests while no small ones come.
    Clients,
}

impl Waiting {
    fn push(&mut self, request: Request) {
        match request.is_client_request() {
            true => self.client_requests.push_back(request),
            false => self.holders.push_back(request),
        }
    }

    fn len(&self) -> usize {
        self.holders.len() + self.client_requests.len()
    }

    /// Chooses the requests of the next transaction: in the order in which they came, those of lease holders first, at
    /// most [`MOST_REQUESTS`]. The others wait for the next transaction.
    fn choose(&mut self, lane: Lane) -> Batch {
        let mut batch = Batch::default();
        if lane == Lane::All {
            let holders = self.holders.len().min(MOST_REQUESTS);
            self.holders.drain(..holders).for_each(|request| batch.push(request));
        }
        let client_requests = self.client_requests.len().min(MOST_REQUESTS - batch.len());
        let lost = usize::from(defect::is_on(Defect::ClientRequestLost));
        self.client_requests.drain(..client_requests).skip(lost).for_each(|request| batch.push(request));
        sort(&mut batch);
        batch
    }
}

/// Sorts the requests in the order that all processes use, so that transactions lock rows in one order.
fn sort(batch: &mut Batch) {
    let key = |lease: &Lease| match lease {
        Lease::Activity { id, .. } => (*id, String::new()),
        Lease::Turn { at_fetch, .. } => (i64::MAX, at_fetch.instance.clone()),
    };
    batch.commits.sort_by_cached_key(|commit| match &commit.fence {
        Fence::Lease(lease) => key(lease),
        Fence::Fused { .. } | Fence::Unknown { .. } => (i64::MAX, instance_of(commit).to_string()),
    });
    batch.renewals.sort_by_cached_key(|renew| key(&renew.lease));
    batch.abandons.sort_by_cached_key(|abandon| key(&abandon.lease));
}

/// Lanes that have sent a transaction, not counting the client lane.
#[derive(Debug, Default)]
struct LanesInUse {
    count: usize,
    /// The loads of their transactions together.
    load: usize,
    last_sent_at: Option<Instant>,
}

impl LanesInUse {
    /// Whether another transaction is sent now if `waiting` requests would go into it. Each transaction has a fixed cost: beside
    /// heavy transactions the next one is sent when it is full, or after [`PATIENCE`].
    fn allow_another(&self, waiting: usize, now: Instant) -> bool {
        self.load <= LIGHT * self.count
            || waiting >= FULL
            || self.last_sent_at.is_none_or(|sent| now >= sent + PATIENCE)
    }
}

impl Scheduler {
    pub(crate) fn new(limits: Limits) -> Self {
        let large_lanes = LargeLanes::of(limits.lanes, limits.has_client_lane);
        Self {
            limits,
            waiting: Waiting::default(),
            large: LargeRequests::new(large_lanes),
            was_large: false,
            lanes: LanesInUse::default(),
            parked: PerQueue { turns: ParkedFetches::default(), activities: ParkedFetches::default() },
            asked_next_due_at: None,
            paused_until: None,
            others: None,
            forward: Forward::default(),
            put_off: PerQueue::default(),
            is_closed: false,
            wake: Wake::default(),
        }
    }

    /// The tasks to wake since the last call.
    pub(crate) fn take_wake(&mut self) -> Wake {
        std::mem::take(&mut self.wake)
    }

    /// Returns the next step of a lane.
    pub(crate) fn next(&mut self, now: Instant, entropy: &dyn Entropy) -> Next {
        // Small requests come between two large ones, also if there is a single lane.
        let is_small_next = self.was_large && self.load() > 0;
        if !is_small_next && let Some(transaction) = self.next_large(Lane::All, now) {
            return self.send(transaction, now);
        }
        let sends = self.is_closed || self.lanes.allow_another(self.load(), now);
        if sends && let Some(transaction) = self.next_transaction(now, entropy) {
            return self.send(transaction, now);
        }
        if is_small_next && let Some(transaction) = self.next_large(Lane::All, now) {
            return self.send(transaction, now);
        }
        if self.is_closed {
            self.wake.lane = true;
            return Next::End;
        }
        let at = match sends {
            true => self.next_poll_at(),
            false => self.lanes.last_sent_at.map(|sent| sent + PATIENCE),
        };
        Next::WaitUntil([at, self.large.due_at(Lane::All)].into_iter().flatten().min())
    }

    /// A lane sends this transaction. Another lane is woken for the rest.
    fn send(&mut self, transaction: Transaction, now: Instant) -> Next {
        self.wake.lane |= self.waiting.len() > 0
            || self.large.are_waiting()
            || self.parked.turns.is_poll_due()
            || self.parked.activities.is_poll_due();
        self.wake.client_lane |= self.large.concern_client_lane();
        self.was_large = transaction.large.is_some();
        self.lanes.count += 1;
        self.lanes.load += transaction.load;
        self.lanes.last_sent_at = Some(now);
        Next::Send(Box::new(transaction))
    }

    /// Returns the next step of the client lane. It sends client requests only while all other lanes are in use, and leaves the
    /// rest to them.
    pub(crate) fn next_of_client_lane(&mut self, now: Instant, entropy: &dyn Entropy) -> Next {
        if self.is_closed {
            return Next::End;
        }
        let client_requests = match self.has_free_lane(now) {
            true => None,
            false => self.next_client_requests(now, entropy),
        };
        match client_requests.or_else(|| self.next_large(Lane::Clients, now)) {
            Some(transaction) => Next::Send(Box::new(transaction)),
            None => Next::WaitUntil(self.large.due_at(Lane::Clients)),
        }
    }

    /// A lane has finished the transaction with this load.
    pub(crate) fn on_lane_free(&mut self, load: usize, large: Option<SentLarge>, now: Instant) {
        if let Some(large) = large {
            self.large.on_done(large, now);
        }
        self.lanes.count -= 1;
        self.lanes.load -= load;
    }

    /// The client lane has finished the transaction of a large request. The next one may be for another lane.
    pub(crate) fn on_client_lane_free(&mut self, large: SentLarge, now: Instant) {
        self.large.on_done(large, now);
        self.wake.lane |= self.large.are_waiting();
    }

    /// A transaction of the large request that is due. Parked fetches are polled for when it is done.
    fn next_large(&mut self, lane: Lane, now: Instant) -> Option<Transaction> {
        let (request, sent) = self.large.take(lane, now, self.is_closed)?;
        let mut batch = Batch::default();
        batch.push(request);
        let frees = batch.frees(PerQueue::default());
        let notifies = self.notifies(frees);
        Some(Transaction { batch, frees, notifies, load: 1, large: Some(sent), ..Transaction::default() })
    }

    /// Puts the next transaction together: requests, hand-offs of the items that they store, and the polls that are due.
    fn next_transaction(&mut self, now: Instant, entropy: &dyn Entropy) -> Option<Transaction> {
        let load = self.load();
        let batch = self.waiting.choose(Lane::All);
        self.parked.turns.on_time(now);
        self.parked.activities.on_time(now);
        let hand_offs = PerQueue {
            turns: hand_off_turns(&mut self.parked.turns, &batch, entropy),
            activities: hand_off_activities(&mut self.parked.activities, &batch, entropy),
        };
        let handed_off = PerQueue {
            turns: hand_offs.turns.hand_offs.len(),
            activities: hand_offs.activities.hand_offs.len(),
        };
        let frees = batch.frees(handed_off);
        let polls = self.start_polls(batch.len() > 0, frees, now);
        let has_polls = !(polls.turns.is_empty() && polls.activities.is_empty());
        if batch.len() == 0 && !has_polls {
            return None;
        }
        let asks_next_due = self
            .asked_next_due_at
            .is_none_or(|asked| now.saturating_duration_since(asked) >= ASK_NEXT_DUE_EVERY);
        if asks_next_due && has_polls {
            self.asked_next_due_at = Some(now);
        }
        let puts_off = self.puts_off(&batch, frees, now);
        let notifies = self.notifies(frees.without(puts_off));
        Some(Transaction {
            batch,
            polls,
            hand_offs,
            frees,
            notifies,
            puts_off,
            asks_next_due,
            large: None,
            load,
        })
    }

    /// Starts the polls that are due. While the server is away, polls travel with requests, and beside them only new fetches are
    /// polled for, one queue at a time: one of them finds out that the server is back.
    fn start_polls(
        &mut self,
        has_requests: bool,
        frees: PerQueue<bool>,
        now: Instant,
    ) -> PerQueue<TurnPoll, ActivityPoll> {
        let PerQueue { turns, activities } = &mut self.parked;
        let is_paused = !has_requests
            && self.paused_until.is_some_and(|until| now < until || defect::is_on(Defect::PauseNeverEnds));
        let polls = match is_paused {
            false => PerQueue {
                turns: turns.start_poll(frees.turns, MOST_LEASES),
                activities: activities.start_poll(frees.activities, MOST_LEASES),
            },
            true if turns.new_fetches() > 0 => {
                PerQueue { turns: turns.start_poll(false, MOST_LEASES), activities: Poll::default() }
            }
            true if activities.new_fetches() > 0 => {
                PerQueue { turns: Poll::default(), activities: activities.start_poll(false, MOST_LEASES) }
            }
            true => PerQueue { turns: Poll::default(), activities: Poll::default() },
        };
        let unusable =
            PerQueue { turns: turns.unusable_notification(), activities: activities.unusable_notification() };
        self.forward(unusable);
        polls
    }

    /// A transaction of client requests only. Parked fetches are polled for when it is done.
    fn next_client_requests(&mut self, now: Instant, entropy: &dyn Entropy) -> Option<Transaction> {
        let batch = self.waiting.choose(Lane::Clients);
        if batch.len() == 0 {
            return None;
        }
        let turns = hand_off_turns(&mut self.parked.turns, &batch, entropy);
        let frees = batch.frees(PerQueue { turns: turns.hand_offs.len(), activities: 0 });
        let puts_off = self.puts_off(&batch, frees, now);
        let notifies = self.notifies(frees.without(puts_off));
        let hand_offs = PerQueue { turns, ..Default::default() };
        Some(Transaction { batch, hand_offs, frees, notifies, puts_off, ..Transaction::default() })
    }

    /// The queues of which no other process is notified yet, because this process takes items of them itself. Other processes are
    /// notified of items that it gives back.
    fn puts_off(&self, batch: &Batch, frees: PerQueue<bool>, now: Instant) -> PerQueue<bool> {
        let Some(others) = self.others else { return PerQueue::default() };
        let takes = PerQueue {
            turns: self.parked.turns.takes_items(now),
            activities: self.parked.activities.takes_items(now),
        };
        others.queues.and(frees).and(takes).without(batch.gives_back())
    }

    /// The notifications that other processes want of a transaction that frees items of these queues.
    pub(crate) fn notifies(&self, frees: PerQueue<bool>) -> Wants {
        let others = self.others.unwrap_or(Wants::EVERYTHING);
        Wants { queues: others.queues.and(frees), ..others }
    }

    /// Whether a lane is free and would send a transaction now.
    fn has_free_lane(&self, now: Instant) -> bool {
        self.lanes.count < self.limits.lanes && self.lanes.allow_another(self.load(), now)
    }

    /// The number of calls and new fetches that wait for a lane.
    fn load(&self) -> usize {
        self.waiting.len() + self.parked.turns.new_fetches() + self.parked.activities.new_fetches()
    }

    fn next_poll_at(&self) -> Option<Instant> {
        let PerQueue { turns, activities } = &self.parked;
        match self.paused_until {
            Some(until) if turns.has_due_fetches() || activities.has_due_fetches() => Some(until),
            _ => [turns.next_poll_at(), activities.next_poll_at()].into_iter().flatten().min(),
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed
    }

    pub(crate) fn close(&mut self) {
        self.is_closed = true;
        self.wake = Wake { lane: true, client_lane: true, listener: true };
    }

    /// The eligibility of the parked fetches.
    pub(crate) fn eligibility(&self) -> Eligibility {
        Eligibility::of(self.parked.turns.asks(), self.parked.activities.asks())
    }

    pub(crate) fn idleness(&self) -> PerQueue<Idleness> {
        PerQueue { turns: self.parked.turns.idleness(), activities: self.parked.activities.idleness() }
    }
}
