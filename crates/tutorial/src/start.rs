//! Step 10: an atomic start instead of the trait's default.

use crate::state::State;
use outlast_provider::{ProviderError, StartOutcome, StartPolicy, StartRequest};
use outlast_provider_kit::plan;

// guide: start
impl State {
    pub(crate) fn start(&mut self, request: &StartRequest, now: u64) -> Result<StartOutcome, ProviderError> {
        const START: &str = "start_orchestration";
        let instance = request.checked_instance()?;
        let start = plan::message_row(START, &request.start)?;
        let is_taken = self.is_taken(instance);
        let outcome = match is_taken {
            true => {
                let execution = self.execution(instance, self.newest_execution(instance));
                StartOutcome::AlreadyExists { status: execution.map(|execution| execution.status.clone()) }
            }
            false => {
                self.push_message(start, request.delay, now);
                StartOutcome::Started
            }
        };
        if !is_taken || request.policy == StartPolicy::UseExisting {
            // The delay is that of the start. Messages for an instance that exists are not delayed.
            let delay = request.delay.filter(|_| !is_taken);
            for message in &request.messages {
                self.push_message(plan::message_row(START, message)?, delay, now);
            }
        }
        Ok(outcome)
    }

    /// Whether the store has a row or an event under the id, or a start waits for it.
    fn is_taken(&self, instance: &str) -> bool {
        self.instances.contains_key(instance)
            || self.executions.contains_key(instance)
            || self.history.contains_key(instance)
            || self.start_due(instance).is_some()
    }
}
// guide: end
