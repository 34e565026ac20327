//! The parts of an event that spans need. Payloads are left behind, so that none waits in memory or reaches a collector.

use outlast::runtime::observer::StartNote;
use outlast::{AppErrorKind, ErrorDetails, Event, EventKind, INITIAL_EXECUTION_ID};

/// An event without its payload.
pub(crate) struct Seen {
    pub(crate) id: u64,
    /// The event that started the operation which this event ends.
    pub(crate) source: Option<u64>,
    pub(crate) at_ms: u64,
    pub(crate) kind: Kind,
}

/// The kind of an event.
pub(crate) enum Kind {
    Started {
        name: String,
        version: String,
        /// The parent and its execution.
        parent: Option<(String, u64)>,
        /// Whether events that arrive before their wait are kept.
        is_buffered: bool,
    },
    Completed,
    Failed(&'static str),
    ContinuedAsNew,
    Activity(String),
    Timer,
    Wait(String),
    Dequeue(String),
    /// The name and the id of the started instance.
    Detached(String, String),
    Event(String),
    Message(String),
    Note(StartNote),
    /// An operation ended.
    Ended(Ending),
    Other,
}

/// The way in which an operation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Done,
    Cancelled,
}

impl Seen {
    pub(crate) fn of(event: &Event) -> Self {
        Self {
            id: event.event_id,
            source: event.source_event_id,
            at_ms: event.timestamp_ms,
            kind: Kind::of(event),
        }
    }

    pub(crate) fn all(events: &[Event]) -> Vec<Self> {
        events.iter().map(Self::of).collect()
    }
}

impl Kind {
    fn of(event: &Event) -> Self {
        match &event.kind {
            EventKind::OrchestrationStarted {
                name, version, parent_instance, parent_execution_id, ..
            } => {
                let parent = parent_instance.clone();
                Self::Started {
                    name: name.clone(),
                    version: version.clone(),
                    parent: parent
                        .map(|parent| (parent, parent_execution_id.unwrap_or(INITIAL_EXECUTION_ID))),
                    // The engine marks executions that keep early events in the stamp of their first event.
                    is_buffered: event.duroxide_version.ends_with("+buffered"),
                }
            }
            EventKind::OrchestrationCompleted { .. } => Self::Completed,
            EventKind::OrchestrationFailed { details } => Self::Failed(error_type(details)),
            EventKind::OrchestrationContinuedAsNew { .. } => Self::ContinuedAsNew,
            EventKind::ActivityScheduled { name, .. } => Self::Activity(name.clone()),
            EventKind::TimerCreated { .. } => Self::Timer,
            EventKind::ExternalSubscribed { name } => Self::Wait(name.clone()),
            EventKind::QueueSubscribed { name } => Self::Dequeue(name.clone()),
            EventKind::OrchestrationChained { name, instance, .. } => {
                Self::Detached(name.clone(), instance.clone())
            }
            EventKind::ExternalEvent { name, .. } => Self::Event(name.clone()),
            EventKind::QueueEventDelivered { name, .. } => {
                StartNote::of(event).map_or_else(|| Self::Message(name.clone()), Self::Note)
            }
            EventKind::TimerFired { .. }
            | EventKind::ActivityCompleted { .. }
            | EventKind::ActivityFailed { .. } => Self::Ended(Ending::Done),
            EventKind::ActivityCancelRequested { .. }
            | EventKind::ExternalSubscribedCancelled { .. }
            | EventKind::QueueSubscriptionCancelled { .. } => Self::Ended(Ending::Cancelled),
            _ => Self::Other,
        }
    }
}

/// The value of the attribute `error.type`.
pub(crate) fn error_type(details: &ErrorDetails) -> &'static str {
    match details {
        ErrorDetails::Application { kind: AppErrorKind::Cancelled { .. }, .. } => "cancelled",
        ErrorDetails::Application { kind: AppErrorKind::Panicked, .. } => "panic",
        ErrorDetails::Application { .. } => "app_error",
        ErrorDetails::Infrastructure { .. } => "infrastructure_error",
        ErrorDetails::Configuration { .. } => "config_error",
        ErrorDetails::Poison { .. } => "poison",
    }
}
