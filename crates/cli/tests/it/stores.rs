//! Selection of the store and of instances.

use crate::program::Program;
use crate::support::{damage, outlast, run, said};
use outlast::providers::sqlite::{SqliteOptions, SqliteProvider};
use outlast::providers::{Clock, SystemClock};
use std::path::Path;
use std::sync::Arc;

/// A clock that is behind.
struct Late(u64);

impl Clock for Late {
    fn now_ms(&self) -> u64 {
        SystemClock.now_ms() - self.0
    }
}

fn ids(listed: &serde_json::Value) -> Vec<&str> {
    let instances = listed["instances"].as_array().unwrap();
    instances.iter().map(|instance| instance["instance"].as_str().unwrap()).collect()
}

/// A store with two instances of each version: one that was idle for two hours, and one that was not.
async fn old_and_new(path: &Path) {
    let url = format!("sqlite:{}", path.display());
    let late = SqliteOptions { clock: Arc::new(Late(2 * 3_600_000)), ..SqliteOptions::default() };
    for (age, options) in [("old", Some(late)), ("new", None)] {
        let program = Program::on(Arc::new(SqliteProvider::new(&url, options).await.unwrap())).await;
        for version in ["1.0.0", "2.0.0"] {
            program.park(&format!("{age}-{version}"), version).await;
        }
        program.runtime.shutdown(None).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn version_and_idle_filters_select_and_page() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("jobs.db");
    old_and_new(&path).await;
    let list = |more: &[&str]| {
        let args = ["instance", "list", "-o", "json", "--store", path.to_str().unwrap()];
        run(args.iter().chain(more)).json()
    };
    for (filter, expected) in [
        (&["--version", "2.0.0"][..], &["new-2.0.0", "old-2.0.0"][..]),
        (&["--idle-for", "1h30m"], &["old-2.0.0", "old-1.0.0"]),
        (&["--idle-for", "3h"], &[]),
        (&["--idle-for", "1h", "--version", "1.0.0", "--status", "Running"], &["old-1.0.0"]),
        (&["--version", "1.0.0", "--status", "Failed"], &[]),
    ] {
        assert_eq!(ids(&list(filter)), expected, "{filter:?}");
    }
    let first = list(&["--version", "2.0.0", "--limit", "1"]);
    assert_eq!(ids(&first), ["new-2.0.0"]);
    let second = list(&["--version", "2.0.0", "--limit", "1", "--after", first["next"].as_str().unwrap()]);
    assert_eq!(ids(&second), ["old-2.0.0"], "the page after the first begins behind what was shown");
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_of_many_instances_take_the_filters_of_the_list() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("jobs.db");
    old_and_new(&path).await;
    let change = |verb: &str, more: &[&str]| {
        let args = ["instance", verb, "-o", "json", "--store", path.to_str().unwrap()];
        run(args.iter().chain(more))
    };
    for (verb, filter, expected) in [
        ("cancel", &["--version", "2.0.0"][..], &["new-2.0.0", "old-2.0.0"][..]),
        ("terminate", &["--idle-for", "1h"], &["old-2.0.0", "old-1.0.0"]),
        ("pause", &["--idle-for", "1h", "--version", "1.0.0", "--prefix", "old"], &["old-1.0.0"]),
        ("cancel", &["--status", "Running", "--prefix", "new-1"], &["new-1.0.0"]),
        ("cancel", &["--status", "completed"], &[]),
        ("delete", &["--status", "running"], &[]),
        ("resume", &["--version", "2.0.0"], &[]),
    ] {
        let shown = change(verb, &[filter, &["--dry-run"]].concat()).json();
        assert_eq!(shown["samples"], serde_json::json!(expected), "{verb} {filter:?}");
    }
    let filter = ["--version", "2.0.0", "--idle-for", "1h"];
    let paused = change("pause", &[&filter[..], &["--yes", "--expect", "1"]].concat()).json();
    assert_eq!((&paused["changed"], &paused["no_longer_matching"]), (&1.into(), &0.into()), "{paused}");
    let held = change("resume", &["--version", "2.0.0", "--dry-run"]).json();
    assert_eq!(held["samples"], serde_json::json!(["old-2.0.0"]));
    for filter in [["--version", "1.0.0"], ["--idle-for", "1h"], ["--status", "running"]] {
        let refused = change("cancel", &[&["old-1.0.0"][..], &filter].concat());
        assert_eq!(refused.code, Some(2), "an id and {filter:?}: {refused:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_option_for_the_store_overrides_the_environment() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("jobs.db");
    Program::start(&path).await.fill_and_stop().await;
    let list = |named: &str, more: &[&str]| {
        let args = ["instance", "list", "--prefix", "parked", "-o", "json"];
        said(outlast(args.iter().chain(more)).env("OUTLAST_STORE", named).output().unwrap())
    };
    let path = path.to_str().unwrap();
    assert_eq!(ids(&list(path, &[]).json()), ["parked-1"]);
    assert_eq!(ids(&list(&format!("sqlite:{path}"), &[]).json()), ["parked-1"]);
    assert_eq!(ids(&list("/nowhere/else.db", &["--store", path]).json()), ["parked-1"]);
    let error = list("/nowhere/else.db", &[]).failed();
    assert!(error.contains("there is no store at '/nowhere/else.db'"), "{error}");
    assert_eq!(list("", &[]).code, Some(2), "an empty variable names nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_as_json_lines_have_one_object_per_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("jobs.db");
    Program::start(&path).await.fill_and_stop().await;
    let lines = |args: &[&str]| -> Vec<serde_json::Value> {
        let said = run(args.iter().chain(&["-o", "jsonl", "--store", path.to_str().unwrap()])).fine();
        said.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let page = lines(&["instance", "list", "--limit", "2"]);
    assert_eq!(page.len(), 3, "two instances and the mark: {page:?}");
    assert_eq!(page[0]["instance"], "parked-1");
    let rest = lines(&["instance", "list", "--after", page[2]["next"].as_str().unwrap()]);
    assert_eq!(rest.len(), 4, "the last page has no mark: {rest:?}");
    assert_eq!(lines(&["instance", "list", "--name", "Nobody"]).len(), 0);
    let events = lines(&["instance", "history", "hello-1"]);
    let numbers: Vec<_> = events.iter().map(|event| event["event_id"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    let shown = lines(&["instance", "show", "hello-1"]);
    assert_eq!((shown.len(), &shown[0]["status"]), (1, &"Completed".into()), "one value is one line");
}

#[tokio::test(flavor = "multi_thread")]
async fn stores_that_are_newer_or_unreachable_have_exit_status_7() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("jobs.db");
    let store = path.to_str().unwrap();
    drop(SqliteProvider::new(&format!("sqlite:{store}"), None).await.unwrap());
    let empty = run(["instance", "list", "--store", store]);
    assert_eq!((empty.code, empty.out.as_str()), (Some(0), "No instance matches.\n"));
    let missing = run(["instance", "list", "--store", "/nowhere/at/all.db"]);
    assert_eq!(missing.code, Some(1), "{missing:?}");

    damage(&path, "INSERT INTO outlast_migrations VALUES (99, 'later', 'x', 99, 0)");
    for args in [&["instance", "list"][..], &["instance", "cancel", "x"], &["queue", "depths"]] {
        let newer = run(args.iter().chain(&["--store", store]));
        assert_eq!((newer.code, newer.out.as_str()), (Some(7), ""), "{newer:?}");
        assert!(newer.err.contains("use a newer release"), "{newer:?}");
    }
    // Nothing listens on this port of the loopback.
    let away = run(["instance", "list", "--store", "postgres://me@127.0.0.1:1/db?sslmode=disable"]);
    assert_eq!(away.code, Some(7), "{away:?}");
    assert!(away.err.contains("no connection to the server"), "{away:?}");
}
