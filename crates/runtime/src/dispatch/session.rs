//! The sessions of this runtime: the limit of sessions with running activities, and the renewal of session leases.

use crate::core::Core;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// The sessions that have running activities in this runtime.
pub(crate) struct Sessions {
    /// The number of running activities by session.
    busy: Mutex<BTreeMap<String, usize>>,
    limit: usize,
    /// Notified when the number of busy sessions falls below the limit.
    pub(crate) freed: Notify,
}

impl Sessions {
    pub(crate) fn new(limit: usize) -> Self {
        Self { busy: Mutex::default(), limit, freed: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, usize>> {
        self.busy.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn has_room(&self) -> bool {
        self.lock().len() < self.limit
    }

    /// Counts an activity of a session as running until the guard is dropped. `None` if the session would exceed the limit.
    pub(crate) fn enter(&self, session: &str) -> Option<RunningInSession<'_>> {
        let mut busy = self.lock();
        if !busy.contains_key(session) && busy.len() >= self.limit {
            return None;
        }
        *busy.entry(session.to_string()).or_default() += 1;
        Some(RunningInSession { sessions: self, session: session.to_string() })
    }
}

/// A running activity of a session.
pub(crate) struct RunningInSession<'a> {
    sessions: &'a Sessions,
    session: String,
}

impl Drop for RunningInSession<'_> {
    fn drop(&mut self) {
        let mut busy = self.sessions.lock();
        let was_full = busy.len() >= self.sessions.limit;
        let left = busy.get_mut(&self.session).map(|count| {
            *count -= 1;
            *count
        });
        if left == Some(0) {
            busy.remove(&self.session);
        }
        drop(busy);
        if was_full && left == Some(0) {
            self.sessions.freed.notify_waiters();
        }
    }
}

/// Renews the sessions that this runtime owns, and removes orphaned sessions of the store at `session_cleanup_interval`.
pub(crate) async fn manage_sessions(core: Arc<Core>) {
    let owners: Vec<String> = match &core.options.worker_node_id {
        Some(node) => vec![node.clone()],
        None => (0..core.options.worker_concurrency).map(|slot| core.session_owner(slot)).collect(),
    };
    let mut renewal = ticks(core.options.session_renewal_interval());
    let mut cleanup = ticks(core.options.session_cleanup_interval);
    loop {
        tokio::select! {
            biased;
            _ = renewal.tick() => renew(&core, &owners).await,
            _ = cleanup.tick() => clean_up(&core).await,
        }
    }
}

/// An interval whose first tick comes after a whole interval. The interval is at least 1 ms and at most 30 days.
fn ticks(every: std::time::Duration) -> tokio::time::Interval {
    const SHORTEST: std::time::Duration = std::time::Duration::from_millis(1);
    const LONGEST: std::time::Duration = std::time::Duration::from_secs(60 * 60 * 24 * 30);
    let every = every.clamp(SHORTEST, LONGEST);
    let mut ticks = tokio::time::interval_at(tokio::time::Instant::now() + every, every);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    ticks
}

async fn renew(core: &Core, owners: &[String]) {
    let owners: Vec<&str> = owners.iter().map(String::as_str).collect();
    let (lease, idle) = (core.options.session_lock_timeout, core.options.session_idle_timeout);
    match core.store.renew_session_lock(&owners, lease, idle).await {
        Ok(0) => {}
        Ok(count) => tracing::debug!(target: "duroxide::runtime::worker", count, "sessions renewed"),
        Err(error) => {
            tracing::warn!(target: "duroxide::runtime::worker", %error, "sessions could not be renewed")
        }
    }
}

async fn clean_up(core: &Core) {
    match core.store.cleanup_orphaned_sessions(core.options.session_idle_timeout).await {
        Ok(0) => {}
        Ok(count) => tracing::debug!(target: "duroxide::runtime::worker", count, "dead sessions removed"),
        Err(error) => {
            tracing::warn!(target: "duroxide::runtime::worker", %error, "dead sessions could not be removed")
        }
    }
}

#[cfg(test)]
mod tests;
