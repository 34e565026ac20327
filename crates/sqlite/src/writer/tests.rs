//! Tests of batches that the test composes, with faults of statements.

use super::*;
use crate::command::Job;
use crate::contain::Health;
use crate::db::column;
use crate::large_requests::LargeTurns;
use crate::leased::{Guarded, RawTurn, Renew};
use crate::message::{self, Enqueue};
use crate::park::{Ask, Fetch};
use crate::url::Access;
use crate::{StatementFault, StatementFaults, activity, commit, sql};
use outlast_model::WorkItem;
use outlast_provider::{
    ClassifiedError, DispatcherCapabilityFilter, FetchedWork, MessageBound, ProviderError, SemverRange,
    TagFilter,
};
use outlast_provider_kit::LeasedTurn;
use outlast_provider_kit::plan::{activity_row, message_row};
use rusqlite::StatementStatus;
use std::cell::Cell;
use std::mem;
use std::path::Path;
use std::sync::{Mutex, mpsc};
use std::time::Duration;
use tokio::sync::oneshot;

/// Fails chosen statements, and records all statements.
#[derive(Default)]
struct FaultScript {
    seen: Mutex<Vec<String>>,
    strikes: Mutex<Vec<(&'static str, StatementFault)>>,
    /// Panics at the statement after this number of others.
    panic_after: Mutex<Option<usize>>,
    /// Panics at the next statement with this text.
    panic_at: Mutex<Option<&'static str>>,
}

impl FaultScript {
    fn set_fault(&self, statement: &'static str, fault: StatementFault) {
        self.strikes.lock().unwrap().push((statement, fault));
    }

    /// How often the statement ran since the last call.
    fn count(&self, statement: &str) -> usize {
        mem::take(&mut *self.seen.lock().unwrap()).iter().filter(|sql| *sql == statement).count()
    }
}

impl StatementFaults for FaultScript {
    fn fault_of(&self, sql: &str) -> Option<StatementFault> {
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

/// A writer whose batches the test composes.
struct TestWriter {
    writer: Writer,
    script: Arc<FaultScript>,
    handle: Handle,
    /// Receives the leases of dropped callers.
    _returned: Receiver<Command>,
    folder: tempfile::TempDir,
}

type Answer<T> = oneshot::Receiver<std::result::Result<T, ClassifiedError>>;
type Fetched<L> = Answer<Option<Guarded<L>>>;
type Turn = Fetched<RawTurn>;
type Activities = Fetched<Vec<FetchedWork>>;

fn file(path: &Path) -> Location {
    Location::File { path: path.to_owned(), access: Access::Create }
}

impl TestWriter {
    fn new() -> Self {
        Self::with(|folder| file(&folder.join("store.db")))
    }

    fn with(location: impl FnOnce(&Path) -> Location) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let script = Arc::new(FaultScript::default());
        let faults: Arc<dyn StatementFaults> = Arc::clone(&script) as _;
        let options = SqliteOptions { faults: Some(faults), ..SqliteOptions::default() };
        let writer = Writer::open(location(folder.path()), options, Arc::default()).unwrap();
        let (sender, returned) = mpsc::channel();
        Self { writer, script, handle: Handle::Threaded(sender), _returned: returned, folder }
    }

    fn process(&mut self, commands: Vec<Command>) {
        self.writer.process(commands, false, &self.handle);
    }

    /// Processes one call.
    fn call<T: Send + 'static>(
        &mut self,
        body: impl Fn(&mut Transaction<'_>) -> Result<T> + Send + 'static,
    ) -> std::result::Result<T, ProviderError> {
        let (command, mut answer) = call(body);
        self.process(vec![command]);
        Ok(answer.try_recv().unwrap()?)
    }

    fn count(&mut self, sql: &'static str) -> i64 {
        self.call(move |tx| Ok(tx.db.one(sql, [], |row| row.get(0))?.unwrap_or(0))).unwrap()
    }

    fn messages(&mut self) -> i64 {
        self.count("SELECT count(*) FROM orchestrator_queue")
    }

    fn reopened(&self) -> u64 {
        self.writer.counters.read().reopened
    }
}

fn call<T: Send + 'static, F: Fn(&mut Transaction<'_>) -> Result<T> + Send + 'static>(
    body: F,
) -> (Command, Answer<T>) {
    let info = CallInfo::of("test").instance("i");
    let (call, answer) = PendingCall::new(info, body, |tx, body: &F| body(tx), |_, _| {}, None);
    (Command::Call(Box::new(call)), answer)
}

