//! A scheduler, and a model of the server that executes its transactions: it stores turns and activities, and leases them to polls.

use super::Event;
use super::requests::{activity, activity_lease, completion, give_back, turn_lease, turn_with};
use crate::ask::{ActivityAsk, Ask, TurnAsk};
use crate::hand_off::HandOffs;
use crate::parked::{Caller, Fetch, GroupDone, Poll};
use crate::request::{Lease, Request};
use crate::scheduler::large::LARGE_BYTES;
use crate::scheduler::tests::{LIMITS, message_of, read_of, renewal};
use crate::scheduler::{HandOffDone, LaneDone, Next, Scheduler};
use crate::transaction::Transaction;
use outlast_provider::{OsEntropy, TagFilter};
use outlast_provider_kit::queue::PerQueue;
use std::any::Any;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

const LOCK_MS: u64 = 60_000;

/// A server, and the scheduler that it executes transactions for.
pub(super) struct SimulatedServer {
    scheduler: Scheduler,
    now: Instant,
    fetchable: PerQueue<usize>,
    /// When the activities become fetchable that were given back with a delay.
    delayed: Vec<Instant>,
    /// Number of activities that callers have leased.
    held: usize,
    running: Vec<Running>,
    /// The receivers of fetches, of either queue.
    callers: Vec<Box<dyn Any>>,
    /// Number of requests that were submitted and not yet committed.
    pub(super) waiting_requests: usize,
    instances: usize,
}

struct Running {
    transaction: Transaction,
    is_of_lane: bool,
    executed: Option<Executed>,
}

/// The results of the server.
struct Executed {
    accepts: bool,
    /// Number of leases of each fetch, by poll group.
    leases: PerQueue<Vec<Vec<usize>>>,
    /// The time until the next delay ends. The server tells every poll, so that none is repeated to ask.
    due_ms: Option<u64>,
}

/// The effect of a transaction on the fetches of one queue.
struct Fetched<A, C> {
    groups: Vec<GroupDone<A, C>>,
    hand_offs: Vec<HandOffDone<A, C>>,
    /// Number of leases that callers got.
    held: usize,
    /// Number of leases whose callers are gone.
    returned: usize,
}

impl SimulatedServer {
    pub(super) fn new() -> Self {
        Self {
            scheduler: Scheduler::new(LIMITS),
            now: Instant::now(),
            fetchable: PerQueue::default(),
            delayed: Vec::new(),
            held: 0,
            running: Vec::new(),
            callers: Vec::new(),
            waiting_requests: 0,
            instances: 0,
        }
    }

    /// The queues in which a fetch is parked although an item is fetchable, or becomes fetchable without a poll.
    pub(super) fn starves(&self) -> PerQueue<bool> {
        let PerQueue { turns, activities } = &self.scheduler.parked;
        let fetchable = self.fetchable.activities + self.delayed.len();
        PerQueue {
            turns: self.fetchable.turns > 0 && turns.asks().count() > 0,
            activities: fetchable > 0 && activities.asks().count() > 0,
        }
    }

    fn submit(&mut self, request: Request) {
        self.waiting_requests += 1;
        self.scheduler.submit(request, self.now);
    }

    pub(super) fn on(&mut self, event: Event) {
        match event {
            Event::FetchTurn { parks } => {
                let ask = TurnAsk { lock_ms: LOCK_MS, filter: None, bound: Default::default() };
                let fetch = self.fetch(ask, parks);
                self.scheduler.fetch_turn(fetch);
            }
            Event::FetchActivities { parks, most } => {
                let ask =
                    ActivityAsk { max_items: most, lock_ms: LOCK_MS, session: None, tags: TagFilter::Any };
                let fetch = self.fetch(ask, parks);
                self.scheduler.fetch_activities(fetch);
            }
            Event::Leave(nth) => {
                if !self.callers.is_empty() {
                    drop(self.callers.swap_remove(nth % self.callers.len()));
                }
            }
            Event::Renew => self.submit(renewal()),
            Event::Large => self.submit(read_of(LARGE_BYTES)),
            Event::Message { begins } => {
                self.instances += 1;
                self.submit(message_of(format!("i{}", self.instances), begins));
            }
            Event::Activity => self.submit(activity()),
            Event::Schedule { activities } => self.submit(turn_with(activities)),
            Event::Complete if self.held > 0 => {
                self.held -= 1;
                self.submit(completion());
            }
            Event::GiveBack { delay_ms } if self.held > 0 => {
                self.held -= 1;
                self.submit(give_back(activity_lease(), delay_ms));
            }
            Event::Complete | Event::GiveBack { .. } => {}
            Event::Notified { turns } => {
                let queues = PerQueue { turns, activities: !turns };
                self.store_elsewhere(queues);
                self.scheduler.on_notification(queues, 0);
            }
            Event::Reconnected => {
                self.store_elsewhere(PerQueue::BOTH);
                self.scheduler.on_remote_change(PerQueue::BOTH);
            }
            Event::Lane => drop(self.lane()),
            Event::ClientLane => {
                if let Next::Send(transaction) = self.scheduler.next_of_client_lane(self.now, &OsEntropy) {
                    self.running.push(Running {
                        transaction: *transaction,
                        is_of_lane: false,
                        executed: None,
                    });
                }
            }
            Event::Execute { nth, accepts } => self.execute(nth, accepts),
            Event::Finish(nth) => self.finish(nth),
            Event::Fail(nth) => self.fail(nth),
            Event::ServerAway => drop(self.scheduler.on_server_away(self.now)),
            Event::Pass { ms } => self.now += Duration::from_millis(ms),
        }
    }

