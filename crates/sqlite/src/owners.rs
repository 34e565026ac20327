//! Owners: the store objects that hold leases on a file, and the detection of dead ones by other store objects.
//!
//! An owner is one store object that fetches. Its name is the first half of the secrets of its leases. As long as its process lives,
//! it holds the lock of a file of its own, `orders.db-owners/<name>.lock`. The system releases the lock when the process ends, in
//! whichever way. A store object with parked fetches tries to lock the files of the others. If it gets a lock, the owner is dead:
//! it ends the leases of the owner in one transaction, and removes the file.
//!
//! | state of an owner | its file | found by a look |
//! |---|---|---|
//! | alive, or stopped by a signal | locked | no |
//! | its process ended | not locked | yes |
//! | closed while it held leases | locked until its process ends: another store object may use the tokens | no |
//! | closed without leases | removed | no |
//! | no file, because the file system has no locks | none | no: its leases end by time |
//!
//! A false detection costs repeated work, not correctness: an ended lease is an expired lease, whose token every commit refuses.

use crate::command::{Call, CallInfo, PendingCall};
use crate::counters::Counters;
use crate::db::{Db, Result, column};
use crate::sql;
use crate::transaction::Transaction;
use crate::url::{Access, Location};
use outlast_provider::Entropy;
use outlast_provider_kit::queue::PerQueue;
use outlast_provider_kit::token::Owner;
use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The time between two looks for dead owners.
const LOOK_EVERY_MS: u64 = 250;

/// The number of attempts of an owner to create its file, if other processes remove the file or its folder in the same moment.
const MOST_TRIES: usize = 16;

/// The owner of this store object, and the dead owners that it found.
pub(crate) struct Owners {
    own: Own,
    looked_at: Option<u64>,
    /// Owners whose leases are ended by the next transaction.
    dead: Vec<DeadOwner>,
}

/// The own file.
enum Own {
    /// Leases have no owner: the store is in memory, read-only or inline, or the file system has no locks.
    None,
    /// No fetch came yet.
    Unregistered {
        database: PathBuf,
    },
    Registered(OwnFile),
}

struct OwnFile {
    owner: Owner,
    folder: PathBuf,
    path: PathBuf,
    lock: File,
}

/// The locks of closed owners with leases. The oldest ones are given up, with their leases, if a process closes many such stores.
static KEPT: Mutex<VecDeque<File>> = Mutex::new(VecDeque::new());
const MOST_KEPT: usize = 64;

fn keep_until_process_ends(lock: File) {
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    kept.push_back(lock);
    if kept.len() > MOST_KEPT {
        kept.pop_front();
    }
}

/// An owner whose file could be locked. The lock is held until its leases are ended, so that no other process ends them too.
pub(crate) struct DeadOwner {
    owner: Owner,
    path: PathBuf,
    _lock: File,
}

impl Owners {
    pub(crate) fn new(location: &Location, inline: bool) -> Self {
        let own = match location {
            Location::File { path, access: Access::Create | Access::Existing } if !inline => {
                Own::Unregistered { database: path.clone() }
            }
            Location::File { .. } | Location::Memory => Own::None,
        };
        Self { own, looked_at: None, dead: Vec::new() }
    }

    /// The owner of new leases.
    pub(crate) fn own(&self) -> Option<Owner> {
        match &self.own {
            Own::Registered(file) => Some(file.owner),
            Own::None | Own::Unregistered { .. } => None,
        }
    }

    /// Makes the own file before the first lease. Without locks the leases of this store have no owner, and end by time.
    pub(crate) fn register(&mut self, entropy: &dyn Entropy) {
        if let Own::Unregistered { database } = &self.own {
            self.own = OwnFile::make(database, entropy).map_or(Own::None, Own::Registered);
        }
    }

    /// Searches for dead owners if a look is due; returns whether it found any.
    pub(crate) fn look(&mut self, now: impl FnOnce() -> u64) -> bool {
        if let Own::Registered(own) = &self.own {
            let now = now();
            // A clock that was set back does not stop the looks.
            if self.looked_at.is_none_or(|at| at.abs_diff(now) >= LOOK_EVERY_MS) {
                self.looked_at = Some(now);
                self.dead = own.dead_owners();
            }
        }
        !self.dead.is_empty()
    }

    pub(crate) fn take_dead(&mut self) -> Vec<DeadOwner> {
        mem::take(&mut self.dead)
    }

