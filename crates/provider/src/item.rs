//! The values that a fetch returns and a commit takes.

use outlast_model::{Event, WorkItem};
use std::collections::HashMap;
use std::time::Duration;

/// A leased turn: the messages of an instance, and the history and key-value state that replay needs.
#[derive(Debug, Clone)]
pub struct OrchestrationItem {
    /// The instance.
    pub instance: String,
    /// The name of the orchestration.
    pub orchestration_name: String,
    /// The execution that the history belongs to.
    pub execution_id: u64,
    /// Version of the orchestration, `"unknown"` when nothing is stored.
    pub version: String,
    /// Events of this execution, by ascending id; empty when `history_error` is set.
    pub history: Vec<Event>,
    /// The fetched messages, in order of availability.
    pub messages: Vec<WorkItem>,
    /// The reason why the history or the key-value snapshot does not decode. The lease is held and the delivery is counted.
    pub history_error: Option<String>,
    /// Key-value state after the last *ended* execution; replay adds the writes of this execution.
    pub kv_snapshot: HashMap<String, KvEntry>,
}

/// A stored key-value pair's value.
#[derive(Debug, Clone, PartialEq)]
pub struct KvEntry {
    /// The value.
    pub value: String,
    /// When orchestration code wrote it.
    pub last_updated_at_ms: u64,
}

/// The owner that fetches activities of sessions. All callers with the same `owner_id` are one owner.
#[derive(Debug, Clone)]
pub struct SessionFetchConfig {
    /// The owner.
    pub owner_id: String,
    /// How long the owner holds a claimed session without renewal.
    pub lock_timeout: Duration,
}
