//! A SQLite file that several processes open. Each process has its own store object with its own connection, which ends with the
//! process. If no process is left, the connection of the outside world is closed too, so that the next process recovers the
//! write-ahead log. A process outside of the world, which holds the write lock for some time, makes the file busy.

use outlast_provider::Provider;
use outlast_sqlite::{ForeignLock, SqliteError, SqliteOptions, SqliteProvider};
use outlast_testkit::entropy::SeededEntropy;
use outlast_testkit::folder;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use tempfile::TempDir;
use tokio::sync::Notify;

pub(crate) struct SqliteFile {
    seed: u64,
    options: SqliteOptions,
    /// The store of clients, operators and checks.
    outside: Arc<SqliteProvider>,
    processes: Mutex<Vec<Weak<SqliteProvider>>>,
    recoveries: AtomicU64,
    /// The write lock, while a process outside of the world holds it.
    foreign_lock: Mutex<Option<ForeignLock>>,
    freed: Notify,
    /// Removed with the world, after the stores are closed.
    folder: TempDir,
}

impl SqliteFile {
    /// Creates the file in a folder of its own.
    pub(crate) async fn create(seed: u64, options: SqliteOptions) -> Result<Self, SqliteError> {
        let failed = |error: std::io::Error| SqliteError::Other(error.to_string());
        let folder = folder::in_memory("outlast-sim-").map_err(failed)?;
        std::fs::write(folder.path().join(FILE), empty_store().await?).map_err(failed)?;
        let outside = Arc::new(open(folder.path(), &options, seed, "outside").await?);
        let (processes, recoveries) = (Mutex::default(), AtomicU64::new(0));
        let (foreign_lock, freed) = Default::default();
        Ok(Self { seed, options, outside, processes, recoveries, foreign_lock, freed, folder })
    }

    pub(crate) fn outside(&self) -> Arc<dyn Provider> {
        Arc::<SqliteProvider>::clone(&self.outside)
    }

    pub(crate) fn observer(&self) -> &SqliteProvider {
        &self.outside
    }

    /// Opens the file for a process.
    pub(crate) async fn open_for(&self, process: &str) -> Result<Arc<SqliteProvider>, SqliteError> {
        let store = Arc::new(open(self.folder.path(), &self.options, self.seed, process).await?);
        let mut processes = self.processes.lock().unwrap_or_else(PoisonError::into_inner);
        processes.push(Arc::downgrade(&store));
        Ok(store)
    }

    /// Closes the connection of the outside world if no process has the file open.
    pub(crate) fn process_ended(&self) {
        let mut processes = self.processes.lock().unwrap_or_else(PoisonError::into_inner);
        processes.retain(|process| process.strong_count() > 0);
        if processes.is_empty() {
            self.outside.disconnect();
            // A process that holds the lock has the log open.
            self.recoveries.fetch_add(u64::from(!self.is_busy()), Relaxed);
        }
    }

    fn foreign_lock(&self) -> MutexGuard<'_, Option<ForeignLock>> {
        self.foreign_lock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a process outside of the world holds the write lock.
    pub(crate) fn is_busy(&self) -> bool {
        self.foreign_lock().is_some()
    }

    /// A process outside of the world takes the write lock and begins to write. No transaction of the world is open meanwhile.
    pub(crate) fn make_busy(&self) -> Result<(), SqliteError> {
        *self.foreign_lock() = Some(ForeignLock::take(&self.folder.path().join(FILE))?);
        Ok(())
    }

    /// The process outside of the world commits. Does nothing if the file is free.
    pub(crate) fn foreign_process_commits(&self) -> Result<(), SqliteError> {
        let lock = self.foreign_lock().take();
        let committed = lock.map_or(Ok(()), ForeignLock::commit);
        self.freed.notify_waiters();
        committed
    }

    /// The process outside of the world ends without a commit. Does nothing if the file is free.
    pub(crate) fn foreign_process_dies(&self) {
        drop(self.foreign_lock().take());
        self.freed.notify_waiters();
    }

    /// Waits until no process outside of the world holds the write lock.
    pub(crate) async fn free(&self) {
        loop {
            let freed = self.freed.notified();
            if !self.is_busy() {
                return;
            }
            freed.await;
        }
    }

    pub(crate) fn recoveries(&self) -> u64 {
        self.recoveries.load(Relaxed)
    }

    pub(crate) fn without_folder(&self, text: &str) -> String {
        text.replace(&self.folder.path().display().to_string(), "FOLDER")
    }
}

const FILE: &str = "store.db";

async fn open(
    folder: &Path,
    options: &SqliteOptions,
    seed: u64,
    process: &str,
) -> Result<SqliteProvider, SqliteError> {
    // Two processes must not draw the same tokens.
    let entropy = Arc::new(SeededEntropy::new(seed, &format!("store of {process}")));
    let options = SqliteOptions { entropy, ..options.clone() };
    SqliteProvider::new(&format!("sqlite:{}", folder.join(FILE).display()), Some(options)).await
}

/// The bytes of an empty store. Worlds copy them, because the migrations take longer than a small world.
async fn empty_store() -> Result<&'static [u8], SqliteError> {
    static EMPTY: OnceLock<Vec<u8>> = OnceLock::new();
    if let Some(bytes) = EMPTY.get() {
        return Ok(bytes);
    }
    let failed = |error: std::io::Error| SqliteError::Other(error.to_string());
    let folder = folder::in_memory("outlast-sim-empty-").map_err(failed)?;
    let options = SqliteOptions { inline: true, ..SqliteOptions::default() };
    drop(open(folder.path(), &options, 0, "template").await?);
    let bytes = std::fs::read(folder.path().join(FILE)).map_err(failed)?;
    Ok(EMPTY.get_or_init(|| bytes))
}