    /// The store is closed. Without leases its file is removed; otherwise its lock stays until the process ends.
    pub(crate) fn close(&mut self, holds_leases: bool) {
        let Own::Registered(own) = mem::replace(&mut self.own, Own::None) else { return };
        if holds_leases {
            keep_until_process_ends(own.lock);
            return;
        }
        // A file that stays is found by the next look of any store, which ends no lease and removes it.
        let _ = fs::remove_file(&own.path);
        // The folder of other owners is not empty, and stays.
        let _ = fs::remove_dir(&own.folder);
    }
}

impl OwnFile {
    fn make(database: &Path, entropy: &dyn Entropy) -> io::Result<Self> {
        // All processes use one folder, whatever path they opened the file by.
        let database = database.canonicalize()?;
        let folder = folder_of(&database);
        for _ in 0..MOST_TRIES {
            let owner = Owner::draw(entropy);
            let path = folder.join(format!("{owner}.lock"));
            let lock = match make_file(&database, &folder, &path) {
                Ok(lock) => lock,
                // The last owner has just removed the folder.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            match lock.try_lock() {
                // A look between the creation and the lock takes the new file for that of a dead owner, and removes it.
                Ok(()) if path.exists() => return Ok(Self { owner, folder, path, lock }),
                Ok(()) | Err(fs::TryLockError::WouldBlock) => {}
                Err(fs::TryLockError::Error(error)) => {
                    let _ = fs::remove_file(&path);
                    let _ = fs::remove_dir(&folder);
                    return Err(error);
                }
            }
        }
        Err(io::Error::other("other processes removed the file of this owner"))
    }

    /// The other owners whose files can be locked. A file that cannot be read belongs to an owner that may be alive.
    fn dead_owners(&self) -> Vec<DeadOwner> {
        let Ok(entries) = fs::read_dir(&self.folder) else { return Vec::new() };
        let others = entries.filter_map(|entry| {
            let name = entry.ok()?.file_name();
            Owner::parse(name.to_str()?.strip_suffix(".lock")?).filter(|owner| *owner != self.owner)
        });
        others.filter_map(|owner| DeadOwner::find(owner, self.folder.join(format!("{owner}.lock")))).collect()
    }
}

impl DeadOwner {
    fn find(owner: Owner, path: PathBuf) -> Option<Self> {
        let lock = File::open(&path).ok()?;
        lock.try_lock().ok()?;
        Some(Self { owner, path, _lock: lock })
    }
}

/// The folder of the owners of a database.
fn folder_of(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push("-owners");
    name.into()
}

/// Creates the file of an owner, and its folder if it is missing, for the users that may read the database.
fn make_file(database: &Path, folder: &Path, path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
        let mode = database.metadata()?.mode() & 0o666;
        options.mode(mode);
        builder.mode(mode | (mode & 0o444) >> 2);
    }
    #[cfg(not(unix))]
    database.metadata()?;
    match builder.create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        Ok(()) | Err(_) => {}
    }
    options.open(path)
}

/// A call that ends the leases of a dead owner, and removes its file after the commit.
pub(crate) fn end_leases(dead: DeadOwner, counters: &Arc<Counters>) -> Box<dyn Call> {
    let counters = Arc::clone(counters);
    let on_commit = move |dead: &DeadOwner, ended: &usize| {
        counters.leases_of_dead_processes.add(*ended);
        // A file that stays is found again.
        let _ = fs::remove_file(&dead.path);
    };
    let apply = |tx: &mut Transaction<'_>, dead: &DeadOwner| end_leases_of(tx, dead.owner);
    Box::new(PendingCall::new(CallInfo::of("end_leases"), dead, apply, on_commit, None).0)
}

/// Ends the leases of an owner as an expiry does: deliveries stay counted, and the tokens are refused. Returns the number of
/// leases.
fn end_leases_of(tx: &mut Transaction<'_>, owner: Owner) -> Result<usize> {
    let mut ended = 0;
    for statement in [sql::END_TURNS_OF, sql::END_ACTIVITIES_OF, sql::END_SESSIONS_OF] {
        ended += tx.db.run(statement, [owner.bytes()])?;
    }
    tx.wakeups.poll = PerQueue::BOTH;
    Ok(ended)
}

/// Whether an owner holds no lease.
pub(crate) fn holds_no_lease(db: &Db, owner: Owner, now: u64) -> Result<bool> {
    let found = db.one(sql::HOLDS_NO_LEASE, (owner.bytes(), column(now)), |row| row.get(0))?;
    Ok(found.unwrap_or(false))
}
