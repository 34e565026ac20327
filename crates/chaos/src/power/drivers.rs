//! Runs turns and activities: with the shipped runtime, or with loops that call the store directly.

use super::clients::{NOTES, ORDER, PACK, output, packed};
use outlast_engine::OrchestrationContext;
use outlast_model::{Event, EventKind, ExecutionStatus, WorkItem};
use outlast_provider::{Clock, ExecutionMetadata, OrchestrationItem, Provider, ProviderError, TagFilter};
use outlast_runtime::registry::{ActivityRegistry, OrchestrationRegistry};
use outlast_runtime::{ActivityContext, Runtime, RuntimeOptions};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// Longer than a boot, shorter than the time between two boots.
const LEASE: Duration = Duration::from_secs(600);
const POLL: Duration = Duration::from_millis(100);

/// Runs two loops for turns and two for activities until an error ends one of them. Turns and activities may use
/// different stores on the same file.
pub(crate) async fn run_loops(for_turns: Arc<dyn Provider>, for_activities: Arc<dyn Provider>) -> String {
    let mut tasks = JoinSet::new();
    for _ in 0..2 {
        let (turns, activities) = (Arc::clone(&for_turns), Arc::clone(&for_activities));
        tasks.spawn(async move {
            loop {
                run_turn(&*turns).await?;
            }
        });
        tasks.spawn(async move {
            loop {
                run_activity(&*activities).await?;
            }
        });
    }
    let ended: Option<Result<Result<(), ProviderError>, _>> = tasks.join_next().await;
    format!("a loop ended with {ended:?}")
}

async fn run_turn(store: &dyn Provider) -> Result<(), ProviderError> {
    let Some((item, token, _)) = store.fetch_orchestration_item(LEASE, POLL, None).await? else {
        return Ok(());
    };
    let (events, activities) = decide(&item);
    let ended = events.last().and_then(|event| match &event.kind {
        EventKind::OrchestrationCompleted { output } => Some(output.clone()),
        _ => None,
    });
    let metadata = ExecutionMetadata {
        status: ended.as_ref().map(|_| ExecutionStatus::Completed.to_string()),
        output: ended,
        orchestration_name: Some(ORDER.to_string()),
        orchestration_version: Some("1.0.0".to_string()),
        ..ExecutionMetadata::default()
    };
    store
        .ack_orchestration_item(&token, item.execution_id, events, activities, vec![], metadata, vec![])
        .await
}

/// Decides a turn: one event per message, and the terminal event when both outcomes are there.
fn decide(item: &OrchestrationItem) -> (Vec<Event>, Vec<WorkItem>) {
    let mut history = item.history.clone();
    let mut activities = Vec::new();
    for message in &item.messages {
        let (source, kind) = match message.clone() {
            WorkItem::StartOrchestration { input, .. } => {
                add(&mut history, item, None, started(&input));
                let id = history.len() as u64 + 1;
                activities.push(activity(item, id, &input));
                let (name, session_id, tag) = (PACK.to_string(), None, None);
                (None, EventKind::ActivityScheduled { name, input, session_id, tag })
            }
            WorkItem::ActivityCompleted { id, result, .. } => {
                (Some(id), EventKind::ActivityCompleted { result })
            }
            WorkItem::QueueMessage { name, data, .. } => {
                (None, EventKind::QueueEventDelivered { name, data })
            }
            // Clients send no other messages.
            _ => continue,
        };
        add(&mut history, item, source, kind);
    }
    if let Some(output) = end(&history) {
        add(&mut history, item, None, EventKind::OrchestrationCompleted { output });
    }
    (history.split_off(item.history.len()), activities)
}

fn add(history: &mut Vec<Event>, item: &OrchestrationItem, source: Option<u64>, kind: EventKind) {
    let id = history.len() as u64 + 1;
    history.push(Event::at(7, id, item.instance.clone(), item.execution_id, source, kind));
}

fn started(input: &str) -> EventKind {
    EventKind::OrchestrationStarted {
        name: ORDER.to_string(),
        version: "1.0.0".to_string(),
        input: input.to_string(),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        carry_forward_events: None,
        initial_custom_status: None,
    }
}

fn activity(item: &OrchestrationItem, id: u64, input: &str) -> WorkItem {
    WorkItem::ActivityExecute {
        instance: item.instance.clone(),
        execution_id: item.execution_id,
        id,
        name: PACK.to_string(),
        input: input.to_string(),
        session_id: None,
        tag: None,
    }
}

fn end(history: &[Event]) -> Option<String> {
    let (mut packed, mut note) = (None, None);
    for event in history {
        match &event.kind {
            EventKind::ActivityCompleted { result } => packed = Some(result),
            EventKind::QueueEventDelivered { data, .. } => note = Some(data),
            _ => {}
        }
    }
    Some(output(packed?, note?))
}

async fn run_activity(store: &dyn Provider) -> Result<(), ProviderError> {
    let fetched = store.fetch_work_item(LEASE, POLL, None, &TagFilter::DefaultOnly).await?;
    let Some((WorkItem::ActivityExecute { instance, execution_id, id, input, .. }, token, _)) = fetched
    else {
        return Ok(());
    };
    let result = packed(&input);
    store
        .ack_work_item(&token, Some(WorkItem::ActivityCompleted { instance, execution_id, id, result }))
        .await
}

/// Starts the shipped runtime.
pub(crate) async fn start_runtime(store: Arc<dyn Provider>, clock: Arc<dyn Clock>) -> Arc<Runtime> {
    let activities = ActivityRegistry::builder()
        .register(PACK, |_: ActivityContext, input: String| async move { Ok(packed(&input)) })
        .build();
    let order = |ctx: OrchestrationContext, input: String| async move {
        let packed = ctx.schedule_activity(PACK, input).await?;
        let note = ctx.dequeue_event(NOTES).await;
        Ok(output(&packed, &note))
    };
    let orchestrations = OrchestrationRegistry::builder().register(ORDER, order).build();
    let options = RuntimeOptions { clock, ..RuntimeOptions::default() };
    Runtime::start_with_options(store, activities, orchestrations, options).await
}
