//! The external effects of activities, which survive a crash of the runtime.

use outlast::ActivityContext;
use std::sync::{Arc, Mutex};

/// Every effect once per scheduled activity, for any number of deliveries, like a service that uses idempotency keys.
#[derive(Clone, Default)]
pub(crate) struct Ledger(Arc<Mutex<Vec<(String, String)>>>);

impl Ledger {
    /// Records an effect under the activity's idempotency key.
    pub(crate) fn note(&self, context: &ActivityContext, what: impl Into<String>) {
        let (key, mut notes) = (context.idempotency_key(), self.0.lock().unwrap());
        if !notes.iter().any(|(noted, _)| noted == key) {
            notes.push((key.to_string(), what.into()));
        }
    }

    /// The effects for one instance, in order.
    pub(crate) fn of(&self, instance: &str) -> Vec<String> {
        let notes = self.0.lock().unwrap();
        let prefix = format!("{instance}:");
        notes.iter().filter(|(key, _)| key.starts_with(&prefix)).map(|(_, what)| what.clone()).collect()
    }
}
