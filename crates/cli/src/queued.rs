//! A message or an activity of a queue, as commands show it.

use outlast::providers::QueuedItem;
use serde::Serialize;

#[derive(Serialize)]
pub(crate) struct Queued {
    /// Null if the stored text does not decode.
    pub(crate) kind: Option<String>,
    pub(crate) name: Option<String>,
    execution: Option<u64>,
    pub(crate) of_event: Option<u64>,
    pub(crate) bytes: u64,
    pub(crate) visible_ms: u64,
    pub(crate) lease_until_ms: Option<u64>,
    pub(crate) deliveries: u32,
}

impl From<QueuedItem> for Queued {
    fn from(item: QueuedItem) -> Self {
        Self {
            kind: item.kind,
            name: item.name,
            execution: item.execution_id,
            of_event: item.id,
            bytes: item.stored_bytes,
            visible_ms: item.visible_at,
            lease_until_ms: item.locked_until,
            deliveries: item.attempt_count,
        }
    }
}
