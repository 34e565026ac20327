//! A hook that counts calls and injects faults.

use super::hooked::{Hook, Hooked};
use async_trait::async_trait;
use outlast::providers::{ErrorClass, Provider, ProviderError};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// The fault of a call.
pub(crate) enum Fault {
    None,
    /// A retryable error.
    Transient,
    /// A permanent error.
    Permanent,
    Panic,
    /// No answer.
    Hang,
}

type Decide = dyn Fn(&'static str, usize) -> Fault + Send + Sync;

/// Counts calls by name; a function selects the fault of the n-th call of a name, counted from 0.
pub(crate) struct CallHook {
    counts: Mutex<BTreeMap<&'static str, usize>>,
    decide: Box<Decide>,
}

impl CallHook {
    pub(crate) fn new(decide: impl Fn(&'static str, usize) -> Fault + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { counts: Mutex::default(), decide: Box::new(decide) })
    }

    pub(crate) fn counting() -> Arc<Self> {
        Self::new(|_, _| Fault::None)
    }

    pub(crate) fn around(self: &Arc<Self>, inner: Arc<dyn Provider>) -> Arc<dyn Provider> {
        Hooked::around(inner, Arc::clone(self))
    }

    /// The number of calls of a method.
    pub(crate) fn count(&self, call: &str) -> usize {
        self.counts.lock().unwrap().get(call).copied().unwrap_or(0)
    }
}

#[async_trait]
impl Hook for CallHook {
    async fn before(&self, call: &'static str) -> Result<(), ProviderError> {
        let nth = {
            let mut counts = self.counts.lock().unwrap();
            let count = counts.entry(call).or_default();
            *count += 1;
            *count - 1
        };
        match (self.decide)(call, nth) {
            Fault::None => Ok(()),
            Fault::Transient => Err(ProviderError::retryable(call, "the disk is busy")),
            Fault::Permanent => {
                Err(ProviderError::permanent(call, "the disk is full").of_class(ErrorClass::Exhausted))
            }
            Fault::Panic => panic!("the store has a bug in {call}"),
            Fault::Hang => std::future::pending().await,
        }
    }
}
