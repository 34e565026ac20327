//! Completing an activity together with the turn that its outcome leads to.

use outlast_model::TurnCommit;

/// A turn that was run before the store knew of the message that it is about: the outcome of an activity. The caller holds
/// the execution in memory, and the store takes the turn only if the instance still stands where the caller thinks it does.
#[derive(Debug, Clone)]
pub struct TurnAhead {
    /// The last event of the execution when the turn was run.
    pub after_event_id: u64,
    /// The time of the turn, as its caller reckons the store's time: from this its timers are counted. See
    /// [`TurnAhead::is_of_now`].
    pub ran_at_ms: u64,
    /// What the turn writes; the outcome is in its history.
    pub commit: TurnCommit,
}

impl TurnAhead {
    /// Whether the turn was run at about this time of the store, and not after it: clocks are set, and a turn that was run
    /// by another clock would have timers that fire too early or too late.
    pub fn is_of_now(&self, now_ms: u64) -> bool {
        const LONGEST_MS: u64 = 60_000;
        now_ms.checked_sub(self.ran_at_ms).is_some_and(|age_ms| age_ms <= LONGEST_MS)
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_of_another_time_is_not_of_now() {
        let turn = TurnAhead { after_event_id: 1, ran_at_ms: 100_000, commit: TurnCommit::default() };
        for (now_ms, is_of_now) in [(99_999, false), (100_000, true), (160_000, true), (160_001, false)] {
            assert_eq!(turn.is_of_now(now_ms), is_of_now, "{now_ms}");
        }
    }
}
