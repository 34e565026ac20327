//! Fetches that wait.

use tokio::sync::Notify;

pub(crate) trait ParkRules {
    /// A change of the store wakes every parked fetch.
    fn wake(&self, changed: &Notify) {
        changed.notify_waiters();
    }

    /// A fetch that finds nothing waits until the next row becomes due, at most until its patience ends. `None` ends the
    /// fetch.
    fn parked_until(&self, now: u64, next_due: Option<u64>, give_up_at: u64) -> Option<u64> {
        let until = next_due.unwrap_or(u64::MAX).min(give_up_at);
        (now < give_up_at).then_some(until)
    }

    /// A fetch answers in the step that takes the lease, so a dropped fetch holds no lease.
    async fn answer<T: Send>(&self, fetched: T) -> T {
        fetched
    }
}
