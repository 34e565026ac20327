//! An instance that runs through a store, whatever fails: a turn that sends, an activity, a last turn.

use outlast_cosmos::CosmosDBProvider;
use outlast_provider::model::{Event, EventKind, WorkItem};
use outlast_provider::{ExecutionMetadata, Provider, ProviderAdmin, ProviderError, TagFilter, TurnCommit};
use std::time::Duration;

pub(crate) const LEASE: Duration = Duration::from_millis(400);

pub(crate) fn start(instance: &str) -> WorkItem {
    WorkItem::StartOrchestration {
        instance: instance.into(),
        orchestration: "Flow".into(),
        input: String::new(),
        version: None,
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: 1,
    }
}

fn event(id: u64, kind: EventKind) -> Event {
    Event::at(7, id, "source", 1, None, kind)
}

/// The first turn: two events, an activity, a key, and a start of another instance.
fn first_turn() -> TurnCommit {
    let started = EventKind::OrchestrationStarted {
        name: "Flow".into(),
        version: "1".into(),
        input: String::new(),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        carry_forward_events: None,
        initial_custom_status: None,
    };
    let set = EventKind::KeyValueSet { key: "k".into(), value: "v".into(), last_updated_at_ms: 7 };
    let activity = WorkItem::ActivityExecute {
        instance: "source".into(),
        execution_id: 1,
        id: 3,
        name: "Work".into(),
        input: String::new(),
        session_id: None,
        tag: None,
    };
    TurnCommit {
        execution_id: 1,
        history_delta: vec![event(1, started), event(2, set)],
        worker_items: vec![activity],
        orchestrator_items: vec![start("target")],
        metadata: ExecutionMetadata {
            orchestration_name: Some("Flow".into()),
            orchestration_version: Some("1".into()),
            ..ExecutionMetadata::default()
        },
        ..TurnCommit::default()
    }
}

fn last_turn() -> TurnCommit {
    let completed = EventKind::OrchestrationCompleted { output: "out".into() };
    TurnCommit {
        execution_id: 1,
        history_delta: vec![event(3, completed)],
        metadata: ExecutionMetadata {
            status: Some("Completed".into()),
            output: Some("out".into()),
            ..ExecutionMetadata::default()
        },
        ..TurnCommit::default()
    }
}

/// Repeats a call while its error may go away.
pub(crate) async fn again<T, Fut: Future<Output = Result<T, ProviderError>>>(
    call: impl Fn() -> Fut,
) -> Result<T, ProviderError> {
    for _ in 0..20 {
        match call().await {
            Err(error) if error.is_retryable() => {}
            answer => return answer,
        }
    }
    panic!("a call fails again and again");
}

/// Starts the instance.
pub(crate) async fn begin(store: &CosmosDBProvider) {
    again(|| store.enqueue_for_orchestrator(start("source"), None)).await.unwrap();
}

/// Runs turns and activities until the instance has ended. A lost lease is no error: the turn is delivered again.
pub(crate) async fn finish(store: &CosmosDBProvider) {
    let (wait, untagged) = (Duration::from_millis(20), TagFilter::default());
    for _ in 0..400 {
        let turn = again(|| store.fetch_orchestration_item(LEASE, wait, None)).await.unwrap();
        if let Some((item, token, _)) = turn {
            assert_eq!(item.history_error, None);
            if item.instance == "source" {
                let has_outcome =
                    item.messages.iter().any(|m| matches!(m, WorkItem::ActivityCompleted { .. }));
                let commit = match (item.history.len(), has_outcome) {
                    (0, _) => first_turn(),
                    (2, true) => last_turn(),
                    // A start or an outcome that was delivered twice.
                    _ => TurnCommit { execution_id: 1, ..TurnCommit::default() },
                };
                let _ = again(|| store.commit_turn(&token, commit.clone())).await;
            } else {
                // The other instance stays as it is: its messages are counted at the end.
                let _ =
                    again(|| store.abandon_orchestration_item(&token, Some(Duration::from_secs(600)), true))
                        .await;
            }
        }
        let work = again(|| store.fetch_work_item(LEASE, Duration::ZERO, None, &untagged)).await.unwrap();
        if let Some((WorkItem::ActivityExecute { instance, execution_id, id, .. }, token, _)) = work {
            let outcome = WorkItem::ActivityCompleted { instance, execution_id, id, result: "r".into() };
            let _ = again(|| store.ack_work_item(&token, Some(outcome.clone()))).await;
        }
        let info = again(|| store.read_outcome("source")).await.unwrap();
        if info.is_some_and(|outcome| outcome.status == "Completed") {
            return;
        }
    }
    panic!("the instance does not end: {:?}", store.dump().await);
}

/// Checks that everything happened once.
pub(crate) async fn check(store: &CosmosDBProvider) {
    let history = again(|| store.read("source")).await.unwrap();
    let ids: Vec<u64> = history.iter().map(|event| event.event_id).collect();
    assert_eq!(ids, [1, 2, 3]);
    assert_eq!(again(|| store.get_kv_value("source", "k")).await.unwrap().as_deref(), Some("v"));
    let sent = again(|| store.pending("target", 10)).await.unwrap().unwrap();
    assert_eq!(sent.message_count, 1, "the message to the other instance is delivered once: {sent:?}");
    let left = again(|| store.pending("source", 10)).await.unwrap().unwrap();
    assert_eq!((left.activity_count, left.turn_locked_until), (0, None), "{left:?}");
}
