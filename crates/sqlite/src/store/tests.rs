//! Batches that a test puts together itself, statement faults included.

use super::*;
use crate::command::Body;
use crate::url::Access;
use crate::waiting::{Ask, Guarded, RawTurn, Waiter};
use crate::{StatementFault, StatementFaults};
use outlast_model::WorkItem;
use outlast_provider::{
    ClassifiedError, DispatcherCapabilityFilter, FetchedWork, MessageBound, ProviderError, SemverRange,
    TagFilter,
};
use outlast_provider_kit::plan::{activity_row, message_row};
use std::path::Path;
use std::sync::{Mutex, mpsc};
use tokio::sync::oneshot;

/// Fails the next statement that begins like this, and remembers all of them.
#[derive(Default)]
struct Script {
    seen: Mutex<Vec<String>>,
    strikes: Mutex<Vec<(&'static str, StatementFault)>>,
    /// Panics at the statement after this many others.
    panic_after: Mutex<Option<usize>>,
    /// Panics at the next statement with this text.
    panic_at: Mutex<Option<&'static str>>,
}

impl Script {
    fn strike(&self, statement: &'static str, fault: StatementFault) {
        self.strikes.lock().unwrap().push((statement, fault));
    }

    /// How often the statement was run since the last question.
    fn count(&self, statement: &str) -> usize {
        mem::take(&mut *self.seen.lock().unwrap()).iter().filter(|sql| *sql == statement).count()
    }
}

impl StatementFaults for Script {
    fn strike(&self, sql: &str) -> Option<StatementFault> {
        self.seen.lock().unwrap().push(sql.to_string());
        let mut panic_after = self.panic_after.lock().unwrap();
        let is_named = self.panic_at.lock().unwrap().take_if(|statement| *statement == sql).is_some();
        if is_named || panic_after.take_if(|left| *left == 0).is_some() {
            drop(panic_after);
            panic!("injected by a test");
        }
        if let Some(left) = &mut *panic_after {
            *left -= 1;
        }
        drop(panic_after);
        let mut strikes = self.strikes.lock().unwrap();
        let at = strikes.iter().position(|(statement, _)| sql.starts_with(statement))?;
        Some(strikes.remove(at).1)
    }
}

/// A store whose batches are made by hand.
struct Hand {
    store: Store,
    script: Arc<Script>,
    handle: Handle,
    /// Leases that nobody took come back here.
    _returned: mpsc::Receiver<Command>,
    folder: tempfile::TempDir,
}

type Answer<T> = oneshot::Receiver<std::result::Result<T, ClassifiedError>>;
type Fetched<L> = Answer<Option<Guarded<L>>>;
type Turn = Fetched<RawTurn>;
type Activities = Fetched<Vec<FetchedWork>>;

fn file(path: &Path) -> Location {
    Location::File { path: path.to_owned(), access: Access::Create }
}

impl Hand {
    fn new() -> Self {
        Self::with(|folder| file(&folder.join("store.db")))
    }

    fn with(location: impl FnOnce(&Path) -> Location) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let script = Arc::new(Script::default());
        let faults: Arc<dyn StatementFaults> = Arc::clone(&script) as _;
        let options = SqliteOptions { faults: Some(faults), ..SqliteOptions::default() };
        let store = Store::open(location(folder.path()), options, Arc::default()).unwrap();
        let (sender, returned) = mpsc::channel();
        Self { store, script, handle: Handle::Threaded(sender), _returned: returned, folder }
    }

    fn process(&mut self, commands: Vec<Command>) {
        self.store.process(commands, false, &self.handle);
    }

    /// One call alone.
    fn ask<T: Send + 'static>(
        &mut self,
        body: impl FnMut(&mut Cx<'_>) -> Result<T> + Send + 'static,
    ) -> std::result::Result<T, ProviderError> {
        let (command, mut answer) = call(body);
        self.process(vec![command]);
        Ok(answer.try_recv().unwrap()?)
    }

