//! Starts of an instance that exists.

use super::node::Node;
use super::program::{ending, history, only};
use crate::ProviderFactory;
use crate::support::*;
use outlast_engine::OrchestrationContext;
use outlast_provider::model::{Event, EventKind, INITIAL_EXECUTION_ID};
use outlast_provider::{Provider, WorkItem};
use outlast_runtime::registry::OrchestrationRegistry;

fn start(instance: &str, orchestration: &str, version: &str, input: &str) -> WorkItem {
    WorkItem::StartOrchestration {
        instance: instance.to_string(),
        orchestration: orchestration.to_string(),
        input: input.to_string(),
        version: Some(version.to_string()),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: INITIAL_EXECUTION_ID,
    }
}

/// Returns its name and version when it gets an event.
async fn introduce(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    let told = ctx.schedule_wait("go").await;
    Ok(format!("{}@{}({input}) {told}", ctx.orchestration_name(), ctx.orchestration_version()))
}

/// The start events in the newest execution.
async fn starts(provider: &dyn Provider, instance: &str) -> Vec<Event> {
    let is_start = |event: &Event| matches!(event.kind, EventKind::OrchestrationStarted { .. });
    history(provider, instance).await.into_iter().filter(is_start).collect()
}

/// A second start, whether it comes along with the first, later, with other messages or after the end, changes neither
/// the handler nor its version nor the input.
pub async fn test_duplicate_start_preserves_pinned_handler<F: ProviderFactory>(factory: &F) {
    let orchestrations = OrchestrationRegistry::builder()
        .register("Mine", introduce)
        .register_versioned("Mine", "2.0.0", introduce)
        .register("Another", introduce)
        .build();
    let duplicates = [
        start("one", "Mine", "2.0.0", "newer"),
        start("one", "Another", "1.0.0", "another"),
        start("one", "Mine", "1.0.0", "again"),
    ];
    let provider = &*factory.create_provider().await;
    enqueue(provider, start("one", "Mine", "1.0.0", "first")).await;
    enqueue_all(provider, &duplicates).await;
    let node = Node::new(factory, provider, &orchestrations);
    let held = node.fetch("one").await;
    assert_eq!(held.item.messages.len(), 4, "whatever waits is one batch");
    node.run(held).await.expect("the instance begins");
    let begun = starts(provider, "one").await;
    operator(provider).sees_name("one", "Mine", "1.0.0").await;

    enqueue_all(provider, &duplicates).await;
    let held = node.fetch("one").await;
    let known = (held.item.orchestration_name.clone(), held.item.version.clone(), held.item.execution_id);
    assert_eq!(known, ("Mine".to_string(), "1.0.0".to_string(), 1), "what the store knows of the instance");
    let ignored = node.run(held).await.expect("starts of a running instance are taken off the queue");
    assert_eq!(
        (ignored.metadata.orchestration_name, ignored.history_delta.len()),
        (None, 0),
        "and nothing else happens"
    );

    // A restart in between: only the store has the order of the starts.
    let node = Node::new(factory, provider, &orchestrations);
    enqueue(provider, duplicates[1].clone()).await;
    enqueue(provider, raised("one", "go", "now")).await;
    let last = node.commit("one").await;
    assert_eq!(ending(&last), ("Completed", "Mine@1.0.0(first) now"));

    enqueue_all(provider, &duplicates).await;
    let after = node.commit("one").await;
    assert_eq!(
        (after.metadata.orchestration_name, after.history_delta.len()),
        (None, 0),
        "what has ended does not begin again"
    );
    assert_eq!(starts(provider, "one").await, begun, "there is one start, as it was");
    operator(provider).sees_name("one", "Mine", "1.0.0").await;
    operator(provider).sees_current("one", 1, "Completed", Some("Mine@1.0.0(first) now")).await;
    operator(provider).sees_waiting(0, 0, "all starts are gone").await;
}

/// When the start of a successor is delivered together with older starts of the same id, the successor starts with the input of its
/// predecessor; a parent that requested the id gets a failure.
pub async fn test_continue_as_new_duplicate_start<F: ProviderFactory>(factory: &F) {
    let orchestrations = OrchestrationRegistry::builder()
        .register("Loop", |ctx, input| async move {
            match input.as_str() {
                "0" => {
                    let next = ctx.schedule_wait("go").await;
                    ctx.continue_as_new(next).await
                }
                _ => introduce(ctx, input).await,
            }
        })
        .register("Parent", |ctx, input| async move {
            ctx.schedule_sub_orchestration_with_id("Loop", "child", input).await
        })
        .build();
    let provider = &*factory.create_provider().await;
    let node = Node::new(factory, provider, &orchestrations);
    enqueue(provider, start("child", "Loop", "1.0.0", "0")).await;
    node.commit("child").await;

    // Both starts arrive during the predecessor's last turn, so they are older than the successor's.
    enqueue(provider, raised("child", "go", "1")).await;
    let last = node.fetch("child").await;
    enqueue(provider, start("parent", "Parent", "1.0.0", "stolen")).await;
    node.commit("parent").await;
    enqueue(provider, start("child", "Parent", "1.0.0", "stolen")).await;
    let last = node.run(last).await.expect("the predecessor ends");
    assert_eq!(ending(&last), ("ContinuedAsNew", "1"));

    let held = node.fetch("child").await;
    let kinds: Vec<_> = held.item.messages.iter().map(WorkItem::kind_name).collect();
    assert_eq!(kinds, ["StartOrchestration", "StartOrchestration", "ContinueAsNew"]);
    let begun = node.run(held).await.expect("the successor begins");
    assert_eq!(begun.execution_id, 2);
    operator(provider).sees_executions("child", &[1, 2]).await;

    let told = node.commit("parent").await;
    let refused = "sub-orchestration instance id 'child' already exists";
    assert_eq!(ending(&told), ("Failed", refused));
    operator(provider).sees_current("parent", 1, "Failed", Some(refused)).await;

    enqueue(provider, raised("child", "go", "now")).await;
    let node = Node::new(factory, provider, &only("Loop", introduce));
    assert_eq!(ending(&node.commit("child").await), ("Completed", "Loop@1.0.0(1) now"));
    operator(provider).sees_current("child", 2, "Completed", Some("Loop@1.0.0(1) now")).await;
    operator(provider).sees_waiting(0, 0, "every message was used").await;
}
