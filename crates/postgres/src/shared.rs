//! What callers and lanes share: the requests that wait, and the fetches.

use crate::batch::Batch;
use crate::db::Db;
use crate::eligibility::Eligibility;
use crate::outcomes::Outcomes;
use crate::request::Request;
use crate::room::Room;
use crate::steps::Step;
use crate::transaction::{Others, Transaction};
use crate::waiting::{ActivityAsk, Ask, Parked, TurnAsk, Waiter};
use crate::{PostgresError, ProviderConfig};
use outlast_provider::Entropy;
use outlast_provider_kit::Watches;
use std::collections::VecDeque;
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// Most requests in one transaction.
const MOST_REQUESTS: usize = 256;
/// Most leases that one transaction hands out of each kind.
const MOST_LEASES: usize = 64;

/// A transaction with so many requests does little else: another one is on its way beside it at once.
const LIGHT: usize = 2;
/// With so many requests a transaction costs hardly more than they do: it need not wait for more.
const FULL: usize = 64;
/// How long a transaction waits for more requests while others are on their way.
const PATIENCE: Duration = Duration::from_millis(10);

/// How often fetches that find nothing ask what comes next. In between they look again that soon.
const ASK_NEXT_EVERY: Duration = Duration::from_millis(50);

pub(crate) struct Shared {
    pub(crate) db: Db,
    pub(crate) config: ProviderConfig,
    pub(crate) watches: Arc<Watches>,
    /// This store object among all that share the database.
    pub(crate) id: String,
    state: Mutex<State>,
    /// A lane is wanted.
    wake: Notify,
    /// The lane for arrivals is wanted.
    arrived: Notify,
    /// Reads that share round trips.
    pub(crate) outcomes: Outcomes,
    /// Bounds the requests that wait.
    pub(crate) room: Room,
    /// The listener is to look at what is waited for.
    pub(crate) changed: Notify,
}

#[derive(Default)]
pub(crate) struct State {
    /// What holders of leases ask for.
    requests: VecDeque<Request>,
    /// What comes from outside: messages, activities and starts.
    arrivals: VecDeque<Request>,
    /// How many lanes are on their way, not counting the one for arrivals, and what they have taken on.
    busy: usize,
    load: usize,
    /// When the last of them left.
    left_at: Option<Instant>,
    pub(crate) turns: Parked<TurnAsk>,
    pub(crate) activities: Parked<ActivityAsk>,
    /// When parked fetches look again, whatever happens.
    turns_at: Option<Instant>,
    work_at: Option<Instant>,
    /// When they asked last what comes next.
    asked_next_at: Option<Instant>,
    /// Parked fetches rest until then: the server cannot be reached.
    resting_until: Option<Instant>,
    /// What others wait for, as far as the listener knows; `None`: nothing can be heard.
    pub(crate) others: Option<Others>,
    /// What the listener is to tell others.
    pub(crate) pass_on: PassOn,
    closed: bool,
}

/// What this process was told of, and needs no more of or may not have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PassOn {
    pub(crate) turns: bool,
    pub(crate) activities: bool,
    /// How many processes have looked in vain, one after the other.
    pub(crate) hops: u32,
}

impl PassOn {
    /// So many in vain, and nobody else is told: something that a process says it may have, and cannot get, would go round
    /// among them for ever.
    const MOST_HOPS: u32 = 32;

    fn add(&mut self, turns: Option<u32>, activities: Option<u32>) {
        let [turns, activities] =
            [turns, activities].map(|hops| hops.filter(|hops| *hops <= Self::MOST_HOPS));
        let known = (self.turns || self.activities).then_some(self.hops);
        self.hops = [known, turns, activities].into_iter().flatten().min().unwrap_or(0);
        self.turns |= turns.is_some();
        self.activities |= activities.is_some();
    }
}

impl Shared {
    pub(crate) fn new(db: Db, config: ProviderConfig) -> Arc<Self> {
        let id = format!("{:032x}", config.entropy.next_u128());
        Arc::new(Self {
            db,
            config,
            watches: Arc::default(),
            id,
            state: Mutex::default(),
            wake: Notify::new(),
            arrived: Notify::new(),
            outcomes: Outcomes::default(),
            room: Room::default(),
            changed: Notify::new(),
        })
    }

