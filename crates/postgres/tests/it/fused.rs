//! Fused outcomes beside transactions of the same and of other processes: the store commits all outcomes and their turn, or none,
//! and the transactions wait for each other without a deadlock.

use crate::factory::{fresh_config, meddle, raw};
use crate::line::Line;
use crate::support::*;
use outlast_model::{Event, EventKind, WorkItem};
use outlast_postgres::{ConnectionConfig, PostgresProvider, ProviderConfig};
use outlast_provider::{
    ExecutionMetadata, FusedCompletion, LeasedOutcome, Provider, ProviderError, ScheduledActivityIdentifier,
    TagFilter, TurnAhead, TurnCommit, WorkRequest,
};
use std::sync::Arc;
use tokio::task::JoinHandle;

async fn open(config: ProviderConfig) -> Arc<PostgresProvider> {
    Arc::new(PostgresProvider::new_with_config(config).await.unwrap())
}

/// Two processes on one schema. With `batches_only`, a lone commit calls the function for batches too.
async fn pair(batches_only: bool) -> (Arc<PostgresProvider>, Arc<PostgresProvider>, String) {
    let mut config = fresh_config();
    config.batches_only = batches_only;
    let schema = config.schema_name.clone().unwrap();
    (open(config.clone()).await, open(config).await, schema)
}

/// Commits the first turn of an instance, which schedules activities from number 2 on. Returns the time of the store.
async fn schedule(store: &PostgresProvider, instance: &str, activities: u64) -> u64 {
    enqueue(store, instance).await;
    let (_, token, _) = turn(store).await;
    let work = (2..2 + activities).map(|id| activity(instance, id)).collect();
    store.commit_turn(&token, begin(instance, work)).await.unwrap().expect("the time of the commit")
}

/// Leases the next activities, and returns their outcomes.
async fn lease(store: &PostgresProvider, max_items: usize) -> Vec<LeasedOutcome> {
    let request = WorkRequest {
        max_items,
        lock_timeout: LONG,
        poll_timeout: PATIENCE,
        session: None,
        tag_filter: &TagFilter::DefaultOnly,
    };
    let fetched = store.fetch_work_items(request).await.unwrap();
    assert_eq!(fetched.len(), max_items);
    let outcome = |work: outlast_provider::FetchedWork| {
        let WorkItem::ActivityExecute { instance, id, .. } = &work.item else { panic!("no activity") };
        LeasedOutcome { lock_token: work.lock_token, completion: completed(instance, *id) }
    };
    fetched.into_iter().map(outcome).collect()
}

/// The second turn of an instance, with one event.
fn second_turn(instance: &str, ran_at_ms: u64) -> TurnAhead {
    let kind = EventKind::ActivityCompleted { result: "done".to_string() };
    let commit = TurnCommit {
        execution_id: 1,
        history_delta: vec![Event::at(7, 2, instance, 1, Some(2), kind)],
        worker_items: vec![],
        orchestrator_items: vec![],
        metadata: ExecutionMetadata::default(),
        cancelled_activities: vec![],
    };
    TurnAhead { after_event_id: 1, ran_at_ms, commit }
}

fn fuse(
    store: &Arc<PostgresProvider>,
    outcomes: &[LeasedOutcome],
    ran_at_ms: u64,
) -> JoinHandle<Result<FusedCompletion, ProviderError>> {
    let (store, outcomes) = (Arc::clone(store), outcomes.to_vec());
    let turn = second_turn(outcomes[0].completion.target_instance(), ran_at_ms);
    tokio::spawn(async move { store.complete_all_with_turn(outcomes, turn).await })
}

fn is_stored(answer: &Result<FusedCompletion, ProviderError>) -> bool {
    match answer {
        Ok(FusedCompletion::WithTurn { .. }) => true,
        Ok(FusedCompletion::Unchanged) => false,
        Err(error) => panic!("{error}"),
    }
}

async fn count(schema: &str, table: &str) -> i64 {
    let sql = format!("SELECT count(*) FROM {{schema}}.{table} WHERE instance_id = $1");
    meddle(schema, &sql, "i").await[0].get(0)
}

