//! Contains panics, so that they end neither a lane nor the store.

use futures::FutureExt;
use std::any::Any;
use std::future::Future;
use std::panic::AssertUnwindSafe;

/// The result of a future, or the message of its panic. State that the future shares with other tasks must be valid between any
/// two of its statements.
pub(crate) async fn contained<T>(future: impl Future<Output = T>) -> Result<T, String> {
    AssertUnwindSafe(future).catch_unwind().await.map_err(message)
}

/// The message of a panic if the message is a literal of the source. A formatted message may quote data, so only the panic hook of
/// the process receives it. The payload of a panic may panic when it is dropped, so this function forgets the payload.
fn message(payload: Box<dyn Any + Send>) -> String {
    match payload.downcast::<&'static str>() {
        Ok(text) => (*text).to_string(),
        Err(payload) => {
            std::mem::forget(payload);
            ELSEWHERE.to_string()
        }
    }
}

const ELSEWHERE: &str = "the panic hook of the process has the message";

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_an_error_that_quotes_no_formatted_text() {
        assert_eq!(contained(async { 7 }).await, Ok(7));
        let panicked = |how: u8| async move {
            match how {
                0 => panic!("plain"),
                1 => panic!("number {how}"),
                _ => std::panic::panic_any(7_u8),
            }
        };
        assert_eq!(contained(panicked(0)).await, Err::<(), _>("plain".to_string()));
        assert_eq!(contained(panicked(1)).await, Err::<(), _>(ELSEWHERE.to_string()));
        assert_eq!(contained(panicked(2)).await, Err::<(), _>(ELSEWHERE.to_string()));
    }
}
