//! Paused orchestrations: no turn of their instances runs.
//!
//! The store keeps the set. A runtime reads it before a turn if its last read is older than [`FRESH`], and holds the instance of a paused
//! orchestration instead of running its turn. So a new instance is held before its code runs, and its start waits uncounted.
//!
//! The turn of an instance that a cancellation ends is not held, and neither is a turn of an instance that has ended: such a turn
//! runs no code.

use super::lease::Lease;
use crate::core::Core;
use outlast_model::{EventKind, Hold, HoldKind, PausedOrchestration};
use outlast_provider::{FetchedTurn, HoldOutcome, ProviderError};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// The longest time for which a runtime uses the set that it has read. A pause is complete after this time.
pub(crate) const FRESH: Duration = Duration::from_secs(1);

/// The delay of a turn if the store cannot say which orchestrations are paused, or does not answer a hold.
const ASK_AGAIN: Duration = Duration::from_secs(1);

type ByName = Arc<BTreeMap<String, PausedOrchestration>>;

/// The paused orchestrations as this runtime last read them.
#[derive(Default)]
pub(crate) struct PausedOrchestrations {
    known: Mutex<Known>,
    /// One task reads at a time.
    reading: tokio::sync::Mutex<()>,
}

#[derive(Default)]
enum Known {
    #[default]
    Unread,
    Read {
        began: Instant,
        paused: ByName,
    },
    /// The store has no such set.
    Unsupported,
}

/// Whether turns of an orchestration run.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Standing {
    Runs,
    Paused(PausedOrchestration),
    /// The store did not answer.
    Unknown,
}

impl PausedOrchestrations {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The set, if it was read within [`FRESH`].
    fn fresh(&self) -> Option<ByName> {
        match &*self.lock() {
            Known::Read { began, paused } if began.elapsed() < FRESH => Some(Arc::clone(paused)),
            Known::Unsupported => Some(ByName::default()),
            Known::Read { .. } | Known::Unread => None,
        }
    }

    /// The set, read from the store if the last read is older than [`FRESH`].
    pub(super) async fn current(&self, core: &Core) -> Result<ByName, ProviderError> {
        if let Some(paused) = self.fresh() {
            return Ok(paused);
        }
        let _reading = self.reading.lock().await;
        match self.fresh() {
            Some(paused) => Ok(paused),
            None => self.read(core).await,
        }
    }

    /// Reads the set.
    async fn read(&self, core: &Core) -> Result<ByName, ProviderError> {
        let began = Instant::now();
        let found = match core.store.as_management_capability() {
            Some(admin) => admin.paused_orchestrations().await?,
            None => None,
        };
        let paused: ByName = match found {
            Some(found) => {
                let by_name = found.into_iter().map(|paused| (paused.orchestration.clone(), paused));
                Arc::new(by_name.collect())
            }
            None => {
                *self.lock() = Known::Unsupported;
                return Ok(ByName::default());
            }
        };
        *self.lock() = Known::Read { began, paused: Arc::clone(&paused) };
        Ok(paused)
    }

    /// Whether turns of this orchestration run.
    pub(super) async fn standing(&self, core: &Core, orchestration: &str) -> Standing {
        match self.current(core).await {
            Ok(paused) => paused.get(orchestration).cloned().map_or(Standing::Runs, Standing::Paused),
            Err(_) => Standing::Unknown,
        }
    }
}

/// Holds the instance of a turn if its orchestration is paused. Returns the lease if the turn is to run.
pub(super) async fn or_hold(core: &Core, fetched: &FetchedTurn, lease: Lease) -> Option<Lease> {
    let orchestration = &fetched.item.orchestration_name;
    let paused = match core.paused.standing(core, orchestration).await {
        Standing::Runs => return Some(lease),
        Standing::Paused(paused) => paused,
        Standing::Unknown => {
            lease.give_back(core, Some(ASK_AGAIN), true).await;
            return None;
        }
    };
    match must_end(core, fetched).await {
        Ok(false) => hold(core, fetched, lease, &paused).await,
        Ok(true) => Some(lease),
        Err(_) => {
            lease.give_back(core, Some(ASK_AGAIN), true).await;
            None
        }
    }
}

/// Whether the execution has ended, or a request to cancel has reached it. A waiting request to cancel is found by the store.
async fn must_end(core: &Core, fetched: &FetchedTurn) -> Result<bool, ProviderError> {
    if fetched.last_event_id == Some(0) {
        return Ok(false);
    }
    let loaded = core.store.load_turn(&fetched.item.instance, fetched.item.execution_id).await?;
    let ends = |kind: &EventKind| {
        matches!(
            kind,
            EventKind::OrchestrationCancelRequested { .. }
                | EventKind::OrchestrationCompleted { .. }
                | EventKind::OrchestrationFailed { .. }
        )
    };
    // The turn reports a history that cannot be read.
    Ok(loaded.history_error.is_some() || loaded.history.iter().any(|event| ends(&event.kind)))
}

/// Holds the instance of the turn. Returns the lease if the instance cannot be held, so that the turn runs.
async fn hold(
    core: &Core,
    fetched: &FetchedTurn,
    lease: Lease,
    paused: &PausedOrchestration,
) -> Option<Lease> {
    match core.store.hold_turn(lease.token(), &hold_of(paused)).await {
        Ok(HoldOutcome::Held) => {
            lease.settle();
            release_if_resumed(core, &fetched.item.instance, &paused.orchestration).await;
            None
        }
        // A cancellation waits for the instance, or the store cannot hold it.
        Ok(_) => Some(lease),
        Err(_) => {
            lease.give_back(core, Some(ASK_AGAIN), true).await;
            // The store may have held the instance although the answer of the store was lost.
            release_if_resumed(core, &fetched.item.instance, &paused.orchestration).await;
            None
        }
    }
}

/// The hold of an instance whose orchestration is paused.
pub(crate) fn hold_of(paused: &PausedOrchestration) -> Hold {
    Hold { kind: HoldKind::OrchestrationPaused, actor: paused.actor.clone(), reason: paused.reason.clone() }
}

/// Releases a held instance whose orchestration was resumed meanwhile. A resumption removes the orchestration from the set, and then
/// releases the held instances. It misses an instance that a runtime holds later, so the runtime reads the set again after each hold.
async fn release_if_resumed(core: &Core, instance: &str, orchestration: &str) {
    let Some(admin) = core.store.as_management_capability() else { return };
    let read_again = async || {
        if core.paused.read(core).await?.contains_key(orchestration) {
            return Ok(());
        }
        match admin.held_instance(instance).await? {
            Some(held) if held.hold.kind == HoldKind::OrchestrationPaused => {
                admin.release_instance(instance).await.map(drop)
            }
            _ => Ok::<(), ProviderError>(()),
        }
    };
    while read_again().await.is_err() && !core.stopping.is_cancelled() {
        tokio::time::sleep(ASK_AGAIN).await;
    }
}

#[cfg(test)]
mod tests;
