//! A simulated disk with a page cache. It keeps durable changes and unsynced changes apart.
//!
//! | call | effect before a cut | durable after a cut |
//! |---|---|---|
//! | write, truncate | at once | none, part or all of it, until a sync of that file |
//! | sync of a file | – | all changes of that file so far |
//! | create, delete | at once | the name before or after, until a sync of the folder |
//! | sync of the folder | – | all names as they are now |
//!
//! The store itself writes to the write-ahead log when it preallocates; [`Preallocations`] passes these writes to the disk.
//!
//! The folder is synced as in SQLite's own VFS for Unix: at the first sync through a handle that was opened to create a
//! journal or a log, and at a deletion that requests it. A file with synced data can therefore still lack its name.

use super::file::{Handle, Inode};
use super::vfs;
use outlast_sqlite::PreallocWrites;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio::sync::watch;

/// The files of a folder, by name.
pub(crate) type Images = BTreeMap<String, Vec<u8>>;

/// The call in which the power is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CutTime {
    /// In the n-th call of any kind since boot, so that cuts also happen in recovery, which only reads.
    Call(u64),
    /// In the n-th write, truncation, sync, creation or deletion.
    Change(u64),
    /// In the n-th write or sync of the database file: at its creation and in checkpoints.
    DatabaseChange(u64),
    /// In the n-th write that preallocates the log.
    Preallocation(u64),
    /// When [`Disk::cut_power`] is called.
    OnRequest,
}

/// The use of a file by SQLite, or by the store for a preallocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileUse {
    Database,
    Log,
    Journal,
    Preallocation,
}

/// The call during which the power was cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum DiskCall {
    Idle,
    /// A call that changes nothing: open, read, lock.
    ReadOnly,
    LogWrite,
    LogSync,
    /// A write of the store that preallocates the log.
    Preallocation,
    /// In a store with a log, only a checkpoint writes to the database.
    DatabaseWrite,
    DatabaseSync,
    Journal,
    Folder,
}

/// The power is off.
#[derive(Debug)]
pub(crate) struct PowerOff;

/// The inode of a name: the durable one, and the later changes in order.
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
    cut_time: CutTime,
    calls: u64,
    changes: u64,
    database_changes: u64,
    preallocations: u64,
    is_off: bool,
    pub(super) ignores_sync: bool,
}

impl State {
    fn inode_of(&self, name: &str) -> Option<usize> {
        self.names.get(name).and_then(Name::current)
    }

    /// The inode of the name, which a connection of another thread may just have created.
    fn open_or_create(&mut self, name: &str) -> usize {
        self.inode_of(name).unwrap_or_else(|| {
            self.inodes.push(Inode::default());
            let created = self.inodes.len() - 1;
            self.names.entry(name.to_string()).or_default().unsynced.push(Some(created));
            created
        })
    }
}

/// The disk of one boot, mounted at a folder.
pub(crate) struct Disk {
    pub(super) folder: PathBuf,
    state: Mutex<State>,
    disk_call: watch::Sender<Option<DiskCall>>,
}

static MOUNTED: Mutex<BTreeMap<PathBuf, Weak<Disk>>> = Mutex::new(BTreeMap::new());

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A folder for the files of one boot. It is in memory if possible: [`Disk`] simulates durability, so a real disk would
/// only be slower.
pub(crate) fn folder() -> io::Result<tempfile::TempDir> {
    outlast_testkit::folder::in_memory("outlast-power-")
}

/// Writes files into a folder.
pub(crate) fn restore(images: &Images, folder: &Path) -> io::Result<()> {
    images.iter().try_for_each(|(name, bytes)| std::fs::write(folder.join(name), bytes))
}

