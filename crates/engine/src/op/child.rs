//! Child orchestrations: their outcome comes back to the execution that scheduled them.

use crate::context::OrchestrationContext;
use crate::future::{DurableFuture, Raw};
use crate::state::{Site, What};
use outlast_model::{
    Action, EventKind, INITIAL_EXECUTION_ID, SUB_ORCH_AUTO_PREFIX, ScheduleKind, check_instance_id,
    is_auto_generated_sub_orch_id,
};
use serde::{Serialize, de::DeserializeOwned};
use std::panic::Location;

/// Stands in a decision for the id that its event will give.
const GENERATED: &str = "sub::pending_";

impl OrchestrationContext {
    /// Runs a child orchestration under a generated id.
    #[track_caller]
    pub fn schedule_sub_orchestration(
        &self,
        name: impl Into<String>,
        input: impl Into<String>,
    ) -> DurableFuture<Result<String, String>> {
        self.start_child(name.into(), None, None, input.into(), Location::caller())
    }

    /// Runs a child orchestration under a given id. An id that is taken is an error of the future.
    #[track_caller]
    pub fn schedule_sub_orchestration_with_id(
        &self,
        name: impl Into<String>,
        instance: impl Into<String>,
        input: impl Into<String>,
    ) -> DurableFuture<Result<String, String>> {
        self.start_child(name.into(), None, Some(instance.into()), input.into(), Location::caller())
    }

    /// Runs a given version of a child orchestration under a generated id.
    #[track_caller]
    pub fn schedule_sub_orchestration_versioned(
        &self,
        name: impl Into<String>,
        version: Option<String>,
        input: impl Into<String>,
    ) -> DurableFuture<Result<String, String>> {
        self.start_child(name.into(), version, None, input.into(), Location::caller())
    }

    /// Runs a given version of a child orchestration under a given id.
    #[track_caller]
    pub fn schedule_sub_orchestration_versioned_with_id(
        &self,
        name: impl Into<String>,
        version: Option<String>,
        instance: impl Into<String>,
        input: impl Into<String>,
    ) -> DurableFuture<Result<String, String>> {
        self.start_child(name.into(), version, Some(instance.into()), input.into(), Location::caller())
    }

    /// Runs a child orchestration with typed input and output.
    #[track_caller]
    pub fn schedule_sub_orchestration_typed<In: Serialize, Out: DeserializeOwned + Send + 'static>(
        &self,
        name: impl Into<String>,
        input: &In,
    ) -> DurableFuture<Result<Out, String>> {
        let input = self.encoded(input, "child input");
        self.decoded(self.start_child(name.into(), None, None, input, Location::caller()))
    }

    /// Runs a child orchestration with typed input and output under a given id.
    #[track_caller]
    pub fn schedule_sub_orchestration_with_id_typed<In: Serialize, Out: DeserializeOwned + Send + 'static>(
        &self,
        name: impl Into<String>,
        instance: impl Into<String>,
        input: &In,
    ) -> DurableFuture<Result<Out, String>> {
        let input = self.encoded(input, "child input");
        self.decoded(self.start_child(name.into(), None, Some(instance.into()), input, Location::caller()))
    }

    fn start_child(
        &self,
        name: String,
        version: Option<String>,
        instance: Option<String>,
        input: String,
        site: Site,
    ) -> DurableFuture<Result<String, String>> {
        let mut state = self.lock();
        let refusal = instance.as_deref().and_then(refusal);
        let token = match refusal {
            Some(refusal) => state.answer(What::Child, Raw::Result(Err(refusal)), site),
            None => {
                state.check_name("orchestration name", &name);
                state.check_payload("input of child", &name, &input);
                let instance = instance.unwrap_or_else(|| GENERATED.to_string());
                let action =
                    Action::StartSubOrchestration { scheduling_event_id: 0, name, version, instance, input };
                state.ask(What::Child, action, "schedule_sub_orchestration", site)
            }
        };
        drop(state);
        DurableFuture::new(self, token, ScheduleKind::SubOrchestration { token }, Raw::into_result)
    }
}

/// Why an explicit id is not acceptable.
fn refusal(instance: &str) -> Option<String> {
    if is_auto_generated_sub_orch_id(instance) {
        return Some(format!(
            "sub-orchestration instance id '{instance}' starts with the reserved marker 'sub::', which the runtime \
             uses to mark auto-generated child ids; use an id that does not begin with it"
        ));
    }
    check_instance_id(instance).err().map(|error| format!("sub-orchestration {error}"))
}

pub(super) fn event(action: &Action, execution_id: u64, event_id: u64) -> Option<EventKind> {
    let Action::StartSubOrchestration { name, instance, input, .. } = action else { return None };
    let instance = if instance == GENERATED {
        match execution_id {
            INITIAL_EXECUTION_ID => format!("{SUB_ORCH_AUTO_PREFIX}{event_id}"),
            later => format!("{SUB_ORCH_AUTO_PREFIX}{later}_{event_id}"),
        }
    } else {
        instance.clone()
    };
    Some(EventKind::SubOrchestrationScheduled { name: name.clone(), instance, input: input.clone() })
}

/// The stored id stands, so that the scheme for generated ids may change.
pub(super) fn matches(action: &Action, recorded: &EventKind) -> bool {
    match (action, recorded) {
        (
            Action::StartSubOrchestration { name, input, .. },
            EventKind::SubOrchestrationScheduled { name: recorded_name, input: recorded_input, .. },
        ) => name == recorded_name && input == recorded_input,
        _ => false,
    }
}
