//! Helpers of the tests.

use crate::factory::raw;
use outlast_model::{Event, EventKind, WorkItem};
use outlast_provider::{ExecutionMetadata, OrchestrationItem, Provider, ProviderError, TagFilter};
use outlast_sqlite::{SqliteOptions, SqliteProvider};
use rusqlite::types::ValueRef;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

pub(crate) const NO_WAIT: Duration = Duration::ZERO;
/// A lease that outlasts every test.
pub(crate) const LONG: Duration = Duration::from_secs(600);
/// The longest wait for a result that must arrive.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Held by tests that measure time, and by tests that load both cores.
pub(crate) static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// A folder of its own, and a path in it without a file.
pub(crate) fn fresh() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    (folder, path)
}

pub(crate) fn url(path: &Path) -> String {
    format!("sqlite:{}", path.display())
}

pub(crate) async fn open(path: &Path) -> SqliteProvider {
    SqliteProvider::new(&url(path), None).await.unwrap()
}

pub(crate) async fn open_with(path: &Path, options: SqliteOptions) -> SqliteProvider {
    SqliteProvider::new(&url(path), Some(options)).await.unwrap()
}

/// The name that SQLite gives to a file beside the database: `-wal` or `-shm`.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

pub(crate) fn size(path: &Path) -> u64 {
    path.metadata().map_or(0, |metadata| metadata.len())
}

/// Every file of a folder, byte for byte.
pub(crate) fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries =
        std::fs::read_dir(folder).unwrap().map(Result::unwrap).filter(|entry| entry.path().is_file());
    entries
        .map(|entry| (entry.file_name().to_string_lossy().into_owned(), std::fs::read(entry.path()).unwrap()))
        .collect()
}

/// Every row of every table, one line each.
pub(crate) fn rows(path: &Path) -> String {
    let conn = raw(path);
    let mut text = String::new();
    let names = "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name";
    let tables: Vec<String> =
        conn.prepare(names).unwrap().query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    for table in tables {
        let mut statement = conn.prepare(&format!("SELECT * FROM {table} ORDER BY 1, 2")).unwrap();
        let columns = statement.column_count();
        let mut found = statement.query([]).unwrap();
        while let Some(row) = found.next().unwrap() {
            let values = (0..columns).map(|column| match row.get_ref(column).unwrap() {
                ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
                other => format!("{other:?}"),
            });
            writeln!(text, "{table}: {}", values.collect::<Vec<_>>().join(" | ")).unwrap();
        }
    }
    text
}

/// One number from a store's tables.
pub(crate) fn count(path: &Path, sql: &str) -> i64 {
    raw(path).query_row(sql, [], |row| row.get(0)).unwrap()
}

