//! Turns a panic in a future into a value, so that it ends only the turn or activity in which it happened.

use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

/// Runs a future. If it panics, returns the message of the panic as the error.
pub(super) async fn catch_panic<T>(future: impl Future<Output = T>) -> Result<T, String> {
    let mut future = pin!(future);
    poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
        Err(payload) => Poll::Ready(Err(message(payload.as_ref()))),
    })
    .await
}

fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_returned_as_its_message() {
        assert_eq!(catch_panic(async { 7 }).await, Ok(7));
        assert_eq!(catch_panic(async { panic!("boom {}", 1) }).await, Err::<(), _>("boom 1".to_string()));
    }
}
