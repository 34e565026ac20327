//! The store of a world: the memory store, the shipped SQLite store (in memory or in a file), or both side by side.

use crate::bug::Bug;
use crate::clock::SkewedClock;
use crate::mirror::Mirror;
use crate::plan::{Plan, StoreKind};
use crate::statement_faults::StatementInjector;
use outlast_memory::{MemoryProvider, Rules};
use outlast_provider::{Clock, Provider};
use outlast_sqlite::{SqliteOptions, SqliteProvider, StatementFaults};
use outlast_testkit::entropy::SeededEntropy;
use outlast_testkit::folder;
use std::sync::Arc;
use tempfile::TempDir;

pub(crate) struct Backend {
    store: Store,
    /// Injects failing statements; only SQLite has statements.
    pub(crate) statements: Arc<StatementInjector>,
    /// The folder of a store file. It is removed with the world, after the store is closed.
    folder: Option<TempDir>,
}

enum Store {
    Memory(Arc<MemoryProvider>),
    Sqlite(Arc<SqliteProvider>),
    Mirrored(Mirror),
}

impl Backend {
    #[allow(clippy::expect_used, reason = "without a store no world can begin")]
    pub(crate) async fn open(plan: &Plan, bug: Option<Bug>, clock: &Arc<SkewedClock>) -> Self {
        let shared_clock: Arc<dyn Clock> = Arc::<SkewedClock>::clone(clock);
        let clock = Arc::clone(&shared_clock);
        let entropy = Arc::new(SeededEntropy::new(plan.seed, "store"));
        let spares_rollbacks = plan.store == StoreKind::Sqlite;
        let statements = StatementInjector::new(plan.seed, plan.statement_faults, spares_rollbacks);
        let statements = Arc::new(statements.probed(plan.probe.clone()));
        // Defects of stores exist only in the memory store.
        let kind = if bug.and_then(Bug::defect).is_some() { StoreKind::Memory } else { plan.store };
        let folder = (kind == StoreKind::SqliteFile)
            .then(|| folder::in_memory("outlast-sim-").expect("a folder can be made"));
        let store = match kind {
            StoreKind::Memory => {
                let rules = Rules { defect: bug.and_then(Bug::defect) };
                Store::Memory(Arc::new(MemoryProvider::with_parts(clock, entropy).with_rules(rules)))
            }
            StoreKind::Sqlite | StoreKind::SqliteFile | StoreKind::SqliteMirrored => {
                let url = match &folder {
                    Some(folder) => format!("sqlite:{}", folder.path().join("store.db").display()),
                    None => "sqlite::memory:".to_string(),
                };
                let faults: Arc<dyn StatementFaults> = Arc::<StatementInjector>::clone(&statements);
                let options = SqliteOptions {
                    inline: true,
                    clock,
                    entropy,
                    faults: Some(faults),
                    ..SqliteOptions::default()
                };
                let store = SqliteProvider::new(&url, Some(options)).await.expect("a new store opens");
                let store = Arc::new(store);
                match kind {
                    StoreKind::SqliteMirrored => {
                        let model = MemoryProvider::with_clock(shared_clock);
                        Store::Mirrored(Mirror::new(store, Arc::new(model)))
                    }
                    _ => Store::Sqlite(store),
                }
            }
        };
        Self { store, statements, folder }
    }

    pub(crate) fn provider(&self) -> &dyn Provider {
        match &self.store {
            Store::Memory(store) => store.as_ref(),
            Store::Sqlite(store) => store.as_ref(),
            Store::Mirrored(both) => both,
        }
    }

    /// An error text with the random name of the folder replaced, so that every run has the same trace.
    pub(crate) fn without_folder(&self, text: &str) -> String {
        match &self.folder {
            Some(folder) => text.replace(&folder.path().display().to_string(), "FOLDER"),
            None => text.to_string(),
        }
    }

    /// Every row of the store, one line each, sorted.
    pub(crate) async fn dump(&self) -> Result<Vec<String>, String> {
        match &self.store {
            Store::Memory(store) => Ok(store.dump()),
            Store::Sqlite(store) => sqlite_rows(store).await,
            Store::Mirrored(both) => both.dump().await,
        }
    }
}

/// The rows of a SQLite store. After the clock is set back, an activity whose time had come may be due in the future
/// again while its column `delayed` says otherwise. The dump reports that as a contradiction; it is harmless, and left
/// out here.
pub(crate) async fn sqlite_rows(store: &SqliteProvider) -> Result<Vec<String>, String> {
    let mut lines = store.dump().await.map_err(|error| format!("no dump: {error}"))?;
    lines.retain(|line| !line.ends_with(" an unmarked activity that waits for its time"));
    Ok(lines)
}
