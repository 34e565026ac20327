//! The hello cycle through the store.

use duroxide::runtime::OrchestrationRegistry;
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::{ActivityContext, OrchestrationContext};
use outlast_provider::model::{Event, EventKind, ExecutionStatus, WorkItem};
use outlast_provider::{ExecutionMetadata, FetchedTurn, Provider, TagFilter, TurnRequest, WorkRequest};
use outlast_sqlite::SqliteProvider;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const LEASE: Duration = Duration::from_secs(30);

/// One orchestration of one activity.
pub(crate) fn registries() -> (ActivityRegistry, OrchestrationRegistry) {
    let activities = ActivityRegistry::builder()
        .register("Greet", |_: ActivityContext, name: String| async move { Ok(format!("hello, {name}")) })
        .build();
    let hello =
        |ctx: OrchestrationContext, name: String| async move { ctx.schedule_activity("Greet", name).await };
    (activities, OrchestrationRegistry::builder().register("Hello", hello).build())
}

pub(crate) fn start(instance: &str) -> WorkItem {
    WorkItem::StartOrchestration {
        instance: instance.to_string(),
        orchestration: "Hello".to_string(),
        input: "world".to_string(),
        version: Some("1.0.0".to_string()),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: 1,
    }
}

fn event(instance: &str, event_id: u64, source: Option<u64>, kind: EventKind) -> Event {
    Event::with_event_id(event_id, instance, 1, source, kind)
}

pub(crate) fn turn_request(poll_timeout: Duration) -> TurnRequest<'static> {
    TurnRequest { lock_timeout: LEASE, poll_timeout, filter: None, with_history: false }
}

/// The first event of an instance.
pub(crate) fn started(name: &str) -> EventKind {
    EventKind::OrchestrationStarted {
        name: name.to_string(),
        version: "1.0.0".to_string(),
        input: "world".to_string(),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        carry_forward_events: None,
        initial_custom_status: None,
    }
}

/// Commits a turn as a runtime would; returns whether that ended the instance.
pub(crate) async fn commit(store: &SqliteProvider, turn: &FetchedTurn) -> bool {
    let instance = turn.item.instance.as_str();
    if turn.last_event_id == Some(0) {
        let scheduled = EventKind::ActivityScheduled {
            name: "Greet".to_string(),
            input: "world".to_string(),
            session_id: None,
            tag: None,
        };
        let events = vec![event(instance, 1, None, started("Hello")), event(instance, 2, None, scheduled)];
        let activity = WorkItem::ActivityExecute {
            instance: instance.to_string(),
            execution_id: 1,
            id: 2,
            name: "Greet".to_string(),
            input: "world".to_string(),
            session_id: None,
            tag: None,
        };
        let metadata = ExecutionMetadata {
            orchestration_name: Some("Hello".to_string()),
            orchestration_version: Some("1.0.0".to_string()),
            ..ExecutionMetadata::default()
        };
        let token = &turn.lock_token;
        store
            .ack_orchestration_item(token, 1, events, vec![activity], vec![], metadata, vec![])
            .await
            .unwrap();
        return false;
    }
    let result = "hello, world".to_string();
    let events = vec![
        event(instance, 3, Some(2), EventKind::ActivityCompleted { result: result.clone() }),
        event(instance, 4, None, EventKind::OrchestrationCompleted { output: result.clone() }),
    ];
    let metadata = ExecutionMetadata {
        status: Some(ExecutionStatus::Completed.to_string()),
        output: Some(result),
        ..ExecutionMetadata::default()
    };
    store
        .ack_orchestration_item(&turn.lock_token, 1, events, vec![], vec![], metadata, vec![])
        .await
        .unwrap();
    true
}

/// Runs one activity if one arrives in time.
pub(crate) async fn run_activity(store: &SqliteProvider, poll_timeout: Duration) -> bool {
    let fetched = store.fetch_work_item(LEASE, poll_timeout, None, &TagFilter::DefaultOnly).await.unwrap();
    let Some((WorkItem::ActivityExecute { instance, execution_id, id, .. }, token, _)) = fetched else {
        return false;
    };
    let result = "hello, world".to_string();
    let done = WorkItem::ActivityCompleted { instance, execution_id, id, result };
    store.ack_work_item(&token, Some(done)).await.unwrap();
    true
}

