//! The activities that run in this process. A commit of this process that cancels an activity finds the activity here and cancels
//! it before its next lease renewal.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio_util::sync::CancellationToken;

/// The key of an activity: instance, execution id, id of the scheduling event.
type ActivityKey = (Arc<str>, u64, u64);

/// The number of a delivery and its cancellation token. After a lost lease two deliveries of one activity may run at the same time.
type Delivery = (u64, CancellationToken);

#[derive(Default)]
pub(crate) struct RunningActivities {
    activities: Mutex<BTreeMap<ActivityKey, Delivery>>,
    deliveries: AtomicU64,
}

impl RunningActivities {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<ActivityKey, Delivery>> {
        self.activities.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lists an activity until the guard is dropped.
    pub(crate) fn enter(
        &self,
        instance: Arc<str>,
        execution: u64,
        id: u64,
        cancel: CancellationToken,
    ) -> Entered<'_> {
        let key = (instance, execution, id);
        let delivery = self.deliveries.fetch_add(1, Relaxed);
        self.lock().insert(key.clone(), (delivery, cancel));
        Entered { running: self, key, delivery }
    }

    /// Cancels an activity if it runs in this process.
    pub(crate) fn cancel(&self, instance: &Arc<str>, execution: u64, id: u64) {
        let token = self.lock().get(&(Arc::clone(instance), execution, id)).cloned();
        if let Some((_, token)) = token {
            token.cancel();
        }
    }
}

/// A guard that removes a delivery from the list when dropped.
pub(crate) struct Entered<'a> {
    running: &'a RunningActivities,
    key: ActivityKey,
    delivery: u64,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        let mut activities = self.running.lock();
        if activities.get(&self.key).is_some_and(|(delivery, _)| *delivery == self.delivery) {
            activities.remove(&self.key);
        }
    }
}
