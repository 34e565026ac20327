//! Decoding stored rows, failing closed.

use outlast_model::{Event, json};

/// All events of an execution from their stored texts, or the reason why one does not decode. Never a part.
pub fn decode_history<'a>(
    instance: &str,
    execution_id: u64,
    texts: impl IntoIterator<Item = &'a str>,
) -> Result<Vec<Event>, String> {
    let decoded = texts.into_iter().map(json::decode_event).collect::<Result<Vec<_>, _>>();
    decoded.map_err(|error| reason(instance, execution_id, &error.to_string()))
}

/// Why a history does not decode, with its owner.
pub fn reason(instance: &str, execution_id: u64, error: &str) -> String {
    format!("history of instance '{instance}', execution {execution_id}: {error}")
}
