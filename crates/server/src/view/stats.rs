//! The sizes of an instance.

use crate::app::App;
use crate::problem::Problem;
use serde::Serialize;
use utoipa::ToSchema;

/// The sizes of an instance.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Stats {
    /// Events of the current execution.
    events: u64,
    /// Bytes of the stored events of the current execution.
    event_bytes: u64,
    /// Queue messages that the current execution took over from its predecessor.
    carried_messages: u64,
    keys: u64,
    /// Bytes of all values.
    value_bytes: u64,
}

pub(crate) async fn stats(app: &App, id: &str) -> Result<Stats, Problem> {
    let stats = app.client.get_orchestration_stats(id).await?.ok_or_else(|| Problem::no_instance(id))?;
    Ok(Stats {
        events: stats.history_event_count,
        event_bytes: stats.history_size_bytes,
        carried_messages: stats.queue_pending_count,
        keys: stats.kv_user_key_count,
        value_bytes: stats.kv_total_value_bytes,
    })
}
