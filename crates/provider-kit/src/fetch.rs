//! A fetch that waits for leases, and the waiting of its caller.

use std::time::Duration;
use tokio::sync::oneshot::{self, error::RecvError};

/// The caller of a fetch.
pub trait Caller {
    /// Whether the caller has stopped waiting.
    fn is_gone(&self) -> bool;
}

impl<T> Caller for oneshot::Sender<T> {
    fn is_gone(&self) -> bool {
        self.is_closed()
    }
}

/// A fetch that waits for leases.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Fetch<A, C> {
    /// The conditions of the fetch.
    pub ask: A,
    /// Whether the fetch waits if there is nothing to lease.
    pub parks: bool,
    /// Whether no poll has been made for the fetch yet.
    pub is_new: bool,
    /// The caller, which gets the answer.
    pub caller: C,
}

impl<A, T> Fetch<A, oneshot::Sender<T>> {
    /// A new fetch, and the receiver of its answer. With a `poll_timeout` of zero the fetch does not park.
    pub fn new(ask: A, poll_timeout: Duration) -> (Self, oneshot::Receiver<T>) {
        let (caller, answer) = oneshot::channel();
        (Self { ask, parks: !poll_timeout.is_zero(), is_new: true, caller }, answer)
    }
}

impl<A, C: Caller> Fetch<A, C> {
    /// Whether the caller has stopped waiting.
    pub fn is_gone(&self) -> bool {
        self.caller.is_gone()
    }
}

/// Waits for the answer to a fetch; `None` after the `poll_timeout`. The store answers a fetch that does not park without being
/// asked to wait, so a `poll_timeout` of zero sets no limit. The error means that the store dropped the fetch.
pub async fn answer_within<T>(
    answer: oneshot::Receiver<T>,
    poll_timeout: Duration,
) -> Result<Option<T>, RecvError> {
    match poll_timeout.is_zero() {
        true => answer.await.map(Some),
        false => tokio::time::timeout(poll_timeout, answer).await.ok().transpose(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOMENT: Duration = Duration::from_millis(20);

    #[tokio::test(start_paused = true)]
    async fn a_fetch_that_parks_stops_waiting_after_its_timeout() {
        let (fetch, answer) = Fetch::new((), MOMENT);
        assert!(fetch.parks && fetch.is_new && !fetch.is_gone());
        assert_eq!(answer_within(answer, MOMENT).await, Ok(None::<u8>));
        assert!(fetch.is_gone());
    }

    #[tokio::test(start_paused = true)]
    async fn a_fetch_that_does_not_park_waits_for_its_answer() {
        let (fetch, answer) = Fetch::new((), Duration::ZERO);
        assert!(!fetch.parks);
        let late = async {
            // The paused clock moves only while all tasks wait.
            tokio::time::advance(MOMENT).await;
            fetch.caller.send(7)
        };
        let (answered, sent) = tokio::join!(answer_within(answer, Duration::ZERO), late);
        assert_eq!((answered, sent), (Ok(Some(7)), Ok(())));
    }

    #[tokio::test]
    async fn a_dropped_fetch_is_an_error() {
        for poll_timeout in [Duration::ZERO, Duration::from_secs(60)] {
            let (fetch, answer) = Fetch::<(), oneshot::Sender<u8>>::new((), poll_timeout);
            drop(fetch);
            assert!(answer_within(answer, poll_timeout).await.is_err());
        }
    }
}
