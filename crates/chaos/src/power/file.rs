//! One file on a disk: what is durable of it, and what changes it.

use super::disk::{Dead, Disk, Place, Power, Use};
use std::sync::Arc;

#[derive(Debug, Clone)]
pub(super) enum Change {
    Write { at: usize, bytes: Vec<u8> },
    Resize(usize),
}

/// A file, whatever its name is.
#[derive(Default)]
pub(super) struct Inode {
    pub(super) durable: Vec<u8>,
    pub(super) unsynced: Vec<Change>,
}

/// An open file.
pub(super) struct Handle {
    disk: Arc<Disk>,
    inode: usize,
    what_for: Use,
    /// Until its first sync.
    syncs_folder: bool,
}

impl Handle {
    pub(super) fn new(disk: &Arc<Disk>, inode: usize, what_for: Use) -> Self {
        Self { disk: Arc::clone(disk), inode, what_for, syncs_folder: what_for != Use::Database }
    }

    pub(super) fn look(&self) -> Result<(), Dead> {
        self.disk.look()
    }

    pub(super) fn write(&self, at: usize, bytes: &[u8]) -> Result<(), Dead> {
        self.change(Change::Write { at, bytes: bytes.to_vec() })
    }

    pub(super) fn truncate(&self, len: usize) -> Result<(), Dead> {
        self.change(Change::Resize(len))
    }

    fn change(&self, change: Change) -> Result<(), Dead> {
        let place = match self.what_for {
            Use::Database => Place::DatabaseWrite,
            Use::Log => Place::LogWrite,
            Use::Journal => Place::Journal,
        };
        self.disk.call(place, |state, _| state.inodes[self.inode].unsynced.push(change))
    }

    pub(super) fn sync(&mut self) -> Result<(), Dead> {
        let place = match self.what_for {
            Use::Database => Place::DatabaseSync,
            Use::Log => Place::LogSync,
            Use::Journal => Place::Journal,
        };
        self.disk.call(place, |state, power| {
            if power == Power::Stays && !state.ignores_sync {
                let inode = &mut state.inodes[self.inode];
                std::mem::take(&mut inode.unsynced)
                    .into_iter()
                    .for_each(|change| inode.durable.apply(change));
            }
        })?;
        if std::mem::take(&mut self.syncs_folder) { self.disk.sync_folder() } else { Ok(()) }
    }
}

/// What changes of a file do to its bytes.
pub(super) trait Apply {
    fn apply(&mut self, change: Change);
}

impl Apply for Vec<u8> {
    fn apply(&mut self, change: Change) {
        match change {
            Change::Write { at, bytes } => {
                // What lies beyond the end is appended, what lies before it is replaced.
                self.resize(self.len().max(at), 0);
                let inside = bytes.len().min(self.len() - at);
                self[at..at + inside].copy_from_slice(&bytes[..inside]);
                self.extend_from_slice(&bytes[inside..]);
            }
            Change::Resize(len) => self.resize(len, 0),
        }
    }
}
