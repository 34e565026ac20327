//! Completing an activity together with the turn that its outcome leads to.

use crate::TurnCommit;

/// A turn that was run before the store knew of the message that it is about: the outcome of an activity. The caller holds
/// the execution in memory, and the store takes the turn only if the instance still stands where the caller thinks it does.
#[derive(Debug, Clone)]
pub struct TurnAhead {
    /// The last event of the execution when the turn was run.
    pub after_event_id: u64,
    /// What the turn writes; the outcome is in its history.
    pub commit: TurnCommit,
}

/// What [`Provider::complete_with_turn`](crate::Provider::complete_with_turn) did with an outcome that it took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completion {
    /// The turn is committed, at this time of the store.
    WithTurn {
        /// When.
        at_ms: u64,
    },
    /// The outcome waits for a turn, as after [`Provider::ack_work_item`](crate::Provider::ack_work_item). Nothing of the
    /// turn was written.
    Queued,
}
