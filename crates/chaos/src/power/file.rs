//! One file of the simulated disk: its durable bytes and its unsynced changes.

use super::disk::{Disk, DiskCall, FileUse, Power, PowerOff};
use std::sync::Arc;

#[derive(Debug, Clone)]
pub(super) enum Change {
    Write { at: usize, bytes: Vec<u8> },
    Resize(usize),
}

/// A file without its name.
#[derive(Default)]
pub(super) struct Inode {
    pub(super) durable: Vec<u8>,
    pub(super) unsynced: Vec<Change>,
}

/// An open file.
pub(super) struct Handle {
    disk: Arc<Disk>,
    inode: usize,
    file_use: FileUse,
    /// Whether the next sync also syncs the folder.
    syncs_folder: bool,
}

impl Handle {
    pub(super) fn new(disk: &Arc<Disk>, inode: usize, file_use: FileUse) -> Self {
        Self { disk: Arc::clone(disk), inode, file_use, syncs_folder: file_use != FileUse::Database }
    }

    pub(super) fn read_only_call(&self) -> Result<(), PowerOff> {
        self.disk.read_only_call()
    }

    pub(super) fn write(&self, at: usize, bytes: &[u8]) -> Result<(), PowerOff> {
        self.change(Change::Write { at, bytes: bytes.to_vec() })
    }

    pub(super) fn truncate(&self, len: usize) -> Result<(), PowerOff> {
        self.change(Change::Resize(len))
    }

    fn change(&self, change: Change) -> Result<(), PowerOff> {
        let disk_call = match self.file_use {
            FileUse::Database => DiskCall::DatabaseWrite,
            FileUse::Log => DiskCall::LogWrite,
            FileUse::Journal => DiskCall::Journal,
            FileUse::Preallocation => DiskCall::Preallocation,
        };
        self.disk.call(disk_call, |state, _| state.inodes[self.inode].unsynced.push(change))
    }

    pub(super) fn sync(&mut self) -> Result<(), PowerOff> {
        let disk_call = match self.file_use {
            FileUse::Database => DiskCall::DatabaseSync,
            // The sync of the commit includes the preallocated bytes.
            FileUse::Log | FileUse::Preallocation => DiskCall::LogSync,
            FileUse::Journal => DiskCall::Journal,
        };
        self.disk.call(disk_call, |state, power| {
            if power == Power::StaysOn && !state.ignores_sync {
                let inode = &mut state.inodes[self.inode];
                std::mem::take(&mut inode.unsynced)
                    .into_iter()
                    .for_each(|change| inode.durable.apply(change));
            }
        })?;
        if std::mem::take(&mut self.syncs_folder) { self.disk.sync_folder() } else { Ok(()) }
    }
}

/// Applies a change to the bytes of a file.
pub(super) trait Apply {
    fn apply(&mut self, change: Change);
}

impl Apply for Vec<u8> {
    fn apply(&mut self, change: Change) {
        match change {
            Change::Write { at, bytes } => {
                // Bytes beyond the end are appended, bytes before it are replaced.
                self.resize(self.len().max(at), 0);
                let inside = bytes.len().min(self.len() - at);
                self[at..at + inside].copy_from_slice(&bytes[..inside]);
                self.extend_from_slice(&bytes[inside..]);
            }
            Change::Resize(len) => self.resize(len, 0),
        }
    }
}
