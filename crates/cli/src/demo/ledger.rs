//! The ledger's file: append-only, and synced before an activity returns.
//!
//! It is independent of the store, so that it can prove that the store lost no effect.

use super::entry::{Entry, Line};
use crate::failure::Failure;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

const MARK: &str = "outlast demo";

/// The open file, locked against other processes.
pub(super) struct LedgerFile {
    file: File,
    path: PathBuf,
    /// The end of the last complete line.
    end: u64,
}

impl LedgerFile {
    /// Opens or creates the file, and locks it for this process.
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        let about = |error: &dyn std::fmt::Display| Failure::new(format!("'{}': {error}", path.display()));
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .open(path)
            .map_err(|error| about(&error))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(about(
                    &"another demo is running in this folder; wait for it, stop it, or choose another --dir",
                ));
            }
            Err(TryLockError::Error(error)) => return Err(about(&error)),
        }
        let mut ledger = Self { file, path: path.to_owned(), end: 0 };
        let bytes = ledger.bytes().map_err(|error| about(&error))?;
        if !is_ours(&bytes) {
            return Err(about(
                &"this is not a ledger of the demo; it was left untouched, choose another --dir",
            ));
        }
        ledger.cut_torn_line(&bytes).map_err(|error| about(&error))?;
        Ok(ledger)
    }

    /// Removes an incomplete last line, which a killed process leaves. No activity has returned for it.
    fn cut_torn_line(&mut self, bytes: &[u8]) -> io::Result<()> {
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        self.end = whole as u64;
        if whole < bytes.len() {
            self.file.set_len(self.end)?;
            self.file.sync_all()?;
        }
        Ok(())
    }

    fn bytes(&mut self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.file.seek(SeekFrom::Start(0))?;
        self.file.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// All entries, read from disk.
    pub(super) fn read(&mut self) -> Result<Vec<Line>, Failure> {
        let path = self.path.display().to_string();
        let bytes = self.bytes().map_err(|error| Failure::new(format!("'{path}': {error}")))?;
        let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let parsed = lines.enumerate().map(|(index, line)| {
            serde_json::from_slice(line).map_err(|error| {
                let line = index + 1;
                Failure::new(format!(
                    "line {line} of the ledger '{path}' is damaged ({error}): start over with --fresh"
                ))
            })
        });
        parsed.collect()
    }

    /// Removes all entries.
    pub(super) fn clear(&mut self) -> io::Result<()> {
        self.file.set_len(0)?;
        self.end = 0;
        self.file.sync_all()
    }

    /// Appends a line and syncs it. A line that cannot be written is removed.
    pub(super) fn append(&mut self, line: &Line) -> io::Result<()> {
        let mut bytes = serde_json::to_vec(line)?;
        bytes.push(b'\n');
        let written = self.file.write_all(&bytes).and_then(|()| self.file.sync_data());
        match written {
            Ok(()) => self.end += bytes.len() as u64,
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
            assert_eq!(ledger.read().unwrap(), [marked()]);
            ledger.append(&line("b")).unwrap();
            assert_eq!(ledger.read().unwrap(), [marked(), line("b")]);
        }
    }

    #[test]
    fn a_second_process_cannot_open_the_ledger() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ledger.jsonl");
        let first = LedgerFile::open(&path).unwrap();
        let message = LedgerFile::open(&path).err().unwrap().to_string();
        assert!(message.contains("another demo is running"), "{message}");
        drop(first);
        assert!(LedgerFile::open(&path).is_ok());
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
