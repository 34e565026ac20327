//! Activities that a retry policy has scheduled once more.
//!
//! A work item does not say which attempt of its policy it is, and the shape of work items is fixed. The turn that schedules an
//! attempt knows its number, so the runtime that commits the turn remembers it for its own workers. Workers of another process do
//! not know it; the counter `outlast_activity_retries_total`, which turns count, does not depend on who runs the activity.

use outlast_engine::{Report, Retry};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An activity: instance, execution, scheduling event.
type Activity = (Arc<str>, u64, u64);

/// Attempts by activity. Those that another process runs stay until there are too many.
#[derive(Default)]
pub(crate) struct Retries(Mutex<HashMap<Activity, u32>>);

impl Retries {
    const MOST: usize = 10_000;

    /// Remembers what a turn schedules once more, before the store hands it out.
    pub(super) fn announce(&self, instance: &Arc<str>, report: &Report) {
        if report.retries.is_empty() {
            return;
        }
        let mut attempts = self.locked();
        if attempts.len() >= Self::MOST {
            attempts.clear();
        }
        for Retry { activity_id, attempt, .. } in &report.retries {
            attempts.insert((Arc::clone(instance), report.execution_id, *activity_id), *attempt);
        }
    }

    /// How many attempts of its policy came before this activity, as far as this runtime knows.
    pub(super) fn before(&self, instance: &Arc<str>, execution_id: u64, activity_id: u64) -> u32 {
        let attempts = self.locked();
        if attempts.is_empty() {
            return 0;
        }
        let attempt = attempts.get(&(Arc::clone(instance), execution_id, activity_id));
        attempt.map_or(0, |attempt| attempt.saturating_sub(1))
    }

    /// The activity is over.
    pub(super) fn forget(&self, instance: &Arc<str>, execution_id: u64, activity_id: u64) {
        let mut attempts = self.locked();
        if !attempts.is_empty() {
            attempts.remove(&(Arc::clone(instance), execution_id, activity_id));
        }
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<Activity, u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
