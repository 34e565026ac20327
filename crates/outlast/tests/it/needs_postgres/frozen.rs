//! Dumps of PostgreSQL that released versions wrote, and a rolling upgrade to the next version.

use crate::frozen::finish::finish;
use crate::frozen::next::{self, TABLES};
use crate::frozen::programs::{Build, Runs, begin, says, start};
use crate::frozen::write::write;
use crate::frozen::{VERSIONS, WRITING, file, is_due};
use crate::support::postgres;
use outlast::Client;
use outlast::providers::Provider;
use outlast::providers::postgres::{PostgresProvider, ProviderConfig};
use outlast_provider_kit::migrations::Migration;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_postgres::NoTls;

/// The schema of the dumps. The functions contain its name, so a dump is loaded into a database of its own.
const SCHEMA: &str = "frozen";

/// A new database.
async fn database() -> String {
    let name = postgres::fresh_schema();
    postgres::raw().await.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
    let url = postgres::server_url();
    let (server, _) = url.rsplit_once('/').expect("a URL with a database");
    format!("{server}/{name}")
}

async fn execute(url: &str, sql: &str) {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    let connection = tokio::spawn(connection);
    client.batch_execute(sql).await.unwrap();
    drop(client);
    connection.await.unwrap().unwrap();
}

async fn open(url: &str, further_migrations: Vec<Migration>) -> Arc<dyn Provider> {
    let mut config = ProviderConfig::url(url).schema(SCHEMA);
    config.further_migrations = further_migrations;
    Arc::new(PostgresProvider::new_with_config(config).await.unwrap())
}

/// A database with the dump of a version.
async fn restored(version: &str) -> String {
    let _one_writes = WRITING.lock().await;
    let dump = file(version, "postgres.sql");
    if is_due(&dump) {
        let url = database().await;
        let store = open(&url, Vec::new()).await;
        let damage = async || {
            let change =
                "UPDATE frozen.orchestrator_queue SET work_item = 'damaged' WHERE instance_id = 'damaged'";
            execute(&url, change).await;
        };
        write(&store, damage).await;
        drop(store);
        std::fs::create_dir_all(dump.parent().unwrap()).unwrap();
        std::fs::write(&dump, dumped(&url, version)).unwrap();
    }
    let url = database().await;
    execute(&url, &std::fs::read_to_string(dump).unwrap()).await;
    url
}