    /// A panic while it was locked left it as it was between two statements, so go on.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a task of the store panicked and goes on.
    pub(crate) fn panicked(&self, task: &str, panic: &str) {
        self.db.counters.panics.add(1);
        tracing::error!(target: "duroxide::providers::postgres", task, panic, "the store panicked and goes on");
    }

    /// Why a call was dropped without an answer.
    pub(crate) fn dropped(&self, instance: &str) -> PostgresError {
        match self.is_closed() {
            true => PostgresError::Closed,
            false => PostgresError::Panicked {
                instance: instance.to_string(),
                details: "its answer was lost; the log has the message".to_string(),
            },
        }
    }

    pub(crate) fn submit(&self, request: Request) {
        let mut state = self.state();
        if !request.arrives() {
            state.requests.push_back(request);
            drop(state);
            return self.wake.notify_one();
        }
        state.arrivals.push_back(request);
        let goes_ahead = !self.has_free_lane(&state) && self.config.has_lane_for_arrivals();
        drop(state);
        match goes_ahead {
            true => self.arrived.notify_one(),
            false => self.wake.notify_one(),
        }
    }

    pub(crate) fn fetch_turn(&self, waiter: Waiter<TurnAsk>) {
        self.state().turns.push(waiter);
        self.wake.notify_one();
    }

    pub(crate) fn fetch_activities(&self, waiter: Waiter<ActivityAsk>) {
        self.state().activities.push(waiter);
        self.wake.notify_one();
    }

    /// Something may have become available that this process did not commit.
    pub(crate) fn tell(&self, turns: bool, activities: bool) {
        let mut state = self.state();
        if turns {
            state.turns.tell();
        }
        if activities {
            state.activities.tell();
        }
        drop(state);
        self.wake.notify_one();
    }

    /// Another process tells this one, and no other, of something.
    pub(crate) fn hear(&self, turns: bool, activities: bool, hops: u32) {
        let mut state = self.state();
        let turns = if turns { state.turns.hear(hops) } else { None };
        let activities = if activities { state.activities.hear(hops) } else { None };
        state.pass_on.add(turns, activities);
        drop(state);
        self.wake.notify_one();
    }

    /// Has the listener tell somebody else, if so many looked in vain.
    pub(crate) fn pass_on(&self, turns: Option<u32>, activities: Option<u32>) {
        if turns.is_some() || activities.is_some() {
            self.state().pass_on.add(turns, activities);
            self.changed.notify_one();
        }
    }

    /// A transaction of this process has made something available.
    pub(crate) fn freed(&self, turns: bool, activities: bool) {
        let mut state = self.state();
        if turns {
            state.turns.freed();
        }
        if activities {
            state.activities.freed();
        }
    }

    /// Has fetches of turns look soon if something may have become available since this was the count of news. Not at once: it is
    /// seldom what they wait for, and who looks is handed nothing.
    pub(crate) fn look_after(&self, news: u64) {
        const SOON: Duration = Duration::from_millis(20);
        let mut state = self.state();
        if state.turns.news != news {
            state.look_by(Some(Instant::now() + SOON), None);
            drop(state);
            self.wake.notify_one();
        }
    }

    pub(crate) fn wake(&self) {
        self.wake.notify_one();
    }

    pub(crate) fn close(&self) {
        self.state().closed = true;
        self.wake.notify_waiters();
        self.wake.notify_one();
        self.arrived.notify_one();
        self.changed.notify_one();
        self.outcomes.wake();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.state().closed
    }

    /// Waits for something that came from outside while all lanes were on their way; `None` when the store is closed.
    pub(crate) async fn next_arrivals(&self) -> Option<Transaction> {
        loop {
            {
                let mut state = self.state();
                if state.closed {
                    // Other lanes do what is left.
                    return None;
                }
                if !self.has_free_lane(&state)
                    && let Some(job) = state.take_arrivals(&*self.config.entropy)
                {
                    return Some(job);
                }
            }
            self.arrived.notified().await;
            // As below.
            tokio::task::yield_now().await;
        }
    }

    /// Whether there is a lane that would leave now.
    fn has_free_lane(&self, state: &State) -> bool {
        state.busy < self.config.lanes_in_force() && state.is_worth_a_lane(Instant::now())
    }

    /// A lane is back with so many.
    pub(crate) fn is_back(&self, load: usize) {
        let mut state = self.state();
        state.busy -= 1;
        state.load -= load;
    }

