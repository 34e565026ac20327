//! A history far above every limit, written by another program or under other limits: the instance fails, its parent gets the
//! failure, and the runtime does not load the history into memory.
//!
//! `OUTLAST_TEST_HISTORY_MIB=1024 cargo test -p outlast --all-features --test it giant_history` runs with one gibibyte.

use crate::support::{LONGEST_WAIT, activities, orchestrations};
use outlast::providers::sqlite::SqliteProvider;
use outlast::runtime::Runtime;
use outlast::runtime::limits::Limits;
use outlast::{Client, Event, EventKind, OrchestrationContext, OrchestrationStatus, RuntimeOptions};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

const MIB: usize = 1024 * 1024;
const TEST: &str = "bad_input::giant_history::a_giant_history_fails_the_instance_without_being_loaded";

/// The size of the history. A gibibyte takes too long for every test run.
fn size() -> usize {
    let mib = std::env::var("OUTLAST_TEST_HISTORY_MIB").ok().and_then(|text| text.parse().ok());
    mib.unwrap_or(64) * MIB
}

/// The limits of the runtime, and the most bytes by which its process may grow.
#[derive(Clone, Copy, Debug)]
struct Case {
    name: &'static str,
    limit: usize,
    growth: usize,
}

fn cases() -> [Case; 2] {
    [
        // With a gibibyte: the default limit, and 200 MiB. The stored sizes suffice to see that the history exceeds the limit.
        Case { name: "far-above", limit: size() / 20, growth: size() / 5 },
        // The stored sizes may be those of escaped text, so the history is read until it exceeds the limit.
        Case { name: "above", limit: size() / 4, growth: size() / 2 },
    ]
}

async fn open(folder: &Path) -> Arc<SqliteProvider> {
    let url = format!("sqlite:{}", folder.join("store.db").display());
    Arc::new(SqliteProvider::new(&url, None).await.unwrap())
}

async fn start(store: Arc<SqliteProvider>, limits: Limits) -> Arc<Runtime> {
    let waits = |ctx: OrchestrationContext, _: String| async move {
        ctx.set_custom_status("waits");
        Ok(ctx.schedule_wait("go").await)
    };
    let parent = |ctx: OrchestrationContext, name: String| async move {
        let child = ctx.schedule_sub_orchestration_with_id("Waits", name, "");
        Ok(child.await.err().unwrap_or("the child ended well".to_string()))
    };
    let all = orchestrations().register("Waits", waits).register("Parent", parent).build();
    let options = RuntimeOptions { limits, ..RuntimeOptions::default() };
    Runtime::start_with_options(store, activities().build(), all, options).await
}

/// Runs parents and children until the children wait.
async fn prepare(folder: &Path) {
    let store = open(folder).await;
    let runtime = start(store.clone(), Limits::default()).await;
    let client = Client::new(store);
    for case in cases() {
        client.start_orchestration(format!("parent-{}", case.name), "Parent", case.name).await.unwrap();
        let poll = std::time::Duration::from_millis(20);
        client.wait_for_status_change(case.name, 0, poll, LONGEST_WAIT).await.unwrap();
    }
    runtime.shutdown(None).await;
}

/// Appends events to the histories of the children.
fn grow(folder: &Path) {
    let conn = rusqlite::Connection::open(folder.join("store.db")).unwrap();
    conn.pragma_update(None, "synchronous", "OFF").unwrap();
    conn.pragma_update(None, "journal_mode", "TRUNCATE").unwrap();
    for case in cases() {
        let kind = EventKind::ExternalEvent { name: "n".to_string(), data: "PAYLOAD".to_string() };
        let event = Event::at(1, 1_234_567, case.name, 1, None, kind);
        let (before, after) = {
            let json = serde_json::to_string(&event).unwrap();
            let (before, after) = json.split_once("PAYLOAD").unwrap();
            (before.to_string(), after.to_string())
        };
        let (rows, half) = (i64::try_from(size() / MIB).unwrap(), i64::try_from(MIB / 2).unwrap());
        conn.execute(
            "WITH RECURSIVE row(id) AS (SELECT 100 UNION ALL SELECT id + 1 FROM row WHERE id < 99 + ?4)
             INSERT INTO history SELECT ?1, 1, id, 'ExternalEvent',
                 replace(?2, '1234567', id) || replace(hex(zeroblob(?5)), '0', 'x') || ?3 FROM row",
            rusqlite::params![case.name, before, after, rows, half],
        )
        .unwrap();
        conn.execute(
            "UPDATE executions SET last_event_id = 99 + ?2 WHERE instance_id = ?1",
            (case.name, rows),
        )
        .unwrap();
    }
}

/// The peak memory of this process, in bytes.
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
}

/// Runs a turn of the instance with the giant history, and prints the memory growth and the failure.
async fn meet(folder: &Path, case: Case) {
    let store = open(folder).await;
    let client = Client::new(store.clone());
    let before = peak();
    let limits = Limits { history_bytes: case.limit, ..Limits::default() };
    let runtime = start(store, limits).await;
    client.raise_event(case.name, "go", "").await.unwrap();
    let parent = format!("parent-{}", case.name);
    let told = match client.wait_for_orchestration(&parent, LONGEST_WAIT).await.unwrap() {
        OrchestrationStatus::Completed { output, .. } => output,
        other => panic!("{parent}: {other:?}"),
    };
    let failed = match client.get_orchestration_status(case.name).await.unwrap() {
        OrchestrationStatus::Failed { details, .. } => details.display_message(),
        other => panic!("{}: {other:?}", case.name),
    };
    assert_eq!(told, failed, "the parent gets the same failure as the client");
    // The calls of a dashboard.
    let stats = client.get_orchestration_stats(case.name).await.unwrap().unwrap();
    assert!(stats.history_size_bytes as usize > size());
    assert_eq!(client.list_all_instances().await.unwrap().len(), 4);
    client.get_instance_info(case.name).await.unwrap();
    runtime.shutdown(None).await;
    println!("\nRESULT {} {told}", peak() - before);
}

#[test]
fn a_giant_history_fails_the_instance_without_being_loaded() {
    let tokio =
        || tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    if let Ok(folder) = std::env::var("OUTLAST_TEST_GIANT") {
        let name = std::env::var("OUTLAST_TEST_GIANT_CASE").unwrap();
        let case = cases().into_iter().find(|case| case.name == name).unwrap();
        return tokio().block_on(meet(Path::new(&folder), case));
    }
    let folder = tempfile::tempdir().unwrap();
    tokio().block_on(prepare(folder.path()));
    grow(folder.path());
    for case in cases() {
        let child = Command::new(std::env::current_exe().unwrap())
            .args([TEST, "--exact", "--nocapture", "--test-threads", "1"])
            .env("OUTLAST_TEST_GIANT", folder.path())
            .env("OUTLAST_TEST_GIANT_CASE", case.name)
            .output()
            .unwrap();
        let output = String::from_utf8_lossy(&child.stdout);
        let result = output.lines().find_map(|line| line.strip_prefix("RESULT "));
        let Some((growth, text)) = result.and_then(|result| result.split_once(' ')) else {
            panic!("{case:?}: {output}\n{}", String::from_utf8_lossy(&child.stderr));
        };
        println!("{case:?}: grew by {growth} bytes");
        let growth: usize = growth.parse().unwrap();
        assert!(growth < case.growth, "{case:?}: grew by {growth} bytes");
        let words =
            [case.name, "was not read", &case.limit.to_string(), "continue as new", "limits.history_bytes"];
        assert!(words.iter().all(|word| text.contains(word)), "{case:?}: {text}");
    }
}
