//! The SQLite store against the specification, by sequences of every call: 500 random ones in a test run.

use crate::factory::raw;
use async_trait::async_trait;
use outlast_conformance::model::{DAMAGED, Damage, Hand, Sequence, Stored, Subject};
use outlast_provider::{Clock, Provider};
use outlast_sqlite::{SqliteOptions, SqliteProvider, Synchronous};
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

outlast_conformance::model_tests!(500, run);

/// Runs a sequence on a new store.
fn run(sequence: &Sequence) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("model.db");
    runtime.block_on(async { sequence.run(&mut InFile::open(&path).await).await })
}

/// A store in a file.
struct InFile {
    clock: Arc<Hand>,
    /// The latest time that the clock has shown.
    latest: u64,
    path: PathBuf,
    /// `None` only while it is opened again.
    store: Option<SqliteProvider>,
    raw: Connection,
}

impl InFile {
    async fn open(path: &Path) -> Self {
        let clock = Arc::new(Hand::default());
        let store = Some(open(path, &clock).await);
        Self { clock, latest: 0, path: path.to_owned(), store, raw: raw(path) }
    }

    fn store(&self) -> &SqliteProvider {
        self.store.as_ref().expect("it is open")
    }
}

async fn open(path: &Path, clock: &Arc<Hand>) -> SqliteProvider {
    let options = SqliteOptions {
        inline: true,
        // Nobody pulls the plug here.
        synchronous: Synchronous::Normal,
        clock: Arc::clone(clock) as Arc<dyn Clock>,
        ..SqliteOptions::default()
    };
    SqliteProvider::new(&format!("sqlite:{}", path.display()), Some(options)).await.unwrap()
}

#[async_trait(?Send)]
impl Subject for InFile {
    fn provider(&self) -> &dyn Provider {
        self.store()
    }

    async fn set_time(&mut self, now_ms: u64) {
        self.clock.set(now_ms);
        self.latest = self.latest.max(now_ms);
    }

    async fn reopen(&mut self) {
        self.store = None;
        self.store = Some(open(&self.path, &self.clock).await);
    }

    async fn dump(&self) -> Vec<String> {
        let mut stored = self.store().dump().await.unwrap();
        // An activity was visible when it was enqueued, by the clock of that moment.
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
