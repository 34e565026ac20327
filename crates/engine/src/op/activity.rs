//! Activities: work outside of the orchestration, done at least once by some worker.

use crate::context::OrchestrationContext;
use crate::future::{DurableFuture, Raw};
use crate::state::{Site, What};
use outlast_model::{Action, EventKind, ScheduleKind};
use serde::{Serialize, de::DeserializeOwned};
use std::panic::Location;

impl OrchestrationContext {
    /// Runs an activity. It is scheduled by this call; awaiting the future waits for its outcome.
    #[track_caller]
    pub fn schedule_activity(
        &self,
        name: impl Into<String>,
        input: impl Into<String>,
    ) -> DurableFuture<Result<String, String>> {
        self.call_activity(name.into(), input.into(), None, Location::caller())
    }

    /// Runs an activity with typed input and output.
    #[track_caller]
    pub fn schedule_activity_typed<In: Serialize, Out: DeserializeOwned + Send + 'static>(
        &self,
        name: impl Into<String>,
        input: &In,
    ) -> DurableFuture<Result<Out, String>> {
        let (name, input) = (name.into(), self.encoded(input, "activity input"));
        self.decoded(self.call_activity(name, input, None, Location::caller()))
    }

    /// Runs an activity on the worker that owns the session, or makes one own it.
    #[track_caller]
    pub fn schedule_activity_on_session(
        &self,
        name: impl Into<String>,
        input: impl Into<String>,
        session_id: impl Into<String>,
    ) -> DurableFuture<Result<String, String>> {
        self.call_activity(name.into(), input.into(), Some(session_id.into()), Location::caller())
    }

    /// Runs an activity with typed input and output on the worker that owns the session.
    #[track_caller]
    pub fn schedule_activity_on_session_typed<In: Serialize, Out: DeserializeOwned + Send + 'static>(
        &self,
        name: impl Into<String>,
        input: &In,
        session_id: impl Into<String>,
    ) -> DurableFuture<Result<Out, String>> {
        let (name, input) = (name.into(), self.encoded(input, "activity input"));
        self.decoded(self.call_activity(name, input, Some(session_id.into()), Location::caller()))
    }

    pub(crate) fn call_activity(
        &self,
        name: String,
        input: String,
        session_id: Option<String>,
        site: Site,
    ) -> DurableFuture<Result<String, String>> {
        let kind = ScheduleKind::Activity { name: name.clone() };
        let mut state = self.lock();
        state.check_name("activity name", &name);
        state.check_name("session id", session_id.as_deref().unwrap_or_default());
        state.check_payload("input of activity", &name, &input);
        let action = Action::CallActivity { scheduling_event_id: 0, name, input, session_id, tag: None };
        let token = state.ask(What::Activity, action, "schedule_activity", site);
        drop(state);
        DurableFuture::new(self, token, kind, Raw::into_result)
    }
}

impl OrchestrationContext {
    /// A typed future over a textual one.
    pub(crate) fn decoded<Out: DeserializeOwned + Send + 'static>(
        &self,
        future: DurableFuture<Result<String, String>>,
    ) -> DurableFuture<Result<Out, String>> {
        let codec = self.codec();
        future.map(move |result| codec.decode(&result?))
    }

    /// The payload of a typed value.
    ///
    /// # Panics
    ///
    /// If the value cannot be written as JSON: a programming error, such as a map with keys that are not strings.
    #[track_caller]
    pub(crate) fn encoded<T: Serialize + ?Sized>(&self, value: &T, what: &str) -> String {
        match self.codec().encode(value) {
            Ok(text) => text,
            Err(error) => panic!("{what} cannot be written as JSON: {error}"),
        }
    }
}

pub(super) fn event(action: &Action) -> Option<EventKind> {
    let Action::CallActivity { name, input, session_id, tag, .. } = action.clone() else { return None };
    Some(EventKind::ActivityScheduled { name, input, session_id, tag })
}

pub(super) fn matches(action: &Action, recorded: &EventKind) -> bool {
    event(action).is_some_and(|event| event == *recorded)
}

pub(super) fn describe(name: &str, session_id: &Option<String>, tag: &Option<String>) -> String {
    let session = session_id.as_ref().map_or(String::new(), |session| format!(" on session '{session}'"));
    let tag = tag.as_ref().map_or(String::new(), |tag| format!(" with tag '{tag}'"));
    format!("activity '{name}'{session}{tag}")
}
