//! Step 8: key-value state in two tiers.

use crate::state::{State, Value};
use outlast_provider::KvEntry;
use outlast_provider_kit::KvChange;
use std::collections::HashMap;

// guide: key-values
impl State {
    /// Applies the changes of a turn, in order, to the tier of the current execution.
    pub(crate) fn change_values(&mut self, instance: &str, changes: Vec<KvChange>) {
        for change in changes {
            let delta = self.kv_delta.entry(instance.to_string()).or_default();
            match change {
                KvChange::Set { key, value, last_updated_at_ms } => {
                    delta.insert(key, Some(Value { text: value, last_updated_at_ms }));
                }
                KvChange::Clear { key } => {
                    delta.insert(key, None);
                }
                KvChange::ClearAll => {
                    let stored = self.kv_store.get(instance).into_iter().flat_map(|stored| stored.keys());
                    delta.extend(stored.map(|key| (key.clone(), None)));
                    delta.values_mut().for_each(|value| *value = None);
                }
            }
        }
    }

    /// Merges the changes of an execution that has ended. The next execution starts from the result.
    pub(crate) fn merge_values(&mut self, instance: &str) {
        let stored = self.kv_store.entry(instance.to_string()).or_default();
        for (key, value) in self.kv_delta.remove(instance).unwrap_or_default() {
            match value {
                Some(value) => drop(stored.insert(key, value)),
                None => drop(stored.remove(&key)),
            }
        }
    }

    /// The values that replay starts from, after the last ended execution. Replay repeats the current execution's changes.
    pub(crate) fn snapshot(&self, instance: &str) -> HashMap<String, KvEntry> {
        let stored = self.kv_store.get(instance).into_iter().flatten();
        let entry = |value: &Value| KvEntry {
            value: value.text.clone(),
            last_updated_at_ms: value.last_updated_at_ms,
        };
        stored.map(|(key, value)| (key.clone(), entry(value))).collect()
    }

    /// The live view of clients: the stored values with the changes of the current execution.
    pub(crate) fn live_values(&self, instance: &str) -> HashMap<String, String> {
        let stored = self.kv_store.get(instance).into_iter().flatten();
        let mut live: HashMap<String, String> =
            stored.map(|(key, value)| (key.clone(), value.text.clone())).collect();
        for (key, value) in self.kv_delta.get(instance).into_iter().flatten() {
            match value {
                Some(value) => drop(live.insert(key.clone(), value.text.clone())),
                None => drop(live.remove(key)),
            }
        }
        live
    }
}
// guide: end
