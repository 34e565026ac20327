//! The store object: one lock around the tables, one function that changes them, one function in which a fetch waits.

use crate::disk::Disk;
use crate::state::{State, after};
use outlast_provider::{Clock, ProviderError, SystemClock};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// A store in one JSON file.
pub struct FileStore {
    state: Mutex<State>,
    disk: Disk,
    clock: Arc<dyn Clock>,
    /// Notified after every change, for fetches that wait.
    changed: Notify,
}

impl FileStore {
    /// Opens the store at this path, or creates it. One process at a time can have it open.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::open_with_clock(path, Arc::new(SystemClock))
    }

    /// Opens the store with a clock of the caller's choice.
    pub fn open_with_clock(path: &Path, clock: Arc<dyn Clock>) -> io::Result<Self> {
        let (disk, state) = Disk::open(path)?;
        Ok(Self { state: Mutex::new(state), disk, clock, changed: Notify::new() })
    }

    // guide: change
    /// Changes the tables: all of `change` happens, on disk too, or nothing.
    pub(crate) fn change<T>(
        &self,
        operation: &str,
        change: impl FnOnce(&mut State, u64) -> Result<T, ProviderError>,
    ) -> Result<T, ProviderError> {
        let mut state = self.state();
        let mut next = state.clone();
        let result = change(&mut next, self.clock.now_ms())?;
        if next != *state {
            self.disk.save(&next).map_err(|error| {
                let message = format!("the file could not be written, and the change may be lost: {error}");
                ProviderError::retryable(operation, message)
            })?;
            *state = next;
            self.changed.notify_waiters();
        }
        Ok(result)
    }
    // guide: end

    /// Reads the tables.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&State, u64) -> T) -> T {
        look(&self.state(), self.clock.now_ms())
    }

    /// A panic under the lock leaves the tables unchanged, because one assignment replaces them.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // guide: wait
    /// Repeats a fetch until it finds a row or the caller's patience ends.
    pub(crate) async fn fetch<T>(
        &self,
        operation: &str,
        patience: Duration,
        mut attempt: impl FnMut(&mut State, u64) -> Option<T>,
    ) -> Result<Option<T>, ProviderError> {
        let give_up_at = after(self.clock.now_ms(), patience);
        loop {
            // Registered before the attempt, so that no change between the attempt and the wait is missed.
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let fetched = self.change(operation, |state, now| Ok(attempt(state, now)))?;
            let (now, next_due) = self.look(|state, now| (now, state.next_due(now)));
            if fetched.is_some() || now >= give_up_at {
                return Ok(fetched);
            }
            let pause = Duration::from_millis(next_due.min(give_up_at) - now);
            let _ = tokio::time::timeout(pause, changed).await;
        }
    }
    // guide: end
}

impl State {
    /// The next time at which a delay or a lease ends and a row becomes available.
    fn next_due(&self, now: u64) -> u64 {
        let messages = self.messages.values().map(|message| message.visible_at);
        let leases = self.leases.values().map(|lease| lease.locked_until);
        let activities = self.activities.values().map(|activity| activity.visible_at);
        let held =
            self.activities.values().filter_map(|activity| Some(activity.lease.as_ref()?.locked_until));
        let sessions = self.sessions.values().map(|session| session.locked_until);
        let all = messages.chain(leases).chain(activities).chain(held).chain(sessions);
        all.filter(|at| *at > now).min().unwrap_or(u64::MAX)
    }
}
