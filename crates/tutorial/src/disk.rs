//! The file: read when the store is opened, replaced as a whole by every change.

use crate::state::State;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

pub(crate) struct Disk {
    path: PathBuf,
    /// Locked for as long as the store is open, so that a second process cannot open it.
    _lock: File,
}

impl Disk {
    /// Locks and reads the file. A file that does not decode is an error, never an empty store.
    pub(crate) fn open(path: &Path) -> io::Result<(Self, State)> {
        let lock = File::create(path.with_extension("lock"))?;
        lock.try_lock()?;
        let state = match fs::read(path) {
            Ok(bytes) => serde_json::from_slice(&bytes)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => State::default(),
            Err(error) => return Err(error),
        };
        Ok((Self { path: path.to_path_buf(), _lock: lock }, state))
    }

    // guide: save
    /// Replaces the file. After a crash at any point the file holds the old state or the new one.
    pub(crate) fn save(&self, state: &State) -> io::Result<()> {
        let next = self.path.with_extension("next");
        let mut file = File::create(&next)?;
        file.write_all(&serde_json::to_vec(state)?)?;
        file.sync_all()?;
        fs::rename(&next, &self.path)?;
        // The rename is durable once the folder is.
        match self.path.parent() {
            Some(folder) if cfg!(unix) => File::open(folder)?.sync_all(),
            _ => Ok(()),
        }
    }
    // guide: end
}
