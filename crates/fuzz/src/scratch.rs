//! Files for one input each, in memory if the system allows it.

use outlast_testkit::folder;
use std::path::PathBuf;
use tempfile::TempDir;

/// A folder with one database file. Dropping the value removes the folder.
pub(crate) struct Scratch {
    folder: TempDir,
}

impl Scratch {
    pub(crate) fn new() -> Self {
        Self { folder: folder::in_memory("outlast-fuzz-").expect("a folder for temporary files") }
    }

    /// A folder with this database.
    pub(crate) fn holding(database: &[u8]) -> Self {
        let scratch = Self::new();
        std::fs::write(scratch.path(), database).expect("a temporary file can be written");
        scratch
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("store.db")
    }

    pub(crate) fn url(&self) -> String {
        format!("sqlite:{}", self.path().display())
    }

    /// The bytes of the database, after all connections are closed.
    pub(crate) fn content(&self) -> Vec<u8> {
        std::fs::read(self.path()).expect("the database is there")
    }
}
