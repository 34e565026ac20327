//! The write lock of a store's file, held as another process holds it (feature `test-hooks`).

use crate::db::Result;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;

/// A connection of its own, which holds the write lock of a store's file. A drop rolls its transaction back.
pub struct ForeignLock(Connection);

impl ForeignLock {
    /// Takes the lock, and writes a row without changing it.
    ///
    /// # Errors
    ///
    /// [`SqliteError::Busy`](crate::SqliteError::Busy) if another connection holds the lock.
    pub fn take(path: &Path) -> Result<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let conn = Connection::open_with_flags(path, flags)?;
        // A process that crashes does not move the log into the file.
        conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        conn.execute_batch("BEGIN IMMEDIATE")?;
        conn.execute(include_str!("foreign_lock/rewrite_row.sql"), [])?;
        Ok(Self(conn))
    }

    /// Commits the row that was written, and ends the lock.
    ///
    /// # Errors
    ///
    /// The error of the database; the lock has ended.
    pub fn commit(self) -> Result<()> {
        Ok(self.0.execute_batch("COMMIT")?)
    }
}
