//! The leases that this runtime holds, and the one task that renews them.
//!
//! | renewal answers | then |
//! |---|---|
//! | ok | the lease lasts longer |
//! | a passing error | asked again, until the lease has really ended |
//! | a lasting error | the lease is lost: somebody else has it, or the work is not wanted any more |
//!
//! A lost lease fires its token; whoever works under it stops and commits nothing. A lease whose holder is gone without
//! having settled it (a panic, the end of the runtime) is remembered, and given back.

use super::backoff::backoff;
use crate::core::Core;
use outlast_engine::Probe;
use outlast_provider::ProviderError;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// What a lease is on.
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
    /// When it ends, as far as this process knows.
    ends: Instant,
    renew_at: Instant,
    failures: u32,
    /// For the activity: the same by the runtime's clock.
    deadline_ms: Arc<AtomicU64>,
    /// For warnings about turns that take long: the instance, and what its code does.
    subject: Arc<str>,
    doing: Option<Probe>,
}

#[derive(Default)]
struct State {
    last_id: u64,
    held: BTreeMap<u64, Held>,
    due: BTreeSet<(Instant, u64)>,
    /// Held by nobody, not settled.
    dropped: Vec<(Kind, Arc<str>)>,
}

impl State {
    /// Tells whoever works under a lease that it is gone.
    fn lose(&mut self, core: &Core, id: u64, why: &str) {
        let Some(held) = self.held.get(&id) else { return };
        let kind = held.kind.name();
        tracing::info!(target: "duroxide::runtime::worker", subject = %held.subject, kind, why, "lease lost");
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
    /// The next renewal may have become earlier.
    changed: Notify,
}

/// A lease that somebody works under.
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

    /// Takes charge of a lease that was just fetched.
    pub(crate) fn hold(self: &Arc<Self>, core: &Core, kind: Kind, token: String, subject: Arc<str>) -> Lease {
        let (timeout, interval) = core.lease_times(kind);
        let now = Instant::now();
        let token: Arc<str> = token.into();
        let deadline_ms = Arc::new(AtomicU64::new(core.deadline_ms(timeout)));
        let lost = CancellationToken::new();
        let renew_at = later(now, interval);
        let mut state = self.lock();
        state.last_id += 1;
        let id = state.last_id;
        state.due.insert((renew_at, id));
        let held = Held {
            kind,
            token: Arc::clone(&token),
            lost: lost.clone(),
            ends: later(now, timeout),
            renew_at,
            failures: 0,
            deadline_ms: Arc::clone(&deadline_ms),
            subject,
            doing: None,
        };
        state.held.insert(id, held);
        drop(state);
        Lease { id, kind, leases: Arc::clone(self), lost, deadline_ms, token, settled: false }
    }

    /// Leases that were dropped without being settled, so that they can be given back.
    pub(crate) fn take_dropped(&self) -> Vec<(Kind, Arc<str>)> {
        std::mem::take(&mut self.lock().dropped)
    }

    /// The same, without taking them.
    pub(crate) fn dropped(&self) -> Vec<(Kind, Arc<str>)> {
        self.lock().dropped.clone()
    }

    /// One of them was given back.
    pub(crate) fn forget_dropped(&self, token: &str) {
        self.lock().dropped.retain(|(_, dropped)| dropped.as_ref() != token);
    }

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

    /// Says what the turn under this lease runs.
    pub(crate) fn runs(&self, doing: Probe) {
        if let Some(held) = self.leases.lock().held.get_mut(&self.id) {
            held.doing = Some(doing);
        }
    }

    /// Says that no code runs under this lease any more.
    pub(crate) fn rests(&self) {
        if let Some(held) = self.leases.lock().held.get_mut(&self.id) {
            held.doing = None;
        }
    }

    /// Fires when the lease is lost, or when the activity under it is not wanted any more.
    pub(crate) fn lost(&self) -> &CancellationToken {
        &self.lost
    }

    pub(crate) fn deadline_ms(&self) -> &Arc<AtomicU64> {
        &self.deadline_ms
    }

    /// Gives the work back to its queue.
    pub(crate) async fn give_back(self, core: &Core, delay: Option<Duration>, ignore_attempt: bool) {
        core.give_back(self.kind, &self.token, delay, ignore_attempt).await;
        self.settle();
    }

