//! Decisions of orchestration code, before they become events.

/// A decision of orchestration code. All but [`Action::ContinueAsNew`] map to exactly one event kind.
///
/// `scheduling_event_id` is 0 until the action is bound to its event.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "fields mirror the event each action becomes")]
pub enum Action {
    /// Run an activity.
    CallActivity {
        scheduling_event_id: u64,
        name: String,
        input: String,
        session_id: Option<String>,
        tag: Option<String>,
    },
    /// Set a timer.
    CreateTimer { scheduling_event_id: u64, fire_at_ms: u64 },
    /// Wait for a positional external event.
    WaitExternal { scheduling_event_id: u64, name: String },
    /// Start a detached orchestration.
    StartOrchestrationDetached {
        scheduling_event_id: u64,
        name: String,
        version: Option<String>,
        instance: String,
        input: String,
    },
    /// Start a child orchestration.
    StartSubOrchestration {
        scheduling_event_id: u64,
        name: String,
        version: Option<String>,
        instance: String,
        input: String,
    },
    /// End this execution and begin the next.
    ContinueAsNew { input: String, version: Option<String> },
    /// Set or clear the custom status.
    UpdateCustomStatus { status: Option<String> },
    /// Take a message from a persistent queue.
    DequeueEvent { scheduling_event_id: u64, name: String },
    /// Wait for a positional external event with a topic.
    #[cfg(feature = "replay-version-test")]
    WaitExternal2 { scheduling_event_id: u64, name: String, topic: String },
    /// Write a key.
    SetKeyValue { key: String, value: String, last_updated_at_ms: u64 },
    /// Remove a key.
    ClearKeyValue { key: String },
    /// Remove all keys.
    ClearKeyValues,
}

/// The operation of a durable future.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "the name of the variant is its description")]
pub enum ScheduleKind {
    /// An activity.
    Activity { name: String },
    /// A timer.
    Timer,
    /// A positional external event.
    ExternalWait { event_name: String },
    /// A message of a persistent queue.
    QueueDequeue { event_name: String },
    /// A child orchestration.
    SubOrchestration { token: u64 },
}

/// Severity of a trace line.
#[derive(Debug, Clone)]
pub enum LogLevel {
    /// Information.
    Info,
    /// A warning.
    Warn,
    /// An error.
    Error,
}
