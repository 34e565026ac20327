//! Fetching a turn for a runtime that may hold the execution in memory already.

use crate::{DispatcherCapabilityFilter, KvEntry, OrchestrationItem};
use outlast_model::Event;
use std::collections::HashMap;
use std::time::Duration;

/// What [`Provider::fetch_turn`](crate::Provider::fetch_turn) is asked for.
#[derive(Debug, Clone, Copy)]
pub struct TurnRequest<'a> {
    /// How long the lease lasts.
    pub lock_timeout: Duration,
    /// How long to wait for a message.
    pub poll_timeout: Duration,
    /// Which pinned versions the caller can replay.
    pub filter: Option<&'a DispatcherCapabilityFilter>,
    /// Whether to read history and key-value snapshot along with the messages. A caller that holds executions
    /// warm says `false`, compares [`FetchedTurn::last_event_id`] with what it holds, and asks
    /// [`Provider::load_turn`](crate::Provider::load_turn) only when it has nothing or is behind.
    pub with_history: bool,
}

/// A locked turn.
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
    /// Whether its current execution has completed or failed, so that a turn for it has nothing to run. `None`: not known.
    pub has_ended: Option<bool>,
    /// When the instance was created, by the store's time, where it has a row: tells it from another instance that had the
    /// same id and was deleted. `None`: not known.
    pub created_at_ms: Option<u64>,
    /// The store's time at the fetch, where the store has a clock of its own.
    pub now_ms: Option<u64>,
}

/// What replay needs of a turn that was fetched without its history.
#[derive(Debug, Clone)]
pub struct LoadedTurn {
    /// Events of the execution, by ascending id; empty when `history_error` is set.
    pub history: Vec<Event>,
    /// Key-value state as finished executions left it.
    pub kv_snapshot: HashMap<String, KvEntry>,
    /// Why history or snapshot could not be decoded.
    pub history_error: Option<String>,
}
