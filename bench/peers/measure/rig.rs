//! The rig of `cargo xtask bench compare --store cosmos`: an emulated Cosmos DB account that counts requests.

use super::tally::Counts;
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

pub(crate) const DATABASE: &str = "bench";
pub(crate) const CONTAINER: &str = "case";

/// The kinds of operations that are counted, with the names of their figures.
const OPERATIONS: &[(&str, &str)] = &[
    ("create", "creates"),
    ("upsert", "upserts"),
    ("replace", "replaces"),
    ("patch", "patches"),
    ("delete", "deletes"),
    ("read", "reads"),
    ("query", "queries"),
    ("change_feed", "feed_pages"),
];

/// The requests for documents. Those for metadata depend on the caches of the SDKs.
const REQUESTS: &[&str] = &[
    "create",
    "upsert",
    "replace",
    "patch",
    "delete",
    "read",
    "query",
    "query_plan",
    "batch",
    "change_feed",
    "read_feed",
];

/// Address and key of the account, which is fresh for this process.
pub(crate) fn account() -> Result<(String, String), String> {
    let read = |name: &str| std::env::var(name).map_err(|_| format!("{name} is not set"));
    Ok((read("COSMOS_ENDPOINT")?, read("COSMOS_KEY")?))
}

/// The counters of the rig, for the requests of all processes; empty without a rig.
pub(crate) fn counts() -> Counts {
    let Ok((endpoint, _)) = account() else { return Vec::new() };
    let Some(totals) = send(&endpoint, "GET", "totals", "") else { return Vec::new() };
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    let by_kind = |kind: &&str| number(&totals["by_kind"][*kind]);
    let mut counts = vec![
        ("requests", REQUESTS.iter().map(by_kind).sum()),
        ("documents_read", number(&totals["documents_read"])),
        // By the model of the rig: Azure's published prices of small documents.
        ("milli_ru", (totals["charge"].as_f64().unwrap_or(0.0) * 1e3) as u64),
    ];
    counts.extend(OPERATIONS.iter().map(|(kind, name)| (*name, number(&totals["operations"][*kind]))));
    counts
}

/// Copies the documents of all instances of the scenario.
pub(crate) fn copy_instances(prefix: &str, copies: usize) -> Result<(), String> {
    let (endpoint, _) = account()?;
    let asked = json!({
        "database": DATABASE, "container": CONTAINER, "key": "instanceId", "prefix": prefix, "copies": copies,
    });
    let answer = send(&endpoint, "POST", "copies", &asked.to_string());
    match answer.as_ref().and_then(|answer| answer["created"].as_u64()) {
        Some(1..) => Ok(()),
        _ => Err(format!("the rig copied nothing: {answer:?}")),
    }
}

/// A request to the control of the rig.
fn send(endpoint: &str, method: &str, route: &str, body: &str) -> Option<Value> {
    let host = endpoint.strip_prefix("http://")?.trim_end_matches('/');
    let mut stream = TcpStream::connect(host).ok()?;
    let length = body.len();
    let head = format!("{method} /__rig/{route} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n");
    stream.write_all(format!("{head}content-length: {length}\r\n\r\n{body}").as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (_, body) = answer.split_once("\r\n\r\n")?;
    // The body is one JSON document, also if it came in chunks.
    let (first, last) = (body.find('{')?, body.rfind('}')?);
    serde_json::from_str(&body[first..=last]).ok()
}
