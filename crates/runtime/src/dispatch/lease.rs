//! The leases that this runtime holds, and the task that renews these leases. `options/renewal.rs` has the renewal intervals.
//!
//! | answer to a renewal | what the runtime does |
//! |---|---|
//! | ok | extends the lease |
//! | retryable error | retries with backoff until the lease has expired |
//! | permanent error | marks the lease as lost: another process holds it, or the activity was cancelled |
//!
//! A lost lease fires its token; the turn or activity under it stops and commits nothing. A lease that is dropped without having
//! been settled (after a panic or an aborted shutdown) is listed as dropped and given back.

use super::backoff::backoff;
use crate::core::Core;
use outlast_engine::Probe;
use outlast_model::defect::{self, Defect};
use outlast_model::limits::MAX_NODE_LEASES;
use outlast_model::{NodeLease, NodeReport};
use outlast_provider::ProviderError;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The object of a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Turn,
    Activity,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Turn => "turn",
            Self::Activity => "activity",
        }
    }
}

struct Held {
    kind: Kind,
    token: Arc<str>,
    lost: CancellationToken,
    /// When the lease expires, computed from the time at which this process asked for it.
    expires_at: Instant,
    renew_at: Instant,
    /// Retryable errors of renewals in a row.
    failures: u32,
    /// `expires_at` by the runtime's clock, for the activity context.
    deadline_ms: Arc<AtomicU64>,
    instance: Arc<str>,
    /// The execution and scheduling event of an activity.
    activity: Option<(u64, u64)>,
    /// Set while orchestration code runs: reports its last durable call, for the warning about long turns.
    probe: Option<Probe>,
}

#[derive(Default)]
struct State {
    last_id: u64,
    held: BTreeMap<u64, Held>,
    due: BTreeSet<(Instant, u64)>,
    /// Leases that were dropped without having been settled.
    dropped: Vec<(Kind, Arc<str>)>,
}

impl State {
    /// Fires the token of a lease and stops renewing it.
    fn mark_lost(&mut self, core: &Core, id: u64, why: &str) {
        let Some(held) = self.held.get(&id) else { return };
        let kind = held.kind.name();
        tracing::info!(target: "duroxide::runtime::worker", subject = %held.instance, kind, why, "lease lost");
        core.metrics.record_lease_lost(kind);
        held.lost.cancel();
        let due = (held.renew_at, id);
        self.due.remove(&due);
    }
}

/// All leases of a runtime.
#[derive(Default)]
pub(crate) struct Leases {
    state: Mutex<State>,
    /// Notified when the next renewal may have become earlier.
    changed: Notify,
}

/// A lease of a turn or activity that this runtime processes.
pub(crate) struct Lease {
    id: u64,
    kind: Kind,
    leases: Arc<Leases>,
    lost: CancellationToken,
    deadline_ms: Arc<AtomicU64>,
    token: Arc<str>,
    settled: bool,
}

impl Leases {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lists a lease that was just fetched for renewal until the returned value is dropped.
    pub(crate) fn hold(
        self: &Arc<Self>,
        core: &Core,
        kind: Kind,
        token: String,
        instance: Arc<str>,
    ) -> Lease {
        self.hold_item(core, kind, token, instance, None)
    }

    /// [`Leases::hold`] for an activity, with its execution and scheduling event for the report of the node.
    pub(crate) fn hold_activity(
        self: &Arc<Self>,
        core: &Core,
        token: String,
        instance: Arc<str>,
        activity: Option<(u64, u64)>,
    ) -> Lease {
        self.hold_item(core, Kind::Activity, token, instance, activity)
    }

    /// Lists a lease, and schedules its first renewal.
    fn hold_item(
        self: &Arc<Self>,
        core: &Core,
        kind: Kind,
        token: String,
        instance: Arc<str>,
        activity: Option<(u64, u64)>,
    ) -> Lease {
        let (timeout, interval) = core.lease_times(kind);
        let now = Instant::now();
        let token: Arc<str> = token.into();
        let deadline_ms = Arc::new(AtomicU64::new(core.deadline_ms(timeout)));
        let lost = CancellationToken::new();
        let renew_at = saturating_later(now, interval);
        let mut state = self.lock();
        state.last_id += 1;
        let id = state.last_id;
        state.due.insert((renew_at, id));
        let held = Held {
            kind,
            token: Arc::clone(&token),
            lost: lost.clone(),
            expires_at: saturating_later(now, timeout),
            renew_at,
            failures: 0,
            deadline_ms: Arc::clone(&deadline_ms),
            instance,
            activity,
            probe: None,
        };
        state.held.insert(id, held);
        drop(state);
        Lease { id, kind, leases: Arc::clone(self), lost, deadline_ms, token, settled: false }
    }

