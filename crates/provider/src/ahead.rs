//! Completions of activities and starts of instances that carry the turn that follows.

use outlast_model::{TurnCommit, WorkItem};

/// The outcome of an activity, with the token of the activity's lease.
#[derive(Debug, Clone)]
pub struct LeasedOutcome {
    /// The token of the lease.
    pub lock_token: String,
    /// The outcome: `ActivityCompleted` or `ActivityFailed`.
    pub completion: WorkItem,
}

impl LeasedOutcome {
    /// The instance of the outcomes; `None` if there are none, or if they are of different instances.
    pub fn instance_of(outcomes: &[Self]) -> Option<&str> {
        let mut instances = outcomes.iter().map(|outcome| outcome.completion.target_instance());
        let first = instances.next()?;
        instances.all(|instance| instance == first).then_some(first)
    }
}

/// A turn that a runtime ran before the outcome of its activity, or the start of its instance, was stored. The runtime holds the execution in memory, and the
/// store commits the turn only if the instance has not changed since.
#[derive(Debug, Clone)]
pub struct TurnAhead {
    /// The last event of the execution when the turn was run; 0 for the first turn of an instance.
    pub after_event_id: u64,
    /// The time of the turn, in the caller's estimate of the store's time. The timers of the turn count from it. See
    /// [`TurnAhead::is_of_now`].
    pub ran_at_ms: u64,
    /// The rows that the turn writes; the outcome is in its history.
    pub commit: TurnCommit,
}

impl TurnAhead {
    /// Whether the turn ran shortly before this time of the store. A clock may have been set since, and the timers of a turn
    /// that ran by another clock would fire too early or too late.
    pub fn is_of_now(&self, now_ms: u64) -> bool {
        const LONGEST_MS: u64 = 60_000;
        now_ms.checked_sub(self.ran_at_ms).is_some_and(|age_ms| age_ms <= LONGEST_MS)
    }
}

/// The result of [`Provider::complete_with_turn`](crate::Provider::complete_with_turn).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completion {
    /// The turn is committed, at this time of the store.
    WithTurn {
        /// The time of the commit.
        at_ms: u64,
    },
    /// The outcome waits for a turn, as after [`Provider::ack_work_item`](crate::Provider::ack_work_item). Nothing of the turn was
    /// written.
    Queued,
}

/// The result of [`Provider::start_with_turn`](crate::Provider::start_with_turn).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EagerStart {
    /// The instance is started and its first turn is committed, at this time of the store.
    WithTurn {
        /// The time of the commit.
        at_ms: u64,
    },
    /// The store knows something of the instance, or it does not start instances with their first turn. Nothing was written.
    Unchanged,
}

/// The result of [`Provider::complete_all_with_turn`](crate::Provider::complete_all_with_turn).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FusedCompletion {
    /// The activities are done and the turn is committed, at this time of the store.
    WithTurn {
        /// The time of the commit.
        at_ms: u64,
    },
    /// A lease is lost, or the instance has changed since the turn ran. Nothing was written.
    Unchanged,
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
