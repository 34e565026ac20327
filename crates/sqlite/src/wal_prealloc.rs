//! Preallocation of the write-ahead log.
//!
//! If a commit makes the log longer, its sync also writes the new blocks and the new length of the file. If the commit
//! overwrites zeros instead, its sync is nearly twice as fast. SQLite reads the log up to the first frame with a wrong checksum,
//! so it ignores zeros at the end.

use crate::SqliteOptions;
use crate::open::wal_path;
use crate::url::{Access, Location};
use std::fs::OpenOptions;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::PathBuf;

/// The bytes of one preallocation. The commit that writes them takes about a millisecond longer.
const PREALLOC_BYTES: u64 = 1 << 20;
/// The bytes of a log without a frame. SQLite syncs the header before it writes the first frame.
const HEADER_BYTES: u64 = 32;

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
    #[cfg(feature = "test-hooks")]
    writes: Option<std::sync::Arc<dyn crate::PreallocWrites>>,
}

impl WalPrealloc {
    /// `None` for a store in memory or opened read-only.
    pub(crate) fn of(location: &Location, options: &SqliteOptions) -> Option<Self> {
        match location {
            Location::File { path, access } if *access != Access::ReadOnly => Some(Self {
                path: wal_path(path),
                limit: options.wal_limit_bytes,
                length: 0,
                is_full: false,
                #[cfg(feature = "test-hooks")]
                writes: options.prealloc_writes.clone(),
            }),
            _ => None,
        }
    }

    /// Preallocates if the last commit made the log longer. The caller holds the write lock of the database.
    ///
    /// A log without a frame is not preallocated. A checkpoint has truncated it, and until the new header is synced, a power cut can
    /// bring the old log back. Zeros in the old log would end it early, so that its first commits would overwrite newer pages. A header
    /// alone may be that of a process that was killed before its sync.
    pub(crate) fn before_commit(&mut self) {
        self.length = self.length_now();
        if self.is_full && self.length > HEADER_BYTES {
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
        #[cfg(feature = "test-hooks")]
        let mut log = crate::faults::SeenLog::new(log, &self.path, self.length, self.writes.as_deref());
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
    use crate::PreallocWrites;
    use std::path::Path;
    use std::sync::{Arc, Mutex};

    fn prealloc(path: &Path, limit: u64) -> WalPrealloc {
        let options = SqliteOptions { wal_limit_bytes: limit, ..SqliteOptions::default() };
        WalPrealloc::of(&Location::File { path: path.to_owned(), access: Access::Create }, &options).unwrap()
    }

    /// The length of the log after each commit, where each commit needs the given length.
    fn lengths(limit: u64, commits: &[u64]) -> Vec<u64> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        let mut log = prealloc(&path, limit);
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
    fn log_that_a_checkpoint_truncated_is_preallocated_after_the_next_commit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        let mut log = prealloc(&path, PREALLOC_BYTES);
        let file = OpenOptions::new().write(true).create_new(true).open(wal_path(&path)).unwrap();
        for length in [0, HEADER_BYTES] {
            file.set_len(length).unwrap();
            log.is_full = true;
            log.before_commit();
            assert_eq!(log.length_now(), length, "a log without a frame");
        }
        file.set_len(100).unwrap();
        log.after_commit();
        log.before_commit();
        assert_eq!(log.length_now(), PREALLOC_BYTES);
    }

    #[test]
    fn only_a_writable_file_is_preallocated() {
        let file = |access| Location::File { path: Path::new("store.db").to_owned(), access };
        let options = SqliteOptions::default();
        assert!(WalPrealloc::of(&Location::Memory, &options).is_none());
        assert!(WalPrealloc::of(&file(Access::ReadOnly), &options).is_none());
        assert!(WalPrealloc::of(&file(Access::Existing), &options).is_some());
    }

    #[test]
    fn missing_log_is_not_created() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        let mut log = prealloc(&path, PREALLOC_BYTES);
        log.is_full = true;
        log.before_commit();
        log.after_commit();
        assert!(!wal_path(&path).exists());
    }

    /// The place and length of each write, of which the third is refused.
    #[derive(Default)]
    struct RefusesThird(Mutex<Vec<(u64, u64)>>);

    impl PreallocWrites for RefusesThird {
        fn before_write(&self, _log: &Path, at: u64, bytes: &[u8]) -> io::Result<()> {
            assert!(bytes.iter().all(|byte| *byte == 0));
            let mut seen = self.0.lock().unwrap();
            seen.push((at, bytes.len() as u64));
            if seen.len() == 3 { Err(io::Error::other("refused")) } else { Ok(()) }
        }
    }

    #[test]
    fn refused_write_ends_the_preallocation() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        std::fs::write(wal_path(&path), [7; 100]).unwrap();
        let writes = Arc::new(RefusesThird::default());
        let mut log = prealloc(&path, PREALLOC_BYTES);
        log.writes = Some(Arc::<RefusesThird>::clone(&writes));
        log.is_full = true;
        log.before_commit();
        let seen = writes.0.lock().unwrap();
        let [(100, first), (second_at, second), (third_at, _)] = seen[..] else { panic!("{seen:?}") };
        assert_eq!((second_at, third_at), (100 + first, 100 + first + second));
        assert_eq!(log.length_now(), third_at, "the refused write did not happen");
    }
}
