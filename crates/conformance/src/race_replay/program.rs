//! Helpers for the programs of the races: registration, completion of activities, reading of histories.

use crate::support::*;
use outlast_engine::OrchestrationContext;
use outlast_provider::model::{Event, EventKind};
use outlast_provider::{Provider, TurnCommit, WorkItem};
use outlast_runtime::registry::OrchestrationRegistry;
use std::future::Future;

/// A registry with one program.
pub(super) fn only<F, Fut>(name: &str, program: F) -> OrchestrationRegistry
where
    F: Fn(OrchestrationContext, String) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<String, String>> + Send + 'static,
{
    OrchestrationRegistry::builder().register(name, program).build()
}

/// Completes the activity that waits first, which must be this one, with its input as result.
pub(super) async fn perform(provider: &dyn Provider, activity: &str) {
    let (item, token, _) = must_fetch_activity(provider, LONG).await;
    let WorkItem::ActivityExecute { instance, execution_id, id, name, input, .. } = item else {
        panic!("workers are given activities, not {item:?}");
    };
    assert_eq!(name, activity, "the activity that waits first");
    let completion = WorkItem::ActivityCompleted { instance, execution_id, id, result: input };
    provider.ack_work_item(&token, Some(completion)).await.expect("an activity under a live lease completes");
}

/// Status and output of a commit that ends an execution.
pub(super) fn ending(commit: &TurnCommit) -> (&str, &str) {
    let metadata = &commit.metadata;
    let status = metadata.status.as_deref().expect("the execution has ended");
    (status, metadata.output.as_deref().expect("an execution that has ended has an output"))
}

/// The newest execution's events.
pub(super) async fn history(provider: &dyn Provider, instance: &str) -> Vec<Event> {
    provider.read(instance).await.expect("read succeeds")
}

/// The messages that became events of the history, in order: outcomes, events, queue messages and cancellations.
pub(super) fn recorded_messages(history: &[Event]) -> Vec<String> {
    let shown = |event: &Event| match &event.kind {
        EventKind::QueueEventDelivered { name, data } => Some(format!("queue {name}: {data}")),
        EventKind::ExternalEvent { name, data } => Some(format!("event {name}: {data}")),
        EventKind::OrchestrationCancelRequested { reason } => Some(format!("cancel: {reason}")),
        EventKind::ActivityCompleted { result } => Some(format!("activity: {result}")),
        EventKind::TimerFired { .. } => Some("timer".to_string()),
        EventKind::SubOrchestrationCompleted { result } => Some(format!("child: {result}")),
        _ => None,
    };
    history.iter().filter_map(shown).collect()
}