    /// A new fetch, whose caller waits.
    fn fetch<A, T: 'static>(&mut self, ask: A, parks: bool) -> Fetch<A, oneshot::Sender<T>> {
        let (sender, caller) = oneshot::channel();
        self.callers.push(Box::new(caller));
        Fetch { ask, parks, is_new: true, caller: sender }
    }

    /// Another process commits an item of these queues.
    fn store_elsewhere(&mut self, queues: PerQueue<bool>) {
        self.fetchable.turns += usize::from(queues.turns);
        self.fetchable.activities += usize::from(queues.activities);
    }

    /// A lane that is free asks for its next transaction; returns whether it sends one, or until when it waits.
    fn lane(&mut self) -> Result<(), Option<Instant>> {
        if self.running.iter().filter(|running| running.is_of_lane).count() == LIMITS.lanes {
            return Err(None);
        }
        match self.scheduler.next(self.now, &OsEntropy) {
            Next::Send(transaction) => {
                self.running.push(Running { transaction: *transaction, is_of_lane: true, executed: None });
                Ok(())
            }
            Next::WaitUntil(at) => Err(at),
            Next::End => panic!("the store is not closed"),
        }
    }

    /// The place of a transaction that the server has or has not executed.
    fn choose(&self, nth: usize, executed: bool) -> Option<usize> {
        let is_wanted = |place: &usize| self.running[*place].executed.is_some() == executed;
        let places: Vec<usize> = (0..self.running.len()).filter(is_wanted).collect();
        places.get(nth.checked_rem(places.len())?).copied()
    }

    /// The server executes the requests of a transaction, and then its polls.
    fn execute(&mut self, nth: usize, accepts: bool) {
        let Some(place) = self.choose(nth, false) else { return };
        let now = self.now;
        let ended = self.delayed.extract_if(.., |due| *due <= now).count();
        let Transaction { batch, polls, hand_offs, .. } = &self.running[place].transaction;
        self.waiting_requests -= batch.len();
        let leased = |hand_offs: usize| if accepts { hand_offs } else { 0 };

        let messages = batch.messages.len()
            + batch.commits.iter().filter(|commit| commit.completion.is_some()).count()
            + batch.abandons.iter().filter(|abandon| matches!(abandon.lease, Lease::Turn { .. })).count();
        self.fetchable.turns += messages - leased(hand_offs.turns.hand_offs.len());
        let (mut activities, mut later) =
            (batch.activities.len() + batch.scheduled().count() + ended, Vec::new());
        for abandon in batch.abandons.iter().filter(|abandon| matches!(abandon.lease, Lease::Activity { .. }))
        {
            match abandon.delay_ms {
                Some(ms) => later.push(now + Duration::from_millis(ms)),
                None => activities += 1,
            }
        }
        self.fetchable.activities += activities - leased(hand_offs.activities.hand_offs.len());
        self.delayed.extend(later);

        let leases = PerQueue {
            turns: lease(&polls.turns, &mut self.fetchable.turns),
            activities: lease(&polls.activities, &mut self.fetchable.activities),
        };
        let due_ms = self.delayed.iter().min().map(|due| (*due - now).as_millis().try_into().unwrap());
        self.running[place].executed = Some(Executed { accepts, leases, due_ms });
    }

    fn take_running(&mut self, nth: usize, executed: bool) -> Option<Running> {
        let place = self.choose(nth, executed)?;
        let running = self.running.remove(place);
        let Transaction { polls, load, large, .. } = &running.transaction;
        let polls = PerQueue { turns: !polls.turns.is_empty(), activities: !polls.activities.is_empty() };
        self.scheduler.on_polls_ended(polls);
        match (running.is_of_lane, large) {
            (true, large) => self.scheduler.on_lane_free(*load, *large, self.now),
            (false, Some(large)) => self.scheduler.on_client_lane_free(*large, self.now),
            (false, None) => {}
        }
        Some(running)
    }

    /// The lane reads the answers of a transaction.
    fn finish(&mut self, nth: usize) {
        let Some(Running { transaction, executed: Some(executed), .. }) = self.take_running(nth, true) else {
            return;
        };
        let Transaction { batch, polls, hand_offs, frees, .. } = transaction;
        let Executed { accepts, leases, due_ms } = executed;
        let changes = PerQueue { turns: polls.turns.changes, activities: polls.activities.changes };
        let turns = Fetched::of(polls.turns, leases.turns, hand_offs.turns, accepts, (None, None));
        let activities = Fetched::of(
            polls.activities,
            leases.activities,
            hand_offs.activities,
            accepts,
            (due_ms, Some(true)),
        );
        let done = LaneDone {
            polls: PerQueue { turns: turns.groups, activities: activities.groups },
            hand_offs: PerQueue { turns: turns.hand_offs, activities: activities.hand_offs },
            changes,
            frees,
            visible_in_ms: batch.visible_in_ms(0),
            has_more_messages: false,
            // The later poll after the end of a lease would hide a lost wake-up.
            ends_turns: false,
            asked_next_due: true,
        };
        let empty = self.scheduler.on_lane_done(done, self.now);
        assert!(empty.turns.iter().all(|fetch| !fetch.parks));
        assert!(empty.activities.iter().all(|fetch| !fetch.parks));
        self.held += activities.held;
        (0..turns.returned).for_each(|_| self.submit(give_back(turn_lease(), None)));
        (0..activities.returned).for_each(|_| self.submit(give_back(activity_lease(), None)));
    }

    /// A transaction fails before the server executes it. Its requests are sent again.
    fn fail(&mut self, nth: usize) {
        let Some(Running { transaction, .. }) = self.take_running(nth, false) else { return };
        let Transaction { batch, polls, hand_offs, .. } = transaction;
        let turns = hand_offs.turns.fetches.into_iter().chain(polls.turns.into_fetches());
        let activities = hand_offs.activities.fetches.into_iter().chain(polls.activities.into_fetches());
        self.scheduler.on_polls_lost(PerQueue { turns: turns.collect(), activities: activities.collect() });
        let (client_requests, fenced) = batch.into_parts();
        client_requests
            .into_iter()
            .chain(fenced)
            .for_each(|request| self.scheduler.submit(request, self.now));
    }

    /// Lets the lanes run until none has anything to do; returns whether they come to rest. Time passes only while heavy transactions, the
    /// pause after a lost server, the pause between large requests or a delay hold a lane back: a periodic poll does not help.
    pub(super) fn settle(&mut self) -> bool {
        for _ in 0..10_000 {
            match self.lane() {
                Ok(()) => {}
                Err(_) if !self.running.is_empty() => {
                    self.execute(0, true);
                    self.finish(0);
                }
                Err(Some(at)) if at <= self.now + Duration::from_secs(10) => self.now = self.now.max(at),
                Err(_) => return true,
            }
        }
        false
    }
}

