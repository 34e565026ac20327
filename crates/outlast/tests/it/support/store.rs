//! The stores, with default options and, except for servers, under paused time.

use super::cosmos::Container;
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
    /// A container of its own: in a rig, or in the account that `COSMOS_ENDPOINT` and `COSMOS_KEY` name.
    Cosmos,
}

/// The kinds whose time can be paused.
pub(crate) const ALL: [Kind; 3] = [Kind::Memory, Kind::SqliteMemory, Kind::SqliteFile];

/// The store of one test.
pub(crate) struct TestStore {
    pub(crate) store: Arc<dyn Provider>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) is_paused: bool,
    folder: Option<TempDir>,
    pub(crate) schema: Option<String>,
    container: Option<Container>,
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

    /// For runs with crashes: under paused time if the kind allows it.
    pub(crate) async fn crashing(kind: Kind) -> Self {
        match kind {
            Kind::Cosmos | Kind::Postgres => Self::real(kind).await,
            Kind::Memory | Kind::SqliteMemory | Kind::SqliteFile => Self::paused(kind).await,
        }
    }

    /// Whether Microsoft's emulator may serve the store: its batches get slower with every document.
    pub(crate) fn may_be_emulated(&self) -> bool {
        self.container.is_some()
    }

    pub(crate) async fn open(kind: Kind, clock: Arc<dyn Clock>, is_paused: bool) -> Self {
        let (mut folder, mut schema, mut container) = (None, None, None);
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
            Kind::Cosmos => {
                assert!(!is_paused, "a server has its own time");
                container.insert(Container::fresh().await).open().await
            }
        };
        Self { store, clock, is_paused, folder, schema, container }
    }

    /// Opens the same data as another process would: the same file, schema or container, or the same memory store.
    pub(crate) async fn reopened(&self) -> Arc<dyn Provider> {
        match (&self.folder, &self.schema, &self.container) {
            (Some(folder), ..) => {
                let options = options(&self.clock, self.is_paused);
                Arc::new(SqliteProvider::new(&url(folder), Some(options)).await.unwrap())
            }
            (None, Some(schema), _) => postgres::open(schema).await,
            (None, None, Some(container)) => container.open().await,
            (None, None, None) => Arc::clone(&self.store),
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
