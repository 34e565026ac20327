//! Encoding and decoding of stored rows. A row decodes completely or is an error.

mod flat;

use crate::{Event, WorkItem};
use std::fmt;

/// A value that could not be encoded, or a stored row that could not be decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonError {
    what: &'static str,
    message: String,
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.message)
    }
}

impl std::error::Error for JsonError {}

/// The stored JSON text of an event.
pub fn encode_event(event: &Event) -> Result<String, JsonError> {
    encode("cannot encode event", event)
}

/// A stored event.
pub fn decode_event(text: &str) -> Result<Event, JsonError> {
    flat::event(text).map_or_else(|| decode("cannot decode event", text), Ok)
}

/// The stored JSON text of a work item.
pub fn encode_work_item(item: &WorkItem) -> Result<String, JsonError> {
    encode("cannot encode work item", item)
}

/// A stored work item.
pub fn decode_work_item(text: &str) -> Result<WorkItem, JsonError> {
    decode("cannot decode work item", text)
}

fn encode<T: serde::Serialize>(what: &'static str, value: &T) -> Result<String, JsonError> {
    serde_json::to_string(value).map_err(|error| JsonError { what, message: error.to_string() })
}

fn decode<T: serde::de::DeserializeOwned>(what: &'static str, text: &str) -> Result<T, JsonError> {
    serde_json::from_str(text).map_err(|error| JsonError { what, message: error.to_string() })
}