/// Waits until this many transactions wait for rows that other transactions have locked.
async fn until_blocked(schema: &str, transactions: usize) {
    let waits = format!(
        "SELECT count(DISTINCT l.pid) = {transactions} FROM pg_locks AS l JOIN pg_stat_activity AS a ON a.pid = l.pid
         WHERE NOT l.granted AND l.locktype IN ('transactionid', 'tuple') AND a.query LIKE '%{schema}%'"
    );
    until(&raw().await, &waits).await;
}

/// The first attempt is stored, and its answer is lost. The fence refuses the second attempt, and the store recognises its own
/// events.
#[tokio::test]
async fn fused_outcomes_whose_answer_is_lost_are_recognised_as_stored() {
    let line = Line::open().await;
    let mut config = fresh_config();
    config.connection = ConnectionConfig::Url(line.url.clone());
    let schema = config.schema_name.clone().unwrap();
    let store = open(config).await;
    let now = schedule(&store, "i", 2).await;
    let both = lease(&store, 2).await;
    let stop = Stop::in_commit(&schema, "history").await;
    let fused = fuse(&store, &both, now);
    stop.reached().await;
    line.cut();
    stop.end().await;
    assert!(is_stored(&fused.await.unwrap()));
    assert!(store.stats().resent > 0);
    assert_eq!(store.read("i").await.unwrap().len(), 2);
    assert_eq!((count(&schema, "worker_queue").await, count(&schema, "orchestrator_queue").await), (0, 0));
}

/// Two requests of one transaction name the same lease. The store undoes the transaction when the second request lacks the lease,
/// and resends each request alone.
#[tokio::test]
async fn one_lease_in_two_fused_requests_of_one_transaction_is_used_once() {
    let store = open(fresh_config().lanes(1)).await;
    let now = schedule(&store, "i", 2).await;
    let of_i = lease(&store, 2).await;
    schedule(&store, "j", 1).await;
    let of_j = lease(&store, 1).await;
    let borrowed = LeasedOutcome { lock_token: of_i[0].lock_token.clone(), completion: completed("j", 3) };
    let with_borrowed = vec![of_j[0].clone(), borrowed];
    let before = store.stats().transactions;
    let (of_i, of_j) = futures::join!(
        store.complete_all_with_turn(of_i, second_turn("i", now)),
        store.complete_all_with_turn(with_borrowed, second_turn("j", now)),
    );
    assert_eq!((is_stored(&of_i), is_stored(&of_j)), (true, false));
    assert_eq!(
        store.stats().transactions - before,
        2,
        "after the undone transaction, each request has its own"
    );
    assert_eq!((store.read("i").await.unwrap().len(), store.read("j").await.unwrap().len()), (2, 1));
}

/// A fetch waits for the lock on an execution whose turn is not committed yet, and then reads the events of that turn.
#[tokio::test]
async fn a_fetch_waits_for_fused_outcomes_that_are_not_committed() {
    for batches_only in [false, true] {
        let (one, other, schema) = pair(batches_only).await;
        let now = schedule(&one, "i", 2).await;
        let both = lease(&one, 2).await;
        let stop = Stop::in_commit(&schema, "history").await;
        let fused = fuse(&one, &both, now);
        stop.reached().await;
        let raised = WorkItem::ExternalRaised { instance: "i".into(), name: "e".into(), data: String::new() };
        other.enqueue_for_orchestrator(raised, None).await.unwrap();
        let fetching = Arc::clone(&other);
        let fetched = tokio::spawn(async move { turn(&*fetching).await });
        until_blocked(&schema, 1).await;
        stop.end().await;
        assert!(is_stored(&fused.await.unwrap()), "{batches_only}");
        assert_eq!(fetched.await.unwrap().0.history.len(), 2, "{batches_only}");
        assert_eq!((one.stats().conflicts, other.stats().conflicts), (0, 0), "{batches_only}");
    }
}

