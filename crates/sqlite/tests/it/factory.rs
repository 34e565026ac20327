use async_trait::async_trait;
use outlast_conformance::{ProviderFactory, TokioClock};
use outlast_provider::{Clock, DeadLetter, MessageBound, Provider, SystemClock};
use outlast_sqlite::{SqliteOptions, SqliteProvider};
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;

/// Stores in files of a temporary folder, which is removed with the factory.
pub(crate) struct SqliteFactory {
    inline: bool,
    lock_timeout: Duration,
    folder: TempDir,
    newest: Mutex<Newest>,
}

#[derive(Default)]
struct Newest {
    number: u32,
    clock: Option<Arc<dyn Clock>>,
}

impl SqliteFactory {
    pub(crate) fn inline() -> Self {
        Self::with(true, Duration::from_secs(5))
    }

    pub(crate) fn threaded() -> Self {
        Self::with(false, Duration::from_millis(600))
    }

    fn with(inline: bool, lock_timeout: Duration) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { inline, lock_timeout, folder, newest: Mutex::default() }
    }

    async fn create(&self, message_bound: MessageBound) -> Arc<dyn Provider> {
        let clock: Arc<dyn Clock> =
            if self.inline { Arc::new(TokioClock::start()) } else { Arc::new(SystemClock) };
        {
            let mut newest = self.newest.lock().unwrap();
            newest.number += 1;
            newest.clock = Some(Arc::clone(&clock));
        }
        let options = SqliteOptions { inline: self.inline, clock, message_bound, ..SqliteOptions::default() };
        let url = format!("sqlite:{}", self.path().display());
        Arc::new(SqliteProvider::new(&url, Some(options)).await.unwrap())
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join(format!("{}.db", self.newest.lock().unwrap().number))
    }

    /// Changes rows of the file without the store.
    fn damage(&self, sql: &str, instance: &str) {
        raw(&self.path()).execute(sql, [instance]).unwrap();
    }
}

/// A connection of the test to a store's file.
pub(crate) fn raw(path: &Path) -> Connection {
    let conn = Connection::open(path).unwrap();
    conn.busy_timeout(Duration::from_secs(10)).unwrap();
    conn
}

/// Stores a dead letter.
pub(crate) fn bury(path: &Path, letter: &DeadLetter) {
    let sql = "INSERT INTO dead_letters (queue, instance_id, work_item, reason, attempt_count, dead_at)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let DeadLetter { queue, instance_id, work_item, reason, attempt_count, dead_at } = letter;
    let row = (queue.as_str(), instance_id, work_item, reason, attempt_count, *dead_at as i64);
    raw(path).execute(sql, row).unwrap();
}

#[async_trait]
impl ProviderFactory for SqliteFactory {
    async fn create_provider(&self) -> Arc<dyn Provider> {
        self.create(MessageBound::default()).await
    }
    async fn create_bounded_provider(&self, bound: MessageBound) -> Option<Arc<dyn Provider>> {
        Some(self.create(bound).await)
    }
    fn lock_timeout(&self) -> Duration {
        self.lock_timeout
    }
    fn short_poll_threshold(&self) -> Duration {
        Duration::from_millis(250)
    }
    fn waits(&self) -> bool {
        true
    }
    fn now_ms(&self) -> u64 {
        self.newest.lock().unwrap().clock.as_ref().expect("a store was created").now_ms()
    }
    async fn corrupt_instance_history(&self, instance: &str) {
        self.damage("UPDATE history SET event_data = 'NOT_VALID_JSON{{{' WHERE instance_id = ?1", instance);
    }
    async fn get_max_attempt_count(&self, instance: &str) -> u32 {
        let sql = "SELECT max(attempt_count) FROM orchestrator_queue WHERE instance_id = ?1";
        raw(&self.path()).query_row(sql, [instance], |row| row.get(0)).unwrap()
    }
    fn shows_pending(&self) -> bool {
        true
    }
    fn corrupts_queues(&self) -> bool {
        true
    }
    async fn corrupt_orchestrator_messages(&self, instance: &str) {
        self.damage(
            "UPDATE orchestrator_queue SET work_item = 'NOT_VALID_JSON{{{' WHERE instance_id = ?1",
            instance,
        );
    }
    async fn corrupt_work_items(&self, instance: &str) {
        self.damage(
            "UPDATE worker_queue SET work_item = 'NOT_VALID_JSON{{{' WHERE instance_id = ?1",
            instance,
        );
    }
    async fn write_dead_letter(&self, letter: &DeadLetter) -> bool {
        bury(&self.path(), letter);
        true
    }
}
