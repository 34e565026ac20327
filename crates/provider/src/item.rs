//! What a fetch hands out and what a commit takes back.

use outlast_model::{Event, WorkItem};
use std::collections::HashMap;
use std::time::Duration;

/// A locked turn: the messages that wait for an instance, and what replay needs to process them.
#[derive(Debug, Clone)]
pub struct OrchestrationItem {
    /// The instance.
    pub instance: String,
    /// Its orchestration.
    pub orchestration_name: String,
    /// The execution that the history belongs to.
    pub execution_id: u64,
    /// Version of the orchestration, `"unknown"` when nothing is stored.
    pub version: String,
    /// Events of this execution, by ascending id; empty when `history_error` is set.
    pub history: Vec<Event>,
    /// The fetched messages, in order of availability.
    pub messages: Vec<WorkItem>,
    /// Why history or key-value snapshot could not be decoded. The lease is held and the attempt counted.
    pub history_error: Option<String>,
    /// Key-value state as *finished* executions left it; replay adds this execution's own writes.
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

/// Who asks for session-bound work. All callers with one `owner_id` are one owner.
#[derive(Debug, Clone)]
pub struct SessionFetchConfig {
    /// The owner.
    pub owner_id: String,
    /// How long a claimed session belongs to it without renewal.
    pub lock_timeout: Duration,
}