fn start(instance: &str) -> (Command, Answer<()>) {
    let row = message_row("test", &start_item(instance)).unwrap();
    call(move |tx| message::store(tx, &row, None))
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
    call(move |tx| activity::enqueue(tx, &row)).0
}

/// A call that stores a message, then fails.
fn half_applied() -> (Command, Answer<()>) {
    let row = message_row("test", &start_item("half")).unwrap();
    call(move |tx| {
        message::store(tx, &row, None)?;
        Err(SqliteError::Other("half-way".to_string()))
    })
}

fn fetch<A: Ask>(ask: A, parks: bool) -> (Fetch<A>, Fetched<A::Leases>) {
    let (caller, answer) = oneshot::channel();
    (Fetch { ask, parks, is_new: true, caller }, answer)
}

fn fetch_turn(parks: bool, filter: Option<DispatcherCapabilityFilter>) -> (Command, Turn) {
    let ask = TurnAsk {
        lock_ms: 60_000,
        filter,
        with_history: false,
        orphan_life_ms: 60_000,
        bound: MessageBound::default(),
    };
    let (fetch, answer) = fetch(ask, parks);
    (Command::FetchTurn(fetch, None), answer)
}

fn fetch_activities(tags: TagFilter) -> (Command, Activities) {
    let (fetch, answer) = fetch(ActivityAsk { max_items: 1, lock_ms: 60_000, session: None, tags }, false);
    (Command::FetchActivities(fetch, None), answer)
}

fn turn_of(answer: &mut Turn) -> Option<LeasedTurn> {
    answer.try_recv().unwrap().unwrap().and_then(Guarded::take).map(|raw| raw.turn)
}

