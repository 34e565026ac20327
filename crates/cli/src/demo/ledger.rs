//! The ledger's file: append-only, and synced before an activity returns.
//!
//! It is independent of the store, so that it can prove that the store lost no effect. The supervisor and both workers write to it: a
//! process locks the file, reads the lines of the other processes, and only then appends its own.

use super::entry::{Entry, Line};
use crate::failure::Failure;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

const MARK: &str = "outlast demo";

/// The open file.
pub(super) struct LedgerFile {
    file: File,
    path: PathBuf,
    /// The end of the last line that this process has read or written.
    end: u64,
    /// The number of lines up to `end`.
    lines: usize,
}

impl LedgerFile {
    /// Opens or creates the file.
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        let about = |error: &dyn std::fmt::Display| Failure::new(format!("'{}': {error}", path.display()));
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .open(path)
            .map_err(|error| about(&error))?;
        let mut ledger = Self { file, path: path.to_owned(), end: 0, lines: 0 };
        let bytes = ledger.bytes().map_err(|error| about(&error))?;
        if !is_ours(&bytes) {
            return Err(about(
                &"this is not a ledger of the demo; it was left untouched, choose another --dir",
            ));
        }
        Ok(ledger)
    }

    /// Waits until no other process uses the file. The system unlocks the file of a killed process.
    pub(super) fn lock(&self) -> io::Result<()> {
        self.file.lock()
    }

    pub(super) fn unlock(&self) -> io::Result<()> {
        self.file.unlock()
    }

    /// The lines that other processes have added; at the first call all lines. Only for the holder of the lock.
    ///
    /// An incomplete last line is removed: its writer was killed, and no activity has returned for it.
    pub(super) fn added(&mut self) -> io::Result<Vec<Line>> {
        if self.file.metadata()?.len() < self.end {
            return Err(self.damaged("it is shorter than before: another program has changed it"));
        }
        let bytes = self.bytes()?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let mut lines = Vec::new();
        for line in bytes[..whole].split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            self.lines += 1;
            let line = serde_json::from_slice(line);
            lines.push(line.map_err(|error| {
                self.damaged(&format!("line {} is damaged ({error}): start over with --fresh", self.lines))
            })?);
        }
        self.end += whole as u64;
        if whole < bytes.len() {
            self.file.set_len(self.end)?;
            self.file.sync_all()?;
        }
        Ok(lines)
    }

    fn damaged(&self, problem: &str) -> io::Error {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("the ledger '{}' cannot be used: {problem}", self.path.display()),
        )
    }

    /// The bytes after `end`.
    fn bytes(&mut self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.file.seek(SeekFrom::Start(self.end))?;
        self.file.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Makes the next call of [`LedgerFile::added`] return all lines.
    pub(super) fn rewind(&mut self) {
        (self.end, self.lines) = (0, 0);
    }

    /// Removes all entries.
    pub(super) fn clear(&mut self) -> io::Result<()> {
        self.file.set_len(0)?;
        self.rewind();
        self.file.sync_all()
    }

    /// Appends a line and syncs it. A line that cannot be written is removed. Only for the holder of the lock, after `added`.
    pub(super) fn append(&mut self, line: &Line) -> io::Result<()> {
        let mut bytes = serde_json::to_vec(line)?;
        bytes.push(b'\n');
        let written = self.file.write_all(&bytes).and_then(|()| self.file.sync_data());
        match written {
            Ok(()) => (self.end, self.lines) = (self.end + bytes.len() as u64, self.lines + 1),
            Err(_) => self.file.set_len(self.end)?,
        }
        written
    }
}

/// The first line of every ledger.
pub(super) fn mark() -> Entry {
    Entry::Ledger { of: MARK.to_string() }
}

/// Whether the file is a ledger, or the incomplete first line of one.
fn is_ours(bytes: &[u8]) -> bool {
    match bytes.iter().position(|byte| *byte == b'\n') {
        Some(end) => serde_json::from_slice(&bytes[..end]).is_ok_and(|line: Line| line.entry == mark()),
        None => bytes.is_empty() || bytes.starts_with(br#"{"at_ms":"#),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(order: &str) -> Line {
        Line { at_ms: 1, key: None, entry: Entry::Placed { order: order.to_string() } }
    }

    fn marked() -> Line {
        Line { at_ms: 1, key: None, entry: mark() }
    }

    #[test]
    fn an_incomplete_last_line_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ledger.jsonl");
        let mut ledger = LedgerFile::open(&path).unwrap();
        ledger.append(&marked()).unwrap();
        ledger.append(&line("a")).unwrap();
        drop(ledger);
        let whole = std::fs::read(&path).unwrap();
        for cut in whole.len() - 20..whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let mut ledger = LedgerFile::open(&path).unwrap();
            assert_eq!(ledger.added().unwrap(), [marked()]);
            ledger.append(&line("b")).unwrap();
            assert_eq!(ledger.added().unwrap(), []);
            ledger.rewind();
            assert_eq!(ledger.added().unwrap(), [marked(), line("b")]);
        }
    }

    #[test]
    fn lines_of_another_process_are_read_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ledger.jsonl");
        let (mut first, mut second) = (LedgerFile::open(&path).unwrap(), LedgerFile::open(&path).unwrap());
        first.append(&marked()).unwrap();
        assert_eq!(second.added().unwrap(), [marked()]);
        second.append(&line("a")).unwrap();
        assert_eq!(first.added().unwrap(), [line("a")]);
        assert_eq!((first.added().unwrap(), second.added().unwrap()), (vec![], vec![]));
    }

    #[test]
    fn the_lock_excludes_other_processes_until_it_is_released() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ledger.jsonl");
        let (first, second) = (LedgerFile::open(&path).unwrap(), LedgerFile::open(&path).unwrap());
        first.lock().unwrap();
        assert!(second.file.try_lock().is_err());
        first.unlock().unwrap();
        assert!(second.file.try_lock().is_ok());
    }

    #[test]
    fn a_ledger_that_was_shortened_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ledger.jsonl");
        let mut ledger = LedgerFile::open(&path).unwrap();
        ledger.append(&marked()).unwrap();
        std::fs::write(&path, "").unwrap();
        assert!(ledger.added().unwrap_err().to_string().contains("shorter than before"));
    }

    #[test]
    fn files_that_the_demo_did_not_create_are_not_changed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ledger.jsonl");
        for text in ["dear diary", "dear\ndiary\n", "{\"at_ms\":1,\"entry\":\"placed\",\"order\":\"x\"}\n"] {
            std::fs::write(&path, text).unwrap();
            let message = LedgerFile::open(&path).err().unwrap().to_string();
            assert!(message.contains("not a ledger"), "{message}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
    }
}
