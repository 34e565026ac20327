//! An estimate of the store's time: the time that the store reported with the last fetch, and the time since.

use crate::observability::Stopwatch;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The store's time, if the store reports it.
#[derive(Default)]
pub(crate) struct StoreTime(Mutex<Option<(u64, Stopwatch)>>);

impl StoreTime {
    fn lock(&self) -> MutexGuard<'_, Option<(u64, Stopwatch)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The store reported this time just now. `None`: the store reports no time.
    pub(super) fn reported(&self, now_ms: Option<u64>) {
        if let Some(now_ms) = now_ms {
            *self.lock() = Some((now_ms, Stopwatch::start()));
        }
    }

    /// The estimate; `None` before the first report.
    pub(super) fn now_ms(&self) -> Option<u64> {
        let (reported_ms, since) = (*self.lock())?;
        Some(reported_ms.saturating_add(since.whole_ms()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn the_time_goes_on_since_the_last_report() {
        let time = StoreTime::default();
        time.reported(None);
        assert_eq!(time.now_ms(), None);
        time.reported(Some(500));
        tokio::time::advance(Duration::from_micros(2_900)).await;
        assert_eq!(
            time.now_ms(),
            Some(502),
            "rounded down: the store must not take the turn for one of the future"
        );
        time.reported(Some(400));
        assert_eq!(time.now_ms(), Some(400), "the clock of the store was set back");
    }
}