/// The activities that the fetches got, in their order.
fn activities(answers: impl IntoIterator<Item = Activities>) -> Vec<Vec<u64>> {
    let id = |activity: &FetchedWork| match &activity.item {
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
fn rolled_back_lease_is_not_handed_out() {
    for parks in [true, false] {
        let mut test = TestWriter::new();
        let (fetch, mut turn) = fetch_turn(parks, None);
        let (start, mut started) = start("i");
        let (failing, mut failed) = half_applied();
        // The failing call arrives after the fetch was served: the first call of `more` is before that.
        let mut arrivals = [vec![], vec![failing]].into_iter();
        let mut more = || arrivals.next().unwrap_or_default();
        test.writer.process_with(vec![start, fetch], false, &test.handle, &mut more);
        assert!(started.try_recv().unwrap().is_ok());
        assert!(failed.try_recv().unwrap().is_err());
        let turn = turn_of(&mut turn).expect("a turn");
        assert_eq!((turn.instance.as_str(), turn.attempt_count), ("i", 1));
        let renewed = Renew { token: turn.lock_token, extend_for: Duration::from_secs(1) };
        test.call(move |tx| commit::renew(tx, &renewed)).unwrap();
        assert_eq!(test.messages(), 1, "the failed call stored nothing");
        assert_eq!(test.writer.counters.read().batches_by_savepoints, 1);
    }
}

#[test]
fn failed_commit_is_reported_to_calls_and_served_fetches() {
    for fault in [StatementFault::Before, StatementFault::DiskFull] {
        let mut test = TestWriter::new();
        let (parked, mut parked_turn) = fetch_turn(true, None);
        test.process(vec![parked]);
        test.script.set_fault("COMMIT", fault);
        let ((first, mut started), (fetch, mut new_turn)) = (start("i"), fetch_turn(false, None));
        test.process(vec![first, fetch]);
        let errors = [started.try_recv().unwrap().unwrap_err(), new_turn.try_recv().unwrap().err().unwrap()];
        for error in errors {
            let expected =
                if fault == StatementFault::DiskFull { "no space left" } else { "injected by a test" };
            let ClassifiedError { error, .. } = error;
            assert!(error.message.contains(expected) && error.is_retryable(), "{error:?}");
        }
        assert!(parked_turn.try_recv().unwrap().is_err(), "the parked fetch was served");
        assert_eq!(test.messages(), 0);
        let closed = u64::from(fault == StatementFault::Before);
        assert_eq!(test.reopened(), closed, "only an I/O error closes the connection");
    }
}

#[test]
fn parked_fetch_stays_parked_when_a_transaction_fails() {
    let mut test = TestWriter::new();
    let (parked, mut turn) = fetch_turn(true, None);
    test.process(vec![parked]);
    test.script.set_fault("BEGIN", StatementFault::Before);
    let (first, mut failed) = start("i");
    test.process(vec![first]);
    assert!(failed.try_recv().unwrap().is_err());
    assert!(turn.try_recv().is_err(), "the fetch has no answer");
    test.process(vec![start("j").0]);
    assert_eq!(turn_of(&mut turn).unwrap().instance, "j");
}

#[test]
fn full_disk_does_not_close_the_connection() {
    let mut test = TestWriter::new();
    for statement in ["BEGIN", "COMMIT"] {
        test.script.set_fault(statement, StatementFault::DiskFull);
        let (command, mut answer) = start("i");
        test.process(vec![command]);
        assert!(answer.try_recv().unwrap().is_err(), "{statement}");
        assert_eq!((test.messages(), test.reopened()), (0, 0), "{statement}");
    }
}

#[test]
fn store_in_memory_keeps_its_connection_after_a_failed_commit() {
    let mut test = TestWriter::with(|_| Location::Memory);
    test.call(|_| Ok(())).unwrap();
    test.process(vec![start("i").0]);
    test.script.set_fault("COMMIT", StatementFault::Before);
    let (command, mut answer) = start("j");
    test.process(vec![command]);
    assert!(answer.try_recv().unwrap().is_err());
    assert_eq!((test.messages(), test.reopened()), (1, 0));
}

#[test]
fn calls_and_fetches_of_a_commit_are_counted() {
    let mut test = TestWriter::new();
    let before = test.writer.counters.read();
    let (fetches, _answers): (Vec<_>, Vec<_>) = (0..2).map(|_| fetch_turn(false, None)).unzip();
    let starts = ["i", "j", "k"].map(|instance| start(instance).0);
    test.process(starts.into_iter().chain(fetches).collect());
    let after = test.writer.counters.read();
    assert_eq!((after.calls - before.calls, after.commits - before.commits), (5, 1));
}

#[test]
fn one_lookup_serves_all_turn_fetches_with_the_same_filter() {
    let mut test = TestWriter::new();
    test.process(["i", "j"].map(|instance| start(instance).0).into_iter().collect());
    test.script.count("");
    let (fetches, mut turns): (Vec<_>, Vec<_>) = (0..4).map(|_| fetch_turn(false, None)).unzip();
    test.process(fetches);
    assert_eq!(test.script.count(sql::CANDIDATE_TURNS), 1);
    let got: Vec<_> = turns.iter_mut().map(|turn| turn_of(turn).map(|turn| turn.instance)).collect();
    assert_eq!(got, [Some("i".to_string()), Some("j".to_string()), None, None]);
}

#[test]
fn fetches_with_different_filters_get_turns_that_match() {
    let only = |major| {
        let version = semver::Version::new(major, 0, 0);
        let range = SemverRange { min: version.clone(), max: version };
        Some(DispatcherCapabilityFilter { supported_duroxide_versions: vec![range] })
    };
    let mut test = TestWriter::new();
    test.process(vec![start("i").0, start("j").0]);
    for (instance, major) in [("i", 1), ("j", 2)] {
        test.call(move |tx| {
            tx.db.run(
                "INSERT INTO instances (instance_id, orchestration_name, orchestration_version, current_execution_id,
                                        created_at, updated_at) VALUES (?1, 'O', '1.0.0', 1, 0, 0)",
                [instance],
            )?;
            tx.db.run(
                "INSERT INTO executions (instance_id, execution_id, status, started_at, updated_at, last_event_id,
                     duroxide_version_major, duroxide_version_minor, duroxide_version_patch, duroxide_version_pre)
                 VALUES (?1, 1, 'Running', 0, 0, 0, ?2, 0, 0, '')",
                (instance, major),
            )
        })
        .unwrap();
    }
    // The first fetch looks up candidates for all fetches with its filter.
    let asks = [only(2), only(1), only(2)];
    let (fetches, mut turns): (Vec<_>, Vec<_>) =
        asks.map(|filter| fetch_turn(false, filter)).into_iter().unzip();
    test.process(fetches);
    let got: Vec<_> = turns.iter_mut().map(|turn| turn_of(turn).map(|turn| turn.instance)).collect();
    assert_eq!(got, [Some("j".to_string()), Some("i".to_string()), None]);
}

