//! Starts with a policy, and outcomes of instances.

use crate::commit::{check_messages, visible_at};
use crate::rules::StartRules;
use crate::state::State;
use outlast_provider::model::{ExecutionStatus, WorkItem, json};
use outlast_provider::{InstanceOutcome, ProviderError, StartOutcome, StartPolicy, StartRequest};

impl State {
    /// Starts an instance unless its id is taken, and enqueues the messages of the request.
    pub(crate) fn start(&mut self, request: &StartRequest, now: u64) -> Result<StartOutcome, ProviderError> {
        let instance = request.checked_instance()?;
        check_messages("start_orchestration", std::slice::from_ref(&request.start))?;
        let taken = self.rules.is_taken(self, instance);
        let outcome = match taken {
            true => StartOutcome::AlreadyExists { status: self.outcome(instance).map(|o| o.status) },
            false => {
                self.push_message(&request.start, visible_at(&request.start, now, request.delay))?;
                StartOutcome::Started
            }
        };
        if !taken || request.policy == StartPolicy::UseExisting {
            // Messages for an instance that exists are not delayed.
            let delay = request.delay.filter(|_| !taken);
            for message in &request.messages {
                self.push_message(message, visible_at(message, now, delay))?;
            }
        }
        Ok(outcome)
    }

    /// When the waiting start of an instance becomes visible.
    pub(crate) fn start_due(&self, instance: &str) -> Option<u64> {
        let waiting = self.messages.of_instance(instance, |message| {
            matches!(
                json::decode_work_item(&message.text),
                Ok(WorkItem::StartOrchestration { .. } | WorkItem::ContinueAsNew { .. })
            )
        });
        waiting.iter().filter_map(|ordinal| self.messages.get(*ordinal)).map(|start| start.visible_at).min()
    }

    /// The status of the newest execution. For a failure, its terminal event has the reason.
    pub(crate) fn outcome(&self, instance: &str) -> Option<InstanceOutcome> {
        let execution_id = self.rules.outcome_execution(self, instance);
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
