//! Key-value state in two tiers: the values after the last ended execution, and the changes of the current execution.

use crate::rules::KvRules;
use crate::state::{Changed, State, Stored};
use outlast_provider::KvEntry;
use outlast_provider::model::{Event, EventKind};
use std::collections::{BTreeMap, HashMap};

impl State {
    /// Applies a turn's key-value events, strictly in order.
    pub(crate) fn apply_kv(&mut self, instance: &str, delta: &[Event], now: u64) {
        for event in delta {
            match &event.kind {
                EventKind::KeyValueSet { key, value, last_updated_at_ms } => {
                    let change =
                        Changed { value: Some(value.clone()), last_updated_at_ms: *last_updated_at_ms };
                    self.change_key(instance, key, change);
                }
                EventKind::KeyValueCleared { key } => {
                    self.change_key(instance, key, Changed { value: None, last_updated_at_ms: now });
                }
                EventKind::KeyValuesCleared => {
                    for key in self.rules.keys_to_clear(self, instance) {
                        self.change_key(instance, &key, Changed { value: None, last_updated_at_ms: now });
                    }
                }
                _ => {}
            }
        }
    }

    fn change_key(&mut self, instance: &str, key: &str, change: Changed) {
        self.kv_delta.entry(instance.to_string()).or_default().insert(key.to_string(), change);
    }

    /// Merges the changes of an execution that has ended, so that the next execution starts from them.
    pub(crate) fn merge_kv(&mut self, instance: &str) {
        for (key, change) in self.kv_delta.remove(instance).unwrap_or_default() {
            let store = self.kv_store.entry(instance.to_string()).or_default();
            match change.value {
                Some(value) => {
                    store.insert(key, Stored { value, last_updated_at_ms: change.last_updated_at_ms });
                }
                None => {
                    store.remove(&key);
                }
            }
        }
    }

    /// The values that replay starts from. Writes of the current execution are not included: replay repeats them.
    pub(crate) fn kv_snapshot(&self, instance: &str) -> HashMap<String, KvEntry> {
        let stored = self.kv_store.get(instance).into_iter().flatten();
        stored
            .map(|(key, stored)| {
                let value = stored.value.clone();
                (key.clone(), KvEntry { value, last_updated_at_ms: stored.last_updated_at_ms })
            })
            .collect()
    }

    /// The live view: the values of earlier executions with the changes of the current execution.
    pub(crate) fn kv_view(&self, instance: &str) -> BTreeMap<String, String> {
        let stored = self.kv_store.get(instance).into_iter().flatten();
        let mut view: BTreeMap<String, String> =
            stored.map(|(key, stored)| (key.clone(), stored.value.clone())).collect();
        for (key, change) in self.kv_delta.get(instance).into_iter().flatten() {
            self.rules.show_change(&mut view, key, change);
        }
        view
    }
}
