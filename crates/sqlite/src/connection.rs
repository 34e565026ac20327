//! The writer's connection: opened again after a failure, and checked for commits of other processes.

use crate::command::Job;
use crate::contain::{Health, contain};
use crate::counters::Counters;
use crate::db::{Db, Result};
use crate::url::Location;
use crate::wal_prealloc::WalPrealloc;
use crate::{SqliteError, SqliteOptions, open};
use std::mem;
use std::sync::Arc;
use std::time::SystemTime;

/// The connection that writes, and the jobs that wait for it.
pub(crate) struct WriterConnection {
    location: Location,
    options: SqliteOptions,
    counters: Arc<Counters>,
    /// `None` while the writer uses the connection, and after a failed write, until the connection is opened again.
    db: Option<Db>,
    /// `None` for a store in memory.
    wal_prealloc: Option<WalPrealloc>,
    /// Jobs that wait for the end of the transaction.
    jobs: Vec<Job>,
    data_version: i64,
    /// The length and time of the write-ahead log at the last two checks, the newest first.
    wal_seen: (WalStamp, WalStamp),
}

type WalStamp = Option<(u64, SystemTime)>;

impl WriterConnection {
    /// Opens the connection on the calling thread and applies migrations.
    pub(crate) fn open(location: Location, options: SqliteOptions, counters: Arc<Counters>) -> Result<Self> {
        let db = Some(open::writer(&location, &options, &counters)?);
        let wal_prealloc = WalPrealloc::of(&location, &options);
        let (jobs, data_version, wal_seen) = (Vec::new(), 0, (None, None));
        Ok(Self { location, options, counters, db, wal_prealloc, jobs, data_version, wal_seen })
    }

    /// Opens the connection again if it was closed; returns whether it was.
    pub(crate) fn reopen(&mut self) -> Result<bool> {
        if self.db.is_some() {
            return Ok(false);
        }
        if self.location == Location::Memory {
            return Err(SqliteError::Damaged {
                details: "the connection of the store in memory was closed, so its rows are lost".to_string(),
            });
        }
        let opened = open::writer(&self.location.again(), &self.options, &self.counters);
        self.db = Some(opened.map_err(SqliteError::while_reopening)?);
        self.counters.reopened.add(1);
        Ok(true)
    }

    /// The connection, until it is returned.
    pub(crate) fn take(&mut self) -> Result<Db> {
        self.db.take().ok_or(SqliteError::Closed)
    }

    /// Keeps the connection, or closes it. Before it is kept, the transaction is rolled back if `undo`, and the waiting jobs run.
    ///
    /// The connection is closed after a failed write, because its cache may differ from the file, and after a panic, because a
    /// statement may not have ended. A store in memory keeps its connection, because closing it would lose all committed rows.
    /// That is safe: the code that reads rows and runs statements does not unwind through SQLite, so for SQLite a panic is like
    /// a failed statement, and a rollback undoes the transaction.
    pub(crate) fn return_connection(&mut self, db: Db, is_broken: bool, undo: bool) {
        let is_closed = is_broken && self.location != Location::Memory;
        // A panic in a hook during the rollback counts as a failed rollback.
        let rolled_back = |db: &Db| matches!(contain(|| db.control("ROLLBACK")), Some(Ok(())));
        if is_closed || (undo && !db.conn.is_autocommit() && !rolled_back(&db)) {
            return;
        }
        let mut jobs = mem::take(&mut self.jobs).into_iter();
        let is_good = |job: Job| job(&db) == Health::Good;
        if jobs.by_ref().all(is_good) || self.location == Location::Memory {
            jobs.for_each(|job| _ = job(&db));
            self.db = Some(db);
        } else {
            // The remaining jobs run on the next connection.
            self.jobs.extend(jobs);
        }
    }

    /// Runs a job when the connection is returned.
    pub(crate) fn push_job(&mut self, job: Job) {
        self.jobs.push(job);
    }

    /// Drops the waiting jobs. Their callers get the error `Closed`.
    pub(crate) fn drop_jobs(&mut self) {
        self.jobs.clear();
    }

    /// Commits the open transaction.
    pub(crate) fn commit(&mut self, db: &Db, has_changes: bool) -> Result<()> {
        let mut wal_prealloc = self.wal_prealloc.as_mut().filter(|_| has_changes);
        if let Some(wal_prealloc) = &mut wal_prealloc {
            wal_prealloc.before_commit();
        }
        db.control("COMMIT")?;
        if let Some(wal_prealloc) = &mut wal_prealloc {
            wal_prealloc.after_commit();
        }
        Ok(())
    }

    /// Moves the write-ahead log into the database, so that no small commit has to. An error is not reported: the next commit
    /// meets it too.
    pub(crate) fn checkpoint(&mut self) {
        if self.wal_prealloc.is_none() {
            return;
        }
        let Ok(db) = self.take() else { return };
        let moved = contain(|| db.conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())));
        self.return_connection(db, !matches!(moved, Some(Ok(()))), false);
    }

    /// Closes the connection, as after a failed write. The next call opens it again.
    #[cfg(feature = "test-hooks")]
    pub(crate) fn disconnect(&mut self) {
        self.db = None;
    }

    /// Whether another process committed since the last check.
    pub(crate) fn has_foreign_commit(&mut self) -> bool {
        // Under paused time, all writes may happen within one tick of the file system's clock.
        if !self.options.inline && !self.wal_changed() {
            return false;
        }
        let Ok(db) = self.take() else { return false };
        let seen = self.has_foreign_commit_in(&db);
        self.db = Some(db);
        seen
    }

    /// Whether the write-ahead log changed since the last checks. This is much cheaper than a statement, which takes locks. The
    /// log is unchanged only after two checks with the same result, because two writes within one tick of the file system's
    /// clock have the same time.
    pub(crate) fn wal_changed(&mut self) -> bool {
        let Location::File { path, .. } = &self.location else { return false };
        let metadata = std::fs::metadata(open::wal_path(path));
        let stamp = metadata.and_then(|wal| Ok((wal.len(), wal.modified()?))).ok();
        let before = self.wal_seen;
        self.wal_seen = (stamp, before.0);
        stamp.is_none() || before != (stamp, stamp)
    }

    /// [`Self::has_foreign_commit`] on a connection that was taken. No other process writes to a store in memory.
    pub(crate) fn has_foreign_commit_in(&mut self, db: &Db) -> bool {
        if self.location == Location::Memory {
            return false;
        }
        match db.data_version() {
            Ok(version) => {
                let known = mem::replace(&mut self.data_version, version);
                known != 0 && known != version
            }
            // The next statement reports the error.
            Err(_) => true,
        }
    }
}
