//! Hand-offs: items that a transaction stores are leased in it to parked fetches of the same process.

use crate::factory::{fresh_config, meddle, raw};
use crate::listening::quiet;
use crate::support::*;
use futures::future::join_all;
use outlast_model::WorkItem;
use outlast_postgres::PostgresProvider;
use outlast_provider::{
    FetchedWork, OrchestrationItem, Provider, ScheduledActivityIdentifier, SessionFetchConfig, StartOutcome,
    StartPolicy, StartRequest, TagFilter, TurnCommit, WorkRequest,
};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::{JoinHandle, yield_now};

/// A store without periodic polls, and its schema. With `batches_only`, a lone commit calls the function for batches too.
async fn open(batches_only: bool) -> (Arc<PostgresProvider>, String) {
    let mut config = fresh_config();
    config.batches_only = batches_only;
    config.idle_poll_interval = Duration::from_secs(600);
    let schema = config.schema_name.clone().unwrap();
    (Arc::new(PostgresProvider::new_with_config(config).await.unwrap()), schema)
}

/// Waits until a new fetch and the registration of the listener cause no further poll.
async fn polled(store: &PostgresProvider, before: u64) {
    let polled = async {
        while store.stats().polls == before {
            yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, polled).await.expect("the new fetch polls");
    quiet(|| store.stats().polls).await;
}

type Turn = (OrchestrationItem, String, u32);

/// A parked fetch of a turn; its first poll has found none.
async fn waiting_for_turn(store: &Arc<PostgresProvider>) -> JoinHandle<Turn> {
    let (own, polls) = (Arc::clone(store), store.stats().polls);
    let fetch = tokio::spawn(async move { turn(&*own).await });
    polled(store, polls).await;
    fetch
}

/// A parked fetch of activities; its first poll has found none.
async fn waiting_for_work(
    store: &Arc<PostgresProvider>,
    max_items: usize,
    tags: TagFilter,
    owner: Option<&str>,
) -> JoinHandle<Vec<FetchedWork>> {
    let (own, polls) = (Arc::clone(store), store.stats().polls);
    let session = owner.map(|owner| SessionFetchConfig { owner_id: owner.to_string(), lock_timeout: LONG });
    let fetch = tokio::spawn(async move {
        let request = WorkRequest {
            max_items,
            lock_timeout: LONG,
            poll_timeout: PATIENCE,
            session: session.as_ref(),
            tag_filter: &tags,
        };
        own.fetch_work_items(request).await.unwrap()
    });
    polled(store, polls).await;
    fetch
}

fn ids(work: &[FetchedWork]) -> Vec<u64> {
    let id = |work: &FetchedWork| match &work.item {
        WorkItem::ActivityExecute { id, .. } => *id,
        other => panic!("no activity: {other:?}"),
    };
    work.iter().map(id).collect()
}

fn request(instance: &str, policy: StartPolicy) -> StartRequest {
    StartRequest { start: start(instance), delay: None, policy, messages: vec![] }
}

#[tokio::test]
async fn start_is_handed_off_to_a_parked_fetch() {
    let (store, schema) = open(false).await;
    for policy in [None, Some(StartPolicy::FailIfExists), Some(StartPolicy::UseExisting)] {
        let instance = format!("i-{policy:?}");
        let waiting = waiting_for_turn(&store).await;
        let polls = store.stats().polls;
        match policy {
            None => enqueue(&*store, &instance).await,
            Some(policy) => {
                store.start_orchestration(request(&instance, policy)).await.map(drop).unwrap();
            }
        }
        let (item, token, attempts) = waiting.await.unwrap();
        assert_eq!((item.instance.as_str(), item.messages.len(), attempts), (instance.as_str(), 1, 1));
        assert_eq!((item.orchestration_name.as_str(), item.execution_id), ("Orch", 1));
        assert_eq!(store.stats().polls, polls, "the hand-off needs no poll");
        // The lease is like one of a poll: no other fetch gets the turn, a renewal succeeds, and the delivery is counted.
        let other = store.fetch_orchestration_item(LONG, NO_WAIT, None).await.unwrap();
        assert!(other.is_none(), "{other:?}");
        store.renew_orchestration_item_lock(&token, LONG).await.unwrap();
        store.abandon_orchestration_item(&token, None, false).await.unwrap();
        let (item, token, attempts) = turn(&*store).await;
        assert_eq!((item.instance.as_str(), attempts), (instance.as_str(), 2));
        ack(&*store, &token, &instance).await.unwrap();
        let left = format!(
            "SELECT NOT EXISTS (SELECT FROM {schema}.instance_locks) AND NOT EXISTS (SELECT FROM {schema}.orchestrator_queue)"
        );
        until(&raw().await, &left).await;
    }
    assert_eq!(store.stats().handed_off, 3);
}

#[tokio::test]
async fn handed_off_lease_expires() {
    let (store, _) = open(false).await;
    let own = Arc::clone(&store);
    const SHORT: Duration = Duration::from_millis(50);
    let waiting = tokio::spawn(async move { own.fetch_orchestration_item(SHORT, PATIENCE, None).await });
    polled(&store, 0).await;
    enqueue(&*store, "i").await;
    let (_, lost, _) = waiting.await.unwrap().unwrap().unwrap();
    assert_eq!(store.stats().handed_off, 1);
    let (_, token, attempts) = turn(&*store).await;
    assert_eq!(attempts, 2);
    assert!(ack(&*store, &lost, "i").await.is_err(), "the lease has expired");
    ack(&*store, &token, "i").await.unwrap();

    let (own, polls) = (Arc::clone(&store), store.stats().polls);
    let waiting = tokio::spawn(async move {
        own.fetch_work_item(SHORT, PATIENCE, None, &TagFilter::DefaultOnly).await.unwrap().unwrap()
    });
    polled(&store, polls).await;
    enqueue(&*store, "j").await;
    let (_, turn_token, _) = turn(&*store).await;
    store.commit_turn(&turn_token, begin("j", vec![activity("j", 2)])).await.unwrap();
    let (_, lost, attempts) = waiting.await.unwrap();
    assert_eq!((attempts, store.stats().handed_off), (1, 2));
    let (_, token, attempts) = work(&*store).await;
    assert_eq!(attempts, 2);
    assert!(store.ack_work_item(&lost, None).await.is_err(), "the lease has expired");
    store.ack_work_item(&token, None).await.unwrap();
}

#[tokio::test]
async fn messages_before_a_start_are_delivered_with_it() {
    let (store, _) = open(false).await;
    let waiting = waiting_for_turn(&store).await;
    let event = WorkItem::ExternalRaised {
        instance: "i".to_string(),
        name: "early".to_string(),
        data: "{}".to_string(),
    };
    // The instance of the message does not exist yet, so the store delays the message.
    store.enqueue_for_orchestrator(event, Some(Duration::from_millis(1))).await.unwrap();
    enqueue(&*store, "i").await;
    let (item, token, _) = waiting.await.unwrap();
    let begins = |item: &WorkItem| matches!(item, WorkItem::StartOrchestration { .. });
    assert!(item.messages.iter().any(begins), "{:?}", item.messages);
    assert_eq!(store.stats().handed_off, 0);
    let together = item.messages.len();
    ack(&*store, &token, "i").await.unwrap();
    if together == 1 {
        assert_eq!(turn(&*store).await.0.messages.len(), 1, "the event follows in a turn of its own");
    }
}

#[tokio::test]
async fn second_start_is_not_handed_off() {
    let (store, schema) = open(false).await;
    // One transaction stores both starts; only the first one is handed off.
    let waiting = waiting_for_turn(&store).await;
    join_all(["i", "i"].map(|instance| enqueue(&*store, instance))).await;
    let (item, token, _) = waiting.await.unwrap();
    assert_eq!((item.messages.len(), store.stats().handed_off), (1, 1));
    ack(&*store, &token, "i").await.unwrap();
    let (item, token, _) = turn(&*store).await;
    assert_eq!((item.instance.as_str(), item.history.len()), ("i", 1));
    store.commit_turn(&token, TurnCommit { history_delta: vec![], ..begin("i", vec![]) }).await.unwrap();

    // A start of an existing instance is not handed off.
    let waiting = waiting_for_turn(&store).await;
    enqueue(&*store, "i").await;
    let (item, token, _) = waiting.await.unwrap();
    assert_eq!((item.history.len(), store.stats().handed_off), (1, 1));
    store.commit_turn(&token, TurnCommit { history_delta: vec![], ..begin("i", vec![]) }).await.unwrap();

    // A refused start stores nothing, and the fetch stays parked.
    let waiting = waiting_for_turn(&store).await;
    let torn = "INSERT INTO {schema}.executions (instance_id, execution_id, started_at, updated_at) VALUES ($1, 1, 1, 1)";
    meddle(&schema, torn, "torn").await;
    for taken in ["torn", "i"] {
        let refused = store.start_orchestration(request(taken, StartPolicy::FailIfExists)).await.unwrap();
        assert!(matches!(refused, StartOutcome::AlreadyExists { .. }), "{refused:?}");
    }
    until(&raw().await, &format!("SELECT NOT EXISTS (SELECT FROM {schema}.instance_locks)")).await;
    enqueue(&*store, "j").await;
    assert_eq!(waiting.await.unwrap().0.instance, "j");
}

#[tokio::test]
async fn delayed_start_is_not_handed_off() {
    let (store, _) = open(false).await;
    let waiting = waiting_for_turn(&store).await;
    store.enqueue_for_orchestrator(start("late"), Some(LONG)).await.unwrap();
    let delayed = StartRequest { delay: Some(LONG), ..request("later", StartPolicy::FailIfExists) };
    store.start_orchestration(delayed).await.unwrap();
    enqueue(&*store, "now").await;
    assert_eq!(waiting.await.unwrap().0.instance, "now");
}

#[tokio::test]
async fn activities_are_handed_off_to_parked_fetches() {
    for batches_only in [true, false] {
        let (store, schema) = open(batches_only).await;
        for (instance, scheduled) in [("one", 2..=2), ("three", 2..=4)] {
            enqueue(&*store, instance).await;
            let (_, token, _) = turn(&*store).await;
            let waiting = waiting_for_work(&store, 5, TagFilter::DefaultOnly, None).await;
            let polls = store.stats().polls;
            let items: Vec<WorkItem> = scheduled.clone().map(|id| activity(instance, id)).collect();
            store.commit_turn(&token, begin(instance, items)).await.unwrap();
            let work = waiting.await.unwrap();
            assert_eq!(ids(&work), Vec::from_iter(scheduled));
            assert_eq!(store.stats().polls, polls, "the hand-off needs no poll");
            for work in work {
                assert_eq!(work.attempt_count, 1);
                assert_eq!(work.orchestration, Some(("Orch".to_string(), "1.0.0".to_string())));
                store.renew_work_item_lock(&work.lock_token, LONG).await.unwrap();
                store.ack_work_item(&work.lock_token, None).await.unwrap();
            }
            until(&raw().await, &format!("SELECT NOT EXISTS (SELECT FROM {schema}.worker_queue)")).await;
        }
        assert_eq!(store.stats().handed_off, 4);
    }
}

#[tokio::test]
async fn hand_off_respects_tags_sessions_and_counts() {
    let (store, _) = open(false).await;
    enqueue(&*store, "i").await;
    let (_, token, _) = turn(&*store).await;
    let tagged = waiting_for_work(&store, 1, TagFilter::tags(["gpu"]), None).await;
    let untagged = waiting_for_work(&store, 1, TagFilter::DefaultOnly, None).await;
    let items = vec![
        activity("i", 2),
        activity("i", 3),
        activity_with("i", 4, None, Some("gpu")),
        activity_with("i", 5, Some("s"), None),
        activity_with("i", 6, None, Some("tpu")),
    ];
    store.commit_turn(&token, begin("i", items)).await.unwrap();
    assert_eq!(ids(&tagged.await.unwrap()), [4]);
    assert_eq!(ids(&untagged.await.unwrap()), [2], "the fetch asked for one activity");
    assert_eq!(store.stats().handed_off, 2);
    // The other activities are fetchable.
    let owner = waiting_for_work(&store, 9, TagFilter::Any, Some("owner"));
    assert_eq!(ids(&owner.await.await.unwrap()), [3, 5, 6]);
}

#[tokio::test]
async fn stored_items_are_fetched_before_handed_off_ones() {
    let (store, schema) = open(false).await;
    enqueue(&*store, "i").await;
    let (_, token, _) = turn(&*store).await;
    let waiting = waiting_for_work(&store, 1, TagFilter::DefaultOnly, None).await;
    // Another process has stored an item without a notification; then this process receives one.
    let other = fresh_config().schema(schema.clone()).listen(false);
    let other = PostgresProvider::new_with_config(other).await.unwrap();
    other.enqueue_for_worker(activity("older", 9)).await.unwrap();
    store.enqueue_for_worker(activity("newer", 10)).await.unwrap();
    assert_eq!(ids(&waiting.await.unwrap()), [9]);
    store.commit_turn(&token, begin("i", vec![activity("i", 2)])).await.unwrap();
    let all = waiting_for_work(&store, 5, TagFilter::DefaultOnly, None).await.await.unwrap();
    assert_eq!((ids(&all), store.stats().handed_off), (vec![10, 2], 0));
}

#[tokio::test]
async fn refused_turn_hands_no_activity_off() {
    for batches_only in [true, false] {
        let (store, schema) = open(batches_only).await;
        enqueue(&*store, "i").await;
        let (_, lost, _) = turn(&*store).await;
        store.abandon_orchestration_item(&lost, None, false).await.unwrap();
        let (_, token, _) = turn(&*store).await;
        let waiting = waiting_for_work(&store, 1, TagFilter::DefaultOnly, None).await;
        let refused = store.commit_turn(&lost, begin("i", vec![activity("i", 2)])).await;
        assert!(refused.is_err());
        until(&raw().await, &format!("SELECT NOT EXISTS (SELECT FROM {schema}.worker_queue)")).await;
        // The event of this turn exists twice, so the whole commit fails and hands nothing off either.
        let twice = TurnCommit {
            history_delta: vec![started("i"), started("i")],
            ..begin("i", vec![activity("i", 2)])
        };
        assert!(store.commit_turn(&token, twice).await.is_err());
        store.commit_turn(&token, begin("i", vec![activity("i", 3)])).await.unwrap();
        assert_eq!(ids(&waiting.await.unwrap()), [3]);
    }
}

/// The caller drops its fetch while the transaction that hands the item off commits.
#[tokio::test]
async fn hand_off_to_a_dropped_fetch_is_given_back() {
    let (store, schema) = open(false).await;
    let waiting = waiting_for_turn(&store).await;
    let stop = Stop::in_commit(&schema, "orchestrator_queue").await;
    let own = Arc::clone(&store);
    let started = tokio::spawn(async move { enqueue(&*own, "i").await });
    stop.reached().await;
    waiting.abort();
    assert!(waiting.await.unwrap_err().is_cancelled());
    stop.end().await;
    started.await.unwrap();
    let (item, _, attempts) = turn(&*store).await;
    assert_eq!((item.instance.as_str(), attempts), ("i", 1), "no delivery is counted");
    assert_eq!(store.stats().handed_off, 1);

    let (store, schema) = open(false).await;
    enqueue(&*store, "i").await;
    let (_, token, _) = turn(&*store).await;
    let waiting = waiting_for_work(&store, 2, TagFilter::DefaultOnly, None).await;
    let stop = Stop::in_commit(&schema, "worker_queue").await;
    let own = Arc::clone(&store);
    let first = begin("i", vec![activity("i", 2), activity("i", 3)]);
    let committed = tokio::spawn(async move { own.commit_turn(&token, first).await });
    stop.reached().await;
    waiting.abort();
    assert!(waiting.await.unwrap_err().is_cancelled());
    stop.end().await;
    committed.await.unwrap().unwrap();
    for _ in 0..2 {
        let (_, token, attempts) = work(&*store).await;
        assert_eq!(attempts, 1, "no delivery is counted");
        store.ack_work_item(&token, None).await.unwrap();
    }
    assert_eq!(store.stats().handed_off, 2);
}

/// No fetch receives an activity that its own turn cancels.
#[tokio::test]
async fn activity_cancelled_in_its_turn_is_not_handed_off() {
    for batches_only in [true, false] {
        let (store, _) = open(batches_only).await;
        enqueue(&*store, "i").await;
        let (_, token, _) = turn(&*store).await;
        let waiting = waiting_for_work(&store, 1, TagFilter::DefaultOnly, None).await;
        let cancelled =
            ScheduledActivityIdentifier { instance: "i".to_string(), execution_id: 1, activity_id: 2 };
        let commit =
            TurnCommit { cancelled_activities: vec![cancelled], ..begin("i", vec![activity("i", 2)]) };
        store.commit_turn(&token, commit).await.unwrap();
        store.enqueue_for_worker(activity("i", 3)).await.unwrap();
        assert_eq!(ids(&waiting.await.unwrap()), [3]);
        assert_eq!(store.stats().handed_off, 0);
    }
}

/// The transaction waits before it stores the activity, and the lease is measured from the time of storage.
#[tokio::test]
async fn handed_off_lease_begins_when_its_activity_is_stored() {
    const WAITED_MS: i64 = 300;
    for batches_only in [true, false] {
        let (store, schema) = open(batches_only).await;
        enqueue(&*store, "i").await;
        let (_, token, _) = turn(&*store).await;
        let waiting = waiting_for_work(&store, 1, TagFilter::DefaultOnly, None).await;
        execute(&format!(
            "CREATE FUNCTION {schema}.dawdle() RETURNS trigger LANGUAGE plpgsql AS $$
             BEGIN PERFORM pg_sleep({WAITED_MS} / 1000.0); RETURN NULL; END $$;
             CREATE TRIGGER dawdle AFTER INSERT ON {schema}.history FOR EACH STATEMENT EXECUTE FUNCTION {schema}.dawdle()"
        ))
        .await;
        store.commit_turn(&token, begin("i", vec![activity("i", 2)])).await.unwrap();
        assert_eq!(ids(&waiting.await.unwrap()), [2]);
        assert_eq!(store.stats().handed_off, 1);
        let lease = format!("SELECT locked_until - visible_at FROM {schema}.worker_queue");
        let lease: i64 = raw().await.query_one(&lease, &[]).await.unwrap().get(0);
        assert!(lease >= LONG.as_millis() as i64 + WAITED_MS, "{lease} ms since the commit began");
    }
}
