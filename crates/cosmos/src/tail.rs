//! The end of an instance's history, as this process wrote it: the document of the instance and the version of its gate. A
//! run-ahead commit that follows needs no read. Every other write changes one of the two versions, and the commit is refused.

use crate::document::{Address, Instance, Item, Versioned};
use crate::ids::Uid;
use crate::load::{SeenGate, needs_recovery};
use crate::message::Waiting;
use crate::store::{Store, locked};
use outlast_model::ExecutionStatus;
use std::collections::HashMap;
use std::sync::Mutex;

/// Messages of an instance that become visible within this time are read with it. A tail that is older is not used: a timer may be
/// due that was not read.
pub(crate) const TAIL_MS: u64 = 60_000;

/// The most instances that are remembered.
const MOST: usize = 4_096;

/// The gate and the later messages that a fetch saw beside the messages that it leased.
#[derive(Clone, Debug)]
pub(crate) struct Ground {
    gate: SeenGate,
    /// No message becomes visible before this time, unless the gate changes.
    until: u64,
}

impl Ground {
    /// `later` are the messages that are not visible yet, of all that become visible within [`TAIL_MS`].
    pub(crate) fn new(gate: SeenGate, later: &[Waiting], now: u64) -> Self {
        let first = later.iter().map(|message| message.visible_at).min();
        Self { gate, until: first.unwrap_or(u64::MAX).min(now.saturating_add(TAIL_MS)) }
    }
}

/// An instance without a lease and without visible messages.
#[derive(Clone, Debug)]
pub(crate) struct Tail {
    pub(crate) instance: Versioned<Instance>,
    pub(crate) ground: Ground,
}

impl Tail {
    pub(crate) fn gate(&self) -> &SeenGate {
        &self.ground.gate
    }

    pub(crate) fn holds(&self, now: u64) -> bool {
        now < self.ground.until && self.ground.gate != SeenGate::Unknown
    }
}

#[derive(Default)]
pub(crate) struct Tails {
    /// By the secrets of leases.
    leased: Mutex<HashMap<Uid, Ground>>,
    /// By the ids of instances.
    ended: Mutex<HashMap<String, Tail>>,
}

impl Tails {
    /// Notes that a fetch leased all visible messages of an instance.
    pub(crate) fn leased(&self, secret: Uid, ground: Ground) {
        let mut leased = locked(&self.leased);
        if leased.len() >= MOST {
            // Leases that were lost leave entries behind.
            leased.clear();
        }
        leased.insert(secret, ground);
    }

    /// Ends a lease; returns its ground.
    pub(crate) fn released(&self, secret: Uid) -> Option<Ground> {
        locked(&self.leased).remove(&secret)
    }

    pub(crate) fn take(&self, instance: &str) -> Option<Tail> {
        locked(&self.ended).remove(instance)
    }

    /// Forgets the tail, because a message arrived for the instance or its documents changed.
    pub(crate) fn forget(&self, instance: &str) {
        locked(&self.ended).remove(instance);
    }
}

impl Store {
    /// Notes that a turn was committed. `after` is the instance as the commit wrote it; `sent` are messages of the turn to its own
    /// instance.
    pub(crate) fn follow(
        &self,
        address: &Address,
        ground: Option<Ground>,
        after: Option<Versioned<Instance>>,
        sent: &[Item],
    ) {
        self.tails.forget(&address.id);
        let (Some(mut ground), Some(instance)) = (ground, after) else { return };
        let document = &instance.document;
        let is_running = document.st.as_deref() == Some(ExecutionStatus::Running.as_str());
        if !is_running || !is_free(document) {
            return;
        }
        let first = sent.iter().map(|message| message.visible_at).min();
        ground.until = ground.until.min(first.unwrap_or(u64::MAX));
        let now = self.now();
        let tail = Tail { instance, ground };
        if !tail.holds(now) {
            return;
        }
        let mut ended = locked(&self.tails.ended);
        if ended.len() >= MOST {
            ended.retain(|_, tail| tail.holds(now));
        }
        if ended.len() < MOST {
            ended.insert(address.id.clone(), tail);
        }
    }
}

/// Whether the instance has no lease, delete or unfinished turn, so that a commit is possible.
pub(crate) fn is_free(instance: &Instance) -> bool {
    instance.lock.is_none()
        && instance.rest.is_none()
        && instance.hold.is_none()
        && instance.deleted_by.is_none()
        && !needs_recovery(instance)
}
