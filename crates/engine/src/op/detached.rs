//! Detached orchestrations: instances without a parent. The orchestration that starts one gets no outcome.

use super::Operation;
use crate::context::OrchestrationContext;
use crate::draft::{Draft, Recorded};
use crate::execution::Execution;
use crate::finish::Closing;
use crate::state::Site;
use outlast_model::defect::{self, Defect};
use outlast_model::{
    Action, EventKind, INITIAL_EXECUTION_ID, WorkItem, check_instance_id, is_auto_generated_sub_orch_id,
};
use serde::Serialize;
use std::panic::Location;

impl OrchestrationContext {
    /// Starts a detached orchestration. A start is ignored if an instance with the id exists.
    ///
    /// # Panics
    ///
    /// If the id uses the reserved marker `sub::`; [`OrchestrationContext::try_schedule_orchestration`] does not panic.
    #[track_caller]
    pub fn schedule_orchestration(
        &self,
        name: impl Into<String>,
        instance: impl Into<String>,
        input: impl Into<String>,
    ) {
        self.detach(name.into(), None, instance.into(), input.into(), Location::caller());
    }

    /// Starts a detached orchestration with typed input.
    ///
    /// # Panics
    ///
    /// As [`OrchestrationContext::schedule_orchestration`].
    #[track_caller]
    pub fn schedule_orchestration_typed<In: Serialize>(
        &self,
        name: impl Into<String>,
        instance: impl Into<String>,
        input: &In,
    ) {
        let input = self.encoded(input, "orchestration input");
        self.detach(name.into(), None, instance.into(), input, Location::caller());
    }

    /// Starts a given version of a detached orchestration.
    ///
    /// # Panics
    ///
    /// As [`OrchestrationContext::schedule_orchestration`].
    #[track_caller]
    pub fn schedule_orchestration_versioned(
        &self,
        name: impl Into<String>,
        version: Option<String>,
        instance: impl Into<String>,
        input: impl Into<String>,
    ) {
        self.detach(name.into(), version, instance.into(), input.into(), Location::caller());
    }

    /// Starts a given version of a detached orchestration with typed input.
    ///
    /// # Panics
    ///
    /// As [`OrchestrationContext::schedule_orchestration`].
    #[track_caller]
    pub fn schedule_orchestration_versioned_typed<In: Serialize>(
        &self,
        name: impl Into<String>,
        version: Option<String>,
        instance: impl Into<String>,
        input: &In,
    ) {
        let input = self.encoded(input, "orchestration input");
        self.detach(name.into(), version, instance.into(), input, Location::caller());
    }

    /// Starts a detached orchestration; an id that is not accepted is an error.
    #[track_caller]
    pub fn try_schedule_orchestration(
        &self,
        name: impl Into<String>,
        version: Option<String>,
        instance: impl Into<String>,
        input: impl Into<String>,
    ) -> Result<(), String> {
        self.try_detach(name.into(), version, instance.into(), input.into(), Location::caller())
    }

    #[track_caller]
    fn detach(&self, name: String, version: Option<String>, instance: String, input: String, site: Site) {
        if let Err(refusal) = self.try_detach(name, version, instance, input, site) {
            panic!("{refusal}");
        }
    }

    fn try_detach(
        &self,
        name: String,
        version: Option<String>,
        instance: String,
        input: String,
        site: Site,
    ) -> Result<(), String> {
        if is_auto_generated_sub_orch_id(&instance) || instance.contains("::sub::") {
            return Err(format!(
                "detached orchestration instance id '{instance}' uses the reserved sub-orchestration marker 'sub::'; \
                 root instance ids must not start with it or contain '::sub::'"
            ));
        }
        check_instance_id(&instance).map_err(|error| format!("detached orchestration {error}"))?;
        let mut state = self.lock();
        state.check_name("orchestration name", &name);
        state.check_payload("input of detached orchestration", &name, &input);
        let action =
            Action::StartOrchestrationDetached { scheduling_event_id: 0, name, version, instance, input };
        state.decide(action, "schedule_orchestration", site);
        Ok(())
    }
}

pub(crate) struct Detached;

impl Operation for Detached {
    fn name(&self) -> &'static str {
        "detached orchestration"
    }

    fn event(&self, action: &Action, _execution_id: u64, _event_id: u64) -> Option<EventKind> {
        let Action::StartOrchestrationDetached { name, instance, input, .. } = action.clone() else {
            return None;
        };
        Some(EventKind::OrchestrationChained { name, instance, input })
    }

    fn matches(&self, action: &Action, recorded: &EventKind) -> bool {
        self.event(action, 0, 0).is_some_and(|event| event == *recorded)
    }

    fn describe(&self, decision: &EventKind) -> String {
        match decision {
            EventKind::OrchestrationChained { name, instance, .. } => {
                format!("a detached orchestration '{name}' with id '{instance}'")
            }
            other => other.type_name().to_string(),
        }
    }

    fn missing(&self) -> &'static str {
        "history OrchestrationChained but no emitted action"
    }

    fn send(&self, _execution: &Execution, draft: &mut Draft, decision: Recorded) {
        draft.commit.orchestrator_items.extend(start(decision.action));
    }

    /// Detached orchestrations are started however the execution ends.
    fn end(&self, _closing: &mut Closing<'_>, draft: &mut Draft) {
        if defect::is_on(Defect::DetachedStartLost) {
            return;
        }
        let starts = draft.recorded.iter().filter_map(|decision| start(decision.action.clone()));
        draft.commit.orchestrator_items.extend(starts);
    }
}

fn start(action: Action) -> Option<WorkItem> {
    let Action::StartOrchestrationDetached { name, version, instance, input, .. } = action else {
        return None;
    };
    Some(WorkItem::StartOrchestration {
        instance,
        orchestration: name,
        input,
        version,
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: INITIAL_EXECUTION_ID,
    })
}
