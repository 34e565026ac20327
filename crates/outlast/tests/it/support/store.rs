//! The stores, with default options and, except for PostgreSQL, under paused time.

use super::postgres;
use outlast::provider_validations::TokioClock;
use outlast::providers::memory::MemoryProvider;
use outlast::providers::sqlite::{SqliteOptions, SqliteProvider, Synchronous};
use outlast::providers::{Clock, Provider, SystemClock};
use std::sync::Arc;
use tempfile::TempDir;

/// The kind of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Memory,
    SqliteMemory,
    SqliteFile,
    /// A schema of the server that `cargo xtask` starts; only for tests in modules `needs_postgres`.
    Postgres,
}

/// The kinds that need no server.
pub(crate) const ALL: [Kind; 3] = [Kind::Memory, Kind::SqliteMemory, Kind::SqliteFile];

/// The store of one test.
pub(crate) struct TestStore {
    pub(crate) store: Arc<dyn Provider>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) is_paused: bool,
    folder: Option<TempDir>,
    pub(crate) schema: Option<String>,
}

impl TestStore {
    /// With default options: SQLite on its threads, and the machine's clock.
    pub(crate) async fn real(kind: Kind) -> Self {
        Self::open(kind, Arc::new(SystemClock), false).await
    }

    /// On the test's thread and with tokio's clock, so that paused time advances leases and timers.
    pub(crate) async fn paused(kind: Kind) -> Self {
        Self::open(kind, Arc::new(TokioClock::start()), true).await
    }

    pub(crate) async fn open(kind: Kind, clock: Arc<dyn Clock>, is_paused: bool) -> Self {
        let (mut folder, mut schema) = (None, None);
        let options = options(&clock, is_paused);
        let store: Arc<dyn Provider> = match kind {
            Kind::Memory => Arc::new(MemoryProvider::with_clock(Arc::clone(&clock))),
            Kind::SqliteMemory => {
                Arc::new(SqliteProvider::new_in_memory_with_options(Some(options)).await.unwrap())
            }
            Kind::SqliteFile => {
                let url = url(folder.insert(tempfile::tempdir().unwrap()));
                Arc::new(SqliteProvider::new(&url, Some(options)).await.unwrap())
            }
            Kind::Postgres => {
                assert!(!is_paused, "a server has its own time");
                postgres::open(schema.insert(postgres::fresh_schema())).await
            }
        };
        Self { store, clock, is_paused, folder, schema }
    }

    /// Opens the same data as another process would: the same file, the same schema, or the same memory store.
    pub(crate) async fn reopened(&self) -> Arc<dyn Provider> {
        match (&self.folder, &self.schema) {
            (Some(folder), _) => {
                let options = options(&self.clock, self.is_paused);
                Arc::new(SqliteProvider::new(&url(folder), Some(options)).await.unwrap())
            }
            (None, Some(schema)) => postgres::open(schema).await,
            (None, None) => Arc::clone(&self.store),
        }
    }
}

/// A crash of a runtime loses no data that SQLite has written, so under paused time no write waits for a sync.
fn options(clock: &Arc<dyn Clock>, inline: bool) -> SqliteOptions {
    let synchronous = if inline { Synchronous::Normal } else { Synchronous::Full };
    SqliteOptions { clock: Arc::clone(clock), inline, synchronous, ..SqliteOptions::default() }
}

fn url(folder: &TempDir) -> String {
    format!("sqlite:{}", folder.path().join("store.db").display())
}