    /// Waits for something to do; `None` when the store is closed and nothing is left.
    pub(crate) async fn next(&self) -> Option<Transaction> {
        loop {
            let wake_at = {
                let mut state = self.state();
                let now = Instant::now();
                let leaves = state.closed || state.is_worth_a_lane(now);
                self.fault(Step::Take, Vec::new);
                if leaves && let Some(job) = state.take(now, &*self.config.entropy) {
                    let more = !(state.requests.is_empty() && state.arrivals.is_empty())
                        || state.turns.look
                        || state.activities.look;
                    state.busy += 1;
                    state.load += job.load;
                    state.left_at = Some(now);
                    drop(state);
                    if more {
                        self.wake.notify_one();
                    }
                    return Some(job);
                }
                if state.closed {
                    self.wake.notify_one();
                    return None;
                }
                match leaves {
                    true => state.wake_at(),
                    false => state.left_at.map(|left| left + PATIENCE),
                }
            };
            let due = async {
                match wake_at {
                    Some(at) => sleep_until(at).await,
                    None => pending().await,
                }
            };
            futures::future::select(std::pin::pin!(self.wake.notified()), std::pin::pin!(due)).await;
            // Whoever was woken with others lets them speak first, so that they share a transaction.
            tokio::task::yield_now().await;
        }
    }

    /// How long parked fetches wait at most before they look, when they know of nothing that comes.
    fn patience(&self, state: &State) -> Duration {
        match state.others {
            Some(_) => self.config.idle_poll_interval,
            None => self.config.poll_interval,
        }
    }

    /// When parked fetches look again: when something is due, and now and then. `asked`: whether it is known what is due.
    pub(crate) fn look_again(
        &self,
        turns_in: Option<Option<u64>>,
        work_in: Option<Option<u64>>,
        asked: bool,
    ) {
        let mut state = self.state();
        let now = Instant::now();
        let patience = if asked { self.patience(&state) } else { ASK_NEXT_EVERY };
        let at = |due_ms: Option<u64>| {
            // A millisecond more than said, since times are whole milliseconds, and not all processes at the same moment.
            let due = due_ms.map_or(patience, |ms| Duration::from_millis(ms.saturating_add(1)));
            now + due.min(patience)
        };
        state.look_by(turns_in.map(at), work_in.map(at));
        drop(state);
        self.wake.notify_one();
    }

    /// Something becomes available in this time.
    pub(crate) fn look_within(&self, ms: u64) {
        let mut state = self.state();
        let at = Instant::now() + Duration::from_millis(ms.min(60_000).saturating_add(1));
        state.look_by(Some(at), Some(at));
        drop(state);
        self.wake.notify_one();
    }

    /// The server cannot be reached: parked fetches rest, and new ones are told.
    pub(crate) fn rest(&self, fault: &PostgresError) {
        const REST: Duration = Duration::from_millis(200);
        let mut state = self.state();
        state.resting_until = Some(Instant::now() + REST);
        let state = &mut *state;
        fail_fresh(&mut state.turns, fault, "fetch_orchestration_item");
        fail_fresh(&mut state.activities, fault, "fetch_work_item");
    }
}

fn fail_fresh<A: Ask>(parked: &mut Parked<A>, fault: &PostgresError, operation: &str) {
    for waiter in std::mem::take(&mut parked.waiters) {
        match waiter.fresh {
            true => drop(waiter.reply.send(Err(fault.classified(operation)))),
            false => parked.waiters.push_back(waiter),
        }
    }
    parked.look = true;
}

impl State {
    /// A transaction has its price, whatever is in it. While those that are on their way have much to do, the next one leaves
    /// when it is full, or when they stay away.
    fn is_worth_a_lane(&self, now: Instant) -> bool {
        self.load <= LIGHT * self.busy
            || self.waiting() >= FULL
            || self.left_at.is_none_or(|left| now >= left + PATIENCE)
    }

    /// How many wait for a lane.
    fn waiting(&self) -> usize {
        self.requests.len() + self.arrivals.len() + self.turns.due() + self.activities.due()
    }