    /// It was committed, abandoned or lost: nothing is left to give back.
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

/// A point in time that may be too far away to name.
fn later(now: Instant, by: Duration) -> Instant {
    const FAR: Duration = Duration::from_secs(60 * 60 * 24 * 365);
    now.checked_add(by).unwrap_or_else(|| now + FAR)
}

/// Renews what is due until the runtime has nothing more to do.
pub(crate) async fn renew_leases(core: Arc<Core>) {
    let leases = Arc::clone(&core.leases);
    // A new lease is due after a whole interval, so looking twice in one finds it in time. Being told instead would be too
    // late when it matters: tokio runs a task that was just woken after the one that woke it, on the same thread, and that
    // may be a turn which does not come back.
    let shortest = core.lease_times(Kind::Turn).1.min(core.lease_times(Kind::Activity).1);
    loop {
        let look = later(Instant::now(), shortest / 2);
        let next = leases.lock().due.first().copied();
        let at = next.map_or(look, |(due, _)| due.min(look));
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

/// One renewal, in its own task: a store that answers slowly must not hold up the others.
fn renew(core: &Arc<Core>, id: u64) {
    let leases = &core.leases;
    let Some((kind, token)) = leases.postpone(id, core) else { return };
    let core_of_task = Arc::clone(core);
    core.spawn_helper(async move {
        let core = core_of_task;
        let (timeout, _) = core.lease_times(kind);
        let asked_at = Instant::now();
        let answer = match kind {
            Kind::Turn => core.store.renew_orchestration_item_lock(&token, timeout).await,
            Kind::Activity => core.store.renew_work_item_lock(&token, timeout).await,
        };
        core.leases.renewed(&core, id, asked_at, answer);
    });
}

impl Leases {
    /// Moves the next renewal of a lease on, and says what to renew now.
    fn postpone(&self, id: u64, core: &Core) -> Option<(Kind, Arc<str>)> {
        let mut state = self.lock();
        let held = state.held.get_mut(&id)?;
        let (_, interval) = core.lease_times(held.kind);
        let (old, now) = (held.renew_at, Instant::now());
        held.renew_at = later(now, interval);
        let (kind, token, renew_at) = (held.kind, Arc::clone(&held.token), held.renew_at);
        if now >= held.ends {
            // Every renewal hangs in the store, or this process stood still.
            state.due.remove(&(old, id));
            state.lose(core, id, "it ran out and no renewal was answered");
            return None;
        }
        match &held.doing {
            Some(doing) if kind == Kind::Turn => tracing::warn!(
                target: "duroxide::runtime::dispatchers::orchestration",
                instance_id = %held.subject,
                last_durable_call = doing.last_call().as_deref().unwrap_or("none"),
                "a turn takes so long that its lease must be renewed: orchestration code must not block or compute for long"
            ),
            None if kind == Kind::Turn => tracing::warn!(
                target: "duroxide::runtime::dispatchers::orchestration",
                instance_id = %held.subject,
                "a turn waits so long for the store that its lease must be renewed: no orchestration code runs"
            ),
            _ => {}
        }
        state.due.remove(&(old, id));
        state.due.insert((renew_at, id));
        Some((kind, token))
    }

    fn renewed(&self, core: &Core, id: u64, asked_at: Instant, answer: Result<(), ProviderError>) {
        let mut state = self.lock();
        // An answer that comes after the lease was given up changes nothing.
        let Some(held) = state.held.get_mut(&id).filter(|held| !held.lost.is_cancelled()) else { return };
        let (timeout, interval) = core.lease_times(held.kind);
        let now = Instant::now();
        let old = held.renew_at;
        match answer {
            Ok(()) => {
                held.failures = 0;
                held.ends = later(asked_at, timeout);
                held.deadline_ms.store(core.deadline_ms(timeout), Relaxed);
                held.renew_at = later(asked_at, interval).max(now);
            }
            Err(error) if error.is_retryable() && now < held.ends => {
                held.failures += 1;
                let wait = backoff(interval / 8, interval, held.failures, core.options.entropy.as_ref());
                held.renew_at = later(now, wait).min(held.ends);
            }
            Err(error) => return state.lose(core, id, &error.to_string()),
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
