//! Starting with a policy, and the outcome of an instance.

use crate::commit::{check_messages, visible_at};
use crate::rules::{Defect, Rules};
use crate::state::State;
use outlast_provider::model::{ExecutionStatus, WorkItem, json};
use outlast_provider::{InstanceOutcome, ProviderError, StartOutcome, StartPolicy, StartRequest};

impl State {
    pub(crate) fn start(
        &mut self,
        request: &StartRequest,
        now: u64,
        rules: &Rules,
    ) -> Result<StartOutcome, ProviderError> {
        let instance = request.checked_instance()?;
        check_messages("start_orchestration", std::slice::from_ref(&request.start))?;
        let taken = self.is_taken(instance) && !rules.broken(Defect::StartPolicyIgnored);
        let outcome = match taken {
            true => StartOutcome::AlreadyExists { status: self.outcome(instance, rules).map(|o| o.status) },
            false => {
                self.push_message(&request.start, visible_at(&request.start, now, request.delay))?;
                StartOutcome::Started
            }
        };
        if !taken || request.policy == StartPolicy::UseExisting {
            // For an instance that is there, nothing delays its messages.
            let delay = request.delay.filter(|_| !taken);
            for message in &request.messages {
                self.push_message(message, visible_at(message, now, delay))?;
            }
        }
        Ok(outcome)
    }

    /// When the start of an instance is delivered, if one waits.
    pub(crate) fn start_due(&self, instance: &str) -> Option<u64> {
        let waiting = self.messages.of_instance(instance, |message| {
            matches!(
                json::decode_work_item(&message.text),
                Ok(WorkItem::StartOrchestration { .. } | WorkItem::ContinueAsNew { .. })
            )
        });
        waiting.iter().filter_map(|ordinal| self.messages.get(*ordinal)).map(|start| start.visible_at).min()
    }

    /// Whether anything is stored under the id, or its start waits.
    fn is_taken(&self, instance: &str) -> bool {
        self.instances.contains_key(instance)
            || self.executions.contains_key(instance)
            || self.last_event_id(instance, 1) > 0
            || self.start_due(instance).is_some()
    }

    /// Status of the newest execution; if it failed, its terminal event says why.
    pub(crate) fn outcome(&self, instance: &str, rules: &Rules) -> Option<InstanceOutcome> {
        let execution_id = match rules.broken(Defect::OutcomeOfFirstExecution) {
            true => 1,
            false => self.latest_execution(instance),
        };
        let execution = self.execution(instance, execution_id)?;
        let events =
            self.event_texts(instance, execution_id).filter_map(|text| json::decode_event(text).ok());
        let has_failed = execution.status == ExecutionStatus::Failed.as_str();
        let terminal: Vec<_> = events.filter(|event| has_failed && event.is_terminal()).collect();
        let row = self.instances.get(instance);
        Some(InstanceOutcome {
            execution_id,
            status: execution.status.clone(),
            output: execution.output.clone(),
            failure: InstanceOutcome::from_history(&terminal).and_then(|outcome| outcome.failure),
            custom_status: row.and_then(|row| row.custom_status.clone()),
            custom_status_version: row.map_or(0, |row| row.custom_status_version),
        })
    }
}
