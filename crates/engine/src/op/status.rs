//! The custom status: a text that clients can read while the instance runs.

use super::Operation;
use crate::context::OrchestrationContext;
use crate::state::State;
use outlast_model::{Action, EventKind};
use std::panic::Location;

impl OrchestrationContext {
    /// Sets the custom status. Clients see the last one of a turn.
    #[track_caller]
    pub fn set_custom_status(&self, status: impl Into<String>) {
        let status = status.into();
        let mut state = self.lock();
        let (size, limit) = (status.len(), state.limits.custom_status_bytes);
        if size > limit {
            state.violate(format!(
                "Custom status size ({size} bytes) exceeds limit ({limit} bytes): shorten it, or raise \
                 limits.custom_status_bytes"
            ));
        }
        state.custom_status = Some(status.clone());
        state.decide(
            Action::UpdateCustomStatus { status: Some(status) },
            "set_custom_status",
            Location::caller(),
        );
    }

    /// Clears the custom status.
    #[track_caller]
    pub fn reset_custom_status(&self) {
        let mut state = self.lock();
        state.custom_status = None;
        state.decide(Action::UpdateCustomStatus { status: None }, "reset_custom_status", Location::caller());
    }

    /// The custom status as this code last set it, or as the previous execution left it.
    pub fn get_custom_status(&self) -> Option<String> {
        self.lock().custom_status.clone()
    }
}

pub(crate) struct CustomStatus;

impl Operation for CustomStatus {
    fn name(&self) -> &'static str {
        "custom status"
    }

    fn event(&self, action: &Action, _execution_id: u64, _event_id: u64) -> Option<EventKind> {
        let Action::UpdateCustomStatus { status } = action else { return None };
        Some(EventKind::CustomStatusUpdated { status: status.clone() })
    }

    /// The text may change between deployments.
    fn matches(&self, action: &Action, _recorded: &EventKind) -> bool {
        matches!(action, Action::UpdateCustomStatus { .. })
    }

    fn describe(&self, _decision: &EventKind) -> String {
        "a custom status update".to_string()
    }

    fn mismatch(&self, _recorded: &EventKind) -> &'static str {
        "custom status mismatch"
    }

    fn is_optional(&self) -> bool {
        true
    }

    fn adopt(&self, state: &mut State, recorded: &EventKind) {
        if let EventKind::CustomStatusUpdated { status } = recorded {
            state.custom_status.clone_from(status);
        }
    }
}