    fn take(&mut self, now: Instant, entropy: &dyn Entropy) -> Option<Transaction> {
        let load = self.waiting();
        let rests = self.resting_until.is_some_and(|until| now < until);
        let mut batch = Batch::default();
        let room = MOST_REQUESTS.min(self.requests.len());
        self.requests.drain(..room).for_each(|request| batch.push(request));
        self.add_arrivals(&mut batch);
        batch.sort();
        for (at, look) in
            [(&mut self.turns_at, &mut self.turns.look), (&mut self.work_at, &mut self.activities.look)]
        {
            if at.is_some_and(|at| at <= now) {
                *at = None;
                *look = true;
            }
        }
        let handed_turns = self.hand_over_turns(&batch, entropy);
        let handed_activities = self.hand_over_activities(&batch, entropy);
        let turns_news = batch.frees_turns(handed_turns.hand_offs.len());
        let activities_news = batch.frees_activities(handed_activities.hand_offs.len());
        let (turns, activities) = match rests && batch.len() == 0 {
            // New ones are tried all the same: somebody has to find out that the server is back.
            true if self.turns.waiters.iter().any(|waiter| waiter.fresh) => {
                (self.turns.take(false, MOST_LEASES), Vec::new())
            }
            true if self.activities.waiters.iter().any(|waiter| waiter.fresh) => {
                (Vec::new(), self.activities.take(false, MOST_LEASES))
            }
            true => return None,
            false => {
                (self.turns.take(turns_news, MOST_LEASES), self.activities.take(activities_news, MOST_LEASES))
            }
        };
        if batch.len() == 0 && turns.is_empty() && activities.is_empty() {
            return None;
        }
        // What is said from now on about the next look is not known to this one.
        if !turns.is_empty() {
            self.turns_at = None;
        }
        if !activities.is_empty() {
            self.work_at = None;
        }
        let frees = (turns_news, activities_news);
        let others = self.others_of(frees);
        let asks_next =
            self.asked_next_at.is_none_or(|at| now.saturating_duration_since(at) >= ASK_NEXT_EVERY);
        if asks_next && !(turns.is_empty() && activities.is_empty()) {
            self.asked_next_at = Some(now);
        }
        Some(Transaction {
            asks_next,
            batch,
            turns,
            activities,
            handed_turns,
            handed_activities,
            frees,
            turns_news: self.turns.news,
            activities_news: self.activities.news,
            others,
            load,
        })
    }

    fn add_arrivals(&mut self, batch: &mut Batch) {
        let room = (MOST_REQUESTS - batch.len()).min(self.arrivals.len());
        self.arrivals.drain(..room).for_each(|request| batch.push(request));
    }

    /// Only what came from outside, and no fetches: those who wait look when it is done.
    fn take_arrivals(&mut self, entropy: &dyn Entropy) -> Option<Transaction> {
        let mut batch = Batch::default();
        self.add_arrivals(&mut batch);
        if batch.len() == 0 {
            return None;
        }
        let handed_turns = self.hand_over_turns(&batch, entropy);
        let frees_turns = batch.frees_turns(handed_turns.hand_offs.len());
        let frees = (frees_turns, batch.frees_activities(0));
        let others = self.others_of(frees);
        Some(Transaction { handed_turns, frees, ..Transaction::without_fetches(batch, others) })
    }

    /// Who else is told of a batch that frees turns or activities.
    fn others_of(&self, (turns, activities): (bool, bool)) -> Others {
        let others = self.others.unwrap_or(Others { turns: true, activities: true, watches: true });
        Others { turns: others.turns && turns, activities: others.activities && activities, ..others }
    }

    /// Has parked fetches look no later than then.
    fn look_by(&mut self, turns: Option<Instant>, activities: Option<Instant>) {
        for (known, at) in [(&mut self.turns_at, turns), (&mut self.work_at, activities)] {
            *known = [*known, at].into_iter().flatten().min();
        }
    }

    /// What the fetches that wait may have.
    pub(crate) fn eligibility(&self) -> Eligibility {
        let mut all = Eligibility::default();
        let mut before: Option<&TurnAsk> = None;
        for Waiter { ask, .. } in &self.turns.waiters {
            // Mostly they all ask for the same.
            if before.replace(ask).is_none_or(|before| !before.is_like(ask)) {
                all.admit_turns(ask);
            }
        }
        self.activities.waiters.iter().for_each(|waiter| all.admit_activities(&waiter.ask));
        all
    }