impl<A: Ask, C: Caller> Fetched<A, C> {
    /// `due_ms` and `no_sessions`: see [`GroupDone`].
    fn of(
        poll: Poll<A, C>,
        leases: Vec<Vec<usize>>,
        hand_offs: HandOffs<A, C>,
        accepts: bool,
        (due_ms, no_sessions): (Option<u64>, Option<bool>),
    ) -> Self {
        let mut fetched = Self { groups: Vec::new(), hand_offs: Vec::new(), held: 0, returned: 0 };
        for (group, leases) in poll.groups.into_iter().zip(leases) {
            let is_served = leases.iter().any(|leases| *leases > 0);
            let mut unserved = Vec::new();
            for (fetch, leases) in group.into_iter().zip(leases) {
                match leases {
                    0 => unserved.push(fetch),
                    leases => fetched.deliver(&fetch, leases),
                }
            }
            fetched.groups.push(GroupDone { unserved, is_served, lock_ms: LOCK_MS, due_ms, no_sessions });
        }
        let HandOffs { fetches, hand_offs } = hand_offs;
        for (place, fetch) in fetches.into_iter().enumerate() {
            let leases = hand_offs.iter().filter(|hand_off| hand_off.fetch == place).count();
            let done = match accepts {
                true => {
                    fetched.deliver(&fetch, leases);
                    HandOffDone::Served { lock_ms: LOCK_MS }
                }
                false => HandOffDone::Refused(fetch),
            };
            fetched.hand_offs.push(done);
        }
        fetched
    }

    fn deliver(&mut self, fetch: &Fetch<A, C>, leases: usize) {
        match fetch.is_gone() {
            true => self.returned += leases,
            false => self.held += leases,
        }
    }
}

/// The server leases what is fetchable to the fetches of a poll, in their order. Returns the number of leases of each fetch.
fn lease<A: Ask, C>(poll: &Poll<A, C>, fetchable: &mut usize) -> Vec<Vec<usize>> {
    let mut take = |fetch: &Fetch<A, C>| {
        let leases = fetch.ask.wants().min(*fetchable);
        *fetchable -= leases;
        leases
    };
    poll.groups.iter().map(|group| group.iter().map(&mut take).collect()).collect()
}
