//! `outlast doctor`: each test brings a finding about with a SQLite file and a runtime.

use crate::program::LONG;
use crate::support::{Said, damage, run};
use outlast::client::Client;
use outlast::providers::sqlite::{SqliteOptions, SqliteProvider};
use outlast::providers::{Clock, Provider, SystemClock};
use outlast::runtime::registry::ActivityRegistry;
use outlast::runtime::{OnMisfit, Runtime, RuntimeOptions};
use outlast::{OrchestrationContext, OrchestrationRegistry};
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

const HOUR_MS: i64 = 3_600_000;

/// A clock that differs by some milliseconds.
struct Shifted(i64);

impl Clock for Shifted {
    fn now_ms(&self) -> u64 {
        SystemClock.now_ms().saturating_add_signed(self.0)
    }
}

struct Store {
    path: PathBuf,
    store: Arc<SqliteProvider>,
    client: Client,
    _dir: tempfile::TempDir,
}

impl Store {
    /// A file whose processes have a clock that differs by some milliseconds.
    async fn new(shift_ms: i64) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("jobs.db");
        let options = SqliteOptions { clock: Arc::new(Shifted(shift_ms)), ..SqliteOptions::default() };
        let url = format!("sqlite:{}", path.display());
        let store = Arc::new(SqliteProvider::new(&url, Some(options)).await.unwrap());
        Self { path, client: Client::new(store.clone()), store, _dir: dir }
    }

    /// Runs an instance until it waits, and stops the runtime.
    async fn park(&self, instance: &str, input: &str) {
        let runtime = self.runtime().await;
        self.client.start_orchestration(instance, "Does", input).await.unwrap();
        while self.store.read(instance).await.unwrap().len() < 2 {
            tokio::task::yield_now().await;
        }
        runtime.shutdown(None).await;
    }

    async fn runtime(&self) -> Arc<Runtime> {
        let activities = ActivityRegistry::builder().build();
        let orchestrations = OrchestrationRegistry::builder().register("Does", does).build();
        Runtime::start_with_store(self.store.clone(), activities, orchestrations).await
    }

    fn doctor(&self, more: &[&str]) -> Said {
        run(["doctor", "--store", self.path.to_str().unwrap()].iter().chain(more))
    }

    /// The sentences of the findings of a check. No other check has findings.
    fn only_finding(&self, check: &str, more: &[&str]) -> Value {
        let said = self.doctor(&[&["-o", "json"], more].concat());
        assert_eq!((said.code, said.err.as_str()), (Some(1), ""), "{said:?}");
        let report: Value = serde_json::from_str(&said.out).unwrap();
        let mut found = Value::Null;
        for one in report["checks"].as_array().unwrap() {
            let findings = one["findings"].as_array().unwrap();
            assert_eq!(findings.len(), usize::from(one["check"] == check), "{one}");
            if let Some(finding) = findings.first() {
                found = finding.clone();
            }
        }
        found
    }

    fn damage(&self, statement: &str) {
        damage(&self.path, statement);
    }
}

async fn does(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    match input.as_str() {
        "activity" => ctx.schedule_activity("Block", "s3cret").with_tag("gpu").await,
        "nothing" => {
            ctx.schedule_timer(Duration::ZERO).await;
            std::future::pending().await
        }
        _ => Ok(ctx.schedule_wait("go").await),
    }
}

fn contains(finding: &Value, parts: &[&str]) {
    let sentence = finding["sentence"].as_str().unwrap();
    for part in parts {
        assert!(sentence.contains(part), "{part} in {sentence}");
    }
    assert!(!sentence.contains("s3cret"), "{sentence}");
}

