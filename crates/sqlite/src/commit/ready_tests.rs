//! The ready messages after the events of an instance, and the rows that a fetch visits.

use crate::commit::{self, CommitTurn};
use crate::db::{Db, column};
use crate::fetch::TurnAsk;
use crate::leased::{Abandon, Renew, TurnFacts};
use crate::park::{Ask, FetchState};
use crate::plans::{db, steps_of_all};
use crate::transaction::{Transaction, Wakeups};
use crate::{message, sql};
use outlast_model::WorkItem;
use outlast_provider::{ExecutionMetadata, MessageBound, OsEntropy};
use outlast_provider_kit::CommitPlan;
use outlast_provider_kit::plan::message_row;
use outlast_provider_kit::queue::PerQueue;
use std::sync::Arc;
use std::time::Duration;

const LEASE_MS: u64 = 1_000;
/// The messages that a fetch takes.
const BOUND: usize = 3;

/// A store, its time, and the state that its writer keeps between transactions.
struct Store {
    db: Db,
    now: u64,
    state: FetchState,
    wakeups: Wakeups,
}

impl Store {
    fn new() -> Self {
        let wakeups = Wakeups::of(PerQueue::NONE);
        Self { db: db(), now: 10_000, state: FetchState::default(), wakeups }
    }

    fn with<T>(&mut self, body: impl FnOnce(&mut Transaction<'_>, &mut FetchState) -> T) -> T {
        self.wakeups = Wakeups::of(PerQueue::NONE);
        let mut tx = Transaction {
            db: &self.db,
            now: self.now,
            entropy: &OsEntropy,
            owner: None,
            wakeups: &mut self.wakeups,
        };
        body(&mut tx, &mut self.state)
    }

    fn start(&mut self, instance: &str) {
        let start = WorkItem::StartOrchestration {
            instance: instance.to_string(),
            orchestration: "O".to_string(),
            input: String::new(),
            version: None,
            parent_instance: None,
            parent_id: None,
            parent_execution_id: None,
            execution_id: 1,
        };
        self.store(&start, 0);
    }

    fn store(&mut self, item: &WorkItem, delay_ms: u64) {
        let row = message_row("test", item).unwrap();
        self.with(|tx, _| message::store(tx, &row, Some(Duration::from_millis(delay_ms)))).unwrap();
    }

    fn send(&mut self, instance: &str, count: usize, delay_ms: u64) {
        for nth in 0..count {
            let (instance, name) = (instance.to_string(), "q".to_string());
            self.store(&WorkItem::QueueMessage { instance, name, data: nth.to_string() }, delay_ms);
        }
    }

    /// The instance, the token and the number of messages of the next turn.
    fn fetch(&mut self) -> Option<(String, String, usize)> {
        let ask = TurnAsk {
            lock_ms: LEASE_MS,
            filter: None,
            with_history: false,
            orphan_life_ms: u64::MAX,
            bound: MessageBound::new(BOUND, usize::MAX),
        };
        let turn = self.with(|tx, state| ask.fetch(tx, &mut ask.lookup(), 1, state)).unwrap()?.turn;
        Some((turn.instance, turn.lock_token, turn.messages.len()))
    }

    fn commit(&mut self, token: String) {
        let metadata = ExecutionMetadata {
            orchestration_name: Some("O".to_string()),
            orchestration_version: Some("1.0.0".to_string()),
            ..ExecutionMetadata::default()
        };
        let plan = CommitPlan::new(1, &[], &[], &[], metadata, Vec::new()).unwrap();
        self.with(|tx, _| commit::commit(tx, &CommitTurn { token, plan, watches: Arc::default() })).unwrap();
    }

    fn abandon(&mut self, token: String, delay_ms: Option<u64>) {
        let delay = delay_ms.map(Duration::from_millis);
        let abandoned = Abandon { token, delay, ignore_attempt: false };
        self.with(|tx, _| commit::abandon(tx, &abandoned)).unwrap();
    }

    /// The steps of a lookup of candidates, and of the statement that finds the next time.
    fn lookup_steps(&self) -> i32 {
        let now = [column(self.now)];
        steps_of_all(&self.db, sql::CANDIDATE_TURNS, now) + steps_of_all(&self.db, sql::NEXT_MESSAGE, now)
    }

    fn ready(&self) -> i64 {
        let sql = "SELECT count(*) FROM orchestrator_queue WHERE ready = 1";
        self.db.conn.query_row(sql, [], |row| row.get(0)).unwrap()
    }
}

/// The steps of a lookup of candidates in each state of an instance with this many messages.
fn steps_beside(messages: usize) -> Vec<(&'static str, i32)> {
    let mut store = Store::new();
    let mut costs = Vec::new();
    store.start("flooded");
    store.send("flooded", messages, 0);
    costs.push(("no lease", store.lookup_steps()));
    let (_, token, taken) = store.fetch().unwrap();
    assert_eq!(taken, BOUND);
    costs.push(("leased", store.lookup_steps()));
    assert_eq!(store.ready(), 0, "a leased instance has no ready message");
    store.send("flooded", messages, 0);
    assert_eq!(store.ready(), 0, "new messages of a leased instance are not ready");
    costs.push(("leased, with new messages", store.lookup_steps()));
    store.commit(token);
    costs.push(("left behind", store.lookup_steps()));
    let (_, token, _) = store.fetch().unwrap();
    store.abandon(token, Some(50));
    store.send("flooded", messages, 0);
    costs.push(("delayed", store.lookup_steps()));
    store.now += 50;
    costs.push(("after the delay", store.lookup_steps()));
    store.fetch().unwrap();
    store.now += LEASE_MS;
    let (_, token, _) = store.fetch().expect("the lease expired");
    costs.push(("leased again", store.lookup_steps()));
    let renewed = Renew { token: token.clone(), extend_for: Duration::from_secs(9) };
    store.with(|tx, _| commit::renew(tx, &renewed)).unwrap();
    store.abandon(token, None);
    costs.push(("given back", store.lookup_steps()));
    assert_eq!(store.ready(), 1);
    costs
}

#[test]
fn messages_of_a_leased_instance_and_messages_left_behind_are_not_visited_by_fetches() {
    for ((state, few), (_, many)) in steps_beside(BOUND).into_iter().zip(steps_beside(2_000)) {
        assert!(many <= few, "{state}: {few} steps with few messages, {many} with thousands");
    }
}

#[test]
fn commit_of_a_turn_does_not_visit_messages_left_behind() {
    let costs = |messages: usize| {
        let mut store = Store::new();
        store.start("flooded");
        store.now += 1;
        store.send("flooded", BOUND, 0);
        store.now += 1;
        store.send("flooded", messages, 0);
        let (_, token, _) = store.fetch().unwrap();
        let (facts, secret) = TurnFacts::of(&token).unwrap();
        let covered = ("flooded", secret, facts.covered_until());
        [("texts", sql::DELETE_COVERED_TEXTS), ("messages", sql::DELETE_COVERED_MESSAGES)]
            .map(|(name, statement)| (name, steps_of_all(&store.db, statement, covered)))
    };
    for ((name, few), (_, many)) in costs(BOUND).into_iter().zip(costs(2_000)) {
        assert!(many <= few, "{name}: {few} steps with few messages, {many} with thousands");
    }
}

#[test]
fn instance_is_found_again_after_commit_delay_expiry_and_at_the_time_of_its_next_message() {
    let mut store = Store::new();
    store.start("i");
    store.send("i", 2 * BOUND, 0);
    store.send("i", 1, 5_000);
    let (_, token, _) = store.fetch().unwrap();
    assert!(store.fetch().is_none(), "leased");
    store.commit(token);
    assert!(store.wakeups.poll.turns, "messages were left behind");
    let (_, token, _) = store.fetch().expect("after a commit");
    store.abandon(token, Some(100));
    assert_eq!(store.wakeups.at, store.now + 100);
    assert!(store.fetch().is_none(), "messages left behind do not overtake delayed ones");
    store.now += 100;
    store.fetch().expect("after the delay");
    store.now += LEASE_MS - 1;
    assert!(store.fetch().is_none(), "leased");
    store.now += 1;
    let (_, token, taken) = store.fetch().expect("the lease expired without a commit");
    assert_eq!(taken, BOUND);
    store.commit(token);
    let (_, token, taken) = store.fetch().expect("the rest");
    assert_eq!(taken, 1);
    store.commit(token);
    assert!(store.fetch().is_none() && !store.wakeups.poll.turns);
    let later = store.db.one(sql::NEXT_MESSAGE, [column(store.now)], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(later, Some(15_000), "the delayed message is ready, alone");
    store.now = 15_000;
    assert!(store.fetch().is_some());
}

#[test]
fn commit_schedules_the_poll_for_a_later_message_of_its_instance() {
    let mut store = Store::new();
    store.start("i");
    store.send("i", 1, 700);
    let (_, token, _) = store.fetch().unwrap();
    store.commit(token);
    assert_eq!((store.wakeups.poll.turns, store.wakeups.at), (false, 10_700));
}

#[test]
fn earlier_message_is_ready_beside_a_later_one_and_the_first_decides_the_order() {
    let mut store = Store::new();
    for (instance, delay_ms) in [("a", 30), ("b", 20), ("a", 10), ("a", 10)] {
        store.send(instance, 1, delay_ms);
    }
    assert_eq!(store.ready(), 3, "the fourth waits behind the third");
    store.now += 30;
    let found: Vec<String> =
        store.db.all(sql::CANDIDATE_TURNS, [column(store.now)], |row| row.get(0)).unwrap();
    assert_eq!(found, ["a", "b", "a"]);
}