/// A turn of another process cancels the activities and is not committed yet. The outcomes wait for its transaction, and the
/// store refuses them.
#[tokio::test]
async fn fused_outcomes_wait_for_a_turn_that_cancels_their_activities() {
    for batches_only in [false, true] {
        let (one, other, schema) = pair(batches_only).await;
        let now = schedule(&one, "i", 2).await;
        let both = lease(&one, 2).await;
        let raised = WorkItem::ExternalRaised { instance: "i".into(), name: "e".into(), data: String::new() };
        other.enqueue_for_orchestrator(raised, None).await.unwrap();
        let (_, token, _) = turn(&*other).await;
        let mut cancels = second_turn("i", now).commit;
        let cancelled = |activity_id| ScheduledActivityIdentifier {
            instance: "i".to_string(),
            execution_id: 1,
            activity_id,
        };
        cancels.cancelled_activities = vec![cancelled(2), cancelled(3)];
        let stop = Stop::after_insert(&schema, "history").await;
        let committed = tokio::spawn(async move { (other.commit_turn(&token, cancels).await, other) });
        stop.reached().await;
        let fused = fuse(&one, &both, now);
        until_blocked(&schema, 1).await;
        stop.end().await;
        let (committed, other) = committed.await.unwrap();
        assert!(committed.unwrap().is_some(), "{batches_only}");
        assert!(!is_stored(&fused.await.unwrap()), "{batches_only}");
        assert_eq!((count(&schema, "history").await, count(&schema, "worker_queue").await), (2, 0));
        assert_eq!((one.stats().conflicts, other.stats().conflicts), (0, 0), "{batches_only}");
    }
}

/// Two processes complete different activities of the same instances, in opposite orders. Another transaction locks the execution
/// in the middle until both processes wait: with different lock orders, each process would have locked the executions on its
/// side.
#[tokio::test]
async fn fused_outcomes_of_two_processes_lock_instances_in_one_order() {
    const INSTANCES: usize = 5;
    let (one, other, schema) = pair(false).await;
    let (mut of_one, mut of_other) = (Vec::new(), Vec::new());
    for number in 0..INSTANCES {
        let now = schedule(&one, &format!("i{number}"), 4).await;
        of_one.push((lease(&one, 2).await, now));
        of_other.push((lease(&other, 2).await, now));
    }
    let blocker = raw().await;
    let middle = format!("BEGIN; SELECT 1 FROM {schema}.executions WHERE instance_id = 'i2' FOR UPDATE");
    blocker.batch_execute(&middle).await.unwrap();
    let by_one: Vec<_> = of_one.iter().map(|(outcomes, now)| fuse(&one, outcomes, *now)).collect();
    let by_other: Vec<_> =
        of_other.iter().rev().map(|(outcomes, now)| fuse(&other, outcomes, *now)).collect();
    until_blocked(&schema, 2).await;
    blocker.batch_execute("COMMIT").await.unwrap();
    let answers = |fused| async {
        let answers = futures::future::join_all::<Vec<JoinHandle<_>>>(fused).await;
        answers.into_iter().map(|answer| is_stored(&answer.unwrap())).collect::<Vec<_>>()
    };
    let (by_one, by_other) = futures::join!(answers(by_one), answers(by_other));
    assert_eq!((one.stats().conflicts, other.stats().conflicts), (0, 0), "no deadlock");
    for ((outcomes, is_stored), (of_other, by_other)) in
        of_one.iter().zip(by_one).zip(of_other.iter().zip(by_other.into_iter().rev()))
    {
        assert_ne!(is_stored, by_other, "each instance stores the outcomes of one process");
        let (store, refused) = if is_stored { (&other, &of_other.0) } else { (&one, &outcomes.0) };
        for outcome in refused {
            store.ack_work_item(&outcome.lock_token, None).await.expect("refused outcomes keep their leases");
        }
    }
    let rows = format!(
        "SELECT (SELECT count(*) FROM {schema}.history) = 2 * {INSTANCES}
             AND NOT EXISTS (SELECT 1 FROM {schema}.worker_queue)
             AND NOT EXISTS (SELECT 1 FROM {schema}.orchestrator_queue)"
    );
    assert!(raw().await.query_one(&rows, &[]).await.unwrap().get::<_, bool>(0));
}
