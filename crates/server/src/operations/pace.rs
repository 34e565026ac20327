//! The rate at which operations change instances.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// Gives each caller a time of its own, one after the other.
pub(super) struct Pace {
    gap: Duration,
    next: Mutex<Option<Instant>>,
}

impl Pace {
    pub(super) fn new(per_second: u32) -> Self {
        Self { gap: Duration::from_secs(1) / per_second.max(1), next: Mutex::default() }
    }

    /// Waits for the next free time.
    pub(super) async fn turn(&self) {
        let at = {
            // Only whole values are stored.
            let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
            let now = Instant::now();
            let at = next.map_or(now, |next| next.max(now));
            *next = Some(at + self.gap);
            at
        };
        sleep_until(at).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn two_callers_together_keep_the_rate() {
        let pace = Pace::new(200);
        let began = Instant::now();
        let twenty = async || {
            for _ in 0..20 {
                pace.turn().await;
            }
        };
        futures::join!(twenty(), twenty());
        assert_eq!(began.elapsed(), Duration::from_millis(39 * 5));
        tokio::time::advance(Duration::from_secs(10)).await;
        let later = Instant::now();
        pace.turn().await;
        pace.turn().await;
        assert_eq!(later.elapsed(), Duration::from_millis(5), "time without callers is not saved up");
    }
}
