//! Backoff for instances whose run-ahead turns the store rejects.
//!
//! The store rejects a run-ahead turn if another message of the instance waits. The runtime then discards the warm execution, so
//! the next turn replays. After a rejection the runtime queues a number of activity outcomes of this instance without a run-ahead,
//! and doubles the number with every further rejection.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The instances in backoff. An instance that is not listed may run ahead.
#[derive(Default)]
pub(crate) struct RunAheadBackoff(Mutex<HashMap<Arc<str>, Backoff>>);

struct Backoff {
    /// The number of outcomes that are queued without a run-ahead after the last rejection.
    length: u32,
    /// The number of outcomes that are still to be queued without a run-ahead.
    left: u32,
}

impl RunAheadBackoff {
    const FIRST_LENGTH: u32 = 8;
    const LONGEST_LENGTH: u32 = 1_024;
    /// When this many instances are listed, all entries are removed: each of these instances then costs one more replay.
    const MAX_INSTANCES: usize = 10_000;

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, Backoff>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the next turn of the instance may run ahead. Counts the outcome against the backoff if it may not.
    pub(super) fn may_run_ahead(&self, instance: &Arc<str>) -> bool {
        let mut instances = self.lock();
        let Some(backoff) = instances.get_mut(instance) else { return true };
        let Some(left) = backoff.left.checked_sub(1) else { return true };
        backoff.left = left;
        false
    }

    /// Whether the next outcome of the instance is queued without a run-ahead.
    pub(super) fn is_in_backoff(&self, instance: &Arc<str>) -> bool {
        self.lock().get(instance).is_some_and(|backoff| backoff.left > 0)
    }

    /// The store rejected a run-ahead turn of the instance.
    pub(super) fn on_rejected(&self, instance: &Arc<str>) {
        let mut instances = self.lock();
        if instances.len() >= Self::MAX_INSTANCES {
            instances.clear();
        }
        let backoff = instances.entry(Arc::clone(instance)).or_insert(Backoff { length: 0, left: 0 });
        backoff.length = (backoff.length * 2).clamp(Self::FIRST_LENGTH, Self::LONGEST_LENGTH);
        backoff.left = backoff.length;
    }

    /// The store committed a run-ahead turn of the instance: its backoff starts from the beginning next time.
    pub(super) fn on_committed(&self, instance: &Arc<str>) {
        let mut instances = self.lock();
        if !instances.is_empty() {
            instances.remove(instance);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rejection_doubles_the_backoff_up_to_its_limit_and_a_commit_resets_it() {
        let (backoff, instance) = (RunAheadBackoff::default(), Arc::from("a"));
        assert!(backoff.may_run_ahead(&instance));
        let mut lengths = Vec::new();
        for _ in 0..9 {
            backoff.on_rejected(&instance);
            let mut length = 0;
            while !backoff.may_run_ahead(&instance) {
                length += 1;
            }
            lengths.push(length);
        }
        assert_eq!(lengths, [8, 16, 32, 64, 128, 256, 512, 1_024, 1_024]);
        assert!(backoff.may_run_ahead(&Arc::from("b")), "another instance is not in backoff");
        backoff.on_committed(&instance);
        backoff.on_rejected(&instance);
        assert_eq!(backoff.lock()[&instance].left, 8, "the commit reset the backoff");
    }

    #[test]
    fn the_number_of_instances_in_backoff_is_bounded() {
        let backoff = RunAheadBackoff::default();
        for n in 0..=RunAheadBackoff::MAX_INSTANCES {
            backoff.on_rejected(&Arc::from(n.to_string()));
        }
        assert_eq!(backoff.lock().len(), 1);
    }
}
