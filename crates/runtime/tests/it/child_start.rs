//! The start message of a child that is delivered again after the child has ended.

use outlast_engine::OrchestrationContext;
use outlast_memory::MemoryProvider;
use outlast_model::WorkItem;
use outlast_provider::Provider;
use outlast_runtime::Runtime;
use outlast_runtime::registry::{ActivityRegistry, OrchestrationRegistry};
use std::sync::Arc;
use std::time::Duration;

async fn start(store: &Arc<MemoryProvider>) -> Arc<Runtime> {
    let orchestrations = OrchestrationRegistry::builder()
        .register("Child", |_: OrchestrationContext, _: String| async { Ok("done".to_string()) })
        .build();
    let store: Arc<dyn Provider> = store.clone();
    Runtime::start_with_store(store, ActivityRegistry::builder().build(), orchestrations).await
}

/// The start message of instance "child" that event `parent_id` of instance "parent" sends.
fn start_of_child(parent_id: u64) -> WorkItem {
    WorkItem::StartOrchestration {
        instance: "child".to_string(),
        orchestration: "Child".to_string(),
        input: String::new(),
        version: None,
        parent_instance: Some("parent".to_string()),
        parent_id: Some(parent_id),
        parent_execution_id: Some(1),
        execution_id: 1,
    }
}

/// Sends the start and waits until the child has no message and no lease. Returns the number of messages to the parent so far; they
/// stay in the queue, because the parent does not exist.
async fn messages_to_parent_after(store: &MemoryProvider, start: WorkItem) -> usize {
    store.enqueue_for_orchestrator(start, None).await.unwrap();
    loop {
        let lines = store.dump();
        let of_child = ["message child ", "lease child "];
        if !lines.iter().any(|line| of_child.iter().any(|prefix| line.starts_with(prefix))) {
            return lines.iter().filter(|line| line.starts_with("message parent ")).count();
        }
        tokio::time::advance(Duration::from_millis(10)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_redelivered_start_of_an_ended_child_sends_no_second_outcome() {
    let store = Arc::new(MemoryProvider::new());
    let runtime = start(&store).await;
    assert_eq!(messages_to_parent_after(&store, start_of_child(2)).await, 1, "the outcome");
    assert_eq!(
        messages_to_parent_after(&store, start_of_child(2)).await,
        1,
        "the child is in the warm cache"
    );
    assert_eq!(
        messages_to_parent_after(&store, start_of_child(2)).await,
        1,
        "the warm cache has the child as ended"
    );
    assert_eq!(
        messages_to_parent_after(&store, start_of_child(3)).await,
        2,
        "another call: its parent gets a failure"
    );
    runtime.shutdown(None).await;

    let runtime = start(&store).await;
    assert_eq!(
        messages_to_parent_after(&store, start_of_child(2)).await,
        2,
        "the child is read from the store"
    );
    assert_eq!(messages_to_parent_after(&store, start_of_child(3)).await, 3, "another call, after a restart");
    runtime.shutdown(None).await;
}
