//! The key-value store of an instance. Reads are local; every write is an event.

use super::Operation;
use super::entropy::SystemCall;
use crate::context::OrchestrationContext;
use crate::decide::Emitted;
use crate::future::DurableFuture;
use crate::state::State;
use outlast_model::codec::Codec;
use outlast_model::{Action, EventKind, PATCH_KEY_PREFIX, SystemStats};
use serde::{Serialize, de::DeserializeOwned};
use std::collections::{HashMap, VecDeque};
use std::panic::Location;

/// Keys with this prefix belong to Outlast: they count for no limit, lists do not show them, and they survive the removal of all keys.
pub const RESERVED_KEY_PREFIX: &str = "__outlast:";

pub(crate) fn is_users(key: &str) -> bool {
    !key.starts_with(RESERVED_KEY_PREFIX)
}

/// Refuses a key that is too long, and the marker of a patch: code that writes or removes it would change the answer of `patched`.
fn check_key(state: &mut State, key: &str) {
    state.check_name("key", key);
    if key.starts_with(PATCH_KEY_PREFIX) {
        state.violate(format!("KV key '{key:.60}' is reserved for ctx.patched(..): use another key"));
    }
}

/// A value and when it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KvValue {
    /// The value.
    pub value: String,
    /// Milliseconds since the Unix epoch.
    pub updated_at_ms: u64,
}

impl OrchestrationContext {
    /// Writes a key.
    #[track_caller]
    pub fn set_kv_value(&self, key: impl Into<String>, value: impl Into<String>) {
        let (key, value) = (key.into(), value.into());
        let mut state = self.lock();
        check_key(&mut state, &key);
        let (size, limit) = (value.len(), state.limits.kv_value_bytes);
        if size > limit {
            state.violate(format!(
                "KV value for key '{key:.60}' ({size} bytes) exceeds limit ({limit} bytes): store it elsewhere and keep a \
                 reference, or raise limits.kv_value_bytes"
            ));
        }
        let most = state.limits.kv_keys;
        // Counting is needed only when all keys together could be too many.
        let keys = match state.kv.len() < most || state.kv.contains_key(&key) || !is_users(&key) {
            true => 0,
            false => state.kv.keys().filter(|key| is_users(key)).count() + 1,
        };
        if keys > most {
            state.violate(format!(
                "KV key count ({keys}) exceeds limit ({most}): clear keys that are not needed, or raise limits.kv_keys"
            ));
        }
        let updated_at_ms = state.stored_time().unwrap_or(state.now_ms);
        state.kv.insert(key.clone(), KvValue { value: value.clone(), updated_at_ms });
        let action = Action::SetKeyValue { key, value, last_updated_at_ms: updated_at_ms };
        state.decide(action, "set_kv_value", Location::caller());
    }

    /// Writes a key with a value as JSON.
    ///
    /// # Panics
    ///
    /// If the value cannot be written as JSON.
    #[track_caller]
    pub fn set_kv_value_typed<T: Serialize>(&self, key: impl Into<String>, value: &T) {
        let text = serde_json::to_string(value).map_err(|error| error.to_string());
        match text.and_then(|text| self.codec().seal(text)) {
            Ok(text) => self.set_kv_value(key, text),
            Err(error) => panic!("the value for the key-value store cannot be written as JSON: {error}"),
        }
    }

    /// Reads a key.
    pub fn get_kv_value(&self, key: &str) -> Option<String> {
        self.lock().kv.get(key).map(|entry| entry.value.clone())
    }

    /// Reads a key whose value is JSON.
    pub fn get_kv_value_typed<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, String> {
        let Some(text) = self.get_kv_value(key) else { return Ok(None) };
        read_json(self.codec(), &text)
            .map(Some)
            .map_err(|error| format!("KV deserialization error for key '{key}': {error}"))
    }

    /// All keys with their values. Iterating a `HashMap` is not deterministic: sort first, or use
    /// [`OrchestrationContext::get_kv_all_keys`].
    pub fn get_kv_all_values(&self) -> HashMap<String, String> {
        let state = self.lock();
        let users = state.kv.iter().filter(|(key, _)| is_users(key));
        users.map(|(key, entry)| (key.clone(), entry.value.clone())).collect()
    }

    /// All keys, ascending.
    pub fn get_kv_all_keys(&self) -> Vec<String> {
        self.lock().kv.keys().filter(|key| is_users(key)).cloned().collect()
    }

    /// Number of keys.
    pub fn get_kv_length(&self) -> usize {
        self.lock().kv.keys().filter(|key| is_users(key)).count()
    }

    /// Removes a key.
    #[track_caller]
    pub fn clear_kv_value(&self, key: impl Into<String>) {
        let key = key.into();
        let mut state = self.lock();
        check_key(&mut state, &key);
        state.kv.remove(&key);
        state.decide(Action::ClearKeyValue { key }, "clear_kv_value", Location::caller());
    }

    /// Removes all keys. Reserved keys are written again: the event removes them too.
    #[track_caller]
    pub fn clear_all_kv_values(&self) {
        let site = Location::caller();
        let mut state = self.lock();
        state.kv.retain(|key, _| !is_users(key));
        state.decide(Action::ClearKeyValues, "clear_all_kv_values", site);
        let kept: Vec<(String, KvValue)> = state.kv.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
        for (key, KvValue { value, updated_at_ms }) in kept {
            let action = Action::SetKeyValue { key, value, last_updated_at_ms: updated_at_ms };
            state.decide(action, "clear_all_kv_values", site);
        }
    }

