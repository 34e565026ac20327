//! The durable operations, one file each. Every file has the same shape: what the author calls, which event a decision
//! becomes (`event`), and which stored event a decision agrees with (`matches`).

pub(crate) mod activity;
pub(crate) mod child;
pub(crate) mod continue_as_new;
pub(crate) mod detached;
pub(crate) mod entropy;
pub(crate) mod kv;
pub(crate) mod queue;
pub(crate) mod retry;
pub(crate) mod signal;
pub(crate) mod status;
pub(crate) mod timer;
#[cfg(feature = "replay-version-test")]
pub(crate) mod topic;

use outlast_model::{Action, EventKind};

/// The event that a decision becomes; `None` for continue-as-new, which ends the execution instead.
pub(crate) fn event(action: &Action, execution_id: u64, event_id: u64) -> Option<EventKind> {
    match action {
        Action::CallActivity { .. } => activity::event(action),
        Action::CreateTimer { .. } => timer::event(action),
        Action::WaitExternal { .. } => signal::event(action),
        Action::DequeueEvent { .. } => queue::event(action),
        Action::StartSubOrchestration { .. } => child::event(action, execution_id, event_id),
        Action::StartOrchestrationDetached { .. } => detached::event(action),
        Action::UpdateCustomStatus { .. } => status::event(action),
        Action::SetKeyValue { .. } | Action::ClearKeyValue { .. } | Action::ClearKeyValues => {
            kv::event(action)
        }
        Action::ContinueAsNew { .. } => None,
        #[cfg(feature = "replay-version-test")]
        Action::WaitExternal2 { .. } => topic::event(action),
    }
}

/// Whether a stored event can be the one that this decision became.
pub(crate) fn matches(action: &Action, recorded: &EventKind) -> bool {
    match recorded {
        EventKind::ActivityScheduled { .. } => activity::matches(action, recorded),
        EventKind::TimerCreated { .. } => timer::matches(action, recorded),
        EventKind::ExternalSubscribed { .. } => signal::matches(action, recorded),
        EventKind::QueueSubscribed { .. } => queue::matches(action, recorded),
        EventKind::SubOrchestrationScheduled { .. } => child::matches(action, recorded),
        EventKind::OrchestrationChained { .. } => detached::matches(action, recorded),
        EventKind::CustomStatusUpdated { .. } => status::matches(action, recorded),
        EventKind::KeyValueSet { .. } | EventKind::KeyValueCleared { .. } | EventKind::KeyValuesCleared => {
            kv::matches(action, recorded)
        }
        #[cfg(feature = "replay-version-test")]
        EventKind::ExternalSubscribed2 { .. } => topic::matches(action, recorded),
        _ => false,
    }
}

/// Whether an event records a decision of the code.
pub(crate) fn is_decision(kind: &EventKind) -> bool {
    is_schedule(kind) || is_note(kind)
}

/// Decisions that must be made again: without them something would run that nobody waits for.
fn is_schedule(kind: &EventKind) -> bool {
    match kind {
        EventKind::ActivityScheduled { .. }
        | EventKind::TimerCreated { .. }
        | EventKind::ExternalSubscribed { .. }
        | EventKind::QueueSubscribed { .. }
        | EventKind::SubOrchestrationScheduled { .. }
        | EventKind::OrchestrationChained { .. } => true,
        #[cfg(feature = "replay-version-test")]
        EventKind::ExternalSubscribed2 { .. } => true,
        _ => false,
    }
}

/// Decisions whose absence is tolerated: status and key-value writes that later code no longer makes.
pub(crate) fn is_note(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::CustomStatusUpdated { .. }
            | EventKind::KeyValueSet { .. }
            | EventKind::KeyValueCleared { .. }
            | EventKind::KeyValuesCleared
    )
}

/// A decision in words, without its payload.
pub(crate) fn describe(action: &Action) -> String {
    match action {
        Action::CallActivity { name, session_id, tag, .. } => activity::describe(name, session_id, tag),
        Action::CreateTimer { .. } => "a timer".to_string(),
        Action::WaitExternal { name, .. } => format!("a wait for event '{name}'"),
        Action::DequeueEvent { name, .. } => format!("a dequeue from '{name}'"),
        Action::StartSubOrchestration { name, .. } => format!("a child orchestration '{name}'"),
        Action::StartOrchestrationDetached { name, instance, .. } => {
            format!("a detached orchestration '{name}' with id '{instance}'")
        }
        Action::UpdateCustomStatus { .. } => "a custom status update".to_string(),
        Action::SetKeyValue { key, .. } => format!("a write of key '{key}'"),
        Action::ClearKeyValue { key } => format!("a removal of key '{key}'"),
        Action::ClearKeyValues => "a removal of all keys".to_string(),
        Action::ContinueAsNew { .. } => "continue-as-new".to_string(),
        #[cfg(feature = "replay-version-test")]
        Action::WaitExternal2 { name, topic, .. } => format!("a wait for event '{name}' on topic '{topic}'"),
    }
}

/// A stored decision in words, without its payload.
pub(crate) fn describe_event(kind: &EventKind) -> String {
    match kind {
        EventKind::ActivityScheduled { name, session_id, tag, .. } => {
            activity::describe(name, session_id, tag)
        }
        EventKind::TimerCreated { .. } => "a timer".to_string(),
        EventKind::ExternalSubscribed { name } => format!("a wait for event '{name}'"),
        EventKind::QueueSubscribed { name } => format!("a dequeue from '{name}'"),
        EventKind::SubOrchestrationScheduled { name, .. } => format!("a child orchestration '{name}'"),
        EventKind::OrchestrationChained { name, instance, .. } => {
            format!("a detached orchestration '{name}' with id '{instance}'")
        }
        EventKind::CustomStatusUpdated { .. } => "a custom status update".to_string(),
        EventKind::KeyValueSet { key, .. } => format!("a write of key '{key}'"),
        EventKind::KeyValueCleared { key } => format!("a removal of key '{key}'"),
        EventKind::KeyValuesCleared => "a removal of all keys".to_string(),
        other => other.type_name().to_string(),
    }
}