/// The ids of all instances in the orchestrator queue.
pub(crate) fn waiting_starts(path: &Path) -> BTreeSet<String> {
    let conn = raw(path);
    let mut statement = conn.prepare("SELECT instance_id FROM orchestrator_queue").unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

pub(crate) fn start(instance: &str) -> WorkItem {
    start_with(instance, "{}")
}

pub(crate) fn start_with(instance: &str, input: &str) -> WorkItem {
    WorkItem::StartOrchestration {
        instance: instance.to_string(),
        orchestration: "Orch".to_string(),
        input: input.to_string(),
        version: Some("1.0.0".to_string()),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: 1,
    }
}

pub(crate) fn activity(instance: &str, id: u64) -> WorkItem {
    WorkItem::ActivityExecute {
        instance: instance.to_string(),
        execution_id: 1,
        id,
        name: "Activity".to_string(),
        input: "input".to_string(),
        session_id: None,
        tag: None,
    }
}

pub(crate) fn completed(instance: &str, id: u64) -> WorkItem {
    WorkItem::ActivityCompleted {
        instance: instance.to_string(),
        execution_id: 1,
        id,
        result: "done".to_string(),
    }
}

pub(crate) fn event(instance: &str, id: u64, kind: EventKind) -> Event {
    Event::at(7, id, instance, 1, None, kind)
}

pub(crate) fn started(instance: &str) -> Event {
    let kind = EventKind::OrchestrationStarted {
        name: "Orch".to_string(),
        version: "1.0.0".to_string(),
        input: "{}".to_string(),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        carry_forward_events: None,
        initial_custom_status: None,
    };
    event(instance, 1, kind)
}

pub(crate) fn scheduled(instance: &str, id: u64) -> Event {
    let (name, input) = ("Activity".to_string(), "input".to_string());
    event(instance, id, EventKind::ActivityScheduled { name, input, session_id: None, tag: None })
}

pub(crate) fn ended(instance: &str, id: u64) -> Event {
    event(instance, id, EventKind::OrchestrationCompleted { output: "out".to_string() })
}

/// The metadata of a first turn.
pub(crate) fn named() -> ExecutionMetadata {
    ExecutionMetadata {
        orchestration_name: Some("Orch".to_string()),
        orchestration_version: Some("1.0.0".to_string()),
        ..ExecutionMetadata::default()
    }
}

/// The metadata of a last turn.
pub(crate) fn completed_metadata() -> ExecutionMetadata {
    ExecutionMetadata { status: Some("Completed".to_string()), output: Some("out".to_string()), ..named() }
}

pub(crate) async fn ack(
    provider: &dyn Provider,
    token: &str,
    events: Vec<Event>,
    work: Vec<WorkItem>,
    metadata: ExecutionMetadata,
) -> Result<(), ProviderError> {
    provider.ack_orchestration_item(token, 1, events, work, vec![], metadata, vec![]).await
}

/// Fetches a turn that must arrive in time.
pub(crate) async fn turn(provider: &dyn Provider) -> (OrchestrationItem, String, u32) {
    provider.fetch_orchestration_item(LONG, PATIENCE, None).await.unwrap().expect("a turn is ready")
}

/// Fetches an activity that must arrive in time.
pub(crate) async fn work(provider: &dyn Provider) -> (WorkItem, String, u32) {
    provider
        .fetch_work_item(LONG, PATIENCE, None, &TagFilter::DefaultOnly)
        .await
        .unwrap()
        .expect("an activity is ready")
}

/// Creates an instance, whose first turn schedules nothing.
pub(crate) async fn create(provider: &dyn Provider, instance: &str) {
    provider.enqueue_for_orchestrator(start(instance), None).await.unwrap();
    let (item, token, _) = turn(provider).await;
    assert_eq!(item.instance, instance);
    ack(provider, &token, vec![started(instance)], vec![], named()).await.unwrap();
}

/// Creates an ended instance, whose first event has an input of `bytes` bytes.
pub(crate) async fn finish(provider: &dyn Provider, instance: &str, bytes: usize) {
    provider.enqueue_for_orchestrator(start(instance), None).await.unwrap();
    let (item, token, _) = turn(provider).await;
    let instance = item.instance.as_str();
    let mut first = started(instance);
    if let EventKind::OrchestrationStarted { input, .. } = &mut first.kind {
        *input = "x".repeat(bytes);
    }
    let events = vec![first, ended(instance, 2)];
    ack(provider, &token, events, vec![], completed_metadata()).await.unwrap();
}

/// Creates a store with 50 ended instances, and closes it.
pub(crate) async fn used(path: &Path) {
    let provider = open(path).await;
    for n in 0..50 {
        hello(&provider, &format!("i{n}")).await;
    }
}

/// Runs one orchestration with one activity from its start to its end: seven calls.
pub(crate) async fn hello(provider: &dyn Provider, instance: &str) {
    provider.enqueue_for_orchestrator(start(instance), None).await.unwrap();
    let (_, token, _) = turn(provider).await;
    first_turn(provider, instance, &token).await;
    let (_, token, _) = work(provider).await;
    provider.ack_work_item(&token, Some(completed(instance, 2))).await.unwrap();
    let (_, token, _) = turn(provider).await;
    last_turn(provider, instance, &token).await;
}

pub(crate) async fn first_turn(provider: &dyn Provider, instance: &str, token: &str) {
    let events = vec![started(instance), scheduled(instance, 2)];
    ack(provider, token, events, vec![activity(instance, 2)], named()).await.unwrap();
}

pub(crate) async fn last_turn(provider: &dyn Provider, instance: &str, token: &str) {
    let result = EventKind::ActivityCompleted { result: "done".to_string() };
    let events = vec![event(instance, 3, result), ended(instance, 4)];
    ack(provider, token, events, vec![], completed_metadata()).await.unwrap();
}

/// The path of the store in a process that [`child`] started for this test; `None` in the test itself.
pub(crate) fn role(test: &str) -> Option<PathBuf> {
    let (name, path) = (std::env::var("OUTLAST_TEST_CHILD").ok()?, std::env::var_os("OUTLAST_TEST_PATH")?);
    (name == test).then(|| path.into())
}

/// A command that runs this test program again, with the one test that starts it; the test then asks for its [`role`].
pub(crate) fn child(test: &str, path: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture", "--test-threads", "1"]);
    command.env("OUTLAST_TEST_CHILD", test).env("OUTLAST_TEST_PATH", path);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Awaits the future, and measures the time in milliseconds.
pub(crate) async fn timed<T>(future: impl Future<Output = T>) -> (T, u64) {
    let begun = tokio::time::Instant::now();
    let value = future.await;
    (value, begun.elapsed().as_millis() as u64)
}

/// Pseudo-random numbers, the same ones in every run.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}
