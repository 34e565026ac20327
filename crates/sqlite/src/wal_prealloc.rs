//! Preallocation of the write-ahead log.
//!
//! If a commit makes the log longer, its sync also writes the new blocks and the new length of the file. If the commit
//! overwrites zeros instead, its sync is nearly twice as fast. SQLite reads the log up to the first frame with a wrong checksum,
//! so it ignores zeros at the end.

use crate::open::wal_path;
use crate::url::{Access, Location};
use std::fs::OpenOptions;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::PathBuf;

/// The bytes of one preallocation. The commit that writes them takes about a millisecond longer.
const PREALLOC_BYTES: u64 = 1 << 20;

/// The write-ahead log of a store on a file.
pub(crate) struct WalPrealloc {
    path: PathBuf,
    /// SQLite moves the log into the database at this length, so no more is preallocated.
    limit: u64,
    /// The length of the log before the commit.
    length: u64,
    /// Whether the last commit made the log longer. The preallocation of another process is rarely taken for a commit, because
    /// it happens under the lock of a commit.
    is_full: bool,
}

impl WalPrealloc {
    /// `None` for a store in memory or opened read-only.
    pub(crate) fn of(location: &Location, limit: u64) -> Option<Self> {
        match location {
            Location::File { path, access } if *access != Access::ReadOnly => {
                Some(Self { path: wal_path(path), limit, length: 0, is_full: false })
            }
            _ => None,
        }
    }

    /// Preallocates if the last commit made the log longer. The caller holds the write lock of the database.
    pub(crate) fn before_commit(&mut self) {
        self.length = self.length_now();
        if self.is_full {
            // A commit works without preallocated bytes, and it reports an error of the disk itself.
            let _ = self.preallocate();
        }
    }

    /// Records whether the commit made the log longer.
    pub(crate) fn after_commit(&mut self) {
        self.is_full = self.length_now() > self.length;
    }

    fn preallocate(&mut self) -> io::Result<()> {
        let bytes = PREALLOC_BYTES.min(self.limit.saturating_sub(self.length));
        let mut log = OpenOptions::new().write(true).open(&self.path)?;
        log.seek(SeekFrom::Start(self.length))?;
        io::copy(&mut io::Read::take(io::repeat(0), bytes), &mut log)?;
        log.flush()?;
        self.length += bytes;
        Ok(())
    }

    fn length_now(&self) -> u64 {
        self.path.metadata().map_or(0, |log| log.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// The length of the log after each commit, where each commit needs the given length.
    fn lengths(limit: u64, commits: &[u64]) -> Vec<u64> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        let mut log =
            WalPrealloc::of(&Location::File { path: path.clone(), access: Access::Create }, limit).unwrap();
        let file = OpenOptions::new().write(true).create_new(true).open(wal_path(&path)).unwrap();
        let commit = |used: &u64| {
            log.before_commit();
            if log.length_now() < *used {
                file.set_len(*used).unwrap();
            }
            log.after_commit();
            log.length_now()
        };
        commits.iter().map(commit).collect()
    }

    #[test]
    fn log_is_preallocated_after_a_commit_that_made_it_longer_up_to_the_limit() {
        let full = 100 + PREALLOC_BYTES;
        assert_eq!(lengths(10 * PREALLOC_BYTES, &[100, 200, 300, full]), [100, full, full, full]);
        // A commit that uses up the preallocated bytes leads to the next preallocation.
        assert_eq!(
            lengths(10 * PREALLOC_BYTES, &[100, full + 1, full + 2]),
            [100, full + 1, full + 1 + PREALLOC_BYTES]
        );
        assert_eq!(lengths(150, &[100, 120, 151, 160]), [100, 150, 151, 160], "not beyond the limit");
    }

    #[test]
    fn only_a_writable_file_is_preallocated() {
        let file = |access| Location::File { path: Path::new("store.db").to_owned(), access };
        assert!(WalPrealloc::of(&Location::Memory, 1).is_none());
        assert!(WalPrealloc::of(&file(Access::ReadOnly), 1).is_none());
        assert!(WalPrealloc::of(&file(Access::Existing), 1).is_some());
    }

    #[test]
    fn missing_log_is_not_created() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        let mut log =
            WalPrealloc::of(&Location::File { path: path.clone(), access: Access::Create }, PREALLOC_BYTES)
                .unwrap();
        log.is_full = true;
        log.before_commit();
        log.after_commit();
        assert!(!wal_path(&path).exists());
    }
}