/// The schema as statements that every client and every supported server can execute.
fn dumped(url: &str, version: &str) -> String {
    let folder = std::env::var_os("OUTLAST_TEST_POSTGRES_BIN").map(PathBuf::from).unwrap_or_default();
    let mut dump = Command::new(Path::new(&folder).join("pg_dump"));
    dump.args(["--inserts", "--no-owner", "--no-privileges", "--schema", SCHEMA, "--dbname", url]);
    let output = dump.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    // Before the schema are settings of the newer servers; commands of psql begin with a backslash.
    let begin = text.find("CREATE SCHEMA").unwrap();
    let mut lines: Vec<&str> = Vec::new();
    for line in text[begin..].lines() {
        let is_left_out = line.starts_with('\\')
            || line.starts_with("-- Name: ")
            || line.starts_with("-- Data for Name: ")
            || line.starts_with("-- PostgreSQL database dump")
            || line == "--"
            || line.starts_with("SET default_");
        let is_second_empty_line = line.is_empty() && lines.last().is_some_and(|last| last.is_empty());
        if !is_left_out && !is_second_empty_line {
            lines.push(line);
        }
    }
    format!(
        "-- A store that Outlast {version} wrote: `pg_dump --inserts` without its comments and settings.\n\
         SET check_function_bodies = false;\n{}\n",
        lines.join("\n").trim_end()
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unfinished_instances_of_each_released_version_end_once() {
    for version in VERSIONS {
        let url = restored(version).await;
        finish(&open(&url, Vec::new()).await, Build::First, |_| (), &Runs::default()).await;
    }
}

fn next_migration(usable_from: u32) -> Vec<Migration> {
    let tables = [&TABLES[..], &["listeners", "owners"]].concat();
    vec![next::migration("{schema}.", &tables, usable_from)]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn next_version_ends_the_instances_of_released_versions_and_this_version_goes_on() {
    for version in VERSIONS {
        let url = restored(version).await;
        let store = open(&url, next_migration(1)).await;
        finish(&store, Build::Next, next::node, &Runs::default()).await;
        let node = start(&store, Build::Next, &Runs::default(), next::node).await;
        next::writes_its_events(&Client::new(Arc::clone(&store))).await;
        node.shutdown(None).await;
        drop(store);
        let rename = |from, to| {
            format!(
                "UPDATE frozen.history SET event_data = replace(event_data, '{from}', '{to}') WHERE instance_id = 'topic-waits'"
            )
        };
        execute(&url, &rename("ExternalSubscribed2", next::UNHEARD)).await;
        next::this_version_goes_on(&open(&url, Vec::new()).await).await;
        let delivered =
            "DO $$ BEGIN IF EXISTS (SELECT 1 FROM frozen.orchestrator_queue WHERE attempt_count > 0) THEN
                         RAISE 'a node without the version has fetched the instance'; END IF; END $$";
        execute(&url, delivered).await;
        execute(&url, &rename(next::UNHEARD, "ExternalSubscribed2")).await;
        next::ends_the_rest(&open(&url, next_migration(1)).await).await;
    }
}

/// Runs jobs, one after the other, until `stop` says so. A job runs two activities, waits for an event, and ends.
fn run_jobs(
    store: &Arc<dyn Provider>,
    name: &'static str,
    stop: &watch::Receiver<bool>,
    done: &watch::Sender<u64>,
) -> JoinHandle<()> {
    let (client, stop, done) = (Client::new(Arc::clone(store)), stop.clone(), done.clone());
    tokio::spawn(async move {
        for n in 0.. {
            if *stop.borrow() {
                return;
            }
            let instance = format!("{name}-{n}");
            begin(&client, &instance, "Steps", &instance).await;
            says(&client, &instance, "waits").await;
            client.raise_event(&instance, "go", "now").await.unwrap();
            let output = next::output(&client, &instance).await;
            assert_eq!(output, format!("did {instance} 1, did {instance} 2, now"));
            done.send_modify(|done| *done += 1);
        }
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn rolling_upgrade_to_the_next_version_under_load_loses_nothing() {
    let (url, runs) = (database().await, Runs::default());
    let (stop, stopped) = watch::channel(false);
    let (done, mut seen) = watch::channel(0);
    let store = open(&url, Vec::new()).await;
    let old = start(&store, Build::First, &runs, |_| ()).await;
    let mut drivers: Vec<_> =
        ["a", "b", "c"].map(|name| run_jobs(&store, name, &stopped, &done)).into_iter().collect();
    let mut more_done = async |more: u64| {
        let begun = *seen.borrow_and_update();
        seen.wait_for(|done| *done >= begun + more).await.unwrap();
    };
    more_done(10).await;

    // A process of the next version migrates the schema while the old one works.
    let new_store = open(&url, next_migration(1)).await;
    more_done(10).await;
    let new = start(&new_store, Build::Next, &runs, next::node).await;
    drivers.extend(["d", "e"].map(|name| run_jobs(&new_store, name, &stopped, &done)));
    next::writes_its_events(&Client::new(Arc::clone(&new_store))).await;
    more_done(10).await;

    // A process of the old version restarts on the new schema.
    old.shutdown(None).await;
    let store_again = open(&url, Vec::new()).await;
    let old = start(&store_again, Build::First, &runs, |_| ()).await;
    drivers.push(run_jobs(&store_again, "f", &stopped, &done));
    more_done(20).await;
    old.shutdown(None).await;
    more_done(10).await;
    stop.send_replace(true);
    for driver in drivers {
        driver.await.unwrap();
    }
    let client = Client::new(Arc::clone(&new_store));
    client.raise_event2("topic-waits", "news", "weather", "rain").await.unwrap();
    assert_eq!(next::output(&client, "topic-waits").await, "weather: rain");
    new.shutdown(None).await;

    let jobs = *done.borrow();
    assert_eq!(runs.all().len() as u64, 2 * jobs, "each activity has one key");
    let metrics = client.get_system_metrics().await.unwrap();
    assert_eq!((metrics.completed_instances, metrics.failed_instances), (jobs + 2, 0));
    assert_eq!(metrics.running_instances, 0);
    assert!(client.list_dead_letters(1).await.unwrap().is_empty());
}
