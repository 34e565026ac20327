//! Events, and the metadata that a turn commits along with them.

use outlast_provider::ExecutionMetadata;
use outlast_provider::model::{AppErrorKind, ErrorDetails, Event, EventKind, INITIAL_EXECUTION_ID};

/// An event of execution 1.
pub(crate) fn event(instance: &str, event_id: u64, kind: EventKind) -> Event {
    event_in(instance, INITIAL_EXECUTION_ID, event_id, kind)
}

pub(crate) fn event_in(instance: &str, execution_id: u64, event_id: u64, kind: EventKind) -> Event {
    Event::with_event_id(event_id, instance, execution_id, None, kind)
}

/// Event 1 of execution 1.
pub(crate) fn started(instance: &str) -> Event {
    started_in(instance, INITIAL_EXECUTION_ID)
}

/// Event 1 of an execution.
pub(crate) fn started_in(instance: &str, execution_id: u64) -> Event {
    event_in(instance, execution_id, 1, started_kind())
}

pub(crate) fn event_ids(events: &[Event]) -> Vec<u64> {
    events.iter().map(Event::event_id).collect()
}

pub(crate) fn started_kind() -> EventKind {
    EventKind::OrchestrationStarted {
        name: "TestOrch".to_string(),
        version: "1.0.0".to_string(),
        input: "{}".to_string(),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        carry_forward_events: None,
        initial_custom_status: None,
    }
}

pub(crate) fn scheduled_kind(name: &str) -> EventKind {
    EventKind::ActivityScheduled {
        name: name.to_string(),
        input: "{}".to_string(),
        session_id: None,
        tag: None,
    }
}

pub(crate) fn completed_kind(output: &str) -> EventKind {
    EventKind::OrchestrationCompleted { output: output.to_string() }
}

pub(crate) fn continued_kind(input: &str) -> EventKind {
    EventKind::OrchestrationContinuedAsNew { input: input.to_string() }
}

pub(crate) fn custom_status_kind(status: Option<&str>) -> EventKind {
    EventKind::CustomStatusUpdated { status: status.map(str::to_string) }
}

pub(crate) fn value_kind(key: &str, value: &str, last_updated_at_ms: u64) -> EventKind {
    EventKind::KeyValueSet { key: key.to_string(), value: value.to_string(), last_updated_at_ms }
}

/// A failure that is not retryable.
pub(crate) fn failure(kind: AppErrorKind, message: &str) -> ErrorDetails {
    ErrorDetails::Application { kind, message: message.to_string(), retryable: false }
}

/// Name and version, as a first turn sends them.
pub(crate) fn named() -> ExecutionMetadata {
    named_as("TestOrch", "1.0.0")
}

pub(crate) fn named_as(name: &str, version: &str) -> ExecutionMetadata {
    ExecutionMetadata {
        orchestration_name: Some(name.to_string()),
        orchestration_version: Some(version.to_string()),
        ..ExecutionMetadata::default()
    }
}

/// A status with its output and nothing else.
pub(crate) fn status(status: &str, output: &str) -> ExecutionMetadata {
    ExecutionMetadata {
        status: Some(status.to_string()),
        output: Some(output.to_string()),
        ..ExecutionMetadata::default()
    }
}

/// Name, version, status, output and parent, as a turn that creates an instance sends them.
pub(crate) fn ended(state: &str, output: &str, parent: Option<&str>) -> ExecutionMetadata {
    ExecutionMetadata {
        status: Some(state.to_string()),
        output: Some(output.to_string()),
        parent_instance_id: parent.map(str::to_string),
        ..named()
    }
}
