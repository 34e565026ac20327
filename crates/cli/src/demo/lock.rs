//! The two locks of the folder. The system releases the locks of a killed process.

use crate::failure::Failure;
use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The time that a second supervisor waits for the lock of the first: a child holds the file for a moment while it is started.
const SUPERVISOR: Duration = Duration::from_millis(500);
/// The time that a supervisor waits for workers whose supervisor was killed. They end as soon as they notice it.
const WORKERS: Duration = Duration::from_secs(30);
/// The interval between two tries.
const PAUSE: Duration = Duration::from_millis(10);

/// The files that are locked.
pub(super) struct Locks {
    supervisor: PathBuf,
    workers: PathBuf,
}

impl Locks {
    pub(super) fn in_dir(dir: &Path) -> Self {
        Self { supervisor: dir.join("demo.lock"), workers: dir.join("workers.lock") }
    }

    /// The right to run the demo in this folder, for as long as the file is open. No worker of an earlier run lives any more.
    pub(super) async fn supervise(&self) -> Result<File, Failure> {
        let lock = exclusive(&self.supervisor, SUPERVISOR).await?.ok_or_else(|| {
            refused(
                &self.supervisor,
                "another demo is running in this folder; wait for it, stop it, or choose another --dir",
            )
        })?;
        match exclusive(&self.workers, WORKERS).await? {
            Some(_) => Ok(lock),
            None => Err(refused(
                &self.workers,
                "workers of an earlier demo still run in this folder; end them, or choose another --dir",
            )),
        }
    }

    /// The lock of a worker.
    pub(super) fn work(&self) -> Result<File, Failure> {
        let file = open(&self.workers)?;
        match file.try_lock_shared() {
            Ok(()) => Ok(file),
            Err(error) => Err(refused(&self.workers, error)),
        }
    }
}

fn open(path: &Path) -> Result<File, Failure> {
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
    file.map_err(|error| refused(path, error))
}

/// The locked file; `None` if another process holds the lock for the whole time.
async fn exclusive(path: &Path, patience: Duration) -> Result<Option<File>, Failure> {
    let file = open(path)?;
    let tries = async {
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(()),
                Err(TryLockError::WouldBlock) => tokio::time::sleep(PAUSE).await,
                Err(TryLockError::Error(error)) => return Err(refused(path, error)),
            }
        }
    };
    match tokio::time::timeout(patience, tries).await {
        Ok(locked) => locked.map(|()| Some(file)),
        Err(_) => Ok(None),
    }
}

fn refused(path: &Path, problem: impl std::fmt::Display) -> Failure {
    Failure::new(format!("'{}': {problem}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_one_supervisor_and_only_after_the_workers_of_the_last_one() {
        let dir = tempfile::tempdir().unwrap();
        let locks = Locks::in_dir(dir.path());
        let first = locks.supervise().await.unwrap();
        let workers = (locks.work().unwrap(), locks.work().unwrap());
        let message = locks.supervise().await.err().unwrap().to_string();
        assert!(message.contains("another demo is running"), "{message}");
        drop(first);
        let busy = exclusive(&locks.workers, Duration::from_millis(20)).await.unwrap();
        assert!(busy.is_none(), "the workers of the first supervisor live");
        drop(workers);
        locks.supervise().await.unwrap();
    }
}
