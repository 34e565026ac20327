//! Values that are read from the store at most once in a while.

use crate::problem::Problem;
use outlast::providers::{Clock, SystemClock};
use std::sync::PoisonError;
use std::time::Duration;
use tokio::sync::{Mutex, watch};
use tokio::task::JoinSet;

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

/// A value whose read may take long. It is read in a task of its own, so that a request waits only as long as it likes.
pub(crate) struct Refreshed<T> {
    state: watch::Sender<State<T>>,
    /// Dropped with the server, which ends the read.
    task: std::sync::Mutex<JoinSet<()>>,
}

struct State<T> {
    last: Option<Read<T>>,
    is_reading: bool,
}

/// A value, the time of its read, and the duration of the read.
#[derive(Debug, Clone)]
pub(crate) struct Read<T> {
    pub(crate) at_ms: u64,
    took_ms: u64,
    pub(crate) value: Result<T, Problem>,
}

impl<T> Read<T> {
    /// A read that takes long is repeated seldom: it costs the store at most a twentieth of a reader.
    pub(crate) fn is_fresh(&self, age_ms: u64) -> bool {
        let age_ms = if self.value.is_ok() { age_ms.max(self.took_ms.saturating_mul(20)) } else { 0 };
        SystemClock.now_ms().abs_diff(self.at_ms) < age_ms
    }
}

/// Ends the state of reading, also if the read panics.
struct Reading<T>(watch::Sender<State<T>>);

impl<T> Reading<T> {
    fn end(self, read: Read<T>) {
        self.0.send_modify(|state| state.last = Some(read));
    }
}

impl<T> Drop for Reading<T> {
    fn drop(&mut self) {
        self.0.send_modify(|state| state.is_reading = false);
    }
}

impl<T> Default for Refreshed<T> {
    fn default() -> Self {
        Self {
            state: watch::Sender::new(State { last: None, is_reading: false }),
            task: std::sync::Mutex::default(),
        }
    }
}

impl<T: Clone + Send + Sync + 'static> Refreshed<T> {
    /// The last value. If it is as old as `age_ms`, a read begins unless one runs, and its value is waited for up to `patience`.
    pub(crate) async fn get(
        &self,
        age_ms: u64,
        patience: Duration,
        read: impl Future<Output = Result<T, Problem>> + Send + 'static,
    ) -> Option<Read<T>> {
        let mut state = self.state.subscribe();
        let is_fresh = state.borrow().last.as_ref().is_some_and(|read| read.is_fresh(age_ms));
        if !is_fresh {
            self.begin(read);
            // The sender lives as long as this value.
            let _ = tokio::time::timeout(patience, state.wait_for(|state| !state.is_reading)).await;
        }
        state.borrow().last.clone()
    }

    fn begin(&self, read: impl Future<Output = Result<T, Problem>> + Send + 'static) {
        let begins = self.state.send_if_modified(|state| !std::mem::replace(&mut state.is_reading, true));
        if !begins {
            return;
        }
        let reading = Reading(self.state.clone());
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        while task.try_join_next().is_some() {}
        task.spawn(async move {
            let began_ms = SystemClock.now_ms();
            let value = read.await;
            let at_ms = SystemClock.now_ms();
            reading.end(Read { at_ms, took_ms: at_ms.saturating_sub(began_ms), value });
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::oneshot;

    #[tokio::test]
    async fn slow_read_is_shared_and_blocks_no_request() {
        let refreshed = Refreshed::<u32>::default();
        let (finish, finished) = oneshot::channel::<u32>();
        let slow = async { Ok(finished.await.unwrap()) };
        let short = Duration::from_millis(1);
        assert!(refreshed.get(5_000, short, slow).await.is_none(), "no value is known yet");
        // A second request begins no read of its own.
        let unused = async { unreachable!("a read runs already") };
        assert!(refreshed.get(5_000, short, unused).await.is_none());
        finish.send(7).unwrap();
        let patient = Duration::from_secs(30);
        let unused = async { unreachable!("a read runs already") };
        let read = refreshed.get(5_000, patient, unused).await.unwrap();
        assert_eq!((read.value.unwrap(), read.at_ms > 0), (7, true));
    }

    #[tokio::test]
    async fn old_value_is_returned_while_it_is_read_again() {
        let refreshed = Refreshed::<u32>::default();
        let patient = Duration::from_secs(30);
        assert_eq!(refreshed.get(0, patient, async { Ok(1) }).await.unwrap().value.unwrap(), 1);
        let never = std::future::pending();
        let old = refreshed.get(0, Duration::from_millis(1), never).await.unwrap();
        assert_eq!((old.value.clone().unwrap(), old.is_fresh(0), old.is_fresh(60_000)), (1, false, true));
    }

    #[tokio::test]
    async fn failed_read_is_repeated_at_once() {
        let refreshed = Refreshed::<u32>::default();
        let patient = Duration::from_secs(30);
        let failed = refreshed.get(5_000, patient, async { Err(Problem::invalid("no")) }).await.unwrap();
        assert!(failed.value.is_err() && !failed.is_fresh(5_000));
        assert_eq!(refreshed.get(5_000, patient, async { Ok(2) }).await.unwrap().value.unwrap(), 2);
    }

    #[tokio::test]
    async fn read_that_panics_is_repeated() {
        let refreshed = Refreshed::<u32>::default();
        let patient = Duration::from_secs(30);
        let panics = async { panic!("a bug of the store") };
        assert!(refreshed.get(5_000, patient, panics).await.is_none());
        assert_eq!(refreshed.get(5_000, patient, async { Ok(3) }).await.unwrap().value.unwrap(), 3);
    }
}
