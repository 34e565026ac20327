//! Calls to stores that answer without waiting.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// The answer of a future that is ready at its first poll.
pub(crate) fn at_once<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => Some(answer),
        Poll::Pending => None,
    }
}
