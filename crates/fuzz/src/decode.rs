//! Stored texts. Any text decodes to a value that can be stored again, or to an error.

use outlast_model::json;
use std::fmt::Debug;

/// Decodes the row of a history.
pub fn decode_event(data: &[u8]) {
    decode_and_encode(data, json::decode_event, json::encode_event);
}

/// Decodes the row of a queue.
pub fn decode_work_item(data: &[u8]) {
    decode_and_encode(data, json::decode_work_item, json::encode_work_item);
}

fn decode_and_encode<T: PartialEq + Debug, E: Debug>(
    data: &[u8],
    decode: impl Fn(&str) -> Result<T, E>,
    encode: impl Fn(&T) -> Result<String, E>,
) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(value) = decode(text) else { return };
    let stored = encode(&value).expect("a decoded value can be encoded");
    let again = decode(&stored).expect("an encoded value can be decoded");
    assert_eq!(value, again, "stored as {stored}");
    assert_eq!(encode(&again).expect("a decoded value can be encoded"), stored, "a second encoding is equal");
}
