//! Files for one input each, in memory where the system has a place for that.

use outlast_testkit::folder;
use std::path::PathBuf;
use tempfile::TempDir;

/// A folder with one database file. It is removed with the value.
pub(crate) struct Scratch {
    folder: TempDir,
}

impl Scratch {
    pub(crate) fn new() -> Self {
        Self { folder: folder::in_memory("outlast-fuzz-").expect("a folder for temporary files") }
    }

    /// With a database that was made before.
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

    /// The database, once nobody has it open.
    pub(crate) fn content(&self) -> Vec<u8> {
        std::fs::read(self.path()).expect("the database is there")
    }
}