    fn count(&mut self, sql: &'static str) -> i64 {
        self.ask(move |cx| Ok(cx.db.one(sql, [], |row| row.get(0))?.unwrap_or(0))).unwrap()
    }

    fn messages(&mut self) -> i64 {
        self.count("SELECT count(*) FROM orchestrator_queue")
    }

    fn reopened(&self) -> u64 {
        self.store.counters.read().reopened
    }
}

fn call<T: Send + 'static>(
    body: impl FnMut(&mut Cx<'_>) -> Result<T> + Send + 'static,
) -> (Command, Answer<T>) {
    let (reply, answer) = oneshot::channel();
    let (instance, room) = (Some("i".into()), None);
    let call =
        Body { operation: "test", instance, bytes: 0, body, then: |_: &T| {}, outcome: None, reply, room };
    (Command::Call(Box::new(call)), answer)
}

fn start(instance: &str) -> (Command, Answer<()>) {
    let row = message_row("test", &start_item(instance)).unwrap();
    call(move |cx| write::enqueue_message(cx, &row, None))
}

fn start_item(instance: &str) -> WorkItem {
    WorkItem::StartOrchestration {
        instance: instance.to_string(),
        orchestration: "O".to_string(),
        input: String::new(),
        version: None,
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: 1,
    }
}

fn activity(id: u64, tag: Option<&str>) -> Command {
    let item = WorkItem::ActivityExecute {
        instance: "host".to_string(),
        execution_id: 1,
        id,
        name: "A".to_string(),
        input: String::new(),
        session_id: None,
        tag: tag.map(str::to_string),
    };
    let row = activity_row("test", &item).unwrap();
    call(move |cx| write::enqueue_work(cx, &row)).0
}

/// A call that writes something, then fails.
fn half_way() -> (Command, Answer<()>) {
    let row = message_row("test", &start_item("half")).unwrap();
    call(move |cx| {
        write::enqueue_message(cx, &row, None)?;
        Err(SqliteError::Other("half-way".to_string()))
    })
}

fn waiter<A: Ask>(ask: A, parks: bool) -> (Waiter<A>, Fetched<A::Leases>) {
    let (reply, answer) = oneshot::channel();
    (Waiter { ask, parks, fresh: true, reply }, answer)
}

fn fetch_turn(parks: bool, filter: Option<DispatcherCapabilityFilter>) -> (Command, Turn) {
    let ask = TurnAsk {
        lock_ms: 60_000,
        filter,
        with_history: false,
        orphan_life_ms: 60_000,
        bound: MessageBound::default(),
    };
    let (waiter, answer) = waiter(ask, parks);
    (Command::FetchTurn(waiter, None), answer)
}

fn fetch_work(tags: TagFilter) -> (Command, Activities) {
    let (waiter, answer) = waiter(WorkAsk { max_items: 1, lock_ms: 60_000, session: None, tags }, false);
    (Command::FetchWork(waiter, None), answer)
}

fn turn_of(answer: &mut Turn) -> Option<RawTurn> {
    answer.try_recv().unwrap().unwrap().and_then(Guarded::take)
}

/// The activities that the fetches got, in their order.
fn activities(answers: impl IntoIterator<Item = Activities>) -> Vec<Vec<u64>> {
    let id = |work: &FetchedWork| match &work.item {
        WorkItem::ActivityExecute { id, .. } => *id,
        other => panic!("{other:?}"),
    };
    let ids = |mut answer: Activities| {
        let taken = answer.try_recv().unwrap().unwrap().and_then(Guarded::take);
        taken.iter().flatten().map(id).collect()
    };
    answers.into_iter().map(ids).collect()
}

