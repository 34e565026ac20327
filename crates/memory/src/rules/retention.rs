//! Deletion by age.

use crate::state::State;

pub(crate) trait RetentionRules {
    /// A page of the oldest instances begins after the position at which the previous page ended.
    fn is_after(&self, created_nth: u64, after: Option<u64>) -> bool {
        after.is_none_or(|after| created_nth > after)
    }

    /// Only a root that has ended before the time is deleted.
    fn is_old_root(&self, state: &State, id: &str, ended_before: u64) -> bool {
        state.is_old_root(id, ended_before)
    }

    /// A tree stays while one of its instances runs, is held, or has a message or an activity. A timer of an ended instance changes
    /// nothing when it fires, so it keeps no tree.
    fn is_in_use(&self, state: &State, id: &str) -> bool {
        state.is_running(id)
            || state.holds.contains_key(id)
            || state.has_undelivered(id)
            || state.activities.rows.values().any(|activity| activity.instance == id)
    }

    /// A call examines a bounded number of the oldest rows.
    fn examined(&self, limit: usize) -> usize {
        limit
    }

    /// Rows from before the time are old.
    fn is_old(&self, at: u64, before: u64) -> bool {
        at < before
    }

    /// The newest record of the audit stays.
    fn keeps_newest_record(&self) -> bool {
        true
    }
}
