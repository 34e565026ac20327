//! An execution that continued as new, on a store that lost the start of its successor: other messages wait for the instance, and no
//! turn can process them.

use crate::first_provider::MyProvider;
use crate::wrapper::Counting;
use duroxide::providers::Provider;
use duroxide::providers::memory::MemoryProvider;
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::runtime::{Runtime, RuntimeOptions, UnregisteredBackoffConfig};
use duroxide::{
    Client, ErrorDetails, EventKind, OrchestrationContext, OrchestrationRegistry, OrchestrationStatus,
    PoisonMessageType,
};
use std::sync::Arc;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(10);
const MAX_ATTEMPTS: u32 = 3;

async fn start(store: Arc<Counting>) -> Arc<Runtime> {
    let orchestrations = OrchestrationRegistry::builder()
        .register("Parent", |ctx: OrchestrationContext, _: String| async move {
            ctx.schedule_sub_orchestration_with_id("Child", "child", "first").await
        })
        .register("Child", |ctx: OrchestrationContext, _: String| async move {
            ctx.schedule_wait("go").await;
            ctx.continue_as_new("second").await
        })
        .register("Probe", |_: OrchestrationContext, _: String| async move { Ok(String::new()) })
        .build();
    let delay = Duration::from_millis(5);
    let options = RuntimeOptions {
        max_attempts: MAX_ATTEMPTS,
        unregistered_backoff: UnregisteredBackoffConfig { base_delay: delay, max_delay: delay },
        // One slot fetches instances in the order of their oldest messages.
        orchestration_concurrency: 1,
        ..RuntimeOptions::default()
    };
    Runtime::start_with_options(store, ActivityRegistry::builder().build(), orchestrations, options).await
}

async fn failure(client: &Client, instance: &str) -> ErrorDetails {
    match client.wait_for_orchestration(instance, PATIENCE).await {
        Ok(OrchestrationStatus::Failed { details, .. }) => details,
        other => panic!("{instance}: {other:?}"),
    }
}

async fn completes(client: &Client, instance: &str) {
    client.start_orchestration(instance, "Probe", "").await.unwrap();
    let ended = client.wait_for_orchestration(instance, PATIENCE).await.unwrap();
    assert!(matches!(ended, OrchestrationStatus::Completed { .. }), "{instance}: {ended:?}");
}

/// The runtime that ran the predecessor may have it in its warm cache; another runtime reads the history.
async fn fails_as_poison(store: Counting, restarts: bool) {
    let store = Arc::new(store.losing_successors());
    let mut runtime = start(Arc::clone(&store)).await;
    let client = Client::new(Arc::clone(&store) as Arc<dyn Provider>);
    client.start_orchestration("parent", "Parent", "").await.unwrap();
    while store.read("child").await.unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    client.raise_event("child", "go", "").await.unwrap();
    let continued = |kind: &EventKind| matches!(kind, EventKind::OrchestrationContinuedAsNew { .. });
    while !store.read("child").await.unwrap().iter().any(|event| continued(&event.kind)) {
        tokio::task::yield_now().await;
    }
    if restarts {
        runtime.shutdown(None).await;
        runtime = start(Arc::clone(&store)).await;
    }
    store.calls();
    client.raise_event("child", "late", "").await.unwrap();

    let details = failure(&client, "child").await;
    let ErrorDetails::Poison { attempt_count, max_attempts, message_type, .. } = &details else {
        panic!("{details:?}");
    };
    assert_eq!((*attempt_count, *max_attempts), (MAX_ATTEMPTS + 1, MAX_ATTEMPTS));
    let whose = PoisonMessageType::Orchestration { instance: "child".to_string(), execution_id: 2 };
    assert_eq!(message_type, &whose);
    let given_back = store.calls().into_iter().filter(|call| *call == "abandon_orchestration_item").count();
    assert_eq!(given_back, MAX_ATTEMPTS as usize, "each delivery before the last was deferred");
    assert_eq!(failure(&client, "parent").await, details, "the parent is told");

    let first = store.read_with_execution("child", 1).await.unwrap();
    assert!(first.last().is_some_and(|event| continued(&event.kind)), "{first:?}");
    let second = store.read_with_execution("child", 2).await.unwrap();
    let EventKind::OrchestrationStarted { input, parent_instance, parent_id, .. } = &second[0].kind else {
        panic!("{second:?}");
    };
    assert_eq!((input.as_str(), parent_instance.as_deref(), *parent_id), ("second", Some("parent"), Some(2)));

    // Later messages are removed from the queue.
    client.raise_event("child", "later", "").await.unwrap();
    completes(&client, "probe").await;
    runtime.shutdown(None).await;
    let left = store.fetch_orchestration_item(PATIENCE, Duration::ZERO, None).await.unwrap();
    assert!(left.is_none(), "{left:?}");
}

#[tokio::test]
async fn the_successor_fails_as_poison_on_wrapped_stores() {
    for restarts in [false, true] {
        fails_as_poison(Counting::around(MemoryProvider::new()), restarts).await;
        fails_as_poison(Counting::around(MyProvider::default()), restarts).await;
    }
}
