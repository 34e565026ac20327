//! Messages of a batch, by the event that they answer.

use outlast_model::{AppErrorKind, ErrorDetails, WorkItem};

/// A message before it is addressed.
#[derive(Debug, Clone)]
pub(crate) enum Message {
    Done(u64, String),
    Failed(u64, ErrorDetails),
    Fired(u64),
    ChildDone(u64, String),
    ChildFailed(u64, ErrorDetails),
    Raised(String, String),
    Queued(String, String),
    Cancel(String),
    /// Addressed by the test.
    Item(WorkItem),
}

pub(crate) fn done(id: u64, result: &str) -> Message {
    Message::Done(id, result.to_string())
}

pub(crate) fn fails(id: u64, error: &str) -> Message {
    Message::Failed(id, application(AppErrorKind::ActivityFailed, error))
}

/// A failure that no code sees.
pub(crate) fn breaks(id: u64) -> Message {
    Message::Failed(id, infrastructure())
}

pub(crate) fn fired(id: u64) -> Message {
    Message::Fired(id)
}

pub(crate) fn child_done(id: u64, result: &str) -> Message {
    Message::ChildDone(id, result.to_string())
}

pub(crate) fn child_fails(id: u64, error: &str) -> Message {
    Message::ChildFailed(id, application(AppErrorKind::OrchestrationFailed, error))
}

pub(crate) fn child_breaks(id: u64) -> Message {
    Message::ChildFailed(id, infrastructure())
}

pub(crate) fn raise(name: &str, data: &str) -> Message {
    Message::Raised(name.to_string(), data.to_string())
}

pub(crate) fn enqueue(queue: &str, data: &str) -> Message {
    Message::Queued(queue.to_string(), data.to_string())
}

pub(crate) fn cancel(reason: &str) -> Message {
    Message::Cancel(reason.to_string())
}

pub(crate) fn application(kind: AppErrorKind, message: &str) -> ErrorDetails {
    ErrorDetails::Application { kind, message: message.to_string(), retryable: false }
}

pub(crate) fn infrastructure() -> ErrorDetails {
    ErrorDetails::Infrastructure {
        operation: "disk".to_string(),
        message: "on fire".to_string(),
        retryable: false,
    }
}

impl Message {
    pub(crate) fn address(self, instance: &str, execution_id: u64) -> WorkItem {
        let instance = instance.to_string();
        match self {
            Self::Done(id, result) => WorkItem::ActivityCompleted { instance, execution_id, id, result },
            Self::Failed(id, details) => WorkItem::ActivityFailed { instance, execution_id, id, details },
            Self::Fired(id) => WorkItem::TimerFired { instance, execution_id, id, fire_at_ms: 0 },
            Self::ChildDone(parent_id, result) => WorkItem::SubOrchCompleted {
                parent_instance: instance,
                parent_execution_id: execution_id,
                parent_id,
                result,
            },
            Self::ChildFailed(parent_id, details) => WorkItem::SubOrchFailed {
                parent_instance: instance,
                parent_execution_id: execution_id,
                parent_id,
                details,
            },
            Self::Raised(name, data) => WorkItem::ExternalRaised { instance, name, data },
            Self::Queued(name, data) => WorkItem::QueueMessage { instance, name, data },
            Self::Cancel(reason) => WorkItem::CancelInstance { instance, reason },
            Self::Item(item) => item,
        }
    }
}

/// A start of an instance, for a parent (instance, event, execution) or for a client.
pub(crate) fn start(instance: &str, parent: Option<(&str, u64, Option<u64>)>) -> WorkItem {
    WorkItem::StartOrchestration {
        instance: instance.to_string(),
        orchestration: "Main".to_string(),
        input: "in".to_string(),
        version: None,
        parent_instance: parent.map(|(instance, ..)| instance.to_string()),
        parent_id: parent.map(|(_, id, _)| id),
        parent_execution_id: parent.and_then(|(.., execution_id)| execution_id),
        execution_id: 1,
    }
}

/// The start of a successor.
pub(crate) fn next(instance: &str, input: &str) -> WorkItem {
    WorkItem::ContinueAsNew {
        instance: instance.to_string(),
        orchestration: "Main".to_string(),
        input: input.to_string(),
        version: None,
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        carry_forward_events: Vec::new(),
        initial_custom_status: None,
    }
}
