//! Statements and preallocations that fail on request of a test (feature `test-hooks`).

use crate::db::Result;
use rusqlite::ffi;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::LazyLock;

/// How a statement fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatementFault {
    /// The statement has no effect.
    Before,
    /// The statement takes effect and returns an error. For `COMMIT` this is a commit in doubt.
    After,
    /// The statement has no effect, because another process held the lock for too long. The connection stays usable.
    Busy,
    /// The statement has no effect, because the disk is full. The connection stays usable.
    DiskFull,
}

/// Called before every statement of a store. Set as [`SqliteOptions::faults`](crate::SqliteOptions::faults).
pub trait StatementFaults: Send + Sync {
    /// Whether this statement fails, and how. [`StatementFault::Before`] and [`StatementFault::After`] are I/O errors, after which
    /// a store on a file opens its connection again.
    fn fault_of(&self, sql: &str) -> Option<StatementFault>;
}

pub(crate) fn pass<T>(
    faults: &dyn StatementFaults,
    sql: &str,
    statement: impl FnOnce() -> Result<T>,
) -> Result<T> {
    match faults.fault_of(sql) {
        None => statement(),
        Some(StatementFault::Before) => Err(failure(ffi::SQLITE_IOERR)),
        Some(StatementFault::Busy) => Err(failure(ffi::SQLITE_BUSY)),
        Some(StatementFault::DiskFull) => Err(failure(ffi::SQLITE_FULL)),
        Some(StatementFault::After) => {
            statement()?;
            Err(failure(ffi::SQLITE_IOERR))
        }
    }
}

/// Called before every write that preallocates the write-ahead log: these writes do not go through SQLite. Set as
/// [`SqliteOptions::prealloc_writes`](crate::SqliteOptions::prealloc_writes).
pub trait PreallocWrites: Send + Sync {
    /// An error prevents the write, and ends the preallocation.
    fn before_write(&self, log: &Path, at: u64, bytes: &[u8]) -> io::Result<()>;
}

/// A write-ahead log whose writes a test sees.
pub(crate) struct SeenLog<'a> {
    log: File,
    path: &'a Path,
    at: u64,
    writes: Option<&'a dyn PreallocWrites>,
}

impl<'a> SeenLog<'a> {
    pub(crate) fn new(log: File, path: &'a Path, at: u64, writes: Option<&'a dyn PreallocWrites>) -> Self {
        Self { log, path, at, writes }
    }
}

impl Write for SeenLog<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(writes) = self.writes {
            writes.before_write(self.path, self.at, bytes)?;
        }
        let written = self.log.write(bytes)?;
        self.at += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.log.flush()
    }
}

fn failure(code: i32) -> crate::SqliteError {
    rusqlite::Error::SqliteFailure(ffi::Error::new(code), Some("injected by a test".to_string())).into()
}

/// A statement and its replacement in the whole process, from the file that `OUTLAST_STATEMENT_MUTANT` names: the two texts with a
/// zero byte between them. `cargo xtask mutants` checks in this way whether the tests notice a changed statement, without a build.
static MUTANT: LazyLock<Option<(String, String)>> = LazyLock::new(|| {
    let text = std::fs::read_to_string(std::env::var_os("OUTLAST_STATEMENT_MUTANT")?).ok()?;
    text.split_once('\0').map(|(was, is)| (was.to_string(), is.to_string()))
});

pub(crate) fn mutated(sql: &str) -> &str {
    match &*MUTANT {
        Some((was, is)) if was == sql => is,
        _ => sql,
    }
}
