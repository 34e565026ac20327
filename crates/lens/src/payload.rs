//! The fields of events that may be shown to people who may not read payloads.

/// An allow-list: a field that a later version adds is not shown.
const WITHOUT_PAYLOAD: &[&str] = &[
    "event_id",
    "source_event_id",
    "timestamp_ms",
    "type",
    "name",
    "version",
    "instance",
    "parent_instance",
    "parent_id",
    "parent_execution_id",
    "session_id",
    "tag",
    "fire_at_ms",
    "key",
];

/// Whether this field of an event, in its JSON form, never holds a payload.
pub fn is_without_payload(field: &str) -> bool {
    WITHOUT_PAYLOAD.contains(&field)
}