#[test]
fn a_lease_that_was_rolled_back_is_not_handed_out() {
    for parks in [true, false] {
        let mut hand = Hand::new();
        let (fetch, mut turn) = fetch_turn(parks, None);
        let (start, mut started) = start("i");
        let (failing, mut failed) = half_way();
        // It arrives when the fetch has been served already: the first look for more is before that.
        let mut looks = [vec![], vec![failing]].into_iter();
        let mut more = || looks.next().unwrap_or_default();
        hand.store.process_with(vec![start, fetch], false, &hand.handle, &mut more);
        assert!(started.try_recv().unwrap().is_ok());
        assert!(failed.try_recv().unwrap().is_err());
        let turn = turn_of(&mut turn).expect("a turn");
        assert_eq!((turn.instance.as_str(), turn.attempt_count), ("i", 1));
        let token = turn.lock_token;
        hand.ask(move |cx| write::renew(cx, &token, std::time::Duration::from_secs(1))).unwrap();
        assert_eq!(hand.messages(), 1, "what failed left nothing");
        assert_eq!(hand.store.counters.read().careful_batches, 1);
    }
}

#[test]
fn what_was_not_committed_is_told_to_those_who_asked() {
    for fault in [StatementFault::Before, StatementFault::DiskFull] {
        let mut hand = Hand::new();
        let (parked, mut parked_turn) = fetch_turn(true, None);
        hand.process(vec![parked]);
        hand.script.strike("COMMIT", fault);
        let ((first, mut started), (fetch, mut new_turn)) = (start("i"), fetch_turn(false, None));
        hand.process(vec![first, fetch]);
        let told = [started.try_recv().unwrap().unwrap_err(), new_turn.try_recv().unwrap().err().unwrap()];
        for error in told {
            let expected =
                if fault == StatementFault::DiskFull { "no space left" } else { "injected by a test" };
            let ClassifiedError { error, .. } = error;
            assert!(error.message.contains(expected) && error.is_retryable(), "{error:?}");
        }
        assert!(parked_turn.try_recv().unwrap().is_err(), "it was served, too");
        assert_eq!(hand.messages(), 0);
        let broken = u64::from(fault == StatementFault::Before);
        assert_eq!(hand.reopened(), broken, "a connection is given up for a disk that fails alone");
    }
}

#[test]
fn a_fetch_that_was_not_served_goes_on_waiting_when_a_commit_fails() {
    let mut hand = Hand::new();
    let (parked, mut turn) = fetch_turn(true, None);
    hand.process(vec![parked]);
    hand.script.strike("BEGIN", StatementFault::Before);
    let (first, mut failed) = start("i");
    hand.process(vec![first]);
    assert!(failed.try_recv().unwrap().is_err());
    assert!(turn.try_recv().is_err(), "nothing was said to it");
    hand.process(vec![start("j").0]);
    assert_eq!(turn_of(&mut turn).unwrap().instance, "j");
}

#[test]
fn a_disk_that_is_full_costs_no_connection() {
    let mut hand = Hand::new();
    for statement in ["BEGIN", "COMMIT"] {
        hand.script.strike(statement, StatementFault::DiskFull);
        let (command, mut answer) = start("i");
        hand.process(vec![command]);
        assert!(answer.try_recv().unwrap().is_err(), "{statement}");
        assert_eq!((hand.messages(), hand.reopened()), (0, 0), "{statement}");
    }
}

#[test]
fn a_store_in_memory_keeps_its_connection_whatever_happens() {
    let mut hand = Hand::with(|_| Location::Memory);
    hand.ask(|_| Ok(())).unwrap();
    hand.process(vec![start("i").0]);
    hand.script.strike("COMMIT", StatementFault::Before);
    let (command, mut answer) = start("j");
    hand.process(vec![command]);
    assert!(answer.try_recv().unwrap().is_err());
    assert_eq!((hand.messages(), hand.reopened()), (1, 0));
}

#[test]
fn calls_and_fetches_that_share_a_commit_are_counted() {
    let mut hand = Hand::new();
    let before = hand.store.counters.read();
    let (fetches, _answers): (Vec<_>, Vec<_>) = (0..2).map(|_| fetch_turn(false, None)).unzip();
    let starts = ["i", "j", "k"].map(|instance| start(instance).0);
    hand.process(starts.into_iter().chain(fetches).collect());
    let after = hand.store.counters.read();
    assert_eq!((after.calls - before.calls, after.commits - before.commits), (5, 1));
}

