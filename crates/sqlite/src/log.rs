//! Room at the end of the write-ahead log, made ahead of time.
//!
//! A commit that makes the log longer lets the file system write down its new blocks and length with the same sync. One
//! that goes over zeros which are there already does not, and its sync is nearly twice as fast. SQLite reads the log up
//! to the first frame without the right checksum, so zeros at its end mean nothing to anybody.

use crate::open::log_of;
use crate::url::{Access, Location};
use std::fs::OpenOptions;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::PathBuf;

/// How much is made at a time: it is on disk within a commit that takes about a millisecond longer.
const ROOM: u64 = 1 << 20;

/// The log of a store that is a file.
pub(crate) struct Log {
    path: PathBuf,
    /// The log is emptied when it is so long, so there is no use for more.
    limit: u64,
    /// Its length before the commit.
    length: u64,
    /// Whether the last commit made it longer. Others who make room at the same time are not mistaken for it more than
    /// once in a while, since room is made under the lock of the commit.
    is_full: bool,
}

impl Log {
    /// `None` for a store without a log that this process writes.
    pub(crate) fn of(location: &Location, limit: u64) -> Option<Self> {
        match location {
            Location::File { path, access } if *access != Access::ReadOnly => {
                Some(Self { path: log_of(path), limit, length: 0, is_full: false })
            }
            _ => None,
        }
    }

    /// Makes room if the last commit found none. Call it while nobody else may write to the log.
    pub(crate) fn before_commit(&mut self) {
        self.length = self.length_now();
        if self.is_full {
            // Everything works without. What is wrong with the disk, the commit will say.
            let _ = self.make_room();
        }
    }

    pub(crate) fn after_commit(&mut self) {
        self.is_full = self.length_now() > self.length;
    }

    fn make_room(&mut self) -> io::Result<()> {
        let room = ROOM.min(self.limit.saturating_sub(self.length));
        let mut log = OpenOptions::new().write(true).open(&self.path)?;
        log.seek(SeekFrom::Start(self.length))?;
        io::copy(&mut io::Read::take(io::repeat(0), room), &mut log)?;
        log.flush()?;
        self.length += room;
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

    /// A log that commits make as long as this, one after the other; its length after each of them.
    fn lengths(limit: u64, commits: &[u64]) -> Vec<u64> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        let mut log = Log::of(&Location::File { path: path.clone(), access: Access::Create }, limit).unwrap();
        let file = OpenOptions::new().write(true).create_new(true).open(log_of(&path)).unwrap();
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
    fn room_is_made_after_a_commit_that_found_none_and_within_the_limit() {
        let full = 100 + ROOM;
        assert_eq!(lengths(10 * ROOM, &[100, 200, 300, full]), [100, full, full, full]);
        // The commit after one that filled the room finds more.
        assert_eq!(lengths(10 * ROOM, &[100, full + 1, full + 2]), [100, full + 1, full + 1 + ROOM]);
        assert_eq!(lengths(150, &[100, 120, 151, 160]), [100, 150, 151, 160], "not beyond the limit");
    }

    #[test]
    fn only_a_file_that_is_written_has_a_log_to_look_after() {
        let file = |access| Location::File { path: Path::new("store.db").to_owned(), access };
        assert!(Log::of(&Location::Memory, 1).is_none());
        assert!(Log::of(&file(Access::ReadOnly), 1).is_none());
        assert!(Log::of(&file(Access::Existing), 1).is_some());
    }

    #[test]
    fn a_log_that_is_not_there_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        let mut log = Log::of(&Location::File { path: path.clone(), access: Access::Create }, ROOM).unwrap();
        log.is_full = true;
        log.before_commit();
        log.after_commit();
        assert!(!log_of(&path).exists());
    }
}
