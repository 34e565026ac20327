//! The client, on stores without a runtime: the tests commit turns themselves.

mod errors;
mod inputs;
mod kv;
mod managing;
mod sending;
mod starting;
mod status;
mod stores;
mod unrecorded;
mod waiting;

use outlast_memory::MemoryProvider;
use outlast_model::{ErrorDetails, Event, EventKind, WorkItem};
use outlast_provider::{ExecutionMetadata, Provider};
use outlast_runtime::{Client, ClientError};
use std::sync::Arc;
use std::time::Duration;

const LEASE: Duration = Duration::from_secs(3_600);

fn memory() -> (Arc<MemoryProvider>, Client) {
    let store = Arc::new(MemoryProvider::new());
    (Arc::clone(&store), Client::new(store))
}

/// The messages of the next turn, and its token.
async fn fetch(store: &dyn Provider) -> (Vec<WorkItem>, String) {
    let fetched = store.fetch_orchestration_item(LEASE, Duration::ZERO, None).await.unwrap();
    let (item, token, _) = fetched.expect("a turn is ready");
    (item.messages, token)
}

/// The messages of the next turn, which is given back.
async fn peek(store: &dyn Provider) -> Vec<WorkItem> {
    let (messages, token) = fetch(store).await;
    store.abandon_orchestration_item(&token, None, true).await.unwrap();
    messages
}

async fn is_idle(store: &dyn Provider) -> bool {
    store.fetch_orchestration_item(LEASE, Duration::ZERO, None).await.unwrap().is_none()
}

fn started() -> EventKind {
    EventKind::OrchestrationStarted {
        name: "Order".into(),
        version: "1.0.0".into(),
        input: "{}".into(),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        carry_forward_events: None,
        initial_custom_status: None,
    }
}

fn completed(output: &str) -> EventKind {
    EventKind::OrchestrationCompleted { output: output.into() }
}

fn failed(message: &str) -> EventKind {
    EventKind::OrchestrationFailed { details: infrastructure("work", message) }
}

fn infrastructure(operation: &str, message: &str) -> ErrorDetails {
    ErrorDetails::Infrastructure { operation: operation.into(), message: message.into(), retryable: false }
}

fn says(status: &str) -> EventKind {
    EventKind::CustomStatusUpdated { status: Some(status.into()) }
}

fn sets(key: &str, value: &str) -> EventKind {
    EventKind::KeyValueSet { key: key.into(), value: value.into(), last_updated_at_ms: 7 }
}

/// The metadata of a turn with these events.
fn metadata(kinds: &[EventKind]) -> ExecutionMetadata {
    let (status, output) = match kinds.last() {
        Some(EventKind::OrchestrationCompleted { output }) => (Some("Completed"), Some(output.clone())),
        Some(EventKind::OrchestrationFailed { details }) => (Some("Failed"), Some(details.display_message())),
        Some(EventKind::OrchestrationContinuedAsNew { input }) => {
            (Some("ContinuedAsNew"), Some(input.clone()))
        }
        _ => (None, None),
    };
    ExecutionMetadata {
        status: status.map(str::to_string),
        output,
        orchestration_name: Some("Order".into()),
        orchestration_version: Some("1.0.0".into()),
        ..ExecutionMetadata::default()
    }
}

/// Commits a turn of an instance, whose first event has this id.
async fn turn(store: &dyn Provider, instance: &str, execution_id: u64, first_id: u64, kinds: Vec<EventKind>) {
    let message = match first_id {
        1 => start_item(instance, "Order", "{}", None),
        _ => WorkItem::ExternalRaised { instance: instance.into(), name: "n".into(), data: "d".into() },
    };
    store.enqueue_for_orchestrator(message, None).await.unwrap();
    let (_, token) = fetch(store).await;
    let metadata = metadata(&kinds);
    let events =
        (first_id..).zip(kinds).map(|(id, kind)| Event::at(7, id, instance, execution_id, None, kind));
    store
        .ack_orchestration_item(&token, execution_id, events.collect(), vec![], vec![], metadata, vec![])
        .await
        .unwrap();
}

fn start_item(instance: &str, orchestration: &str, input: &str, version: Option<&str>) -> WorkItem {
    WorkItem::StartOrchestration {
        instance: instance.into(),
        orchestration: orchestration.into(),
        input: input.into(),
        version: version.map(str::to_string),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: 1,
    }
}

fn queued(instance: &str, name: &str, data: &str) -> WorkItem {
    WorkItem::QueueMessage { instance: instance.into(), name: name.into(), data: data.into() }
}

/// The message of an `InvalidInput` error.
fn refusal<T: std::fmt::Debug>(result: Result<T, ClientError>) -> String {
    match result {
        Err(ClientError::InvalidInput { message }) => message,
        other => panic!("not refused: {other:?}"),
    }
}

/// A value that does not encode as JSON.
struct Unencodable;

impl serde::Serialize for Unencodable {
    fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(serde::ser::Error::custom("no form"))
    }
}

/// Advances the paused clock.
async fn pass(ms: u64) {
    let _ = tokio::time::timeout(Duration::from_millis(ms), std::future::pending::<()>()).await;
}

/// The milliseconds that a future takes on the paused clock.
async fn timed<T>(future: impl Future<Output = T>) -> (T, u64) {
    let begun = tokio::time::Instant::now();
    let value = future.await;
    (value, begun.elapsed().as_millis() as u64)
}