#[test]
fn one_look_serves_all_who_ask_for_the_same_turns() {
    let mut hand = Hand::new();
    hand.process(["i", "j"].map(|instance| start(instance).0).into_iter().collect());
    hand.script.count("");
    let (fetches, mut turns): (Vec<_>, Vec<_>) = (0..4).map(|_| fetch_turn(false, None)).unzip();
    hand.process(fetches);
    assert_eq!(hand.script.count(sql::CANDIDATE_TURNS), 1);
    let got: Vec<_> = turns.iter_mut().map(|turn| turn_of(turn).map(|turn| turn.instance)).collect();
    assert_eq!(got, [Some("i".to_string()), Some("j".to_string()), None, None]);
}

#[test]
fn fetches_with_different_filters_get_what_each_admits() {
    let only = |major| {
        let version = semver::Version::new(major, 0, 0);
        let range = SemverRange { min: version.clone(), max: version };
        Some(DispatcherCapabilityFilter { supported_duroxide_versions: vec![range] })
    };
    let mut hand = Hand::new();
    hand.process(vec![start("i").0, start("j").0]);
    for (instance, major) in [("i", 1), ("j", 2)] {
        hand.ask(move |cx| {
            cx.db.run(
                "INSERT INTO instances (instance_id, orchestration_name, orchestration_version, current_execution_id,
                                        created_at, updated_at) VALUES (?1, 'O', '1.0.0', 1, 0, 0)",
                [instance],
            )?;
            cx.db.run(
                "INSERT INTO executions (instance_id, execution_id, status, started_at, updated_at, last_event_id,
                     duroxide_version_major, duroxide_version_minor, duroxide_version_patch, duroxide_version_pre)
                 VALUES (?1, 1, 'Running', 0, 0, 0, ?2, 0, 0, '')",
                (instance, major),
            )
        })
        .unwrap();
    }
    // The first looks up turns for all of its kind.
    let asks = [only(2), only(1), only(2)];
    let (fetches, mut turns): (Vec<_>, Vec<_>) =
        asks.map(|filter| fetch_turn(false, filter)).into_iter().unzip();
    hand.process(fetches);
    let got: Vec<_> = turns.iter_mut().map(|turn| turn_of(turn).map(|turn| turn.instance)).collect();
    assert_eq!(got, [Some("j".to_string()), Some("i".to_string()), None]);
}

#[test]
fn one_look_serves_all_who_ask_for_the_same_work() {
    let mut hand = Hand::new();
    hand.process(vec![activity(1, None), activity(2, None)]);
    hand.script.count("");
    let (fetches, answers): (Vec<_>, Vec<_>) = (0..4).map(|_| fetch_work(TagFilter::DefaultOnly)).unzip();
    hand.process(fetches);
    assert_eq!(hand.script.count(sql::FREE_WORK), 1);
    assert_eq!(activities(answers), [vec![1], vec![2], vec![], vec![]]);
}

#[test]
fn fetches_for_different_tags_get_what_each_asked_for() {
    let mut hand = Hand::new();
    hand.process(vec![activity(1, Some("gpu")), activity(2, None)]);
    let asks = [TagFilter::DefaultOnly, TagFilter::tags(["gpu"]), TagFilter::DefaultOnly];
    let (fetches, answers): (Vec<_>, Vec<_>) = asks.map(fetch_work).into_iter().unzip();
    hand.process(fetches);
    assert_eq!(activities(answers), [vec![2], vec![1], vec![]]);
}

#[test]
fn there_is_nothing_to_wake_up_for_when_nobody_waits() {
    let mut hand = Hand::new();
    assert_eq!(hand.store.wake_at(), None);
    let (fetch, turn) = fetch_turn(true, None);
    hand.process(vec![fetch]);
    assert!(hand.store.wake_at().is_some());
    drop(turn);
    assert_eq!(hand.store.wake_at(), None, "it is gone");
}