    fn wake_at(&self) -> Option<Instant> {
        let turns = self.turns_at.filter(|_| !self.turns.waiters.is_empty());
        let activities = self.work_at.filter(|_| !self.activities.waiters.is_empty());
        let next = [turns, activities].into_iter().flatten().min();
        let looks = (self.turns.look && !self.turns.waiters.is_empty())
            || (self.activities.look && !self.activities.waiters.is_empty());
        match self.resting_until {
            Some(until) if looks => Some(until),
            _ => next,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{Attempts, Lease, Message, Renew, Reply};
    use outlast_provider::OsEntropy;
    use outlast_provider_kit::MessageRow;
    use tokio::sync::oneshot;

    fn renewal() -> Request {
        let reply = Reply::new("renew", oneshot::channel().0);
        let (lease, attempts) = (Lease::Activity { secret: [0; 16], id: 1 }, Attempts::default());
        Request::Renew(Renew { lease, extend_ms: 1, reply, attempts })
    }

    fn message() -> Request {
        let row = MessageRow {
            instance_id: "i".to_string(),
            work_item: "{}".to_string(),
            not_before: 0,
            begins: false,
        };
        let reply = Reply::new("enqueue", oneshot::channel().0);
        Request::Message(Message { row, begins: false, delay_ms: 0, most: None, reply })
    }

    #[test]
    fn a_transaction_waits_for_company_while_a_large_one_is_on_its_way() {
        let now = Instant::now();
        let leaves = |busy, load, waiting, since| {
            let mut state = State { busy, load, left_at: Some(now - since), ..State::default() };
            state.requests.extend((0..waiting).map(|_| renewal()));
            state.is_worth_a_lane(now)
        };
        let just = Duration::from_millis(1);
        assert!(leaves(0, 0, 1, just), "nobody to wait for");
        assert!(leaves(1, LIGHT, 1, just), "a small one does not bring many back");
        assert!(!leaves(1, LIGHT + 1, 1, just));
        assert!(!leaves(1, FULL, FULL - 1, just));
        assert!(leaves(1, FULL, FULL, just), "it is full");
        assert!(!leaves(1, FULL, 1, PATIENCE - just));
        assert!(leaves(1, FULL, 1, PATIENCE), "the other one stays away");
        assert!(leaves(2, 2 * LIGHT, 1, just));
        assert!(!leaves(2, 2 * LIGHT + 1, 1, just));
    }

    #[test]
    fn a_look_leaves_what_was_said_since_about_the_next_one() {
        let now = Instant::now();
        let [soon, later] = [20, 1_000].map(|ms| now + Duration::from_millis(ms));
        let mut state = State::default();
        let (reply, _caller) = oneshot::channel();
        let ask = TurnAsk { lock_ms: 1, filter: None, bound: Default::default() };
        state.turns.push(Waiter { ask, parks: true, fresh: true, reply });
        state.look_by(Some(later), Some(later));
        let looks = state.take(now, &OsEntropy).unwrap();
        assert_eq!((state.turns_at, state.work_at), (None, Some(later)), "it is looking");
        state.look_by(Some(soon), None);
        // It has found nothing, and knows of nothing.
        state.look_by(Some(later), None);
        assert_eq!(state.turns_at, Some(soon));
        drop(looks);
    }

    #[test]
    fn what_arrives_can_go_ahead_of_the_rest() {
        let fill = || {
            let mut state = State::default();
            state.requests.push_back(renewal());
            state.arrivals.push_back(message());
            state
        };
        let mut state = fill();
        let ahead = state.take_arrivals(&OsEntropy).unwrap();
        assert_eq!((ahead.batch.messages.len(), ahead.batch.len(), ahead.load), (1, 1, 0));
        assert_eq!(ahead.others, Others { turns: true, activities: false, watches: true }, "others are told");
        assert!(state.take_arrivals(&OsEntropy).is_none(), "no more");
        let rest = state.take(Instant::now(), &OsEntropy).unwrap();
        assert_eq!((rest.batch.renewals.len(), rest.batch.len(), rest.load), (1, 1, 1));
        let all = fill().take(Instant::now(), &OsEntropy).unwrap();
        assert_eq!((all.batch.renewals.len(), all.batch.messages.len(), all.load), (1, 1, 2));
    }

    #[test]
    fn a_transaction_is_bounded() {
        let mut state = State::default();
        state.requests.extend((0..MOST_REQUESTS - 1).map(|_| renewal()));
        state.arrivals.extend([message(), message()]);
        let first = state.take(Instant::now(), &OsEntropy).unwrap();
        assert_eq!((first.batch.len(), first.batch.messages.len()), (MOST_REQUESTS, 1));
        assert_eq!(state.take(Instant::now(), &OsEntropy).unwrap().batch.len(), 1);
        assert!(state.take(Instant::now(), &OsEntropy).is_none());
    }
}
