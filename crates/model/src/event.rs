//! Events: the entries of an execution's history, which only grows.

use crate::{CONTRACT_VERSION, ErrorDetails, wall_clock_ms};
use serde::{Deserialize, Serialize};

/// One entry of an execution's history.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
pub struct Event {
    /// Position in the execution's history; the first is 1.
    pub event_id: u64,
    /// For completions and cancellation notes, the id of the scheduling event.
    pub source_event_id: Option<u64>,
    /// The id of the instance.
    pub instance_id: String,
    /// The id of the execution.
    pub execution_id: u64,
    /// When the event was made, in milliseconds since the Unix epoch.
    pub timestamp_ms: u64,
    /// The contract version that wrote the event; the first event's stamp selects the replay rules.
    pub duroxide_version: String,
    /// The kind of the event, with its payload. Flattened, so that an event is one JSON object with a `type` key.
    #[serde(flatten)]
    pub kind: EventKind,
}

impl Event {
    /// An event stamped with the machine's clock.
    pub fn with_event_id(
        event_id: u64,
        instance_id: impl Into<String>,
        execution_id: u64,
        source_event_id: Option<u64>,
        kind: EventKind,
    ) -> Self {
        Self::at(wall_clock_ms(), event_id, instance_id, execution_id, source_event_id, kind)
    }

    /// An event stamped with the machine's clock whose id (0 here) is assigned later.
    pub fn new(
        instance_id: impl Into<String>,
        execution_id: u64,
        source_event_id: Option<u64>,
        kind: EventKind,
    ) -> Self {
        Self::with_event_id(0, instance_id, execution_id, source_event_id, kind)
    }

    /// An event stamped with a given time. Engine and runtime use this constructor, since their clock is passed in.
    pub fn at(
        timestamp_ms: u64,
        event_id: u64,
        instance_id: impl Into<String>,
        execution_id: u64,
        source_event_id: Option<u64>,
        kind: EventKind,
    ) -> Self {
        Self {
            event_id,
            source_event_id,
            instance_id: instance_id.into(),
            execution_id,
            timestamp_ms,
            duroxide_version: CONTRACT_VERSION.to_string(),
            kind,
        }
    }

    /// Position in the execution's history.
    pub fn event_id(&self) -> u64 {
        self.event_id
    }

    /// The id of the scheduling event, for completions and cancellation notes.
    pub fn source_event_id(&self) -> Option<u64> {
        self.source_event_id
    }

    /// Whether this event ends its execution.
    pub fn is_terminal(&self) -> bool {
        matches!(
            self.kind,
            EventKind::OrchestrationCompleted { .. }
                | EventKind::OrchestrationFailed { .. }
                | EventKind::OrchestrationContinuedAsNew { .. }
        )
    }
}

