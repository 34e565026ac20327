//! Turns for a runtime that may hold the execution in memory.

use crate::{DispatcherCapabilityFilter, KvEntry, OrchestrationItem};
use outlast_model::Event;
use std::collections::HashMap;
use std::time::Duration;

/// The arguments of [`Provider::fetch_turn`](crate::Provider::fetch_turn).
#[derive(Debug, Clone, Copy)]
pub struct TurnRequest<'a> {
    /// How long the lease lasts.
    pub lock_timeout: Duration,
    /// How long to wait for a message.
    pub poll_timeout: Duration,
    /// The pinned versions that the caller can replay.
    pub filter: Option<&'a DispatcherCapabilityFilter>,
    /// Whether to read the history and the key-value snapshot. A caller that holds executions in memory passes `false`, compares
    /// [`FetchedTurn::last_event_id`] with the execution that it holds, and calls
    /// [`Provider::load_turn`](crate::Provider::load_turn) only if that execution is missing or behind.
    pub with_history: bool,
}

/// A leased turn.
#[derive(Debug, Clone)]
pub struct FetchedTurn {
    /// As [`Provider::fetch_orchestration_item`](crate::Provider::fetch_orchestration_item) returns it; history
    /// and snapshot are empty unless `history_loaded`.
    pub item: OrchestrationItem,
    /// The token of the lease.
    pub lock_token: String,
    /// Highest delivery count among the messages.
    pub attempt_count: u32,
    /// Highest event id of the stored history that belongs to the turn, 0 if there is none. `None`: the store does not
    /// know.
    pub last_event_id: Option<u64>,
    /// Whether history and key-value snapshot were read.
    pub history_loaded: bool,
    /// Whether the current execution has completed or failed, so that a turn runs no code. `None`: not known.
    pub has_ended: Option<bool>,
    /// When the instance was created, by the store's time, if it has a row. Distinguishes the instance from a deleted instance
    /// with the same id. `None`: not known.
    pub created_at_ms: Option<u64>,
    /// The store's time at the fetch, if the store has its own clock.
    pub now_ms: Option<u64>,
}

/// History and key-value snapshot of a turn that was fetched without them.
#[derive(Debug, Clone)]
pub struct LoadedTurn {
    /// Events of the execution, by ascending id; empty when `history_error` is set.
    pub history: Vec<Event>,
    /// Key-value state after the last ended execution.
    pub kv_snapshot: HashMap<String, KvEntry>,
    /// The reason why the history or the snapshot does not decode.
    pub history_error: Option<String>,
}
