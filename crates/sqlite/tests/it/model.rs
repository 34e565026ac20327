//! The SQLite store against the specification, by sequences of every call: a test run tries 500 random ones.

use crate::factory::raw;
use async_trait::async_trait;
use outlast_conformance::model::{DAMAGED, Damage, Hand, Sequence, Stored, Subject};
use outlast_provider::{Clock, MessageBound, Provider};
use outlast_sqlite::{SqliteOptions, SqliteProvider, Synchronous};
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

outlast_conformance::model_tests!(500, run);

/// Runs a sequence on a new store with the default bound, and on one with a small bound on the messages of a turn.
fn run(sequence: &Sequence) -> Result<(), String> {
    run_with(sequence, MessageBound::default())?;
    run_with(sequence, FEW).map_err(|difference| format!("{difference}\nwith {FEW:?}"))
}

/// A bound below the number of messages that a sequence often sends to an instance, and below the bytes of two messages with a
/// long text.
const FEW: MessageBound = MessageBound::new(2, 300);

fn run_with(sequence: &Sequence, bound: MessageBound) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("model.db");
    runtime.block_on(async { sequence.run(&mut InFile::open(&path, bound).await).await })
}

/// A store in a file.
struct InFile {
    clock: Arc<Hand>,
    bound: MessageBound,
    /// The latest time that the test has set.
    latest: u64,
    path: PathBuf,
    /// `None` only while `reopen` replaces the store.
    store: Option<SqliteProvider>,
    raw: Connection,
}

impl InFile {
    async fn open(path: &Path, bound: MessageBound) -> Self {
        let clock = Arc::new(Hand::default());
        let store = Some(open(path, &clock, bound).await);
        Self { clock, bound, latest: 0, path: path.to_owned(), store, raw: raw(path) }
    }

    fn store(&self) -> &SqliteProvider {
        self.store.as_ref().expect("the store is open")
    }
}

async fn open(path: &Path, clock: &Arc<Hand>, message_bound: MessageBound) -> SqliteProvider {
    let options = SqliteOptions {
        inline: true,
        // The sequences do not crash the machine, so commits need no sync.
        synchronous: Synchronous::Normal,
        clock: Arc::clone(clock) as Arc<dyn Clock>,
        message_bound,
        ..SqliteOptions::default()
    };
    SqliteProvider::new(&format!("sqlite:{}", path.display()), Some(options)).await.unwrap()
}

#[async_trait(?Send)]
impl Subject for InFile {
    fn provider(&self) -> &dyn Provider {
        self.store()
    }

    fn message_bound(&self) -> MessageBound {
        self.bound
    }

    async fn set_time(&mut self, now_ms: u64) {
        self.clock.set(now_ms);
        self.latest = self.latest.max(now_ms);
    }

    async fn reopen(&mut self) {
        self.store = None;
        self.store = Some(open(&self.path, &self.clock, self.bound).await);
    }

    async fn dump(&self) -> Vec<String> {
        let mut stored = self.store().dump().await.unwrap();
        // The store marks an activity as visible by the clock at the time of the enqueue.
        if self.latest > self.clock.now_ms() {
            stored.retain(|line| !line.ends_with(" an unmarked activity that waits for its time"));
        }
        stored
    }

    async fn damage(&self, what: Damage, instance: &str) {
        let sql = match what {
            Damage::History => "UPDATE history SET event_data = ?2 WHERE instance_id = ?1",
            Damage::Messages => "UPDATE orchestrator_queue SET work_item = ?2 WHERE instance_id = ?1",
            Damage::Work => "UPDATE worker_queue SET work_item = ?2 WHERE instance_id = ?1",
        };
        self.raw.execute(sql, [instance, DAMAGED]).unwrap();
    }

    async fn stored(&self, instance: &str, execution: u64) -> Stored {
        let sql = "SELECT ifnull(max(event_id), 0), ifnull(max(event_type IN ('OrchestrationCompleted',
                   'OrchestrationFailed', 'OrchestrationContinuedAsNew')), 0)
                   FROM history WHERE instance_id = ?1 AND execution_id = ?2";
        let mut statement = self.raw.prepare_cached(sql).unwrap();
        let key = (instance, i64::try_from(execution).unwrap());
        let (last_event, is_over) =
            statement.query_row(key, |row| Ok((row.get::<_, i64>(0)?, row.get(1)?))).unwrap();
        Stored { last_event: u64::try_from(last_event).unwrap(), is_over }
    }
}
