//! Stepping aside for nodes that know more.
//!
//! A node that gives work back because it does not know the handler learns first when that work is visible again: its own
//! store tells it to the millisecond, while other processes look from time to time. Without courtesy it would take the
//! same work again until that counts as poison. So for a moment after the delay all slots of its queue stay away.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// How long others have: a few times as long as a store takes to notice what another process did.
const COURTESY: Duration = Duration::from_millis(150);
/// How much earlier to leave than the work is visible: a fetch that is parked then would get it.
const AHEAD: Duration = Duration::from_millis(10);
/// Between two such moments, so that much unknown work does not keep a node from what it does know.
const APART: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(crate) struct Aside {
    /// When to step aside, in the future or just now.
    moments: Mutex<BTreeSet<Instant>>,
    changed: Notify,
}

impl Aside {
    fn lock(&self) -> MutexGuard<'_, BTreeSet<Instant>> {
        self.moments.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Plans a moment for when this delay is over, unless one is close to it already.
    pub(crate) fn after(&self, delay: Duration) {
        let now = Instant::now();
        let Some(at) = now.checked_add(delay.saturating_sub(AHEAD)) else { return };
        let mut moments = self.lock();
        moments.retain(|moment| *moment + APART > now);
        let near = moments.range(at.checked_sub(APART).unwrap_or(now)..at + APART).next().is_some();
        if !near {
            moments.insert(at);
            drop(moments);
            self.changed.notify_waiters();
        }
    }

    /// How much longer to stay away.
    pub(crate) fn remaining(&self) -> Option<Duration> {
        let now = Instant::now();
        let moments = self.lock();
        let moment = moments.range(..=now).next_back()?;
        (*moment + COURTESY).checked_duration_since(now).filter(|left| !left.is_zero())
    }

    /// Resolves when it is time to step aside.
    pub(crate) async fn begins(&self) {
        loop {
            let changed = self.changed.notified();
            let now = Instant::now();
            let next = self.lock().range(now..).next().copied();
            match next {
                None => changed.await,
                Some(at) => tokio::select! {
                    biased;
                    () = tokio::time::sleep_until(at) => return,
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
    async fn a_moment_after_the_delay_and_not_too_often() {
        let aside = Aside::default();
        assert_eq!(aside.remaining(), None);
        let since = Instant::now();
        aside.after(Duration::from_secs(2));
        aside.after(Duration::from_millis(2_500));
        assert_eq!(aside.remaining(), None, "not yet");
        aside.begins().await;
        assert_eq!(since.elapsed(), Duration::from_secs(2) - AHEAD);
        assert_eq!(aside.remaining(), Some(COURTESY));
        tokio::time::advance(COURTESY).await;
        assert_eq!(aside.remaining(), None);
        let begins = tokio::time::timeout(Duration::from_secs(5), aside.begins());
        assert!(begins.await.is_err(), "the second was too close to the first");
        aside.after(Duration::from_secs(1));
        aside.begins().await;
        assert_eq!(aside.remaining(), Some(COURTESY));
    }
}