#[test]
fn one_lookup_serves_all_activity_fetches_with_the_same_tags() {
    let mut test = TestWriter::new();
    test.process(vec![activity(1, None), activity(2, None)]);
    test.script.count("");
    let (fetches, answers): (Vec<_>, Vec<_>) =
        (0..4).map(|_| fetch_activities(TagFilter::DefaultOnly)).unzip();
    test.process(fetches);
    assert_eq!(test.script.count(sql::FREE_ACTIVITIES), 1);
    assert_eq!(activities(answers), [vec![1], vec![2], vec![], vec![]]);
}

#[test]
fn fetches_with_different_tags_get_activities_that_match() {
    let mut test = TestWriter::new();
    test.process(vec![activity(1, Some("gpu")), activity(2, None)]);
    let asks = [TagFilter::DefaultOnly, TagFilter::tags(["gpu"]), TagFilter::DefaultOnly];
    let (fetches, answers): (Vec<_>, Vec<_>) = asks.map(fetch_activities).into_iter().unzip();
    test.process(fetches);
    assert_eq!(activities(answers), [vec![2], vec![1], vec![]]);
}

#[test]
fn no_poll_is_scheduled_without_a_parked_fetch() {
    let mut test = TestWriter::new();
    assert_eq!(test.writer.wake_at(), None);
    let (fetch, turn) = fetch_turn(true, None);
    test.process(vec![fetch]);
    assert!(test.writer.wake_at().is_some());
    drop(turn);
    assert_eq!(test.writer.wake_at(), None, "the caller was dropped");
}

#[test]
fn foreign_commit_changes_the_write_ahead_log() {
    let mut test = TestWriter::new();
    test.process(vec![start("i").0]);
    // The log counts as unchanged after two checks with the same result.
    while test.writer.connection.wal_changed() {}
    assert!(!test.writer.connection.wal_changed());
    let path = test.folder.path().join("store.db");
    let mut other = Writer::open(file(&path), SqliteOptions::default(), Arc::default()).unwrap();
    other.process(vec![start("j").0], false, &test.handle);
    assert!(test.writer.connection.wal_changed());
}

/// The results of a batch of two starts, a call between them and a fetch.
struct BatchResult {
    started: [std::result::Result<(), ProviderError>; 2],
    middle: std::result::Result<(), ProviderError>,
    fetched: std::result::Result<Option<String>, ProviderError>,
}

fn batch(test: &mut TestWriter) -> BatchResult {
    let ((a, first), (b, second)) = (start("a"), start("b"));
    let row = message_row("test", &start_item("middle")).unwrap();
    let (middle, mut answer) = call(move |tx| message::store(tx, &row, None));
    let (fetch, mut turn) = fetch_turn(false, None);
    test.process(vec![a, middle, b, fetch]);
    BatchResult {
        started: [first, second].map(|mut started| started.try_recv().unwrap().map_err(ProviderError::from)),
        middle: answer.try_recv().unwrap().map_err(ProviderError::from),
        fetched: turn
            .try_recv()
            .unwrap()
            .map(|given| given.and_then(Guarded::take).map(|raw| raw.turn.instance))
            .map_err(ProviderError::from),
    }
}

/// The numbers of calls that succeeded, that panicked themselves, and whose commit is in doubt.
fn count_results(answers: &[&std::result::Result<(), ProviderError>]) -> (i64, usize, usize) {
    let ok = answers.iter().filter(|answer| answer.is_ok()).count();
    let errors = || answers.iter().filter_map(|answer| answer.as_ref().err());
    let panicked =
        errors().filter(|error| !error.is_retryable() && error.message.contains("panicked during")).count();
    let in_doubt = errors().filter(|error| error.is_retryable()).count();
    assert_eq!(ok + panicked + in_doubt, answers.len(), "{answers:?}");
    (i64::try_from(ok).unwrap(), panicked, in_doubt)
}