/// The payload of an [`Event`].
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
#[serde(tag = "type")]
#[allow(missing_docs, reason = "the fields carry the names that the authoring API explains")]
pub enum EventKind {
    /// The execution began.
    OrchestrationStarted {
        name: String,
        version: String,
        input: String,
        parent_instance: Option<String>,
        parent_id: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_execution_id: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        carry_forward_events: Option<Vec<(String, String)>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        initial_custom_status: Option<String>,
    },
    /// The orchestration returned.
    OrchestrationCompleted { output: String },
    /// The orchestration failed.
    OrchestrationFailed { details: ErrorDetails },
    /// An activity was scheduled.
    ActivityScheduled {
        name: String,
        input: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session_id: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tag: Option<String>,
    },
    /// An activity returned.
    ActivityCompleted { result: String },
    /// An activity failed.
    ActivityFailed { details: ErrorDetails },
    /// The code dropped the future of an activity, or the execution ended before its outcome.
    ActivityCancelRequested { reason: String },
    /// A timer was set.
    TimerCreated { fire_at_ms: u64 },
    /// A timer fired.
    TimerFired { fire_at_ms: u64 },
    /// The code began to wait for a positional event.
    ExternalSubscribed { name: String },
    /// A positional event arrived; matched by name.
    ExternalEvent { name: String, data: String },
    /// A detached orchestration was started.
    OrchestrationChained { name: String, instance: String, input: String },
    /// A child was scheduled.
    SubOrchestrationScheduled { name: String, instance: String, input: String },
    /// A child returned.
    SubOrchestrationCompleted { result: String },
    /// A child failed.
    SubOrchestrationFailed { details: ErrorDetails },
    /// The code dropped the future of a child.
    SubOrchestrationCancelRequested { reason: String },
    /// The execution ended and the next one begins.
    OrchestrationContinuedAsNew { input: String },
    /// Cancellation was requested.
    OrchestrationCancelRequested { reason: String },
    /// The code dropped a wait for a positional event, or the execution ended before the event.
    ExternalSubscribedCancelled { reason: String },
    /// The code began to wait for a queue message.
    #[serde(rename = "ExternalSubscribedPersistent")]
    QueueSubscribed { name: String },
    /// A queue message arrived.
    #[serde(rename = "ExternalEventPersistent")]
    QueueEventDelivered { name: String, data: String },
    /// The code dropped a dequeue, or the execution ended before the message.
    #[serde(rename = "ExternalSubscribedPersistentCancelled")]
    QueueSubscriptionCancelled { reason: String },
    /// The custom status changed; `None` clears it.
    CustomStatusUpdated { status: Option<String> },
    /// A key was written.
    KeyValueSet {
        key: String,
        value: String,
        #[serde(default)]
        last_updated_at_ms: u64,
    },
    /// A key was removed.
    KeyValueCleared { key: String },
    /// All keys were removed.
    KeyValuesCleared,
    /// The code began to wait for a positional event with a topic.
    #[cfg(feature = "replay-version-test")]
    ExternalSubscribed2 { name: String, topic: String },
    /// A positional event with a topic arrived.
    #[cfg(feature = "replay-version-test")]
    ExternalEvent2 { name: String, topic: String, data: String },
}

impl EventKind {
    /// The value of the JSON `type` key.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::OrchestrationStarted { .. } => "OrchestrationStarted",
            Self::OrchestrationCompleted { .. } => "OrchestrationCompleted",
            Self::OrchestrationFailed { .. } => "OrchestrationFailed",
            Self::ActivityScheduled { .. } => "ActivityScheduled",
            Self::ActivityCompleted { .. } => "ActivityCompleted",
            Self::ActivityFailed { .. } => "ActivityFailed",
            Self::ActivityCancelRequested { .. } => "ActivityCancelRequested",
            Self::TimerCreated { .. } => "TimerCreated",
            Self::TimerFired { .. } => "TimerFired",
            Self::ExternalSubscribed { .. } => "ExternalSubscribed",
            Self::ExternalEvent { .. } => "ExternalEvent",
            Self::OrchestrationChained { .. } => "OrchestrationChained",
            Self::SubOrchestrationScheduled { .. } => "SubOrchestrationScheduled",
            Self::SubOrchestrationCompleted { .. } => "SubOrchestrationCompleted",
            Self::SubOrchestrationFailed { .. } => "SubOrchestrationFailed",
            Self::SubOrchestrationCancelRequested { .. } => "SubOrchestrationCancelRequested",
            Self::OrchestrationContinuedAsNew { .. } => "OrchestrationContinuedAsNew",
            Self::OrchestrationCancelRequested { .. } => "OrchestrationCancelRequested",
            Self::ExternalSubscribedCancelled { .. } => "ExternalSubscribedCancelled",
            Self::QueueSubscribed { .. } => "ExternalSubscribedPersistent",
            Self::QueueEventDelivered { .. } => "ExternalEventPersistent",
            Self::QueueSubscriptionCancelled { .. } => "ExternalSubscribedPersistentCancelled",
            Self::CustomStatusUpdated { .. } => "CustomStatusUpdated",
            Self::KeyValueSet { .. } => "KeyValueSet",
            Self::KeyValueCleared { .. } => "KeyValueCleared",
            Self::KeyValuesCleared => "KeyValuesCleared",
            #[cfg(feature = "replay-version-test")]
            Self::ExternalSubscribed2 { .. } => "ExternalSubscribed2",
            #[cfg(feature = "replay-version-test")]
            Self::ExternalEvent2 { .. } => "ExternalEvent2",
        }
    }
}
