//! The next version: one more migration, and one more kind of events, which it writes into executions of its own contract version only.

use super::finish::finish;
use super::programs::{Build, Runs, begin, says, start};
use super::{VERSIONS, copy, open};
use outlast::providers::Provider;
use outlast::providers::sqlite::{SqliteOptions, SqliteProvider};
use outlast::{Client, EventKind, OrchestrationStatus, RuntimeOptions, SemverRange, current_build_version};
use outlast_provider_kit::migrations::Migration;
use std::path::Path;
use std::sync::Arc;

/// The versions of the contract that the next version replays. The newest one has the events of `Topics`.
fn versions() -> SemverRange {
    let (mut oldest, mut newest) = (current_build_version(), current_build_version());
    (oldest.major, oldest.minor, oldest.patch) = (0, 0, 0);
    newest.patch += 1;
    SemverRange::new(oldest, newest)
}

/// The options of a node of the next version.
pub(crate) fn node(options: &mut RuntimeOptions) {
    options.stamp = Some(versions().max.to_string());
    options.supported_replay_versions = Some(versions());
}

/// A migration that adds a table, an index, and a column to each table.
pub(crate) fn migration(schema: &str, tables: &[&str], usable_from: u32) -> Migration {
    let mut sql = format!(
        "CREATE TABLE {schema}topics (name text NOT NULL PRIMARY KEY, subscribers bigint NOT NULL DEFAULT 0);
         CREATE INDEX instances_by_update ON {schema}instances (updated_at);\n"
    );
    for table in tables {
        sql += &format!("ALTER TABLE {schema}{table} ADD COLUMN added text DEFAULT 'x';\n");
    }
    Migration { version: 2, name: "topics", usable_from, sql: sql.leak() }
}

/// The tables that both SQL stores have.
pub(crate) const TABLES: [&str; 15] = [
    "instances",
    "executions",
    "history",
    "orchestrator_queue",
    "instance_locks",
    "worker_queue",
    "sessions",
    "kv_store",
    "kv_delta",
    "dead_letters",
    "holds",
    "paused_orchestrations",
    "audit",
    "message_keys",
    "nodes",
];

/// Runs an instance on a node of the next version, and leaves another that waits.
pub(crate) async fn writes_its_events(client: &Client) {
    for instance in ["topic", "topic-waits"] {
        begin(client, instance, "Topics", "weather").await;
        says(client, instance, "waits").await;
    }
    client.raise_event2("topic", "news", "weather", "sunny").await.unwrap();
    assert_eq!(output(client, "topic").await, "weather: sunny");
    let history = client.read_execution_history("topic", 1).await.unwrap();
    assert_eq!(history[0].duroxide_version, versions().max.to_string());
    let is_new = |kind: &EventKind| matches!(kind, EventKind::ExternalSubscribed2 { .. });
    assert!(history.iter().any(|event| is_new(&event.kind)));
}

pub(crate) async fn output(client: &Client, instance: &str) -> String {
    match client.wait_for_orchestration(instance, crate::support::LONGEST_WAIT).await.unwrap() {
        OrchestrationStatus::Completed { output, .. } => output,
        other => panic!("{instance}: {other:?}"),
    }
}

/// A node of this version on a store that the next version has migrated: it runs what is its own, and leaves the rest alone.
pub(crate) async fn this_version_goes_on(store: &Arc<dyn Provider>) {
    let (client, runs) = (Client::new(Arc::clone(store)), Runs::default());
    let node = start(store, Build::First, &runs, |_| ()).await;
    client.raise_event2("topic-waits", "news", "weather", "rain").await.unwrap();
    for n in 0..10 {
        let instance = format!("after-{n}");
        begin(&client, &instance, "Works", "after").await;
        assert_eq!(output(&client, &instance).await, "did after");
    }
    let waiting = client.get_orchestration_status("topic-waits").await.unwrap();
    assert!(matches!(waiting, OrchestrationStatus::Running { .. }), "{waiting:?}");
    node.shutdown(None).await;
}

/// A node of the next version ends what it has begun.
pub(crate) async fn ends_the_rest(store: &Arc<dyn Provider>) {
    let (client, runs) = (Client::new(Arc::clone(store)), Runs::default());
    let node = start(store, Build::Next, &runs, node).await;
    assert_eq!(output(&client, "topic-waits").await, "weather: rain");
    node.shutdown(None).await;
}

/// A kind of events that no code of this version knows. The tests of both versions are one program, which knows the kinds of both.
pub(crate) const UNHEARD: &str = "Unheard";

fn rename_event(path: &Path, from: &str, to: &str) {
    let change =
        "UPDATE history SET event_data = replace(event_data, ?1, ?2) WHERE instance_id = 'topic-waits'";
    assert!(rusqlite::Connection::open(path).unwrap().execute(change, [from, to]).unwrap() > 0);
}

fn deliveries(path: &Path) -> i64 {
    let counts = "SELECT sum(attempt_count) FROM orchestrator_queue WHERE instance_id = 'topic-waits'";
    rusqlite::Connection::open(path).unwrap().query_row(counts, [], |row| row.get(0)).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn next_version_ends_the_instances_of_released_versions_and_this_version_goes_on_on_sqlite() {
    for frozen in VERSIONS {
        let (_folder, path) = copy(frozen).await;
        let next = |usable_from| SqliteOptions {
            further_migrations: vec![migration("", &TABLES, usable_from)],
            ..SqliteOptions::default()
        };
        let store = open(&path, next(1)).await;
        let client = Client::new(Arc::clone(&store));
        finish(&store, Build::Next, node, &Runs::default()).await;
        let node = start(&store, Build::Next, &Runs::default(), node).await;
        writes_its_events(&client).await;
        node.shutdown(None).await;
        drop((client, store));
        rename_event(&path, "ExternalSubscribed2", UNHEARD);
        this_version_goes_on(&open(&path, SqliteOptions::default()).await).await;
        assert_eq!(deliveries(&path), 0, "a node without the version fetches no message of the instance");
        rename_event(&path, UNHEARD, "ExternalSubscribed2");
        ends_the_rest(&open(&path, next(1)).await).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn this_version_refuses_a_store_of_the_next_one_whose_migration_it_cannot_use() {
    for frozen in VERSIONS {
        let (_folder, path) = copy(frozen).await;
        let next = migration("", &TABLES, 2);
        let options = SqliteOptions { further_migrations: vec![next], ..SqliteOptions::default() };
        drop(open(&path, options).await);
        let url = format!("sqlite:{}", path.display());
        let refused = SqliteProvider::new(&url, None).await.map(drop).unwrap_err().to_string();
        assert!(refused.contains("has schema version 2, this release knows up to 1"), "{refused}");
    }
}
