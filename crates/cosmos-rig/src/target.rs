//! The account that tests run against.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};

use crate::{Rig, RigOptions};

/// A rig of this process, or an account elsewhere.
pub enum Target {
    /// A rig of this process.
    Rig(Box<Rig>),
    /// An account that `COSMOS_ENDPOINT` and `COSMOS_KEY` name: in Azure, in Microsoft's Docker emulator, or a rig of
    /// another process.
    Account {
        /// Its address.
        endpoint: String,
        /// Its key.
        key: String,
        /// The clean-up of the tests that use it.
        ends: Ends,
    },
}

/// Clean-up that runs when the value is dropped, also after a failed assertion.
#[derive(Default)]
pub struct Ends(Mutex<Vec<End>>);

type End = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Ends {
    fn add(&self, end: impl Future<Output = ()> + Send + 'static) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(Box::pin(end));
    }
}

impl Drop for Ends {
    fn drop(&mut self) {
        let ends = std::mem::take(self.0.get_mut().unwrap_or_else(PoisonError::into_inner));
        if ends.is_empty() {
            return;
        }
        // The runtime of the test may be shutting down.
        let ended = std::thread::Builder::new().spawn(move || {
            if let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() {
                for end in ends {
                    runtime.block_on(end);
                }
            }
        });
        // A clean-up that panics must not hide the failure of the test.
        let _ = ended.map(std::thread::JoinHandle::join);
    }
}

impl Target {
    /// An account elsewhere.
    pub fn account(endpoint: impl Into<String>, key: impl Into<String>) -> Self {
        Self::Account { endpoint: endpoint.into(), key: key.into(), ends: Ends::default() }
    }

    /// Runs a future when the target is dropped, also after a failed assertion, and waits for it: a test removes its container from
    /// an account. A rig ends with its containers, so that the future is dropped.
    pub fn at_end(&self, end: impl Future<Output = ()> + Send + 'static) {
        if let Self::Account { ends, .. } = self {
            ends.add(end);
        }
    }

    /// The address of the account.
    pub fn endpoint(&self) -> &str {
        match self {
            Self::Rig(rig) => rig.endpoint(),
            Self::Account { endpoint, .. } => endpoint,
        }
    }

    /// The key of the account.
    pub fn key(&self) -> &str {
        match self {
            Self::Rig(rig) => rig.key(),
            Self::Account { key, .. } => key,
        }
    }

    /// The rig, for faults and records. A test that needs them does not run against another account.
    pub fn rig(&self) -> Option<&Rig> {
        match self {
            Self::Rig(rig) => Some(rig),
            Self::Account { .. } => None,
        }
    }
}

/// The account that `COSMOS_ENDPOINT` and `COSMOS_KEY` name, or a new rig with the default settings.
pub async fn target() -> io::Result<Target> {
    let read = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    named_target(read("COSMOS_ENDPOINT"), read("COSMOS_KEY")).await
}

async fn named_target(endpoint: Option<String>, key: Option<String>) -> io::Result<Target> {
    match (endpoint, key) {
        (Some(endpoint), Some(key)) => Ok(Target::account(endpoint, key)),
        (None, None) => Ok(Target::Rig(Box::new(Rig::start_with(RigOptions::default()).await?))),
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "set both COSMOS_ENDPOINT and COSMOS_KEY to test against an account, or neither to test against a rig",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_clean_up_of_a_test_runs_when_the_target_of_an_account_is_dropped() {
        let (ended, runs) = std::sync::mpsc::channel();
        let end = |name: &'static str| {
            let ended = ended.clone();
            async move {
                tokio::task::yield_now().await;
                let _ = ended.send(name);
            }
        };
        let account = Target::account("https://a/", "k");
        account.at_end(end("first"));
        account.at_end(async { panic!("a clean-up that fails") });
        drop(account);
        let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let account = Target::account("https://a/", "k");
            account.at_end(end("after a failure"));
            panic!("an assertion fails");
        }));
        assert!(failed.is_err());
        named_target(None, None).await.unwrap().at_end(end("of a rig"));
        drop(ended);
        assert_eq!(runs.into_iter().collect::<Vec<_>>(), ["first", "after a failure"]);
    }

    #[tokio::test]
    async fn both_variables_or_neither_name_a_target() {
        let named = named_target(Some("https://a/".into()), Some("k".into())).await.unwrap();
        assert_eq!((named.endpoint(), named.key(), named.rig().is_some()), ("https://a/", "k", false));
        let own = named_target(None, None).await.unwrap();
        assert!(own.rig().is_some() && own.endpoint().starts_with("http://127.0.0.1:"));
        assert!(named_target(Some("https://a/".into()), None).await.is_err());
        assert!(named_target(None, Some("k".into())).await.is_err());
    }
}
