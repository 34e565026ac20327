//! Step 2: history is appended and read.

use crate::state::{State, refuse};
use outlast_provider::ProviderError;
use outlast_provider::model::{Event, EventKind, SystemStats, json};
use outlast_provider_kit::plan::{self, HistoryRow};
use outlast_provider_kit::rows;

impl State {
    // guide: history
    /// All events of an execution, or the reason why an event does not decode. Never a part.
    pub(crate) fn events(&self, instance: &str, execution_id: u64) -> Result<Vec<Event>, String> {
        rows::decode_history(instance, execution_id, self.event_texts(instance, execution_id))
    }

    /// Inserts events. Stored events are neither read nor replaced.
    pub(crate) fn append(
        &mut self,
        operation: &str,
        instance: &str,
        execution_id: u64,
        events: Vec<HistoryRow>,
    ) -> Result<(), ProviderError> {
        for event in events {
            let executions = self.history.entry(instance.to_string()).or_default();
            let stored = executions.entry(execution_id).or_default();
            if stored.insert(event.event_id, event.event_data).is_some() {
                let message = plan::duplicate_event(event.event_id);
                return refuse(
                    operation,
                    format!("instance '{instance}', execution {execution_id}: {message}"),
                );
            }
        }
        Ok(())
    }
    // guide: end

    pub(crate) fn append_with_execution(
        &mut self,
        instance: &str,
        execution_id: u64,
        events: &[Event],
    ) -> Result<(), ProviderError> {
        const APPEND: &str = "append_with_execution";
        plan::checked_id(APPEND, instance)?;
        self.append(APPEND, instance, execution_id, plan::history_rows(APPEND, events)?)
    }

    pub(crate) fn read(&self, instance: &str, execution_id: u64) -> Result<Vec<Event>, ProviderError> {
        self.events(instance, execution_id).or_else(|reason| refuse("read", reason))
    }

    pub(crate) fn stats(&self, instance: &str) -> Result<Option<SystemStats>, ProviderError> {
        let Some(row) = self.instances.get(instance) else { return Ok(None) };
        let texts: Vec<&str> = self.event_texts(instance, row.current_execution).collect();
        let first = texts.first().map(|text| json::decode_event(text)).transpose();
        let first = first.or_else(|error| {
            refuse("get_instance_stats", rows::reason(instance, row.current_execution, &error.to_string()))
        })?;
        let carried = match first.map(|event| event.kind) {
            Some(EventKind::OrchestrationStarted { carry_forward_events: Some(carried), .. }) => {
                carried.len()
            }
            _ => 0,
        };
        let values = self.live_values(instance);
        Ok(Some(SystemStats {
            history_event_count: texts.len() as u64,
            history_size_bytes: texts.iter().map(|text| text.len() as u64).sum(),
            queue_pending_count: carried as u64,
            kv_user_key_count: values.len() as u64,
            kv_total_value_bytes: values.values().map(|value| value.len() as u64).sum(),
        }))
    }
}
