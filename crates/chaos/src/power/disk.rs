//! A disk behind a page cache: what is durable, and what is only written.
//!
//! | call | what the machine sees | what survives a power cut |
//! |---|---|---|
//! | write, truncate | at once | anything from nothing to all of it, until a sync of that file |
//! | sync of a file | – | all changes of that file so far |
//! | create, delete | at once | either, until a sync of the folder |
//! | sync of the folder | – | all names as they are |
//!
//! When the folder is synced follows SQLite's own VFS for unix: with the first sync through a handle that was opened to create
//! a journal or a log, and with a deletion that asks for it. A file whose data was synced can therefore still lack its name.

use super::file::{Handle, Inode};
use super::vfs;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio::sync::watch;

/// The files of a folder, by name.
pub(crate) type Images = BTreeMap<String, Vec<u8>>;

/// When the power goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// In the n-th call of any kind, from opening on: finds what only reads, such as recovery.
    Call(u64),
    /// In the n-th write, truncation, sync, creation or deletion.
    Change(u64),
    /// In the n-th write or sync of the database itself: when it is made, and in checkpoints.
    DatabaseChange(u64),
    /// When somebody pulls the plug.
    Unplanned,
}

/// What SQLite uses a file for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    Database,
    Log,
    Journal,
}

/// What was going on when the power went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    Idle,
    /// A call that changes nothing: open, read, lock.
    Looking,
    LogWrite,
    LogSync,
    /// In a store with a log, only a checkpoint writes to the database.
    DatabaseWrite,
    DatabaseSync,
    Journal,
    Folder,
}

/// The power is off.
#[derive(Debug)]
pub(crate) struct Dead;

/// What a name stands for, durably and in the order of later changes.
#[derive(Default)]
pub(super) struct Name {
    pub(super) durable: Option<usize>,
    pub(super) unsynced: Vec<Option<usize>>,
}

impl Name {
    fn current(&self) -> Option<usize> {
        self.unsynced.last().copied().unwrap_or(self.durable)
    }
}

pub(super) struct State {
    pub(super) inodes: Vec<Inode>,
    pub(super) names: BTreeMap<String, Name>,
    moment: Moment,
    calls: u64,
    changes: u64,
    database_changes: u64,
    is_dead: bool,
    pub(super) ignores_sync: bool,
}

/// One machine's disk, mounted at a folder.
pub(crate) struct Disk {
    pub(super) folder: PathBuf,
    state: Mutex<State>,
    place: watch::Sender<Option<Place>>,
}

static MOUNTED: Mutex<BTreeMap<PathBuf, Weak<Disk>>> = Mutex::new(BTreeMap::new());

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A folder for the files of one boot. In memory if possible: [`Disk`] simulates the durability of the disk, so a real disk
/// would only be slower.
pub(crate) fn folder() -> std::io::Result<tempfile::TempDir> {
    outlast_testkit::folder::in_memory("outlast-power-")
}

/// Writes files into a folder.
pub(crate) fn restore(images: &Images, folder: &Path) -> std::io::Result<()> {
    images.iter().try_for_each(|(name, bytes)| std::fs::write(folder.join(name), bytes))
}

impl Disk {
    /// Starts a machine with these files on its disk. SQLite then reaches the folder through this disk, as long as it lives.
    pub(crate) fn boot(
        folder: &Path,
        images: &Images,
        moment: Moment,
        ignores_sync: bool,
    ) -> std::io::Result<Arc<Self>> {
        vfs::install();
        restore(images, folder)?;
        let mut inodes = Vec::new();
        let mut names = BTreeMap::new();
        for (name, bytes) in images {
            names.insert(name.clone(), Name { durable: Some(inodes.len()), unsynced: Vec::new() });
            inodes.push(Inode { durable: bytes.clone(), unsynced: Vec::new() });
        }
        // SQLite resolves links before it opens a file.
        let folder = folder.canonicalize()?;
        let disk = Arc::new(Self {
            folder: folder.clone(),
            state: Mutex::new(State {
                inodes,
                names,
                moment,
                calls: 0,
                changes: 0,
                database_changes: 0,
                is_dead: false,
                ignores_sync,
            }),
            place: watch::Sender::new(None),
        });
        locked(&MOUNTED).insert(folder, Arc::downgrade(&disk));
        Ok(disk)
    }

