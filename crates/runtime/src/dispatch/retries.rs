//! The attempt numbers of activities that a retry policy scheduled again.
//!
//! The contract's `WorkItem` does not carry the attempt number of a retry policy. The turn that schedules an attempt knows the
//! number, so the runtime that commits the turn keeps it for its own workers. Workers of another process do not have it. The
//! counter `outlast_activity_retries_total` is counted by turns and does not depend on the process that runs the activity.

use outlast_engine::{Report, Retry};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The key of an activity: instance, execution id, id of the scheduling event.
type ActivityKey = (Arc<str>, u64, u64);

/// Attempt number by activity. The entry of an activity that another process runs stays until `MAX_ACTIVITIES` is reached.
#[derive(Default)]
pub(crate) struct Retries(Mutex<HashMap<ActivityKey, u32>>);

impl Retries {
    const MAX_ACTIVITIES: usize = 10_000;

    /// Stores the attempt numbers of a turn. Called before the commit, because a worker may fetch the activities during it.
    pub(super) fn announce(&self, instance: &Arc<str>, report: &Report) {
        if report.retries.is_empty() {
            return;
        }
        let mut attempts = self.locked();
        if attempts.len() >= Self::MAX_ACTIVITIES {
            attempts.clear();
        }
        for Retry { activity_id, attempt, .. } in &report.retries {
            attempts.insert((Arc::clone(instance), report.execution_id, *activity_id), *attempt);
        }
    }

    /// The number of attempts of the retry policy before this activity; 0 if this runtime did not schedule it.
    pub(super) fn attempts_before(&self, instance: &Arc<str>, execution_id: u64, activity_id: u64) -> u32 {
        let attempts = self.locked();
        if attempts.is_empty() {
            return 0;
        }
        let attempt = attempts.get(&(Arc::clone(instance), execution_id, activity_id));
        attempt.map_or(0, |attempt| attempt.saturating_sub(1))
    }

    /// Removes the entry of an activity that has ended.
    pub(super) fn remove(&self, instance: &Arc<str>, execution_id: u64, activity_id: u64) {
        let mut attempts = self.locked();
        if !attempts.is_empty() {
            attempts.remove(&(Arc::clone(instance), execution_id, activity_id));
        }
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<ActivityKey, u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
