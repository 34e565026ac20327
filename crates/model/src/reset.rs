//! A new execution that begins with the first events of another one.

use crate::{AuditEntry, Event, TurnCommit, WorkItem};
use std::collections::BTreeMap;

/// A reset or a fork: an execution begins with a copy of the first events of another execution. The engine plans it, and a store
/// writes all of it or nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResetPlan {
    /// The instance whose events are copied.
    pub source: String,
    /// The newest execution of the source, which has the events.
    pub execution_id: u64,
    /// The last event of that execution. A store refuses the plan if the execution has gone on since.
    pub last_event_id: u64,
    /// The instance that gets the new execution: the source for a reset, an id that is not taken for a fork.
    pub target: String,
    /// The event that ends the execution of the source as continued; `None` for a fork, and for an execution that has ended.
    pub end: Option<Event>,
    /// The first turn of the new execution: the copied events, the activities, timers and outcomes that the execution waits for, and
    /// the activities of the source that a reset cancels.
    pub begin: TurnCommit,
    /// Messages that the target gets before all messages that wait for it, in this order.
    pub first_messages: Vec<WorkItem>,
    /// The latest time from which on `first_messages` count as available: that of the first event of the execution. A store takes an
    /// earlier time if a message of the target has waited for longer. Messages of an earlier reset can have this time.
    pub first_available_ms: u64,
    /// All keys with which the new execution begins. They replace the keys of the target; the changes in the copied events follow.
    pub keys: BTreeMap<String, ResetKey>,
    /// The custom status after the last copied event.
    pub custom_status: Option<String>,
    /// The record in the audit.
    pub audit: AuditEntry,
}

impl ResetPlan {
    /// Whether the new execution belongs to a new instance.
    pub fn is_fork(&self) -> bool {
        self.source != self.target
    }
}

/// The value of a key, and when it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResetKey {
    /// The value.
    pub value: String,
    /// Milliseconds since the Unix epoch.
    pub last_updated_at_ms: u64,
}