#[test]
fn panic_at_any_statement_fails_only_the_call_that_panicked() {
    for memory in [false, true] {
        let new = || match memory {
            true => TestWriter::with(|_| Location::Memory),
            false => TestWriter::new(),
        };
        let mut whole = new();
        whole.script.count("");
        batch(&mut whole);
        let statements = mem::take(&mut *whole.script.seen.lock().unwrap());
        assert!(statements.len() > 8, "{statements:?}");
        let (mut calls, mut fetches) = (0, 0);
        for (step, statement) in statements.iter().enumerate() {
            let mut test = new();
            *test.script.panic_after.lock().unwrap() = Some(step);
            let result = batch(&mut test);
            let context = format!("step {step} ({statement}), in memory: {memory}");
            let (ok, panicked, in_doubt) =
                count_results(&[&result.started[0], &result.middle, &result.started[1]]);
            if matches!(statement.as_str(), "BEGIN IMMEDIATE" | "COMMIT") {
                assert_eq!((ok, panicked, in_doubt), (0, 0, 3), "{context}: no call panicked");
                assert!(result.fetched.is_err_and(|error| error.is_retryable()), "{context}");
            } else {
                assert_eq!(in_doubt, 0, "{context}");
                let fetch_panicked = result
                    .fetched
                    .as_ref()
                    .is_err_and(|error| error.message.contains("fetch_orchestration_item"));
                assert_eq!(panicked + usize::from(fetch_panicked), 1, "{context}: {:?}", result.fetched);
                assert!(fetch_panicked || result.fetched.is_ok_and(|turn| turn.is_some()), "{context}");
                (calls, fetches) = (calls + panicked, fetches + usize::from(fetch_panicked));
            }
            assert_eq!(test.messages(), ok, "{context}: the acknowledged calls are stored");
            assert_eq!(test.reopened(), u64::from(!memory), "{context}");
            assert_eq!(test.writer.counters.read().panics, 1, "{context}");
            assert!(test.call(|_| Ok(())).is_ok(), "{context}: the store serves later calls");
        }
        assert!(calls >= 3 && fetches >= 3, "{calls} calls and {fetches} fetches panicked");
    }
}

#[test]
fn error_after_a_panic_names_the_operation_and_the_instance() {
    let mut test = TestWriter::new();
    let error = test.call::<()>(|_| panic!("injected by a test")).unwrap_err();
    assert!(!error.is_retryable(), "{error:?}");
    assert_eq!(error.operation, "test");
    assert!(error.message.contains("panicked during test for instance 'i'"), "{}", error.message);
    assert!(
        !error.message.contains("injected by a test"),
        "the panic message may contain data: {}",
        error.message
    );
}

#[test]
fn panic_while_calls_are_applied_in_savepoints_is_contained() {
    let mut test = TestWriter::new();
    // The call panics when it is applied for the second time, in a savepoint.
    let was_applied = Cell::new(false);
    let (second, mut panicked) = call(move |_| {
        assert!(!was_applied.replace(true), "injected by a test");
        Ok(())
    });
    let ((first, mut started), (failing, mut failed)) = (start("i"), half_applied());
    test.process(vec![first, second, failing]);
    assert!(started.try_recv().unwrap().is_ok());
    assert!(panicked.try_recv().unwrap().unwrap_err().error.message.contains("panicked during"));
    assert!(failed.try_recv().unwrap().unwrap_err().error.message.contains("half-way"));
    assert_eq!((test.messages(), test.reopened()), (1, 1));
}

#[test]
fn panic_in_a_rollback_closes_the_connection() {
    let mut test = TestWriter::new();
    // After a full disk alone, a rollback makes the connection usable again.
    test.script.set_fault("COMMIT", StatementFault::DiskFull);
    *test.script.panic_at.lock().unwrap() = Some("ROLLBACK");
    let (command, mut started) = start("i");
    test.process(vec![command]);
    let error = started.try_recv().unwrap().unwrap_err();
    assert_eq!(error.class, outlast_provider::ErrorClass::Exhausted, "{error:?}");
    assert_eq!((test.messages(), test.reopened()), (0, 1));
}

