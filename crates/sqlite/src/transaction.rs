//! The writer's open transaction, as calls and fetches see it.

use crate::db::Db;
use outlast_model::defect::{self, Defect};
use outlast_provider::Entropy;
use outlast_provider_kit::queue::PerQueue;
use outlast_provider_kit::token::Owner;

/// The open transaction and its time.
pub(crate) struct Transaction<'a> {
    pub(crate) db: &'a Db,
    pub(crate) now: u64,
    pub(crate) entropy: &'a dyn Entropy,
    /// The owner of the leases that this transaction takes.
    pub(crate) owner: Option<Owner>,
    pub(crate) wakeups: &'a mut Wakeups,
}

/// When the parked fetches must be polled because of this transaction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wakeups {
    /// The queues in which an item may have become available: their parked fetches are polled before the commit.
    pub(crate) poll: PerQueue<bool>,
    /// The earliest time at which an item becomes available by itself; `u64::MAX` if there is none.
    pub(crate) at: u64,
}

impl Wakeups {
    /// Polls these queues in this transaction.
    pub(crate) fn of(poll: PerQueue<bool>) -> Self {
        Self { poll, at: u64::MAX }
    }

    /// A message was stored.
    pub(crate) fn on_message(&mut self, visible_at: u64, now: u64) {
        match visible_at <= now {
            true => self.poll.turns = true,
            false => self.schedule_poll(visible_at),
        }
    }

    /// Polls the parked fetches at this time, or earlier.
    pub(crate) fn schedule_poll(&mut self, at: u64) {
        if !defect::is_on(Defect::DelayWakesNoFetch) {
            self.at = self.at.min(at);
        }
    }
}
