//! Broken deletion by age.

use super::{Defect, Rules};
use crate::rules::{Contract, RetentionRules};
use crate::state::State;

impl RetentionRules for Rules {
    fn is_after(&self, created_nth: u64, after: Option<u64>) -> bool {
        let after = match self.defect {
            Some(Defect::OldestPageSkipsOne) => after.map(|after| after + 1),
            _ => after,
        };
        Contract.is_after(created_nth, after)
    }

    fn is_old_root(&self, state: &State, id: &str, ended_before: u64) -> bool {
        match self.defect {
            Some(Defect::DeleteEndedIgnoresAge) => state.is_old_root(id, u64::MAX),
            Some(Defect::DeleteEndedTakesChildren) => state.ended_before(id, ended_before),
            _ => Contract.is_old_root(state, id, ended_before),
        }
    }

    fn is_in_use(&self, state: &State, id: &str) -> bool {
        let has_activity = state.activities.rows.values().any(|activity| activity.instance == id);
        let is_held = state.holds.contains_key(id);
        match self.defect {
            Some(Defect::DeleteEndedTakesRunningChildren) => {
                is_held || state.has_undelivered(id) || has_activity
            }
            Some(Defect::DeleteEndedTakesHeld) => {
                state.is_running(id) || state.has_undelivered(id) || has_activity
            }
            Some(Defect::DeleteEndedDropsMessages) => state.is_running(id) || is_held || has_activity,
            Some(Defect::DeleteEndedDropsActivities) => {
                state.is_running(id) || is_held || state.has_undelivered(id)
            }
            Some(Defect::DeleteEndedWaitsForTimers) => {
                Contract.is_in_use(state, id) || !state.messages.of_instance(id, |_| true).is_empty()
            }
            _ => Contract.is_in_use(state, id),
        }
    }

    fn examined(&self, limit: usize) -> usize {
        match self.defect {
            Some(Defect::PruneByAgeUnbounded) => usize::MAX,
            _ => Contract.examined(limit),
        }
    }

    fn is_old(&self, at: u64, before: u64) -> bool {
        self.defect == Some(Defect::PruneByAgeTakesYoung) || Contract.is_old(at, before)
    }

    fn keeps_newest_record(&self) -> bool {
        self.defect != Some(Defect::PruneTakesNewestRecord)
    }
}
