//! Stored texts: whatever they hold, they decode to a value that can be stored again, or to an error.

use outlast_model::json;
use std::fmt::Debug;

/// A row of a history.
pub fn decode_event(data: &[u8]) {
    come_back(data, json::decode_event, json::encode_event);
}

/// A row of a queue.
pub fn decode_work_item(data: &[u8]) {
    come_back(data, json::decode_work_item, json::encode_work_item);
}

fn come_back<T: PartialEq + Debug, E: Debug>(
    data: &[u8],
    decode: impl Fn(&str) -> Result<T, E>,
    encode: impl Fn(&T) -> Result<String, E>,
) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(value) = decode(text) else { return };
    let stored = encode(&value).expect("what was decoded can be encoded");
    let again = decode(&stored).expect("what was encoded can be decoded");
    assert_eq!(value, again, "stored as {stored}");
    assert_eq!(encode(&again).expect("as before"), stored, "the form is settled");
}