    /// Removes and returns the leases that were dropped without having been settled.
    pub(crate) fn take_dropped(&self) -> Vec<(Kind, Arc<str>)> {
        std::mem::take(&mut self.lock().dropped)
    }

    /// The leases that were dropped without having been settled.
    pub(crate) fn dropped(&self) -> Vec<(Kind, Arc<str>)> {
        self.lock().dropped.clone()
    }

    /// Removes a dropped lease that was given back.
    pub(crate) fn remove_dropped(&self, token: &str) {
        self.lock().dropped.retain(|(_, dropped)| dropped.as_ref() != token);
    }

    /// Adds the leases to the report of the node, oldest first, up to the limit of a report. The report also has the number of
    /// leases beyond the limit.
    pub(crate) fn report(&self, report: &mut NodeReport) {
        let state = self.lock();
        let live = || state.held.values().filter(|held| !held.lost.is_cancelled());
        let lease = |held: &Held| NodeLease { instance: held.instance.to_string(), activity: held.activity };
        report.leases = live().take(MAX_NODE_LEASES).map(lease).collect();
        report.omitted_leases = (live().count() - report.leases.len()) as u64;
    }

    /// Removes a lease and its scheduled renewal.
    fn release(&self, id: u64) -> Option<Held> {
        let mut state = self.lock();
        let held = state.held.remove(&id)?;
        state.due.remove(&(held.renew_at, id));
        Some(held)
    }
}

impl Lease {
    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    /// Notes that orchestration code starts to run under this lease.
    pub(crate) fn set_probe(&self, probe: Probe) {
        if let Some(held) = self.leases.lock().held.get_mut(&self.id) {
            held.probe = Some(probe);
        }
    }

    /// Notes that no orchestration code runs under this lease any more.
    pub(crate) fn clear_probe(&self) {
        if let Some(held) = self.leases.lock().held.get_mut(&self.id) {
            held.probe = None;
        }
    }

    /// Fires when the lease is lost or a commit of this process cancels the activity under it.
    pub(crate) fn lost(&self) -> &CancellationToken {
        &self.lost
    }

    pub(crate) fn deadline_ms(&self) -> &Arc<AtomicU64> {
        &self.deadline_ms
    }

    /// Gives the turn or activity back to its queue.
    pub(crate) async fn give_back(self, core: &Core, delay: Option<Duration>, ignore_attempt: bool) {
        core.give_back(self.kind, &self.token, delay, ignore_attempt).await;
        self.settle();
    }

    /// Drops the lease without listing it as dropped: it was committed, given back or lost.
    pub(crate) fn settle(mut self) {
        self.settled = true;
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let held = self.leases.release(self.id);
        if let Some(held) = held.filter(|held| !self.settled && !held.lost.is_cancelled()) {
            self.leases.lock().dropped.push((held.kind, held.token));
        }
    }
}

/// `now + by`, or a year from now if that overflows.
fn saturating_later(now: Instant, by: Duration) -> Instant {
    const FAR: Duration = Duration::from_secs(60 * 60 * 24 * 365);
    now.checked_add(by).unwrap_or_else(|| now + FAR)
}

/// Renews leases when they are due. Runs until the runtime has drained.
pub(crate) async fn renew_leases(core: Arc<Core>) {
    let leases = Arc::clone(&core.leases);
    // A new lease is due after a whole interval, so a check every half interval finds it in time. A notification by `hold` could
    // come too late: tokio runs a woken task after the task that woke it, on the same thread, and that may be a turn that blocks.
    let shortest = core.lease_times(Kind::Turn).1.min(core.lease_times(Kind::Activity).1);
    loop {
        let next_check = saturating_later(Instant::now(), shortest / 2);
        let next = leases.lock().due.first().copied();
        let at = next.map_or(next_check, |(due, _)| due.min(next_check));
        tokio::select! {
            biased;
            () = leases.changed.notified() => {}
            () = tokio::time::sleep_until(at) => {
                if let Some((_, id)) = next.filter(|(due, _)| *due <= at) {
                    renew(&core, id);
                }
            }
        }
    }
}