#[test]
fn panic_in_on_commit_does_not_undo_the_commit() {
    let mut test = TestWriter::new();
    let row = message_row("test", &start_item("i")).unwrap();
    let on_commit = |_: &Enqueue, (): &()| panic!("injected by a test");
    let message = Enqueue { row, delay: None };
    let (call, mut answer) =
        PendingCall::new(CallInfo::of("test"), message, message::enqueue, on_commit, None);
    test.process(vec![Command::Call(Box::new(call))]);
    assert_eq!(answer.try_recv().unwrap(), Ok(()));
    assert_eq!(test.messages(), 1);
}

#[test]
fn panicking_job_closes_the_connection_and_other_jobs_still_run() {
    for memory in [false, true] {
        let mut test = if memory { TestWriter::with(|_| Location::Memory) } else { TestWriter::new() };
        test.process(vec![start("i").0]);
        let (sender, ran) = mpsc::channel();
        let bad: Job = Box::new(|_| Health::Panicked);
        let good: Job = Box::new(move |_| {
            sender.send(()).unwrap();
            Health::Good
        });
        test.process(vec![Command::BetweenTransactions(bad), Command::BetweenTransactions(good)]);
        assert_eq!(test.messages(), 1);
        assert!(ran.try_recv().is_ok());
        assert_eq!(test.reopened(), u64::from(!memory));
    }
}

/// The answer to a call with this outcome, after a commit or after a fault of its transaction.
fn answer_to(outcome: Result<()>, fault: Option<&SqliteError>) -> std::result::Result<(), ProviderError> {
    let mut ran = false;
    let on_commit = |(): &(), (): &()| ran = true;
    let (mut call, mut answer) = PendingCall::new(CallInfo::of("test"), (), |_, ()| Ok(()), on_commit, None);
    call.outcome = Some(outcome);
    Box::new(call).answer(fault);
    let answer = answer.try_recv().unwrap();
    assert_eq!(ran, answer.is_ok(), "on_commit runs after a commit only");
    answer.map_err(ProviderError::from)
}

#[test]
fn refusal_is_reported_only_if_its_transaction_committed() {
    let refused = || Err(SqliteError::Refused("the lease is gone".to_string()));
    assert!(!answer_to(refused(), None).unwrap_err().is_retryable());
    assert!(answer_to(refused(), Some(&SqliteError::DiskFull)).unwrap_err().is_retryable());
    assert!(answer_to(Ok(()), Some(&SqliteError::DiskFull)).unwrap_err().is_retryable());
    assert_eq!(answer_to(Ok(()), None), Ok(()));
}

#[test]
fn fetch_stops_reading_the_messages_of_a_turn_that_it_passes_over() {
    let steps_of_a_fetch = |messages: usize| {
        let mut test = TestWriter::with(|_| Location::Memory);
        test.call(move |tx| {
            for _ in 0..messages {
                let row = ("large", "", column(tx.now), 0, Some(100 << 10), column(tx.now));
                tx.db.run(sql::ENQUEUE_MESSAGE, row)?;
            }
            Ok(())
        })
        .unwrap();
        *test.writer.large_turns() = LargeTurns::Held { was_passed_over: false };
        let (fetch, mut turn) = fetch_turn(true, None);
        test.process(vec![fetch]);
        assert!(turn.try_recv().is_err(), "the fetch got no turn");
        assert!(matches!(test.writer.large_turns(), LargeTurns::Held { was_passed_over: true }));
        // The statement of the fetch is in the cache, with the number of its steps.
        test.call(|tx| {
            Ok(tx.db.conn.prepare_cached(sql::VISIBLE_MESSAGES)?.get_status(StatementStatus::VmStep))
        })
        .unwrap()
    };
    // Eleven messages of 100 KiB make a large turn.
    let few = steps_of_a_fetch(12);
    assert!(few > 11, "{few} steps");
    assert_eq!(few, steps_of_a_fetch(60), "the fetch read messages behind the first MiB");
}
