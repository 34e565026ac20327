//! Work items: the entries of the two queues.

use crate::ErrorDetails;
use serde::{Deserialize, Serialize};

/// One message. [`WorkItem::ActivityExecute`] belongs to the worker queue, all others to the orchestrator queue.
///
/// JSON is externally tagged. `None` is written as `null` for the three optional fields of `StartOrchestration`
/// without a serde attribute, and left out everywhere else.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields carry the names that events and the authoring API explain")]
pub enum WorkItem {
    /// Begin an instance. `version: None` lets the runtime choose.
    StartOrchestration {
        instance: String,
        orchestration: String,
        input: String,
        version: Option<String>,
        parent_instance: Option<String>,
        parent_id: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_execution_id: Option<u64>,
        execution_id: u64,
    },
    /// Run an activity; `id` is its scheduling event's id.
    ActivityExecute {
        instance: String,
        execution_id: u64,
        id: u64,
        name: String,
        input: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session_id: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tag: Option<String>,
    },
    /// An activity returned.
    ActivityCompleted { instance: String, execution_id: u64, id: u64, result: String },
    /// An activity failed.
    ActivityFailed { instance: String, execution_id: u64, id: u64, details: ErrorDetails },
    /// A timer is due; invisible until `fire_at_ms`.
    TimerFired { instance: String, execution_id: u64, id: u64, fire_at_ms: u64 },
    /// A client raised a positional event.
    ExternalRaised { instance: String, name: String, data: String },
    /// A child finished; routed to its parent.
    SubOrchCompleted { parent_instance: String, parent_execution_id: u64, parent_id: u64, result: String },
    /// A child failed; routed to its parent.
    SubOrchFailed { parent_instance: String, parent_execution_id: u64, parent_id: u64, details: ErrorDetails },
    /// Cancels an instance.
    CancelInstance { instance: String, reason: String },
    /// Begin the next execution of an instance.
    ContinueAsNew {
        instance: String,
        orchestration: String,
        input: String,
        version: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_instance: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_id: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_execution_id: Option<u64>,
        #[serde(default)]
        carry_forward_events: Vec<(String, String)>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        initial_custom_status: Option<String>,
    },
    /// A message for a persistent queue.
    QueueMessage { instance: String, name: String, data: String },
    /// A positional event with a topic.
    #[cfg(feature = "replay-version-test")]
    ExternalRaised2 { instance: String, name: String, topic: String, data: String },
}

impl WorkItem {
    /// The instance that this item is delivered to, or runs for: the parent for a child's outcome.
    pub fn target_instance(&self) -> &str {
        match self {
            Self::SubOrchCompleted { parent_instance, .. } | Self::SubOrchFailed { parent_instance, .. } => {
                parent_instance
            }
            Self::StartOrchestration { instance, .. }
            | Self::ActivityExecute { instance, .. }
            | Self::ActivityCompleted { instance, .. }
            | Self::ActivityFailed { instance, .. }
            | Self::TimerFired { instance, .. }
            | Self::ExternalRaised { instance, .. }
            | Self::CancelInstance { instance, .. }
            | Self::ContinueAsNew { instance, .. }
            | Self::QueueMessage { instance, .. } => instance,
            #[cfg(feature = "replay-version-test")]
            Self::ExternalRaised2 { instance, .. } => instance,
        }
    }

    /// The variant's name, for messages and metrics that must not show payloads.
    pub fn kind_name(&self) -> &'static str {
        match self {
            Self::StartOrchestration { .. } => "StartOrchestration",
            Self::ActivityExecute { .. } => "ActivityExecute",
            Self::ActivityCompleted { .. } => "ActivityCompleted",
            Self::ActivityFailed { .. } => "ActivityFailed",
            Self::TimerFired { .. } => "TimerFired",
            Self::ExternalRaised { .. } => "ExternalRaised",
            Self::SubOrchCompleted { .. } => "SubOrchCompleted",
            Self::SubOrchFailed { .. } => "SubOrchFailed",
            Self::CancelInstance { .. } => "CancelInstance",
            Self::ContinueAsNew { .. } => "ContinueAsNew",
            Self::QueueMessage { .. } => "QueueMessage",
            #[cfg(feature = "replay-version-test")]
            Self::ExternalRaised2 { .. } => "ExternalRaised2",
        }
    }
}
