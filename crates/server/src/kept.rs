//! Values that are read from the store at most once in a while.

use crate::problem::Problem;
use outlast::providers::{Clock, SystemClock};
use tokio::sync::Mutex;

/// A value and the time of its read.
pub(crate) struct Kept<T>(Mutex<Option<(u64, T)>>);

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Clone> Kept<T> {
    /// The time of the read and the value, which is read again if it is as old as `age_ms`. Concurrent requests share one read.
    pub(crate) async fn get(
        &self,
        age_ms: u64,
        read: impl Future<Output = Result<T, Problem>>,
    ) -> Result<(u64, T), Problem> {
        let mut kept = self.0.lock().await;
        let now_ms = SystemClock.now_ms();
        if let Some(found) = kept.as_ref().filter(|(at_ms, _)| now_ms.abs_diff(*at_ms) < age_ms) {
            return Ok(found.clone());
        }
        let found = (now_ms, read.await?);
        *kept = Some(found.clone());
        Ok(found)
    }
}
