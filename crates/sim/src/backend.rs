//! The store of a world: the memory store, SQLite in memory, a SQLite file with a store object for each process, SQLite and the memory
//! store side by side, or the PostgreSQL store on a model of the server.

use crate::bug::Bug;
use crate::call::is_about_a_lock;
use crate::clock::SkewedClock;
use crate::fault::Fault;
use crate::mirror::Mirror;
use crate::plan::{Plan, StoreKind};
use crate::postgres_world::PostgresWorld;
use crate::sqlite_file::SqliteFile;
use crate::statement_faults::StatementInjector;
use outlast_memory::{MemoryProvider, Rules};
use outlast_provider::{Clock, Provider};
use outlast_sqlite::{LockPatience, SqliteError, SqliteOptions, SqliteProvider, StatementFaults};
use outlast_testkit::counts::Counts;
use outlast_testkit::entropy::SeededEntropy;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

pub(crate) struct Backend {
    store: Store,
    /// Injects failing statements; only SQLite has statements.
    pub(crate) statements: Arc<StatementInjector>,
    clock: Arc<SkewedClock>,
    /// Rows that contradict each other only because the clock was set back.
    ahead_of_clock: Mutex<BTreeSet<String>>,
}

enum Store {
    Memory(Arc<MemoryProvider>),
    /// In memory.
    Sqlite(Arc<SqliteProvider>),
    SqliteFile(Box<SqliteFile>),
    Mirrored(Arc<Mirror>),
    Postgres(Box<PostgresWorld>),
}

impl Backend {
    #[allow(clippy::expect_used, reason = "without a store no world can begin")]
    pub(crate) async fn open(plan: &Plan, bug: Option<Bug>, clock: &Arc<SkewedClock>) -> Self {
        let (skewed, of_store) = (Arc::clone(clock), Arc::clone(clock));
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
            lock_patience: LockPatience::Nothing,
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
                let file = SqliteFile::create(plan.seed, options).await.expect("a new store opens");
                Store::SqliteFile(Box::new(file))
            }
            StoreKind::SqliteMirrored => {
                let model = MemoryProvider::with_clock(clock);
                Store::Mirrored(Arc::new(Mirror::new(in_memory().await, Arc::new(model), plan.mirror_waits)))
            }
            StoreKind::Postgres => Store::Postgres(Box::new(PostgresWorld::open(plan, &of_store))),
        };
        Self { store, statements, clock: skewed, ahead_of_clock: Mutex::default() }
    }

    /// The store object of clients, operators and checks, which run in no node.
    pub(crate) fn outside(&self) -> Arc<dyn Provider> {
        match &self.store {
            Store::SqliteFile(file) => file.outside(),
            Store::Postgres(postgres) => postgres.outside(),
            _ => self.shared_by_all(),
        }
    }

    /// The store object of a process, which ends with the process. Stores in memory have one object for all processes.
    pub(crate) async fn open_for(&self, process: &str) -> Result<Arc<dyn Provider>, String> {
        match &self.store {
            Store::SqliteFile(file) => {
                let opened: Result<_, SqliteError> = file.open_for(process).await;
                Ok(opened.map_err(|error| error.to_string())?)
            }
            Store::Postgres(postgres) => postgres.open_for(process),
            _ => Ok(self.shared_by_all()),
        }
    }

    /// Notes that a process and its store object have ended.
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
            Store::Postgres(postgres) => postgres.outside(),
        }
    }

    /// The store without its counterpart and without faults, for the checks.
    pub(crate) fn provider(&self) -> &dyn Provider {
        match &self.store {
            Store::Memory(store) => store.as_ref(),
            Store::Sqlite(store) => store.as_ref(),
            Store::SqliteFile(file) => file.observer(),
            Store::Mirrored(both) => both.as_ref(),
            Store::Postgres(postgres) => postgres.rows(),
        }
    }

    /// An error text with the random name of the folder replaced, so that every run has the same trace.
    pub(crate) fn without_folder(&self, text: &str) -> String {
        match &self.store {
            Store::SqliteFile(file) => file.without_folder(text),
            _ => text.to_string(),
        }
    }

    /// The file of the world, if its processes share one.
    pub(crate) fn file(&self) -> Option<&SqliteFile> {
        match &self.store {
            Store::SqliteFile(file) => Some(file),
            _ => None,
        }
    }

    /// Whether a process outside of the world holds the write lock of the file.
    pub(crate) fn is_busy(&self) -> bool {
        self.file().is_some_and(SqliteFile::is_busy)
    }

    /// Waits until no process outside of the world holds the write lock of the file.
    pub(crate) async fn free(&self) {
        if let Some(file) = self.file() {
            file.free().await;
        }
    }

    /// Ends the faults of statements, unless a sweep chooses them, and those of connections; a busy file is free again.
    pub(crate) fn heal(&self, keeps_statements: bool) {
        self.statements.arm(keeps_statements);
        if let Some(file) = self.file() {
            file.foreign_process_dies();
        }
        if let Store::Postgres(postgres) = &self.store {
            postgres.links().heal();
        }
    }

    /// Whether a call that returned an error may have been committed.
    pub(crate) fn may_hide_commits(&self) -> bool {
        match &self.store {
            Store::Postgres(postgres) => postgres.links().may_hide_commits(),
            _ => self.statements.may_hide_commits(),
        }
    }

    /// Number of faults of statements and connections. Each disturbs all nodes.
    pub(crate) fn fault_count(&self) -> u64 {
        match &self.store {
            Store::Postgres(postgres) => postgres.links().count(),
            _ => self.statements.count(),
        }
    }

    /// The faults of connections.
    pub(crate) fn link_faults(&self) -> Counts<Fault> {
        match &self.store {
            Store::Postgres(postgres) => postgres.links().happened(),
            _ => Counts::default(),
        }
    }

    /// Waits until a task of the store runs without end.
    pub(crate) async fn runaway(&self) {
        match &self.store {
            Store::Postgres(postgres) => postgres.links().runaway().await,
            _ => std::future::pending().await,
        }
    }

    /// Whether tasks of the store make the calls of a node: a node that is stalled learns of them later.
    pub(crate) fn has_tasks(&self) -> bool {
        matches!(self.store, Store::Postgres(_))
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
            Store::Sqlite(store) => self.without_rows_ahead(sqlite_rows(store).await?),
            Store::SqliteFile(file) => {
                let rows =
                    sqlite_rows(file.observer()).await.map_err(|error| match is_about_a_lock(&error) {
                        true => format!("B1: the rows cannot be read: {}", file.without_folder(&error)),
                        false => error,
                    });
                self.without_rows_ahead(rows?)
            }
            // The clock of such a world is never set back.
            Store::Mirrored(both) => both.dump().await,
            Store::Postgres(postgres) => Ok(postgres.rows().dump()),
        }
    }

    /// Leaves out and counts the contradictions that are explained by a clock that was set back. The activities themselves stay among the
    /// rows: from their time on, they must be fetched as all others.
    fn without_rows_ahead(&self, rows: Vec<String>) -> Result<Vec<String>, String> {
        let (ahead, rows): (Vec<_>, Vec<_>) =
            rows.into_iter().partition(|line| is_ahead_of_clock(line, &self.clock));
        self.ahead_of_clock.lock().unwrap_or_else(PoisonError::into_inner).extend(ahead);
        Ok(rows)
    }

    /// Number of rows that were left out.
    pub(crate) fn rows_ahead_of_clock(&self) -> u64 {
        self.ahead_of_clock.lock().unwrap_or_else(PoisonError::into_inner).len() as u64
    }
}

