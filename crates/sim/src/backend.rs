//! The store of a world: the memory store, SQLite in memory, a SQLite file with a store object for each process, or SQLite and the
//! memory store side by side.

use crate::bug::Bug;
use crate::clock::SkewedClock;
use crate::mirror::Mirror;
use crate::plan::{Plan, StoreKind};
use crate::sqlite_file::SqliteFile;
use crate::statement_faults::StatementInjector;
use outlast_memory::{MemoryProvider, Rules};
use outlast_provider::{Clock, Provider};
use outlast_sqlite::{SqliteError, SqliteOptions, SqliteProvider, StatementFaults};
use outlast_testkit::entropy::SeededEntropy;
use std::sync::Arc;

pub(crate) struct Backend {
    store: Store,
    /// Injects failing statements; only SQLite has statements.
    pub(crate) statements: Arc<StatementInjector>,
    clock: Arc<SkewedClock>,
}

enum Store {
    Memory(Arc<MemoryProvider>),
    /// In memory.
    Sqlite(Arc<SqliteProvider>),
    SqliteFile(SqliteFile),
    Mirrored(Arc<Mirror>),
}

impl Backend {
    #[allow(clippy::expect_used, reason = "without a store no world can begin")]
    pub(crate) async fn open(plan: &Plan, bug: Option<Bug>, clock: &Arc<SkewedClock>) -> Self {
        let skewed = Arc::clone(clock);
        let clock: Arc<dyn Clock> = Arc::<SkewedClock>::clone(clock);
        let spares_rollbacks = plan.store == StoreKind::Sqlite;
        let statements = StatementInjector::new(plan.seed, plan.statement_faults, spares_rollbacks);
        let statements = Arc::new(statements.probed(plan.probe.clone()));
        // Defects of stores exist only in the memory store.
        let defect = bug.and_then(Bug::defect);
        let kind = if defect.is_some() { StoreKind::Memory } else { plan.store };
        let entropy = Arc::new(SeededEntropy::new(plan.seed, "store"));
        let faults: Arc<dyn StatementFaults> = Arc::<StatementInjector>::clone(&statements);
        let options = SqliteOptions {
            inline: true,
            clock: Arc::clone(&clock),
            entropy: Arc::<SeededEntropy>::clone(&entropy),
            faults: Some(faults),
            foreign_poll_interval: plan.foreign_poll,
            closes_like_a_crash: true,
            // So short that worlds move the log into the database.
            wal_limit_bytes: 256 << 10,
            ..SqliteOptions::default()
        };
        let in_memory = async || {
            let opened = SqliteProvider::new_in_memory_with_options(Some(options.clone())).await;
            Arc::new(opened.expect("a new store opens"))
        };
        let store = match kind {
            StoreKind::Memory => {
                let model = MemoryProvider::with_parts(clock, entropy).with_rules(Rules { defect });
                Store::Memory(Arc::new(model))
            }
            StoreKind::Sqlite => Store::Sqlite(in_memory().await),
            StoreKind::SqliteFile => {
                Store::SqliteFile(SqliteFile::create(plan.seed, options).await.expect("a new store opens"))
            }
            StoreKind::SqliteMirrored => {
                let model = MemoryProvider::with_clock(clock);
                Store::Mirrored(Arc::new(Mirror::new(in_memory().await, Arc::new(model), plan.mirror_waits)))
            }
        };
        Self { store, statements, clock: skewed }
    }

    /// The store as a client, an operator or a check sees it, which runs in no node.
    pub(crate) fn outside(&self) -> Arc<dyn Provider> {
        match &self.store {
            Store::SqliteFile(file) => file.outside(),
            _ => self.shared_by_all(),
        }
    }

    /// The store object of a process, which ends with the process. Stores in memory have one object for all processes.
    pub(crate) async fn open_for(&self, process: &str) -> Result<Arc<dyn Provider>, SqliteError> {
        match &self.store {
            Store::SqliteFile(file) => Ok(file.open_for(process).await?),
            _ => Ok(self.shared_by_all()),
        }
    }

    /// A process has ended, and with it its store object.
    pub(crate) fn process_ended(&self) {
        if let Store::SqliteFile(file) = &self.store {
            file.process_ended();
        }
    }

    fn shared_by_all(&self) -> Arc<dyn Provider> {
        match &self.store {
            Store::Memory(store) => Arc::<MemoryProvider>::clone(store),
            Store::Sqlite(store) => Arc::<SqliteProvider>::clone(store),
            Store::SqliteFile(file) => file.outside(),
            Store::Mirrored(both) => Arc::<Mirror>::clone(both),
        }
    }

    /// The store without its counterpart and without faults, for the checks.
    pub(crate) fn provider(&self) -> &dyn Provider {
        match &self.store {
            Store::Memory(store) => store.as_ref(),
            Store::Sqlite(store) => store.as_ref(),
            Store::SqliteFile(file) => file.observer(),
            Store::Mirrored(both) => both.as_ref(),
        }
    }

    /// An error text with the random name of the folder replaced, so that every run has the same trace.
    pub(crate) fn without_folder(&self, text: &str) -> String {
        match &self.store {
            Store::SqliteFile(file) => file.without_folder(text),
            _ => text.to_string(),
        }
    }

    /// Number of times that a store was opened after no process had it open.
    pub(crate) fn recoveries(&self) -> u64 {
        match &self.store {
            Store::SqliteFile(file) => file.recoveries(),
            _ => 0,
        }
    }

    /// Every row of the store, one line each, sorted.
    pub(crate) async fn dump(&self) -> Result<Vec<String>, String> {
        match &self.store {
            Store::Memory(store) => Ok(store.dump()),
            Store::Sqlite(store) => sqlite_rows(store, self.clock.latest_ms()).await,
            Store::SqliteFile(file) => sqlite_rows(file.observer(), self.clock.latest_ms()).await,
            Store::Mirrored(both) => both.dump(self.clock.latest_ms()).await,
        }
    }
}

/// The rows of a SQLite store. An activity whose time had come may be due in the future again after the clock was set back, while its
/// column `delayed` says otherwise. Such a row is left out if its time is not after `latest_ms`, the latest time that the clock had.
pub(crate) async fn sqlite_rows(store: &SqliteProvider, latest_ms: u64) -> Result<Vec<String>, String> {
    let mut lines = store.dump().await.map_err(|error| format!("no dump: {error}"))?;
    let is_explained = |line: &String| {
        let row = line.strip_suffix(" an unmarked activity that waits for its time");
        let visible_at = row.and_then(|row| row.rsplit(' ').next()?.parse::<u64>().ok());
        visible_at.is_some_and(|visible_at| visible_at <= latest_ms)
    };
    lines.retain(|line| !is_explained(line));
    Ok(lines)
}
