//! Children whose future is dropped in the turn that scheduled them.

use crate::wrapper::Counting;
use duroxide::providers::Provider;
use duroxide::providers::memory::MemoryProvider;
use duroxide::providers::sqlite::SqliteProvider;
use duroxide::runtime::Runtime;
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::{
    AppErrorKind, Client, ErrorDetails, OrchestrationContext, OrchestrationRegistry, OrchestrationStatus,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(10);
const DROPPED: &str = "parent dropped sub-orchestration future";

async fn stores() -> Vec<Arc<dyn Provider>> {
    vec![
        Arc::new(MemoryProvider::new()),
        Arc::new(Counting::around(MemoryProvider::new())),
        Arc::new(SqliteProvider::new_in_memory().await.unwrap()),
    ]
}

/// Schedules children with every method, drops them, and then ends in the way that its input names.
async fn drops(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    let id = ctx.instance_id();
    drop(ctx.schedule_sub_orchestration("Child", ""));
    drop(ctx.schedule_sub_orchestration_with_id("Child", format!("{id}-explicit"), ""));
    drop(ctx.schedule_sub_orchestration_with_id("Nowhere", format!("{id}-unknown"), ""));
    drop(ctx.schedule_sub_orchestration_versioned_with_id(
        "Child",
        Some("9.9.9".to_string()),
        format!("{id}-version"),
        "",
    ));
    match input.as_str() {
        "returns" => Ok(String::new()),
        "fails" => Err("no".to_string()),
        _ => {
            ctx.schedule_wait("go").await;
            Ok(String::new())
        }
    }
}

/// The number of runs of the child's code.
async fn start(store: Arc<dyn Provider>) -> (Arc<Runtime>, Arc<AtomicUsize>) {
    let ran = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&ran);
    let orchestrations = OrchestrationRegistry::builder()
        .register("Drops", drops)
        .register("Holds", |ctx: OrchestrationContext, _: String| async move {
            ctx.schedule_sub_orchestration_with_id("Child", "held", "").await
        })
        .register("Child", move |ctx: OrchestrationContext, _: String| {
            counter.fetch_add(1, Relaxed);
            async move {
                ctx.schedule_wait("never").await;
                Ok(String::new())
            }
        })
        .register("Moves", |ctx: OrchestrationContext, _: String| async move {
            ctx.schedule_sub_orchestration_with_id("Mover", "mover", "").await
        })
        .register("Mover", |ctx: OrchestrationContext, _: String| async move {
            ctx.continue_as_new_versioned("9.9.9", "").await
        })
        .build();
    let activities = ActivityRegistry::builder().build();
    (Runtime::start_with_store(store, activities, orchestrations).await, ran)
}

async fn cancelled_for(client: &Client, instance: &str) -> String {
    match client.wait_for_orchestration(instance, PATIENCE).await {
        Ok(OrchestrationStatus::Failed {
            details: ErrorDetails::Application { kind: AppErrorKind::Cancelled { reason }, .. },
            ..
        }) => reason,
        other => panic!("{instance}: {other:?}"),
    }
}

#[tokio::test]
async fn dropped_children_end_as_cancelled_without_running() {
    for store in stores().await {
        let (runtime, ran) = start(Arc::clone(&store)).await;
        let client = Client::new(store);
        for parent in ["returns", "fails", "goes on"] {
            client.start_orchestration(parent, "Drops", parent).await.unwrap();
            for child in ["::sub::2", "-explicit", "-unknown", "-version"] {
                assert_eq!(cancelled_for(&client, &format!("{parent}{child}")).await, DROPPED);
            }
        }
        // A parent that continues ignores their ends.
        client.raise_event("goes on", "go", "").await.unwrap();
        let ended = client.wait_for_orchestration("goes on", PATIENCE).await.unwrap();
        assert!(matches!(ended, OrchestrationStatus::Completed { .. }), "{ended:?}");
        runtime.shutdown(None).await;
        assert_eq!(ran.load(Relaxed), 0, "no child ran");
    }
}

#[tokio::test]
async fn dropped_children_end_as_cancelled_if_the_same_turn_cancels_the_parent() {
    for store in stores().await {
        let client = Client::new(Arc::clone(&store));
        // Both messages are queued before the first turn.
        client.start_orchestration("parent", "Drops", "goes on").await.unwrap();
        client.start_orchestration("holder", "Holds", "").await.unwrap();
        for instance in ["parent", "holder"] {
            client.cancel_instance(instance, "no").await.unwrap();
        }
        let (runtime, ran) = start(store).await;
        for child in ["parent::sub::3", "parent-explicit", "parent-unknown", "parent-version", "held"] {
            assert_eq!(cancelled_for(&client, child).await, "parent canceled");
        }
        assert_eq!(cancelled_for(&client, "parent").await, "no");
        runtime.shutdown(None).await;
        assert_eq!(ran.load(Relaxed), 0, "no child ran");
    }
}

/// The successor of a child whose version no node has: a cancellation needs no code.
#[tokio::test]
async fn a_successor_that_no_node_has_can_be_cancelled() {
    for store in stores().await {
        let (runtime, _) = start(Arc::clone(&store)).await;
        let client = Client::new(Arc::clone(&store));
        client.start_orchestration("parent", "Moves", "").await.unwrap();
        while store.read("mover").await.unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        client.cancel_instance("mover", "enough").await.unwrap();
        assert_eq!(cancelled_for(&client, "mover").await, "enough");
        let ended = client.wait_for_orchestration("parent", PATIENCE).await.unwrap();
        assert!(matches!(ended, OrchestrationStatus::Failed { .. }), "{ended:?}");
        runtime.shutdown(None).await;
    }
}
