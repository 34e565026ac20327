//! Activities that run in this process, so that a commit which cancels one reaches it at once.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio_util::sync::CancellationToken;

/// Instance, execution, scheduling event.
type Key = (Arc<str>, u64, u64);

/// Which delivery it is, and how to cancel it: one activity may run twice for a while, when its lease was lost.
type Delivery = (u64, CancellationToken);

#[derive(Default)]
pub(crate) struct Running {
    activities: Mutex<BTreeMap<Key, Delivery>>,
    deliveries: AtomicU64,
}

impl Running {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, Delivery>> {
        self.activities.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes an activity until the guard is dropped.
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

    /// Cancels an activity, if it runs here.
    pub(crate) fn cancel(&self, instance: &Arc<str>, execution: u64, id: u64) {
        let token = self.lock().get(&(Arc::clone(instance), execution, id)).cloned();
        if let Some((_, token)) = token {
            token.cancel();
        }
    }
}

pub(crate) struct Entered<'a> {
    running: &'a Running,
    key: Key,
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