/// The rows of a SQLite store.
pub(crate) async fn sqlite_rows(store: &SqliteProvider) -> Result<Vec<String>, String> {
    store.dump().await.map_err(|error| format!("no dump: {error}"))
}

/// Whether a clock that was set back explains the contradiction of this line. An activity whose time has come is stored without the mark
/// `delayed`. If the clock is set back behind this time, it is in the future again, but never after the latest time that the clock has had.
fn is_ahead_of_clock(line: &str, clock: &SkewedClock) -> bool {
    let row = line.strip_suffix(" an unmarked activity that waits for its time");
    let visible_at = row.and_then(|row| row.rsplit(' ').next()?.parse::<u64>().ok());
    clock.set_back_ms() > 0 && visible_at.is_some_and(|visible_at| visible_at <= clock.latest_ms())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::EPOCH_MS;
    use outlast_conformance::TokioClock;
    use outlast_testkit::virtual_time;

    #[test]
    fn only_unmarked_activities_up_to_the_latest_time_of_a_clock_set_back_are_explained() {
        virtual_time::run(async {
            let clock = SkewedClock::new(&Arc::new(TokioClock::start_at(EPOCH_MS)), 0);
            let explained = |ms: u64, what: &str| {
                is_ahead_of_clock(&format!("contradiction i 1 2 {} {what}", EPOCH_MS + ms), &clock)
            };
            let unmarked = "an unmarked activity that waits for its time";
            clock.jump(500);
            assert!(!explained(400, unmarked), "the clock was not set back");
            clock.jump(-200);
            assert!(explained(500, unmarked));
            assert!(!explained(501, unmarked), "after the latest time of the clock");
            assert!(!explained(400, "an activity half leased"));
        });
    }
}
