//! Why a history cannot be cut.

use std::fmt;

/// The reason why a history cannot be cut after an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CutError {
    /// The execution has no such event.
    OutOfRange {
        /// The event.
        event: u64,
        /// The last event of the execution.
        last: u64,
    },
    /// The execution continued as new, and its successor has not begun.
    Continues,
    /// A request to cancel is among the events that would be kept.
    Cancelled {
        /// The event of the request.
        event: u64,
    },
    /// The end of the execution is among the events that would be kept.
    Ending {
        /// The first event of the end.
        event: u64,
    },
    /// Children run whose outcome the new execution would not get.
    RunningChildren {
        /// The instances of the children.
        children: Vec<String>,
        /// The event that scheduled the first of them.
        event: u64,
        /// Whether the caller may ask for their cancellation: not for a fork, whose source goes on with them.
        can_cancel: bool,
    },
    /// A child with an id of its own was started after the cut, and the code could not start it again.
    TakenChild {
        /// The instance of the child.
        child: String,
        /// The event that scheduled it.
        event: u64,
    },
    /// The execution has ended and has changed a key whose earlier value is no longer stored.
    KeysLost {
        /// The key; `None` if all keys were removed.
        key: Option<String>,
    },
}

impl fmt::Display for CutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfRange { last: 0, .. } => write!(f, "the execution has no events"),
            Self::OutOfRange { event, last } => {
                write!(f, "event {event} is out of range: the newest execution has events 1 to {last}")
            }
            Self::Continues => write!(
                f,
                "the execution continued as new and the next one has not begun: try again when it has begun"
            ),
            Self::Cancelled { event } => write!(
                f,
                "event {event} is a request to cancel, so the new execution would end: choose an event before it"
            ),
            Self::Ending { event } => {
                write!(f, "event {event} belongs to the end of the execution: choose an event before it")
            }
            Self::RunningChildren { children, event, can_cancel } => {
                let remedy = match can_cancel {
                    true => "cancel the children with the reset",
                    false => "wait until the children have ended",
                };
                write!(
                    f,
                    "the outcome of running children would be lost: {}; {remedy}, or choose an event before {event}",
                    children.join(", ")
                )
            }
            Self::TakenChild { child, event } => write!(
                f,
                "child '{child}' was started at event {event} under an id of its own, which is taken when the code starts \
                 it again: choose event {event} or a later one"
            ),
            Self::KeysLost { key } => {
                let changed = match key {
                    Some(key) => format!("key '{key}'"),
                    None => "all keys".to_string(),
                };
                write!(
                    f,
                    "the execution has ended and has changed {changed}: the values with which it began are no longer stored"
                )
            }
        }
    }
}

impl std::error::Error for CutError {}
