//! Key-value state.

use crate::state::{Changed, State};
use std::collections::BTreeMap;

pub(crate) trait KvRules {
    /// The changes of an execution are merged when the execution ends, and not before.
    fn merges_kv(&self, has_ended: bool) -> bool {
        has_ended
    }

    /// Clearing all keys removes those of the current execution and those of earlier ones.
    fn keys_to_clear(&self, state: &State, instance: &str) -> Vec<String> {
        let changed = state.kv_delta.get(instance).into_iter().flat_map(|delta| delta.keys());
        let stored = state.kv_store.get(instance).into_iter().flat_map(|store| store.keys());
        changed.chain(stored).cloned().collect()
    }

    /// The live view shows a change at once, removals included.
    fn show_change(&self, view: &mut BTreeMap<String, String>, key: &str, change: &Changed) {
        match &change.value {
            Some(value) => drop(view.insert(key.to_string(), value.clone())),
            None => drop(view.remove(key)),
        }
    }

    /// Statistics count the keys of the live view.
    fn counted_values(&self, state: &State, instance: &str) -> BTreeMap<String, String> {
        state.kv_view(instance)
    }
}