#[tokio::test(flavor = "multi_thread")]
async fn healthy_store_has_no_findings() {
    let store = Store::new(0).await;
    store.park("one", "event").await;
    let out = store.doctor(&[]).fine();
    for part in ["ok       schema", "ok       orphans", "ok       versions", "No findings in "] {
        assert!(out.contains(part), "{part} in {out}");
    }
    let report = store.doctor(&["-o", "json"]).json();
    assert_eq!(report["checks"].as_array().unwrap().len(), 14, "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn other_journal_mode_is_found() {
    let store = Store::new(0).await;
    let path = store.path.clone();
    drop((store.client, store.store));
    let mode: String = loop {
        let file = rusqlite::Connection::open(&path).unwrap();
        // The threads of the store close their connections on their own.
        match file.query_row("PRAGMA journal_mode = DELETE", (), |row| row.get(0)) {
            Ok(mode) => break mode,
            Err(_) => tokio::task::yield_now().await,
        }
    };
    assert_eq!(mode, "delete");
    let said = run(["doctor", "--store", path.to_str().unwrap()]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.out.contains("FINDING  settings\n         journal_mode is delete, not wal"), "{said:?}");
    assert!(said.out.contains("1 finding in "), "{said:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_without_an_instance_are_found_and_removed() {
    let store = Store::new(0).await;
    store.park("one", "event").await;
    store.damage("INSERT INTO kv_store (instance_id, key, value) VALUES ('gone', 'colour', 'blue')");
    let finding = store.only_finding("orphans", &[]);
    contains(&finding, &["1 row of table kv_store", "--fix removes them"]);
    let fixed = store.doctor(&["--fix"]).fine();
    assert!(fixed.contains("removed 1 row"), "{fixed}");
    assert!(store.doctor(&[]).fine().contains("every row has its instance"));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_orphan_is_counted_and_removed_and_no_other_row() {
    let store = Store::new(0).await;
    store.park("one", "activity").await;
    store.damage(
        "INSERT INTO kv_store (instance_id, key, value) VALUES ('gone', 'a', 'b'), ('one', 'a', 'b')",
    );
    store.damage(
        "INSERT INTO kv_delta (instance_id, key, value) VALUES ('gone', 'a', 'b'), ('one', 'c', 'd')",
    );
    store.damage("INSERT INTO message_texts (message_id, work_item) VALUES (77, 'x')");
    store.damage(
        "INSERT INTO worker_queue (work_item, visible_at, instance_id, execution_id, activity_id)
         VALUES ('{}', 9000000000000, 'gone', 1, 2)",
    );
    let seen = store.store.examine(60_000).await.unwrap();
    let counts: Vec<(&str, u64)> =
        seen.orphans.iter().map(|(table, count)| (table.as_str(), *count)).collect();
    assert_eq!(counts, [("message_texts", 1), ("kv_store", 1), ("kv_delta", 1), ("worker_queue", 1)]);
    assert_eq!(store.store.remove_orphans().await.unwrap(), 4);
    let rest = |table: &str| {
        let file = rusqlite::Connection::open(&store.path).unwrap();
        file.query_row(&format!("SELECT count(*) FROM {table}"), (), |row| row.get::<_, i64>(0)).unwrap()
    };
    assert_eq!(
        ["kv_store", "kv_delta", "message_texts", "worker_queue"].map(rest),
        [1, 1, 0, 1],
        "rows of the instance stay"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn operation_without_a_queue_row_is_found() {
    let store = Store::new(0).await;
    store.park("one", "activity").await;
    store.damage("DELETE FROM worker_queue");
    let finding = store.only_finding("operations", &[]);
    assert_eq!(finding["instance"], "one");
    contains(&finding, &["Instance 'one'", "'Block'"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn instance_that_waits_for_nothing_is_found_with_its_sentence() {
    let store = Store::new(0).await;
    let runtime = store.runtime().await;
    store.client.start_orchestration("one", "Does", "nothing").await.unwrap();
    while store.store.read("one").await.unwrap().len() < 3 {
        tokio::task::yield_now().await;
    }
    runtime.shutdown(None).await;
    let finding = store.only_finding("stuck", &[]);
    contains(&finding, &["Instance 'one' "]);
    assert!(finding["command"].as_str().unwrap().starts_with("outlast instance cancel one"), "{finding}");
}

#[tokio::test(flavor = "multi_thread")]
async fn instance_whose_history_does_not_decode_is_found_beside_others() {
    let store = Store::new(0).await;
    for (instance, input) in [("one", "event"), ("two", "activity")] {
        store.park(instance, input).await;
    }
    store.damage("UPDATE history SET event_data = '{\"s3cret' WHERE instance_id = 'one' AND event_id = 2");
    let finding = store.only_finding("stuck", &[]);
    assert_eq!(finding["instance"], "one");
    contains(&finding, &["Instance 'one' has a history that does not decode: "]);
    store.damage("DELETE FROM worker_queue");
    let said = store.doctor(&[]);
    assert!(said.out.contains("FINDING  operations\n         Instance 'two'"), "{said:?}");
    assert!(said.out.contains("2 findings in "), "{said:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn overdue_turn_names_the_version_that_no_process_runs() {
    let store = Store::new(-2 * HOUR_MS).await;
    store.park("one", "event").await;
    assert_eq!(store.doctor(&[]).code, Some(0), "it waits for an event");
    store.client.raise_event("one", "go", "s3cret").await.unwrap();
    let said = store.doctor(&[]);
    assert_eq!(said.code, Some(1), "{said:?}");
    for part in [
        "FINDING  turns\n         messages of 1 instance have been due for 1m",
        "turns of instance 'one' have been due for 2h",
        "registers orchestration 'Does' version 1.0.0?",
        "2 findings in ",
    ] {
        assert!(said.out.contains(part), "{part} in {}", said.out);
    }
    assert_eq!(store.doctor(&["--overdue-after", "3h"]).code, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn instance_that_no_process_has_begun_is_found() {
    let store = Store::new(-2 * HOUR_MS).await;
    store.client.start_orchestration("one", "Nowhere", "s3cret").await.unwrap();
    contains(&store.only_finding("turns", &[]), &["messages of 1 instance have been due for 1m"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn overdue_activity_names_its_tag() {
    let store = Store::new(-2 * HOUR_MS).await;
    store.park("one", "activity").await;
    let finding = store.only_finding("activities", &[]);
    contains(
        &finding,
        &["activities of instance 'one' have been due for 2h", "'Block' and takes tag 'gpu'?"],
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn ended_leases_are_found() {
    let store = Store::new(-2 * HOUR_MS).await;
    store.client.start_orchestration("one", "Nowhere", "s3cret").await.unwrap();
    let fetched = store.store.fetch_orchestration_item(Duration::from_secs(5), LONG, None).await.unwrap();
    assert!(fetched.is_some());
    let finding = store.only_finding("leases", &["--overdue-after", "3h"]);
    contains(&finding, &["the lease of 1 turn delivery has ended"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn clock_that_is_ahead_is_found() {
    let store = Store::new(2 * HOUR_MS).await;
    store.park("one", "event").await;
    let finding = store.only_finding("clocks", &[]);
    contains(&finding, &["instance 'one' was updated", "in the future"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_letters_are_counted() {
    let store = Store::new(0).await;
    store.client.start_orchestration("one", "Does", "s3cret").await.unwrap();
    store.damage("UPDATE orchestrator_queue SET work_item = 's3cret'");
    let runtime = store.runtime().await;
    while store.client.list_dead_letters(1).await.unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    runtime.shutdown(None).await;
    contains(
        &store.only_finding("dead_letters", &[]),
        &["1 dead letter is kept; the newest of instance 'one'"],
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn full_disk_is_found() {
    let store = Store::new(0).await;
    contains(&store.only_finding("disk", &["--min-free", "900000000000"]), &["MB free"]);
}

#[test]
fn missing_store_is_a_failure() {
    let error = run(["doctor", "--store", "/nowhere/at/all.db"]).failed();
    assert!(error.contains("there is no store at '/nowhere/at/all.db'"), "{error}");
}

async fn panics(_: OrchestrationContext, _: String) -> Result<String, String> {
    panic!("a defect of this build")
}

#[tokio::test(flavor = "multi_thread")]
async fn parked_instances_are_found_by_orchestration_and_build() {
    let store = Store::new(0).await;
    let orchestrations = OrchestrationRegistry::builder().register("fulfil", panics).build();
    let options = RuntimeOptions {
        on_misfit: OnMisfit::Park,
        build_id: "1.0.0".to_string(),
        ..RuntimeOptions::default()
    };
    let activities = ActivityRegistry::default();
    let runtime = Runtime::start_with_options(store.store.clone(), activities, orchestrations, options).await;
    for instance in ["one", "two"] {
        store.client.start_orchestration(instance, "fulfil", "").await.unwrap();
        while store.client.held_instance(instance).await.unwrap().is_none() {
            tokio::task::yield_now().await;
        }
    }
    runtime.shutdown(None).await;
    let finding = store.only_finding("holds", &[]);
    contains(
        &finding,
        &["2 instances of 'fulfil' are parked by build 1.0.0 since ", ": `outlast instance list --held`"],
    );
    assert_eq!(finding["command"], "outlast instance list --held");
}

#[tokio::test(flavor = "multi_thread")]
async fn instance_that_is_paused_for_a_day_is_found() {
    let store = Store::new(-25 * HOUR_MS).await;
    store.park("one", "event").await;
    assert_eq!(store.doctor(&[]).code, Some(0));
    store.client.pause_instance("one", "ann", "a look").await.unwrap();
    contains(&store.only_finding("holds", &[]), &["1 instance of 'Does' is paused by ann for 1d 1h"]);
}
