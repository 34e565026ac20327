//! Size statistics of one instance.

use crate::rules::{AdminRules, KvRules};
use crate::state::State;
use outlast_provider::ProviderError;
use outlast_provider::model::SystemStats;

impl State {
    /// The sizes of the current execution and of the live key-value view; `None` for an unknown instance.
    pub(crate) fn stats(&self, instance: &str) -> Result<Option<SystemStats>, ProviderError> {
        let Some(row) = self.instances.get(instance) else { return Ok(None) };
        let events: Vec<&str> =
            self.event_texts(instance, row.current_execution_id).map(String::as_str).collect();
        let values = self.rules.counted_values(self, instance);
        Ok(Some(SystemStats {
            history_event_count: events.len() as u64,
            history_size_bytes: events.iter().map(|text| self.rules.size(text)).sum(),
            queue_pending_count: self.rules.carried_messages(instance, events.first().copied())?,
            kv_user_key_count: values.len() as u64,
            kv_total_value_bytes: values.values().map(|value| self.rules.size(value)).sum(),
        }))
    }
}