    /// Removes every key that was last written before this time, in the order of keys; returns how many.
    #[track_caller]
    pub fn prune_kv_values_updated_before(&self, updated_before_ms: u64) -> usize {
        let site = Location::caller();
        let mut state = self.lock();
        let old = state.kv.iter().filter(|(key, entry)| is_users(key) && entry.updated_at_ms < updated_before_ms);
        let keys: Vec<String> = old.map(|(key, _)| key.clone()).collect();
        for key in &keys {
            state.kv.remove(key);
            state.decide(Action::ClearKeyValue { key: key.clone() }, "prune_kv_values_updated_before", site);
        }
        keys.len()
    }

    /// Reads a key of another instance, as last committed; `None` for an unknown instance or key.
    #[track_caller]
    pub fn get_kv_value_from_instance(
        &self,
        instance_id: impl Into<String>,
        key: impl Into<String>,
    ) -> DurableFuture<Result<Option<String>, String>> {
        let input = serde_json::json!({ "instance_id": instance_id.into(), "key": key.into() }).to_string();
        let call =
            self.call_activity(SystemCall::GetKvValue.activity_name(), input, None, Location::caller());
        call.map(|result| {
            serde_json::from_str(&result?)
                .map_err(|error| format!("get_kv_value_from_instance deserialization error: {error}"))
        })
    }

    /// Reads a key of another instance whose value is JSON.
    #[track_caller]
    pub fn get_kv_value_from_instance_typed<T: DeserializeOwned + Send + 'static>(
        &self,
        instance_id: impl Into<String>,
        key: impl Into<String>,
    ) -> DurableFuture<Result<Option<T>, String>> {
        let codec = self.codec();
        self.get_kv_value_from_instance(instance_id, key).map(move |result| {
            let Some(text) = result? else { return Ok(None) };
            read_json(codec, &text)
                .map(Some)
                .map_err(|error| format!("get_kv_value_from_instance_typed deserialization error: {error}"))
        })
    }

    /// Always `None`: sizes are known to the store, see `Client::get_orchestration_stats`.
    pub fn get_system_stats(&self) -> Option<SystemStats> {
        None
    }
}

fn read_json<T: DeserializeOwned>(codec: Codec, text: &str) -> Result<T, String> {
    serde_json::from_str(&codec.open(text)?).map_err(|error| error.to_string())
}

pub(crate) struct KeyValue;

impl Operation for KeyValue {
    fn name(&self) -> &'static str {
        "key-value write"
    }

    fn event(&self, action: &Action, _execution_id: u64, _event_id: u64) -> Option<EventKind> {
        match action.clone() {
            Action::SetKeyValue { key, value, last_updated_at_ms } => {
                Some(EventKind::KeyValueSet { key, value, last_updated_at_ms })
            }
            Action::ClearKeyValue { key } => Some(EventKind::KeyValueCleared { key }),
            Action::ClearKeyValues => Some(EventKind::KeyValuesCleared),
            _ => None,
        }
    }

    /// Time stamps are not compared.
    fn matches(&self, action: &Action, recorded: &EventKind) -> bool {
        match (action, recorded) {
            (
                Action::SetKeyValue { key, value, .. },
                EventKind::KeyValueSet { key: recorded_key, value: recorded_value, .. },
            ) => key == recorded_key && value == recorded_value,
            (Action::ClearKeyValue { key }, EventKind::KeyValueCleared { key: recorded_key }) => {
                key == recorded_key
            }
            (Action::ClearKeyValues, EventKind::KeyValuesCleared) => true,
            _ => false,
        }
    }

    /// Older runtimes wrote the removals of one prune in any order.
    fn find(&self, emitted: &VecDeque<Emitted>, recorded: &EventKind) -> Option<usize> {
        let is_removal = |emitted: &&Emitted| matches!(emitted.action, Action::ClearKeyValue { .. });
        let candidates = match recorded {
            EventKind::KeyValueCleared { .. } => emitted.iter().take_while(is_removal).count(),
            _ => 1,
        };
        emitted.iter().take(candidates).position(|emitted| self.matches(&emitted.action, recorded))
    }

    fn describe(&self, decision: &EventKind) -> String {
        match decision {
            EventKind::KeyValueSet { key, .. } => format!("a write of key '{key}'"),
            EventKind::KeyValueCleared { key } => format!("a removal of key '{key}'"),
            _ => "a removal of all keys".to_string(),
        }
    }

    fn mismatch(&self, recorded: &EventKind) -> &'static str {
        match recorded {
            EventKind::KeyValueSet { .. } => "kv set mismatch",
            EventKind::KeyValueCleared { .. } => "kv clear mismatch",
            _ => "kv clear_all mismatch",
        }
    }

    fn is_optional(&self) -> bool {
        true
    }

    fn adopt(&self, state: &mut State, recorded: &EventKind) {
        match recorded {
            EventKind::KeyValueSet { key, value, last_updated_at_ms } => {
                let value = KvValue { value: value.clone(), updated_at_ms: *last_updated_at_ms };
                state.kv.insert(key.clone(), value);
            }
            EventKind::KeyValueCleared { key } => {
                state.kv.remove(key);
            }
            EventKind::KeyValuesCleared => state.kv.clear(),
            _ => {}
        }
    }

    /// With another time than the stored one, pruning by age would remove other keys on replay.
    fn stored_time(&self, recorded: &EventKind) -> Option<u64> {
        match recorded {
            EventKind::KeyValueSet { last_updated_at_ms, .. } => Some(*last_updated_at_ms),
            _ => None,
        }
    }
}
