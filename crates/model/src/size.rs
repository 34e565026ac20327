//! The size of an event, as limits count it.

use crate::{AppErrorKind, ErrorDetails, Event, EventKind, PoisonMessageType};

impl Event {
    /// Bytes of the event's payloads and names. Bytes that a store adds are not counted, so that the limit
    /// [`history_bytes`](crate::limits::Limits::history_bytes) means the same on every store.
    pub fn text_bytes(&self) -> usize {
        kind_bytes(&self.kind)
    }
}

impl ErrorDetails {
    /// Bytes of the error's texts.
    pub fn text_bytes(&self) -> usize {
        error_bytes(self)
    }
}

fn kind_bytes(kind: &EventKind) -> usize {
    match kind {
        EventKind::OrchestrationStarted {
            name,
            version,
            input,
            parent_instance,
            carry_forward_events,
            initial_custom_status,
            ..
        } => {
            let carried = carry_forward_events.iter().flatten().map(|(queue, data)| queue.len() + data.len());
            let links = option(parent_instance) + option(initial_custom_status);
            name.len() + version.len() + input.len() + links + carried.sum::<usize>()
        }
        EventKind::ActivityScheduled { name, input, session_id, tag } => {
            name.len() + input.len() + option(session_id) + option(tag)
        }
        EventKind::OrchestrationChained { name, instance, input }
        | EventKind::SubOrchestrationScheduled { name, instance, input } => {
            name.len() + instance.len() + input.len()
        }
        EventKind::OrchestrationFailed { details }
        | EventKind::ActivityFailed { details }
        | EventKind::SubOrchestrationFailed { details } => error_bytes(details),
        EventKind::ExternalEvent { name, data } | EventKind::QueueEventDelivered { name, data } => {
            name.len() + data.len()
        }
        EventKind::KeyValueSet { key, value, .. } => key.len() + value.len(),
        EventKind::CustomStatusUpdated { status } => option(status),
        EventKind::OrchestrationContinuedAsNew { input: text }
        | EventKind::OrchestrationCompleted { output: text }
        | EventKind::ActivityCompleted { result: text }
        | EventKind::SubOrchestrationCompleted { result: text }
        | EventKind::ActivityCancelRequested { reason: text }
        | EventKind::SubOrchestrationCancelRequested { reason: text }
        | EventKind::OrchestrationCancelRequested { reason: text }
        | EventKind::ExternalSubscribedCancelled { reason: text }
        | EventKind::QueueSubscriptionCancelled { reason: text }
        | EventKind::ExternalSubscribed { name: text }
        | EventKind::QueueSubscribed { name: text }
        | EventKind::KeyValueCleared { key: text } => text.len(),
        EventKind::TimerCreated { .. } | EventKind::TimerFired { .. } | EventKind::KeyValuesCleared => 0,
        #[cfg(feature = "replay-version-test")]
        EventKind::ExternalSubscribed2 { name, topic } => name.len() + topic.len(),
        #[cfg(feature = "replay-version-test")]
        EventKind::ExternalEvent2 { name, topic, data } => name.len() + topic.len() + data.len(),
    }
}

fn error_bytes(details: &ErrorDetails) -> usize {
    match details {
        ErrorDetails::Infrastructure { operation, message, .. } => operation.len() + message.len(),
        ErrorDetails::Configuration { resource, message, .. } => resource.len() + option(message),
        ErrorDetails::Application { kind: AppErrorKind::Cancelled { reason }, message, .. } => {
            reason.len() + message.len()
        }
        ErrorDetails::Application { message, .. } => message.len(),
        ErrorDetails::Poison {
            message_type: PoisonMessageType::FailedDeserialization { error, .. },
            message,
            ..
        } => error.len() + message.len(),
        ErrorDetails::Poison { message, .. } => message.len(),
    }
}

fn option(text: &Option<String>) -> usize {
    text.as_ref().map_or(0, String::len)
}
