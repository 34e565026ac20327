//! Pauses of fetches, so that other nodes fetch items whose handler is not registered on this node.
//!
//! A node that lacks the handler of a turn or activity gives the item back with a delay (`options/unregistered_backoff.rs` computes
//! it). When the delay ends, the store wakes the fetches of this process within a millisecond, and other processes poll later.
//! Without a pause this node would fetch the item again until the item is poisoned. So all slots of the queue stop fetching for a
//! short time when the delay ends.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// The length of a pause: a few times the interval at which a store notices commits of other processes.
const PAUSE: Duration = Duration::from_millis(150);
/// How long before the end of the delay a pause starts: a fetch that is parked when the delay ends would receive the item.
const LEAD: Duration = Duration::from_millis(10);
/// The least time between the starts of two pauses, so that many unregistered items do not stop a node from fetching others.
const MIN_SPACING: Duration = Duration::from_secs(1);

/// The planned pauses of one queue.
#[derive(Default)]
pub(crate) struct UnregisteredPause {
    /// The starts of planned pauses, and of pauses that started less than `MIN_SPACING` ago.
    starts: Mutex<BTreeSet<Instant>>,
    changed: Notify,
}

impl UnregisteredPause {
    fn lock(&self) -> MutexGuard<'_, BTreeSet<Instant>> {
        self.starts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Plans a pause for the end of `delay`, unless another pause starts within `MIN_SPACING` of it.
    pub(crate) fn plan_pause(&self, delay: Duration) {
        let now = Instant::now();
        let Some(start) = now.checked_add(delay.saturating_sub(LEAD)) else { return };
        let mut starts = self.lock();
        starts.retain(|start| *start + MIN_SPACING > now);
        let earliest = start.checked_sub(MIN_SPACING).unwrap_or(now);
        let has_neighbour = starts.range(earliest..start + MIN_SPACING).next().is_some();
        if !has_neighbour {
            starts.insert(start);
            drop(starts);
            self.changed.notify_waiters();
        }
    }

    /// The time that is left of the pause in progress; `None` outside of a pause.
    pub(crate) fn remaining(&self) -> Option<Duration> {
        let now = Instant::now();
        let starts = self.lock();
        let start = starts.range(..=now).next_back()?;
        (*start + PAUSE).checked_duration_since(now).filter(|left| !left.is_zero())
    }

    /// Resolves when the next pause starts.
    pub(crate) async fn next_pause(&self) {
        loop {
            let changed = self.changed.notified();
            let now = Instant::now();
            let next = self.lock().range(now..).next().copied();
            match next {
                None => changed.await,
                Some(start) => tokio::select! {
                    biased;
                    () = tokio::time::sleep_until(start) => return,
                    () = changed => {}
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_pause_starts_at_the_end_of_the_delay_and_pauses_are_spaced() {
        let backoff = UnregisteredPause::default();
        assert_eq!(backoff.remaining(), None);
        let since = Instant::now();
        backoff.plan_pause(Duration::from_secs(2));
        backoff.plan_pause(Duration::from_millis(2_500));
        assert_eq!(backoff.remaining(), None, "the pause has not started");
        backoff.next_pause().await;
        assert_eq!(since.elapsed(), Duration::from_secs(2) - LEAD);
        assert_eq!(backoff.remaining(), Some(PAUSE));
        tokio::time::advance(PAUSE).await;
        assert_eq!(backoff.remaining(), None);
        let next_pause = tokio::time::timeout(Duration::from_secs(5), backoff.next_pause());
        assert!(next_pause.await.is_err(), "the second pause would start within MIN_SPACING of the first");
        backoff.plan_pause(Duration::from_secs(1));
        backoff.next_pause().await;
        assert_eq!(backoff.remaining(), Some(PAUSE));
    }
}
