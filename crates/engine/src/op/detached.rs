//! Detached orchestrations: started for good, answered to nobody.

use crate::context::OrchestrationContext;
use crate::state::Site;
use outlast_model::{Action, EventKind, check_instance_id, is_auto_generated_sub_orch_id};
use serde::Serialize;
use std::panic::Location;

impl OrchestrationContext {
    /// Starts an orchestration of its own. A start whose id is taken is ignored.
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

    /// Starts an orchestration of its own with typed input.
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

    /// Starts a given version of an orchestration of its own.
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

    /// Starts a given version of an orchestration of its own with typed input.
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

    /// Starts an orchestration of its own; an id that cannot be used is an error.
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

pub(super) fn event(action: &Action) -> Option<EventKind> {
    let Action::StartOrchestrationDetached { name, instance, input, .. } = action.clone() else {
        return None;
    };
    Some(EventKind::OrchestrationChained { name, instance, input })
}

pub(super) fn matches(action: &Action, recorded: &EventKind) -> bool {
    event(action).is_some_and(|event| event == *recorded)
}
