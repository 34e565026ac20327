//! Passwords that change while a store is open.

use crate::PostgresError;
use crate::contain::contained;
use crate::db::Result;
use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

type Asked = Pin<Box<dyn Future<Output = std::result::Result<String, Box<dyn Error + Send + Sync>>> + Send>>;

/// The source of a store's password, which the store asks before it opens a connection. `Debug` shows neither the password nor the
/// callback.
#[derive(Clone)]
pub struct PasswordSource(Arc<dyn Fn() -> Asked + Send + Sync>);

impl PasswordSource {
    /// Asks this callback.
    pub fn new<F, P>(callback: F) -> Self
    where
        F: Fn() -> P + Send + Sync + 'static,
        P: Future<Output = std::result::Result<String, Box<dyn Error + Send + Sync>>> + Send + 'static,
    {
        Self(Arc::new(move || Box::pin(callback())))
    }

    /// Calls the callback. A panic of the callback and a late answer are errors.
    pub(crate) async fn ask(&self, timeout: Duration) -> Result<String> {
        let failed = |details: String| PostgresError::Password { details };
        let asked = contained(async { (self.0)().await });
        match tokio::time::timeout(timeout, asked).await {
            Ok(Ok(Ok(password))) => Ok(password),
            Ok(Ok(Err(error))) => Err(failed(error.to_string())),
            Ok(Err(panic)) => Err(failed(format!("the callback panicked: {panic}"))),
            Err(_) => Err(failed(format!("the callback did not answer within {timeout:?}"))),
        }
    }
}

impl fmt::Debug for PasswordSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PasswordSource(..)")
    }
}