#[test]
fn the_database_is_asked_only_after_the_log_has_changed() {
    let mut hand = Hand::new();
    hand.process(vec![start("i").0]);
    // Two looks with the same answer in a row.
    while hand.store.log_changed() {}
    assert!(!hand.store.log_changed());
    let path = hand.folder.path().join("store.db");
    let mut other = Store::open(file(&path), SqliteOptions::default(), Arc::default()).unwrap();
    other.process(vec![start("j").0], false, &hand.handle);
    assert!(hand.store.log_changed());
}

/// How a batch of two starts, a call in between and a fetch went.
struct Went {
    started: [std::result::Result<(), ProviderError>; 2],
    middle: std::result::Result<(), ProviderError>,
    fetched: std::result::Result<Option<String>, ProviderError>,
}

fn batch(hand: &mut Hand) -> Went {
    let ((a, first), (b, second)) = (start("a"), start("b"));
    let row = message_row("test", &start_item("middle")).unwrap();
    let (middle, mut answer) = call(move |cx| write::enqueue_message(cx, &row, None));
    let (fetch, mut turn) = fetch_turn(false, None);
    hand.process(vec![a, middle, b, fetch]);
    Went {
        started: [first, second].map(|mut started| started.try_recv().unwrap().map_err(ProviderError::from)),
        middle: answer.try_recv().unwrap().map_err(ProviderError::from),
        fetched: turn
            .try_recv()
            .unwrap()
            .map(|given| given.and_then(Guarded::take).map(|turn| turn.instance))
            .map_err(ProviderError::from),
    }
}

/// Counts answers: how many are right, how many blame a panic of their own, how many do not know whether they are stored.
fn sorted(answers: &[&std::result::Result<(), ProviderError>]) -> (i64, usize, usize) {
    let ok = answers.iter().filter(|answer| answer.is_ok()).count();
    let errors = || answers.iter().filter_map(|answer| answer.as_ref().err());
    let blamed =
        errors().filter(|error| !error.is_retryable() && error.message.contains("panicked during")).count();
    let in_doubt = errors().filter(|error| error.is_retryable()).count();
    assert_eq!(ok + blamed + in_doubt, answers.len(), "{answers:?}");
    (i64::try_from(ok).unwrap(), blamed, in_doubt)
}

#[test]
fn a_panic_at_any_step_of_a_transaction_costs_the_call_that_caused_it_and_no_other() {
    for memory in [false, true] {
        let new = || match memory {
            true => Hand::with(|_| Location::Memory),
            false => Hand::new(),
        };
        let mut whole = new();
        whole.script.count("");
        batch(&mut whole);
        let statements = mem::take(&mut *whole.script.seen.lock().unwrap());
        assert!(statements.len() > 8, "{statements:?}");
        let (mut calls, mut fetches) = (0, 0);
        for (step, statement) in statements.iter().enumerate() {
            let mut hand = new();
            *hand.script.panic_after.lock().unwrap() = Some(step);
            let went = batch(&mut hand);
            let context = format!("step {step} ({statement}), in memory: {memory}");
            let (ok, blamed, in_doubt) = sorted(&[&went.started[0], &went.middle, &went.started[1]]);
            if matches!(statement.as_str(), "BEGIN IMMEDIATE" | "COMMIT") {
                assert_eq!((ok, blamed, in_doubt), (0, 0, 3), "{context}: nobody is to blame");
                assert!(went.fetched.is_err_and(|error| error.is_retryable()), "{context}");
            } else {
                assert_eq!(in_doubt, 0, "{context}");
                let fetch_is_blamed = went
                    .fetched
                    .as_ref()
                    .is_err_and(|error| error.message.contains("fetch_orchestration_item"));
                assert_eq!(blamed + usize::from(fetch_is_blamed), 1, "{context}: {:?}", went.fetched);
                assert!(fetch_is_blamed || went.fetched.is_ok_and(|turn| turn.is_some()), "{context}");
                (calls, fetches) = (calls + blamed, fetches + usize::from(fetch_is_blamed));
            }
            assert_eq!(hand.messages(), ok, "{context}: what is stored is what was acknowledged");
            assert_eq!(hand.reopened(), u64::from(!memory), "{context}");
            assert_eq!(hand.store.counters.read().panics, 1, "{context}");
            assert!(hand.ask(|_| Ok(())).is_ok(), "{context}: the store goes on");
        }
        assert!(calls >= 3 && fetches >= 3, "{calls} calls and {fetches} fetches panicked");
    }
}

