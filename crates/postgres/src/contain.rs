//! Panics that end neither a lane nor the store.

use futures::FutureExt;
use std::any::Any;
use std::future::Future;
use std::panic::AssertUnwindSafe;

/// What a future returns, or the message of its panic. State that the future shares with others must be valid between any two
/// of its statements.
pub(crate) async fn contained<T>(future: impl Future<Output = T>) -> Result<T, String> {
    AssertUnwindSafe(future).catch_unwind().await.map_err(message)
}

/// The message of a panic. Its payload may panic when it is dropped, so it is forgotten if it is no text.
fn message(payload: Box<dyn Any + Send>) -> String {
    let payload = match payload.downcast::<&'static str>() {
        Ok(text) => return (*text).to_string(),
        Err(payload) => payload,
    };
    match payload.downcast::<String>() {
        Ok(text) => *text,
        Err(payload) => {
            std::mem::forget(payload);
            "a panic without a message".to_string()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_an_error_with_its_message() {
        assert_eq!(contained(async { 7 }).await, Ok(7));
        let panicked = |how: u8| async move {
            match how {
                0 => panic!("plain"),
                1 => panic!("number {how}"),
                _ => std::panic::panic_any(7_u8),
            }
        };
        assert_eq!(contained(panicked(0)).await, Err::<(), _>("plain".to_string()));
        assert_eq!(contained(panicked(1)).await, Err::<(), _>("number 1".to_string()));
        assert_eq!(contained(panicked(2)).await, Err::<(), _>("a panic without a message".to_string()));
    }
}
