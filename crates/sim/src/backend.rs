//! The store of a world: the memory store, or the shipped SQLite store on this thread, in memory or in a file, or both.

use crate::bug::Bug;
use crate::clock::OffClock;
use crate::mirror::Mirror;
use crate::plan::{Plan, StoreKind};
use crate::statements::Statements;
use outlast_memory::{MemoryProvider, Rules};
use outlast_provider::{Clock, Provider};
use outlast_sqlite::{SqliteOptions, SqliteProvider, StatementFaults};
use outlast_testkit::entropy::SeededEntropy;
use outlast_testkit::folder;
use std::sync::Arc;
use tempfile::TempDir;

pub(crate) struct Backend {
    store: Store,
    /// Which statements fail; no store but SQLite has any.
    pub(crate) statements: Arc<Statements>,
    /// Removed with the world, after the store has closed.
    folder: Option<TempDir>,
}

enum Store {
    Memory(Arc<MemoryProvider>),
    Sqlite(Arc<SqliteProvider>),
    Mirrored(Mirror),
}

impl Backend {
    #[allow(
        clippy::expect_used,
        reason = "a new store in an empty folder can be opened, or no world can begin"
    )]
    pub(crate) async fn open(plan: &Plan, bug: Option<Bug>, clock: &Arc<OffClock>) -> Self {
        let shared_clock: Arc<dyn Clock> = Arc::<OffClock>::clone(clock);
        let clock = Arc::clone(&shared_clock);
        let entropy = Arc::new(SeededEntropy::new(plan.seed, "store"));
        let spares_rollbacks = plan.store == StoreKind::Sqlite;
        let statements = Statements::new(plan.seed, plan.statement_faults, spares_rollbacks);
        let statements = Arc::new(statements.aimed(plan.aim.clone()));
        // Defects of a store are defects of the memory store.
        let kind = if bug.and_then(Bug::defect).is_some() { StoreKind::Memory } else { plan.store };
        let folder = (kind == StoreKind::SqliteFile)
            .then(|| folder::in_memory("outlast-sim-").expect("a folder can be made"));
        let store = match kind {
            StoreKind::Memory => {
                let rules = Rules { defect: bug.and_then(Bug::defect) };
                Store::Memory(Arc::new(MemoryProvider::with_parts(clock, entropy, rules)))
            }
            StoreKind::Sqlite | StoreKind::SqliteFile | StoreKind::SqliteMirrored => {
                let url = match &folder {
                    Some(folder) => format!("sqlite:{}", folder.path().join("store.db").display()),
                    None => "sqlite::memory:".to_string(),
                };
                let faults: Arc<dyn StatementFaults> = Arc::<Statements>::clone(&statements);
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

    /// A text of the store as it would be in every run: the name of its folder is left to chance.
    pub(crate) fn without_folder(&self, text: &str) -> String {
        match &self.folder {
            Some(folder) => text.replace(&folder.path().display().to_string(), "FOLDER"),
            None => text.to_string(),
        }
    }

    /// Every row, one line each, sorted.
    pub(crate) async fn dump(&self) -> Result<Vec<String>, String> {
        match &self.store {
            Store::Memory(store) => Ok(store.dump()),
            Store::Sqlite(store) => sqlite_rows(store).await,
            Store::Mirrored(both) => both.dump().await,
        }
    }
}

/// The rows of a SQLite store. A mark that an activity need not wait outlives a clock that goes back, which is no
/// contradiction.
pub(crate) async fn sqlite_rows(store: &SqliteProvider) -> Result<Vec<String>, String> {
    let mut lines = store.dump().await.map_err(|error| format!("no dump: {error}"))?;
    lines.retain(|line| !line.ends_with(" an unmarked activity that waits for its time"));
    Ok(lines)
}