#[test]
fn the_error_after_a_panic_names_the_operation_and_the_instance() {
    let mut hand = Hand::new();
    let error = hand.ask::<()>(|_| panic!("injected by a test")).unwrap_err();
    assert!(!error.is_retryable(), "{error:?}");
    assert_eq!(error.operation, "test");
    assert!(error.message.contains("panicked during test for instance 'i'"), "{}", error.message);
    assert!(!error.message.contains("injected by a test"), "the panic may quote data: {}", error.message);
}

#[test]
fn a_call_that_panics_only_beside_a_call_that_fails_is_contained_too() {
    let mut hand = Hand::new();
    // It panics when it is applied for the second time, which is when the batch is applied call by call.
    let mut applied = 0;
    let (second, mut panicked) = call(move |_| {
        applied += 1;
        assert!(applied < 2, "injected by a test");
        Ok(())
    });
    let ((first, mut started), (failing, mut failed)) = (start("i"), half_way());
    hand.process(vec![first, second, failing]);
    assert!(started.try_recv().unwrap().is_ok());
    assert!(panicked.try_recv().unwrap().unwrap_err().error.message.contains("panicked during"));
    assert!(failed.try_recv().unwrap().unwrap_err().error.message.contains("half-way"));
    assert_eq!((hand.messages(), hand.reopened()), (1, 1));
}

#[test]
fn a_rollback_that_panics_costs_the_connection() {
    let mut hand = Hand::new();
    // A full disk alone leaves the connection as it was, once the transaction is rolled back.
    hand.script.strike("COMMIT", StatementFault::DiskFull);
    *hand.script.panic_at.lock().unwrap() = Some("ROLLBACK");
    let (command, mut started) = start("i");
    hand.process(vec![command]);
    let error = started.try_recv().unwrap().unwrap_err();
    assert_eq!(error.class, outlast_provider::ErrorClass::Exhausted, "{error:?}");
    assert_eq!((hand.messages(), hand.reopened()), (0, 1));
}

#[test]
fn a_panic_of_what_follows_a_commit_does_not_undo_it() {
    let mut hand = Hand::new();
    let (reply, mut answer) = oneshot::channel();
    let row = message_row("test", &start_item("i")).unwrap();
    let call = Body {
        operation: "test",
        instance: None,
        bytes: 0,
        body: move |cx: &mut Cx<'_>| write::enqueue_message(cx, &row, None),
        then: |(): &()| panic!("injected by a test"),
        outcome: None,
        reply,
        room: None,
    };
    hand.process(vec![Command::Call(Box::new(call))]);
    assert_eq!(answer.try_recv().unwrap(), Ok(()));
    assert_eq!(hand.messages(), 1);
}

#[test]
fn a_job_that_panics_between_two_transactions_costs_the_connection_and_no_other_job() {
    for memory in [false, true] {
        let mut hand = if memory { Hand::with(|_| Location::Memory) } else { Hand::new() };
        hand.process(vec![start("i").0]);
        let (sender, ran) = mpsc::channel();
        let bad: Between = Box::new(|_| Health::Panicked);
        let good: Between = Box::new(move |_| {
            sender.send(()).unwrap();
            Health::Good
        });
        hand.process(vec![Command::Between(bad), Command::Between(good)]);
        assert_eq!(hand.messages(), 1);
        assert!(ran.try_recv().is_ok());
        assert_eq!(hand.reopened(), u64::from(!memory));
    }
}
