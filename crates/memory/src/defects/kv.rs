//! Broken key-value state.

use super::{Defect, Rules};
use crate::rules::{Contract, KvRules};
use crate::state::{Changed, State};
use std::collections::BTreeMap;

impl KvRules for Rules {
    fn merges_kv(&self, has_ended: bool) -> bool {
        match self.defect {
            Some(Defect::KvNeverMerged) => false,
            Some(Defect::KvMergedTooEarly) => true,
            _ => Contract.merges_kv(has_ended),
        }
    }

    fn keys_to_clear(&self, state: &State, instance: &str) -> Vec<String> {
        match self.defect {
            Some(Defect::ClearAllForgetsStore) => {
                state.kv_delta.get(instance).into_iter().flat_map(|delta| delta.keys().cloned()).collect()
            }
            _ => Contract.keys_to_clear(state, instance),
        }
    }

    fn show_change(&self, view: &mut BTreeMap<String, String>, key: &str, change: &Changed) {
        if self.defect != Some(Defect::TombstonesIgnored) || change.value.is_some() {
            Contract.show_change(view, key, change);
        }
    }

    fn counted_values(&self, state: &State, instance: &str) -> BTreeMap<String, String> {
        let mut values = Contract.counted_values(state, instance);
        if self.defect == Some(Defect::StatsCountRemovedKeys) {
            let stored = state.kv_store.get(instance).into_iter().flatten();
            values.extend(stored.map(|(key, stored)| (key.clone(), stored.value.clone())));
        }
        values
    }
}
