//! Starts with a policy for instance ids that are taken.

use crate::{ErrorClass, ProviderError};
use outlast_model::WorkItem;
use std::time::Duration;

/// The policy for an instance that exists or whose start waits in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartPolicy {
    /// Change nothing.
    FailIfExists,
    /// Enqueue no start, and deliver the messages to the existing instance.
    UseExisting,
}

/// The arguments of [`Provider::start_orchestration`](crate::Provider::start_orchestration).
#[derive(Debug, Clone)]
pub struct StartRequest {
    /// A [`WorkItem::StartOrchestration`].
    pub start: WorkItem,
    /// How long the start stays invisible.
    pub delay: Option<Duration>,
    /// The policy for an id that is taken.
    pub policy: StartPolicy,
    /// [`WorkItem::QueueMessage`]s for the same instance, delivered with the start (signal-with-start).
    pub messages: Vec<WorkItem>,
}

/// The result of a start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StartOutcome {
    /// The start was enqueued.
    Started,
    /// The id was taken; no start was enqueued.
    AlreadyExists {
        /// Status of the current execution; `None` before the first commit.
        status: Option<String>,
    },
}

impl StartRequest {
    /// The instance to start, or a permanent error with the fault of the request.
    pub fn checked_instance(&self) -> Result<&str, ProviderError> {
        let refuse = |message: String| {
            Err(ProviderError::permanent("start_orchestration", message).of_class(ErrorClass::Refused))
        };
        let WorkItem::StartOrchestration { instance, .. } = &self.start else {
            return refuse(format!(
                "{} cannot start an instance: pass a StartOrchestration",
                self.start.kind_name()
            ));
        };
        for message in &self.messages {
            if !matches!(message, WorkItem::QueueMessage { instance: target, .. } if target == instance) {
                return refuse(format!(
                    "{} for '{}' cannot go along with the start of '{instance}': pass queue messages for that instance",
                    message.kind_name(),
                    message.target_instance(),
                ));
            }
        }
        Ok(instance)
    }
}