/// Renews one lease in a separate task, so that a slow answer of the store does not delay other renewals.
fn renew(core: &Arc<Core>, id: u64) {
    let leases = &core.leases;
    let Some((kind, token)) = leases.begin_renewal(id, core) else { return };
    let stops = core.stopping.is_cancelled() && defect::is_on(Defect::DrainStopsRenewals);
    if stops || defect::is_on(Defect::LeaseNotRenewed) {
        return;
    }
    let core_of_task = Arc::clone(core);
    core.spawn_helper(async move {
        let core = core_of_task;
        let (timeout, _) = core.lease_times(kind);
        let asked_at = Instant::now();
        let answer = match kind {
            Kind::Turn => core.store.renew_orchestration_item_lock(&token, timeout).await,
            Kind::Activity => core.store.renew_work_item_lock(&token, timeout).await,
        };
        core.leases.on_renewal_answer(&core, id, asked_at, answer);
    });
}

impl Leases {
    /// Schedules the following renewal of a lease and returns the kind and token to renew now. `None` if the lease is not held any
    /// more or has expired; an expired one is marked as lost. Warns about a turn, since most turns end before their first renewal.
    fn begin_renewal(&self, id: u64, core: &Core) -> Option<(Kind, Arc<str>)> {
        let mut state = self.lock();
        let held = state.held.get_mut(&id)?;
        let (_, interval) = core.lease_times(held.kind);
        let (old, now) = (held.renew_at, Instant::now());
        held.renew_at = saturating_later(now, interval);
        let (kind, token, renew_at) = (held.kind, Arc::clone(&held.token), held.renew_at);
        if now >= held.expires_at {
            // The store answered no renewal, or this process was suspended.
            state.due.remove(&(old, id));
            state.mark_lost(core, id, "it expired and no renewal was answered");
            return None;
        }
        match &held.probe {
            Some(probe) if kind == Kind::Turn => tracing::warn!(
                target: "duroxide::runtime::dispatchers::orchestration",
                instance_id = %held.instance,
                last_durable_call = probe.last_call().as_deref().unwrap_or("none"),
                "a turn takes so long that its lease must be renewed: orchestration code must not block or compute for long"
            ),
            None if kind == Kind::Turn => tracing::warn!(
                target: "duroxide::runtime::dispatchers::orchestration",
                instance_id = %held.instance,
                "a turn waits so long for the store that its lease must be renewed: no orchestration code runs"
            ),
            _ => {}
        }
        state.due.remove(&(old, id));
        state.due.insert((renew_at, id));
        Some((kind, token))
    }

    /// Applies the table at the top of this file.
    fn on_renewal_answer(&self, core: &Core, id: u64, asked_at: Instant, answer: Result<(), ProviderError>) {
        let mut state = self.lock();
        // A lost lease stays lost.
        let Some(held) = state.held.get_mut(&id).filter(|held| !held.lost.is_cancelled()) else { return };
        let (timeout, interval) = core.lease_times(held.kind);
        let now = Instant::now();
        let old = held.renew_at;
        match answer {
            Ok(()) => {
                held.failures = 0;
                held.expires_at = saturating_later(asked_at, timeout);
                held.deadline_ms.store(core.deadline_ms(timeout), Relaxed);
                held.renew_at = saturating_later(asked_at, interval).max(now);
            }
            Err(error) if error.is_retryable() && now < held.expires_at => {
                held.failures += 1;
                let wait = backoff(interval / 8, interval, held.failures, core.options.entropy.as_ref());
                held.renew_at = saturating_later(now, wait).min(held.expires_at);
            }
            Err(error) => return state.mark_lost(core, id, &error.to_string()),
        }
        let renew_at = held.renew_at;
        state.due.remove(&(old, id));
        state.due.insert((renew_at, id));
        drop(state);
        self.changed.notify_one();
    }
}

#[cfg(test)]
mod tests;
