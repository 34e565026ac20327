//! The operations that an execution started and that have no outcome yet.

use crate::operations::{Started, operations};
use outlast_model::{Event, EventKind, build_child_instance_id};
use serde::Serialize;

/// An operation without an outcome.
///
/// The code may no longer wait for it: a history does not record that a timer lost a race, so the timer is open until it fires.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OpenOperation {
    /// The id of the event that started it.
    pub event_id: u64,
    /// The time of that event.
    pub since_ms: u64,
    /// The operation.
    #[serde(flatten)]
    pub operation: Operation,
}

/// An operation that orchestration code can wait for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Operation {
    /// An activity.
    Activity {
        /// Its name.
        name: String,
        /// The tag of the nodes that may run it.
        tag: Option<String>,
        /// The session that it runs in.
        session_id: Option<String>,
    },
    /// A timer.
    Timer {
        /// When it is due.
        fire_at_ms: u64,
    },
    /// A positional event.
    Event {
        /// Its name.
        name: String,
    },
    /// A message of a queue.
    Queue {
        /// The queue.
        name: String,
    },
    /// A child.
    Child {
        /// Its orchestration.
        name: String,
        /// Its instance.
        instance: String,
    },
}

/// The open operations of an execution, in the order in which they started; empty for an execution that has ended.
///
/// | operation | ends with |
/// |---|---|
/// | activity, child | its outcome, or the event that records the request to cancel it |
/// | timer | its fired event |
/// | event | the event, which ends the oldest open wait of its name, or the event that records the cancelled wait |
/// | queue message | a message: each delivered message of a queue ends one wait that was not cancelled |
pub fn open_operations(history: &[Event]) -> Vec<OpenOperation> {
    if history.last().is_some_and(Event::is_terminal) {
        return Vec::new();
    }
    let open = operations(history).all.into_iter().filter(|started| started.end.is_none());
    open.filter_map(|started| OpenOperation::of(&started)).collect()
}

impl OpenOperation {
    fn of(started: &Started<'_>) -> Option<Self> {
        let event = started.event;
        let operation = Operation::of(event)?;
        Some(Self { event_id: event.event_id, since_ms: event.timestamp_ms, operation })
    }
}

impl Operation {
    /// The operation that an event starts.
    pub(crate) fn of(event: &Event) -> Option<Self> {
        Some(match &event.kind {
            EventKind::ActivityScheduled { name, session_id, tag, .. } => {
                Self::Activity { name: name.clone(), tag: tag.clone(), session_id: session_id.clone() }
            }
            EventKind::TimerCreated { fire_at_ms } => Self::Timer { fire_at_ms: *fire_at_ms },
            EventKind::SubOrchestrationScheduled { name, instance, .. } => {
                // A generated id is stored without the id of the parent.
                let instance = build_child_instance_id(&event.instance_id, instance);
                Self::Child { name: name.clone(), instance }
            }
            EventKind::ExternalSubscribed { name } => Self::Event { name: name.clone() },
            EventKind::QueueSubscribed { name } => Self::Queue { name: name.clone() },
            _ => return None,
        })
    }
}
