//! The two files of the shop.

use super::ledger::LedgerFile;
use super::lock::Locks;
use super::past::Past;
use crate::failure::Failure;
use std::path::{Path, PathBuf};

/// The paths of the two files.
pub(super) struct Files {
    dir: PathBuf,
    store: PathBuf,
    ledger: PathBuf,
}

impl Files {
    pub(super) fn in_dir(dir: &Path) -> Self {
        Self { dir: dir.to_owned(), store: dir.join("shop.db"), ledger: dir.join("ledger.jsonl") }
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(super) fn locks(&self) -> Locks {
        Locks::in_dir(&self.dir)
    }

    pub(super) fn make_folder(&self) -> Result<(), Failure> {
        std::fs::create_dir_all(&self.dir).map_err(|error| {
            Failure::new(format!("the folder '{}' cannot be made: {error}", self.dir.display()))
        })
    }

    /// Opens the ledger.
    pub(super) fn open(&self) -> Result<LedgerFile, Failure> {
        if self.store.exists() && !self.ledger.exists() {
            return Err(Failure::new(format!(
                "'{}' is there without its ledger, so this demo did not make it or cannot prove anything about it: \
                 remove it, or choose another --dir",
                self.store.display()
            )));
        }
        LedgerFile::open(&self.ledger)
    }

    /// Empties both files. The caller holds the lock of the supervisor.
    pub(super) fn empty(&self, ledger: &mut LedgerFile) -> Result<(), Failure> {
        self.remove_store()?;
        Ok(ledger.clear()?)
    }

    /// The database and its files beside it.
    fn remove_store(&self) -> Result<(), Failure> {
        for suffix in ["", "-wal", "-shm", "-owners"] {
            let mut path = self.store.clone().into_os_string();
            path.push(suffix);
            // Killed processes leave the folder of their lock files.
            let removed = match suffix {
                "-owners" => std::fs::remove_dir_all(&path),
                _ => std::fs::remove_file(&path),
            };
            match removed {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    let path = PathBuf::from(path);
                    return Err(Failure::new(format!("'{}' cannot be removed: {error}", path.display())));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Rejects a folder whose ledger has confirmed orders but whose database is missing.
    pub(super) fn refuse_missing_store(&self, past: Option<&Past>) -> Result<(), Failure> {
        match past {
            Some(past) if !past.proven && !past.placed.is_empty() && !self.store.exists() => {
                Err(Failure::new(format!(
                    "the ledger tells of {} orders, but the store '{}' is gone: put it back, or start over with --fresh",
                    past.placed.len(),
                    self.store.display()
                )))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn store_url(&self) -> Result<String, Failure> {
        let path = self.store.to_str().ok_or_else(|| {
            Failure::new(format!("'{}' is not valid UTF-8: choose another --dir", self.store.display()))
        })?;
        Ok(format!("sqlite://{}", path.replace('%', "%25").replace('?', "%3F")))
    }

    /// The name of the store on the page.
    #[cfg(feature = "server")]
    pub(super) fn store_name(&self) -> String {
        self.store.display().to_string()
    }

    /// The text at the start.
    pub(super) fn text(&self) -> String {
        format!(
            "Outlast demo: a shop that loses no order, however often it is killed.\n  \
             store   {}  (every step of every order, kept by Outlast)\n  \
             ledger  {}  (every charge, parcel and refund, written by the activities)",
            self.store.display(),
            self.ledger.display()
        )
    }

    /// The command to continue.
    pub(super) fn again(&self) -> String {
        format!("{} demo --dir {}", program(), self.dir.display())
    }

    /// The text at the end.
    pub(super) fn closing(&self, order: &str) -> String {
        let (store, program) = (self.store.display(), program());
        format!(
            "Look around:\n  \
             {program} instance list --store {store}\n  \
             {program} instance history {order} --store {store}\n  \
             less {}",
            self.ledger.display()
        )
    }
}

/// The name by which this command was called: in a checkout it is not on the path.
fn program() -> String {
    std::env::args_os().next().map_or_else(|| "outlast".into(), |name| name.to_string_lossy().into_owned())
}
