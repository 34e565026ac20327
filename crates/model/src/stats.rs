//! Size figures of an instance.

use serde::{Deserialize, Serialize};

/// Size figures of one instance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SystemStats {
    /// Events in the current execution.
    pub history_event_count: u64,
    /// Bytes of the current execution's stored events.
    pub history_size_bytes: u64,
    /// Queue messages that the current execution took over from its predecessor.
    pub queue_pending_count: u64,
    /// Keys in the live key-value view.
    pub kv_user_key_count: u64,
    /// Bytes of all values in the live key-value view.
    pub kv_total_value_bytes: u64,
}
