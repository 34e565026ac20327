//! Messages and activities.

use outlast_provider::model::INITIAL_EXECUTION_ID;
use outlast_provider::{ScheduledActivityIdentifier, WorkItem};

/// A start of orchestration `TestOrch`, version 1.0.0.
pub(crate) fn start_item(instance: &str) -> WorkItem {
    start_of(instance, "TestOrch", Some("1.0.0"))
}

pub(crate) fn start_of(instance: &str, orchestration: &str, version: Option<&str>) -> WorkItem {
    WorkItem::StartOrchestration {
        instance: instance.to_string(),
        orchestration: orchestration.to_string(),
        input: "{}".to_string(),
        version: version.map(str::to_string),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: INITIAL_EXECUTION_ID,
    }
}

/// A start of the next execution, with one message carried over.
pub(crate) fn continue_item(instance: &str) -> WorkItem {
    WorkItem::ContinueAsNew {
        instance: instance.to_string(),
        orchestration: "TestOrch".to_string(),
        input: "next".to_string(),
        version: Some("1.0.0".to_string()),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        carry_forward_events: vec![("carried".to_string(), "unread".to_string())],
        initial_custom_status: None,
    }
}

/// An untagged activity of execution 1 without a session; `id` is its scheduling event.
pub(crate) fn activity(instance: &str, id: u64) -> WorkItem {
    activity_with(instance, id, None, None)
}

pub(crate) fn activity_with(
    instance: &str,
    id: u64,
    session_id: Option<&str>,
    tag: Option<&str>,
) -> WorkItem {
    WorkItem::ActivityExecute {
        instance: instance.to_string(),
        execution_id: INITIAL_EXECUTION_ID,
        id,
        name: format!("Activity{id}"),
        input: format!("input-{id}"),
        session_id: session_id.map(str::to_string),
        tag: tag.map(str::to_string),
    }
}

/// A successful completion, in execution 1, of the activity scheduled by event `id`.
pub(crate) fn completed(instance: &str, id: u64) -> WorkItem {
    WorkItem::ActivityCompleted {
        instance: instance.to_string(),
        execution_id: INITIAL_EXECUTION_ID,
        id,
        result: format!("result-{id}"),
    }
}

/// A successful completion, for execution 1 of the parent, of the child scheduled by event `id`.
pub(crate) fn child_completed(parent: &str, id: u64) -> WorkItem {
    WorkItem::SubOrchCompleted {
        parent_instance: parent.to_string(),
        parent_execution_id: INITIAL_EXECUTION_ID,
        parent_id: id,
        result: format!("result-{id}"),
    }
}

pub(crate) fn raised(instance: &str, name: &str, data: &str) -> WorkItem {
    WorkItem::ExternalRaised {
        instance: instance.to_string(),
        name: name.to_string(),
        data: data.to_string(),
    }
}

pub(crate) fn queue_message(instance: &str, name: &str, data: &str) -> WorkItem {
    WorkItem::QueueMessage { instance: instance.to_string(), name: name.to_string(), data: data.to_string() }
}

pub(crate) fn timer(instance: &str, id: u64, fire_at_ms: u64) -> WorkItem {
    WorkItem::TimerFired {
        instance: instance.to_string(),
        execution_id: INITIAL_EXECUTION_ID,
        id,
        fire_at_ms,
    }
}

pub(crate) fn cancel(instance: &str) -> WorkItem {
    WorkItem::CancelInstance { instance: instance.to_string(), reason: "stop".to_string() }
}

pub(crate) fn scheduled(instance: &str, activity_id: u64) -> ScheduledActivityIdentifier {
    ScheduledActivityIdentifier {
        instance: instance.to_string(),
        execution_id: INITIAL_EXECUTION_ID,
        activity_id,
    }
}
