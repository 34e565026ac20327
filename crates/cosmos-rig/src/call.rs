//! A request, parsed as far as the rig needs: its kind, partition, documents and query.

use azure_data_cosmos_driver::binary_json;
use bytes::Bytes;
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method, Version};
use serde_json::Value;

use crate::Kind;

/// A request to the emulated account.
pub(crate) struct Call {
    pub(crate) method: Method,
    /// The path without a slash at its end, as it was sent (percent-encoded).
    pub(crate) path: String,
    /// The segments of the path, decoded.
    pub(crate) segments: Vec<String>,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) version: Version,
    pub(crate) kind: Kind,
    /// The id of the document, from the path or from the body.
    pub(crate) id: Option<String>,
    /// The partition key: its text, or the JSON of a key that is no text.
    pub(crate) partition: Option<String>,
    /// The body as JSON, if it is JSON, in the text or the binary form.
    pub(crate) json: Option<Value>,
    /// The operations of a batch.
    pub(crate) operations: Vec<Operation>,
}

/// An operation in a batch.
pub(crate) struct Operation {
    pub(crate) kind: Kind,
    pub(crate) id: Option<String>,
    pub(crate) document: Option<Value>,
}

impl Call {
    pub(crate) fn new(parts: Parts, body: Bytes) -> Self {
        // Azure accepts a slash at the end of a path (SDKs of other languages send it), the emulator does not.
        let path = parts.uri.path().trim_end_matches('/').to_string();
        let segments: Vec<String> =
            path.split('/').filter(|segment| !segment.is_empty()).map(percent_decode).collect();
        let kind = Kind::of(&parts.method, &segments, &parts.headers);
        let json = parse_json(&body);
        let operations = match (&json, kind) {
            (Some(Value::Array(operations)), Kind::Batch) => operations.iter().map(Operation::new).collect(),
            _ => Vec::new(),
        };
        let in_body =
            || json.as_ref().and_then(id_of).filter(|_| matches!(kind, Kind::Create | Kind::Upsert));
        let id = segments.get(5).cloned().or_else(in_body);
        let key = parts.headers.get(PARTITION_KEY).and_then(|value| value.to_str().ok());
        let partition = key.map(partition_text);
        Self {
            method: parts.method,
            path,
            segments,
            headers: parts.headers,
            body,
            version: parts.version,
            kind,
            id,
            partition,
            json,
            operations,
        }
    }

    pub(crate) fn database(&self) -> Option<&str> {
        self.segments.get(1).filter(|_| self.segments[0] == "dbs").map(String::as_str)
    }

    pub(crate) fn container(&self) -> Option<&str> {
        self.segments.get(3).filter(|_| self.segments[0] == "dbs").map(String::as_str)
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    pub(crate) fn is_on(&self, name: &str) -> bool {
        self.header(name).is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }

    /// The text of the query.
    pub(crate) fn sql(&self) -> Option<&str> {
        self.json.as_ref().filter(|_| matches!(self.kind, Kind::Query | Kind::QueryPlan))?["query"].as_str()
    }

    /// The documents that the request would store, with their ids.
    pub(crate) fn documents(&self) -> Vec<&Value> {
        match self.kind {
            Kind::Create | Kind::Upsert | Kind::Replace => self.json.iter().collect(),
            Kind::Batch => self.operations.iter().filter_map(|one| one.document.as_ref()).collect(),
            _ => Vec::new(),
        }
    }

    /// Every id that the request names.
    pub(crate) fn ids(&self) -> impl Iterator<Item = &str> {
        let operations = self.operations.iter().filter_map(|one| one.id.as_deref());
        self.id.as_deref().into_iter().chain(operations)
    }
}

impl Operation {
    fn new(json: &Value) -> Self {
        let document = json.get("resourceBody").cloned();
        let explicit = json.get("id").and_then(Value::as_str).map(str::to_string);
        Self {
            kind: json
                .get("operationType")
                .and_then(Value::as_str)
                .map_or(Kind::Other, Kind::of_batch_operation),
            id: explicit.or_else(|| document.as_ref().and_then(id_of)),
            document,
        }
    }
}

pub(crate) const PARTITION_KEY: &str = "x-ms-documentdb-partitionkey";
pub(crate) const CONTINUATION: &str = "x-ms-continuation";

/// Parses text JSON, or the binary JSON that the SDK sends and accepts by default.
pub(crate) fn parse_json(body: &[u8]) -> Option<Value> {
    if binary_json::is_binary(body) {
        binary_json::decode(body).ok()
    } else {
        serde_json::from_slice(body).ok()
    }
}

/// Writes JSON in the form of `like`.
pub(crate) fn write_json(value: &Value, like: &[u8]) -> Bytes {
    if binary_json::is_binary(like) {
        Bytes::from(binary_json::encode(value))
    } else {
        Bytes::from(value.to_string())
    }
}

fn id_of(document: &Value) -> Option<String> {
    document.get("id")?.as_str().map(str::to_string)
}

/// `["a"]` as `a`. A key that is not one text stays JSON, in one spelling.
fn partition_text(header: &str) -> String {
    match serde_json::from_str::<Value>(header) {
        Ok(Value::Array(parts)) => match parts.as_slice() {
            [Value::String(text)] => text.clone(),
            _ => Value::Array(parts).to_string(),
        },
        _ => header.to_string(),
    }
}

/// Decodes `%2F` and its like. Sequences that are not valid stay as they are.
pub(crate) fn percent_decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escaped = (bytes[at] == b'%').then(|| bytes.get(at + 1..at + 3)).flatten();
        let hex = escaped.and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                decoded.push(byte);
                at += 3;
            }
            None => {
                decoded.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_decoding_keeps_text_without_escapes() {
        for (text, decoded) in
            [("a%2Fb", "a/b"), ("x%25y", "x%y"), ("%", "%"), ("%zz", "%zz"), ("%C3%A9", "é")]
        {
            assert_eq!(percent_decode(text), decoded);
        }
    }

    #[test]
    fn partition_keys_have_one_spelling() {
        assert_eq!(partition_text("[\"inst \\u00e9\"]"), "inst é");
        assert_eq!(partition_text("[ 1, null ]"), "[1,null]");
    }
}