/// One caller without waiting fetches: seven commits.
pub(crate) async fn one_caller(store: &SqliteProvider, instance: &str) {
    store.enqueue_for_orchestrator(start(instance), None).await.unwrap();
    let turn = store.fetch_turn(turn_request(Duration::ZERO)).await.unwrap().unwrap();
    assert!(!commit(store, &turn).await);
    assert!(run_activity(store, Duration::ZERO).await);
    let turn = store.fetch_turn(turn_request(Duration::ZERO)).await.unwrap().unwrap();
    assert!(commit(store, &turn).await);
}

/// One caller whose fetches wait, as the fetches of a runtime do: each commit serves the fetch that waits for it.
pub(crate) async fn with_waiting_fetches(store: &SqliteProvider, instance: &str) {
    let poll_timeout = Duration::from_secs(10);
    let (turn, enqueued) = tokio::join!(
        biased;
        store.fetch_turn(turn_request(poll_timeout)),
        store.enqueue_for_orchestrator(start(instance), None)
    );
    enqueued.unwrap();
    let turn = turn.unwrap().unwrap();
    let activity = store.fetch_work_items(WorkRequest {
        max_items: 1,
        lock_timeout: LEASE,
        poll_timeout,
        session: None,
        tag_filter: &TagFilter::DefaultOnly,
    });
    let (activity, ended) = tokio::join!(biased; activity, commit(store, &turn));
    assert!(!ended);
    let activity = activity.unwrap().remove(0);
    let WorkItem::ActivityExecute { instance, execution_id, id, .. } = activity.item else {
        panic!("an activity")
    };
    let done = WorkItem::ActivityCompleted { instance, execution_id, id, result: "hello, world".to_string() };
    let (turn, acked) = tokio::join!(
        biased;
        store.fetch_turn(turn_request(poll_timeout)),
        store.ack_work_item(&activity.lock_token, Some(done))
    );
    acked.unwrap();
    assert!(commit(store, &turn.unwrap().unwrap()).await);
}

/// 64 callers at once: clients that start instances, dispatchers that run turns, workers that run activities.
pub(crate) async fn many_callers(store: &Arc<SqliteProvider>, ids: std::ops::Range<usize>) {
    const CLIENTS: usize = 16;
    const DISPATCHERS: usize = 32;
    const WORKERS: usize = 16;
    let poll_timeout = Duration::from_millis(200);
    let cycles = ids.len();
    let next = Arc::new(AtomicUsize::new(ids.start));
    let ended = Arc::new(AtomicUsize::new(0));
    let mut tasks = Vec::new();
    for _ in 0..CLIENTS {
        let (store, next) = (Arc::clone(store), Arc::clone(&next));
        tasks.push(tokio::spawn(async move {
            loop {
                let n = next.fetch_add(1, Ordering::Relaxed);
                if n >= ids.end {
                    return;
                }
                store.enqueue_for_orchestrator(start(&format!("hello-{n:06}")), None).await.unwrap();
            }
        }));
    }
    for _ in 0..DISPATCHERS {
        let (store, ended) = (Arc::clone(store), Arc::clone(&ended));
        tasks.push(tokio::spawn(async move {
            while ended.load(Ordering::Relaxed) < cycles {
                if let Some(turn) = store.fetch_turn(turn_request(poll_timeout)).await.unwrap()
                    && commit(&store, &turn).await
                {
                    ended.fetch_add(1, Ordering::Relaxed);
                }
            }
        }));
    }
    for _ in 0..WORKERS {
        let (store, ended) = (Arc::clone(store), Arc::clone(&ended));
        tasks.push(tokio::spawn(async move {
            while ended.load(Ordering::Relaxed) < cycles {
                run_activity(&store, poll_timeout).await;
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
}
