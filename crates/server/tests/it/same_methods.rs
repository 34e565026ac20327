//! `HttpClient` has the methods of `Client`. The exceptions are those of the table in its documentation.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The methods of `HttpClient` that `Client` does not have: they are about the connection, or in place of exceptions.
const FURTHER: [&str; 10] = [
    "get_operation",
    "list_operations",
    "preview_operation",
    "start_idempotent",
    "start_operation",
    "stop_operation",
    "why",
    "with_reason",
    "with_root_certificates",
    "with_token",
];

fn folder(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

/// The names of the public methods in the blocks `impl OWNER` of the files of a folder.
fn methods(path: &str, owner: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(folder(path)).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        let mut is_inside = false;
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("impl ") {
                is_inside = rest.split(['<', ' ']).next() == Some(owner) && !rest.contains(" for ");
            } else if line == "}" {
                is_inside = false;
            }
            let head = line.trim_start();
            let head = head.strip_prefix("pub async fn ").or_else(|| head.strip_prefix("pub fn "));
            if let Some(head) = head.filter(|_| is_inside) {
                found.extend(head.split(['(', '<']).next().map(ToString::to_string));
            }
        }
    }
    assert!(found.len() > 5, "{owner} in {path}: {found:?}");
    found
}

/// The methods in the first column of the documented table; each row has a reason.
fn documented_exceptions() -> BTreeSet<String> {
    let text = fs::read_to_string(folder("client-http/src/lib.rs")).unwrap();
    let rows = text.lines().filter_map(|line| line.strip_prefix("//! | `"));
    let cells = rows.map(|row| row.split_once(" | ").expect("two columns"));
    cells
        .flat_map(|(names, reason)| {
            assert!(reason.trim_end_matches(" |").len() > 10, "{names} has no reason");
            names.split(", ").map(|name| name.trim_matches('`').to_string()).collect::<Vec<_>>()
        })
        .collect()
}

fn without(all: &BTreeSet<String>, others: &BTreeSet<String>) -> BTreeSet<String> {
    all.difference(others).cloned().collect()
}

#[test]
fn http_client_has_the_methods_of_the_client_except_the_documented_ones() {
    let (client, http) = (methods("runtime/src/client", "Client"), methods("client-http/src", "HttpClient"));
    assert_eq!(without(&client, &http), documented_exceptions());
    assert_eq!(without(&http, &client), FURTHER.map(ToString::to_string).into());
    let builder = methods("runtime/src/client", "StartBuilder");
    assert_eq!(methods("client-http/src", "HttpStartBuilder"), builder);
}
