//! Decides when a leased turn or activity starts: the concurrency options limit how many turns and activities run, and a runtime
//! leases more than it runs.
//!
//! | a leased item | starts |
//! |---|---|
//! | first delivery, a permit is free | at once |
//! | first delivery, no permit is free | when a permit is free; given back after [`LONGEST_WAIT`] at the latest |
//! | delivered before | after all leased items that have not started were given back |
//! | a turn that was delivered before | also after the commit of the previous such turn was answered |
//!
//! A crash counts a delivery of every leased item. An item that ends its process at every delivery therefore counts for unstarted
//! items only at its first delivery, and no other item is poisoned with it. Items are given back without counting the delivery.

use super::lease::{Kind, Lease};
use super::permits::Permit;
use crate::core::Core;
use crate::observability::Stopwatch;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, watch};

/// The longest time for which a leased item waits for a permit. Other nodes may be idle meanwhile.
const LONGEST_WAIT: Duration = Duration::from_millis(25);

/// The longest wait as a part of the lease.
const PARTS_OF_LEASE: u32 = 8;

/// The longest pause of a slot before its next fetch, after it gave an item back.
const LONGEST_PAUSE: Duration = Duration::from_millis(10);

/// The leased items of a runtime that have not started, in both queues.
#[derive(Default)]
pub(crate) struct Gate(watch::Sender<Unstarted>);

#[derive(Default)]
struct Unstarted {
    /// Leased items that wait for a permit or are being given back.
    items: usize,
    /// Items that were delivered before and are about to start or run. While there is one, no item is leased ahead.
    closed: usize,
}

impl Gate {
    /// Whether an item that was delivered before is about to start or runs.
    pub(super) fn is_closed(&self) -> bool {
        self.0.borrow().closed > 0
    }

    fn enter(&self) -> UnstartedItem<'_> {
        self.0.send_if_modified(|unstarted| {
            unstarted.items += 1;
            false
        });
        UnstartedItem(self)
    }

    fn close(&self) -> Closed<'_> {
        self.0.send_modify(|unstarted| unstarted.closed += 1);
        Closed(self)
    }

    async fn wait_for(&self, condition: impl FnMut(&Unstarted) -> bool) {
        // The sender is alive, so this is never an error.
        let _ = self.0.subscribe().wait_for(condition).await;
    }
}

/// A leased item that has not started. The value is dropped when the item starts or was given back.
pub(super) struct UnstartedItem<'a>(&'a Gate);

impl Drop for UnstartedItem<'_> {
    fn drop(&mut self) {
        self.0.0.send_if_modified(|unstarted| {
            unstarted.items -= 1;
            unstarted.items == 0 && unstarted.closed > 0
        });
    }
}

/// An item that was delivered before. The value is dropped when the code of the item has ended.
struct Closed<'a>(&'a Gate);

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        self.0.0.send_modify(|unstarted| unstarted.closed -= 1);
    }
}

/// A turn or activity that may run its code.
pub(crate) struct Started<'a> {
    permit: Permit<'a>,
    _closed: Option<Closed<'a>>,
    only_redelivered: Option<OwnedSemaphorePermit>,
    since: Stopwatch,
    kind: Kind,
    /// Runs since the item was fetched.
    pub(super) fetched: Stopwatch,
}

impl Started<'_> {
    /// The number of the permit, below the concurrency option. Items that run at the same time have different numbers.
    pub(super) fn worker(&self) -> usize {
        self.permit.number()
    }

    /// The code has ended and another item may start. The returned value is kept until the commit of a turn was answered.
    pub(super) fn code_ended(self, core: &Core) -> Option<OwnedSemaphorePermit> {
        core.further_slots(self.kind).record(self.since.elapsed());
        self.only_redelivered
    }
}

/// The answer to [`start`].
pub(super) enum Start<'a> {
    Now(Started<'a>),
    /// The item is to be given back without counting the delivery, before the value is dropped.
    GiveBack(Option<UnstartedItem<'a>>),
}

/// Waits until the item may start. `slot` is the slot that fetched it.
pub(super) async fn start<'a>(
    core: &'a Core,
    kind: Kind,
    slot: usize,
    lease: &Lease,
    attempt_count: u32,
    fetched: Stopwatch,
) -> Start<'a> {
    let was_delivered = attempt_count > 1;
    let permits = core.permits(kind);
    let exclusive = was_delivered && kind == Kind::Turn;
    let mut only_redelivered = None;
    if exclusive {
        only_redelivered = core.redelivered_turn.clone().try_acquire_owned().ok();
    }
    let mut permit = permits.try_take(slot).filter(|_| !exclusive || only_redelivered.is_some());
    if permit.is_none() {
        let unstarted = core.gate.enter();
        if core.further_slots(kind).is_excess(slot) {
            return Start::GiveBack(Some(unstarted));
        }
        let acquired = async {
            if exclusive && only_redelivered.is_none() {
                // The semaphore is never closed, so this is never an error.
                only_redelivered = core.redelivered_turn.clone().acquire_owned().await.ok();
            }
            permits.take(slot).await
        };
        tokio::select! {
            biased;
            () = core.stopping.cancelled() => return Start::GiveBack(Some(unstarted)),
            () = lease.lost().cancelled() => return Start::GiveBack(Some(unstarted)),
            () = core.gate.wait_for(|unstarted| unstarted.closed > 0) => return Start::GiveBack(Some(unstarted)),
            taken = acquired => permit = taken,
            () = tokio::time::sleep(longest_wait(core, kind)) => {
                core.further_slots(kind).stop();
                return Start::GiveBack(Some(unstarted));
            }
        }
    }
    let Some(permit) = permit else { return Start::GiveBack(None) };
    let closed = match was_delivered {
        true => match close_gate(core, kind, lease).await {
            Some(closed) => Some(closed),
            None => return Start::GiveBack(None),
        },
        false => None,
    };
    Start::Now(Started {
        permit,
        _closed: closed,
        only_redelivered,
        since: Stopwatch::start(),
        kind,
        fetched,
    })
}

/// Closes the gate and waits until all unstarted items were given back. `None` if this takes too long or the lease is lost.
async fn close_gate<'a>(core: &'a Core, kind: Kind, lease: &Lease) -> Option<Closed<'a>> {
    let closed = core.gate.close();
    tokio::select! {
        biased;
        () = core.gate.wait_for(|unstarted| unstarted.items == 0) => Some(closed),
        () = lease.lost().cancelled() => None,
        () = tokio::time::sleep(longest_wait(core, kind)) => None,
    }
}

fn longest_wait(core: &Core, kind: Kind) -> Duration {
    LONGEST_WAIT.min(core.lease_times(kind).0 / PARTS_OF_LEASE)
}

/// Waits before the next fetch of a slot that gave an item back, so that the slot does not fetch the same item again at once.
pub(super) async fn pause_after_give_back(core: &Core, kind: Kind) {
    tokio::select! {
        biased;
        () = core.stopping.cancelled() => return,
        () = core.permits(kind).wait_until_free() => {}
    }
    let opened = core.gate.wait_for(|unstarted| unstarted.closed == 0);
    // Another item may run for long.
    let _ = tokio::time::timeout(LONGEST_PAUSE, opened).await;
}

#[cfg(test)]
mod tests;