impl Disk {
    /// Boots with these files on the disk. SQLite accesses the folder through this disk as long as the value lives.
    pub(crate) fn boot(
        folder: &Path,
        images: &Images,
        cut_time: CutTime,
        ignores_sync: bool,
    ) -> io::Result<Arc<Self>> {
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
                cut_time,
                calls: 0,
                changes: 0,
                database_changes: 0,
                preallocations: 0,
                is_off: false,
                ignores_sync,
            }),
            disk_call: watch::Sender::new(None),
        });
        locked(&MOUNTED).insert(folder, Arc::downgrade(&disk));
        Ok(disk)
    }

    /// The disk of a path, and the file name.
    pub(super) fn of(path: &str) -> Option<(Arc<Self>, String)> {
        let path = Path::new(path);
        let disk = locked(&MOUNTED).get(path.parent()?)?.upgrade()?;
        Some((disk, path.file_name()?.to_str()?.to_string()))
    }

    pub(crate) fn is_off(&self) -> bool {
        self.state().is_off
    }

    /// Waits until the power is off.
    pub(crate) async fn wait_for_cut(&self) {
        // The sender lives as long as this disk, so the wait ends only with a value.
        let _ = self.disk_call.subscribe().wait_for(Option::is_some).await;
    }

    /// Cuts the power unless it is off already; returns the call during which it was cut.
    pub(crate) fn cut_power(&self) -> DiskCall {
        self.state().is_off = true;
        self.disk_call
            .send_if_modified(|disk_call| disk_call.replace(disk_call.unwrap_or(DiskCall::Idle)).is_none());
        self.disk_call.borrow().unwrap_or(DiskCall::Idle)
    }

    /// Cuts the power in the n-th change from now.
    pub(crate) fn cut_after(&self, changes: u64) {
        let mut state = self.state();
        state.cut_time = CutTime::Change(state.changes + changes);
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }

    /// Performs one call. `change` is applied to the state if the power is on when the call begins. If the power is cut
    /// in this call, the caller gets an error.
    pub(super) fn call(
        &self,
        disk_call: DiskCall,
        change: impl FnOnce(&mut State, Power),
    ) -> Result<(), PowerOff> {
        let mut state = self.state();
        if state.is_off {
            return Err(PowerOff);
        }
        state.calls += 1;
        state.changes += u64::from(disk_call != DiskCall::ReadOnly);
        state.database_changes +=
            u64::from(matches!(disk_call, DiskCall::DatabaseWrite | DiskCall::DatabaseSync));
        state.preallocations += u64::from(disk_call == DiskCall::Preallocation);
        let is_cut = match state.cut_time {
            CutTime::Call(n) => state.calls >= n,
            CutTime::Change(n) => state.changes >= n,
            CutTime::DatabaseChange(n) => state.database_changes >= n,
            CutTime::Preallocation(n) => state.preallocations >= n,
            CutTime::OnRequest => false,
        };
        state.is_off = is_cut;
        change(&mut state, if is_cut { Power::IsCut } else { Power::StaysOn });
        drop(state);
        if is_cut {
            self.disk_call.send_replace(Some(disk_call));
            return Err(PowerOff);
        }
        Ok(())
    }

    /// Performs a call that changes nothing.
    pub(super) fn read_only_call(&self) -> Result<(), PowerOff> {
        self.call(DiskCall::ReadOnly, |_, _| {})
    }

    /// Records that a file was opened, and perhaps created it.
    pub(super) fn open_file(self: &Arc<Self>, name: &str, file_use: FileUse) -> Result<Handle, PowerOff> {
        let known = self.state().inode_of(name);
        let inode = match known {
            Some(inode) => inode,
            None => {
                let mut opened = 0;
                self.call(DiskCall::Folder, |state, _| opened = state.open_or_create(name))?;
                opened
            }
        };
        Ok(Handle::new(self, inode, file_use))
    }

    pub(super) fn delete(&self, name: &str, sync_folder: bool) -> Result<(), PowerOff> {
        self.call(DiskCall::Folder, |state, _| {
            if let Some(known) = state.names.get_mut(name)
                && known.current().is_some()
            {
                known.unsynced.push(None);
            }
        })?;
        if sync_folder { self.sync_folder() } else { Ok(()) }
    }

    pub(super) fn sync_folder(&self) -> Result<(), PowerOff> {
        self.call(DiskCall::Folder, |state, power| {
            if power == Power::StaysOn && !state.ignores_sync {
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

/// Passes the writes that preallocate a log to the disk, as changes of their own.
pub(crate) struct Preallocations {
    pub(crate) disk: Arc<Disk>,
    /// A defect that the verification must find: on the disk each write starts this many bytes too early, as in a store that treats
    /// the end of the last commit as unused.
    pub(crate) bytes_early: usize,
}

impl PreallocWrites for Preallocations {
    fn before_write(&self, log: &Path, at: u64, bytes: &[u8]) -> io::Result<()> {
        let name = log.file_name().unwrap_or_default().to_string_lossy();
        let at = usize::try_from(at).map_err(io::Error::other)?.saturating_sub(self.bytes_early);
        let written = self.disk.open_file(&name, FileUse::Preallocation).and_then(|log| log.write(at, bytes));
        written.map_err(|PowerOff| io::Error::other("the power is off"))
    }
}

/// Whether the power is cut in the current call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Power {
    StaysOn,
    IsCut,
}

#[cfg(test)]
mod tests;
