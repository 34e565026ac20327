//! A child's start that is delivered again after the child has ended.

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

/// What the event `parent_id` of an instance called "parent" asks for.
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

/// Sends it, waits until it is dealt with, and counts what was sent to the parent, who does not exist, so far.
async fn answers_after(store: &MemoryProvider, start: WorkItem) -> usize {
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
async fn a_start_that_comes_twice_does_not_overtake_the_outcome_of_the_child() {
    let store = Arc::new(MemoryProvider::new());
    let runtime = start(&store).await;
    assert_eq!(answers_after(&store, start_of_child(2)).await, 1, "the outcome");
    assert_eq!(answers_after(&store, start_of_child(2)).await, 1, "the child is remembered");
    assert_eq!(answers_after(&store, start_of_child(2)).await, 1, "the child is remembered as over");
    assert_eq!(
        answers_after(&store, start_of_child(3)).await,
        2,
        "another call, which must not wait for ever"
    );
    runtime.shutdown(None).await;

    let runtime = start(&store).await;
    assert_eq!(answers_after(&store, start_of_child(2)).await, 2, "the child is read");
    assert_eq!(answers_after(&store, start_of_child(3)).await, 3, "another call, after a restart");
    runtime.shutdown(None).await;
}