    /// The disk that a path lies on, and its name there.
    pub(super) fn of(path: &str) -> Option<(Arc<Self>, String)> {
        let path = Path::new(path);
        let disk = locked(&MOUNTED).get(path.parent()?)?.upgrade()?;
        Some((disk, path.file_name()?.to_str()?.to_string()))
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.state().is_dead
    }

    /// Returns when the power is off.
    pub(crate) async fn died(&self) {
        // The sender lives as long as this disk, so this can only end with a value.
        let _ = self.place.subscribe().wait_for(Option::is_some).await;
    }

    /// Cuts the power now, unless it is off already, and says what was going on when it went.
    pub(crate) fn pull_plug(&self) -> Place {
        self.state().is_dead = true;
        self.place.send_if_modified(|place| place.replace(place.unwrap_or(Place::Idle)).is_none());
        self.place.borrow().unwrap_or(Place::Idle)
    }

    /// Lets the power go in the n-th change from now.
    pub(crate) fn cut_after(&self, changes: u64) {
        let mut state = self.state();
        state.moment = Moment::Change(state.changes + changes);
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }

    /// One call. `change` is done to the state if the power is on when the call begins; if it goes in this very call, the
    /// caller learns no more of it.
    pub(super) fn call(&self, place: Place, change: impl FnOnce(&mut State, Power)) -> Result<(), Dead> {
        let mut state = self.state();
        if state.is_dead {
            return Err(Dead);
        }
        state.calls += 1;
        state.changes += u64::from(place != Place::Looking);
        state.database_changes += u64::from(matches!(place, Place::DatabaseWrite | Place::DatabaseSync));
        let goes = match state.moment {
            Moment::Call(n) => state.calls >= n,
            Moment::Change(n) => state.changes >= n,
            Moment::DatabaseChange(n) => state.database_changes >= n,
            Moment::Unplanned => false,
        };
        state.is_dead = goes;
        change(&mut state, if goes { Power::Goes } else { Power::Stays });
        drop(state);
        if goes {
            self.place.send_replace(Some(place));
            return Err(Dead);
        }
        Ok(())
    }

    /// A call that changes nothing.
    pub(super) fn look(&self) -> Result<(), Dead> {
        self.call(Place::Looking, |_, _| {})
    }

    /// After SQLite opened a file, and perhaps created it.
    pub(super) fn opened(self: &Arc<Self>, name: &str, what_for: Use) -> Result<Handle, Dead> {
        let known = self.state().names.get(name).and_then(Name::current);
        let inode = match known {
            Some(inode) => inode,
            None => {
                let mut created = 0;
                self.call(Place::Folder, |state, _| {
                    created = state.inodes.len();
                    state.inodes.push(Inode::default());
                    state.names.entry(name.to_string()).or_default().unsynced.push(Some(created));
                })?;
                created
            }
        };
        Ok(Handle::new(self, inode, what_for))
    }

    pub(super) fn delete(&self, name: &str, sync_folder: bool) -> Result<(), Dead> {
        self.call(Place::Folder, |state, _| {
            if let Some(known) = state.names.get_mut(name)
                && known.current().is_some()
            {
                known.unsynced.push(None);
            }
        })?;
        if sync_folder { self.sync_folder() } else { Ok(()) }
    }

    pub(super) fn sync_folder(&self) -> Result<(), Dead> {
        self.call(Place::Folder, |state, power| {
            if power == Power::Stays && !state.ignores_sync {
                for name in state.names.values_mut() {
                    name.durable = name.current();
                    name.unsynced.clear();
                }
            }
        })
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        locked(&MOUNTED).remove(&self.folder);
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Power {
    Stays,
    Goes,
}

#[cfg(test)]
mod tests;
