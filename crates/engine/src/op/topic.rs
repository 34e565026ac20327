//! Positional events with a topic: a kind of wait that only tests know, with which they play a newer contract.

use crate::context::OrchestrationContext;
use crate::future::{DurableFuture, Raw};
use crate::state::What;
use outlast_model::{Action, EventKind, ScheduleKind};
use std::panic::Location;

impl OrchestrationContext {
    /// Waits for an event with this name and topic.
    #[track_caller]
    pub fn schedule_wait2(&self, name: impl Into<String>, topic: impl Into<String>) -> DurableFuture<String> {
        let (name, topic) = (name.into(), topic.into());
        let kind = ScheduleKind::ExternalWait { event_name: name.clone() };
        let what = What::Signal { name: lane(&name, &topic) };
        let action = Action::WaitExternal2 { scheduling_event_id: 0, name, topic };
        let token = self.lock().ask(what, action, "schedule_wait2", Location::caller());
        DurableFuture::new(self, token, kind, Raw::into_data)
    }
}

/// The name of the lane that topic waits use: no name that a client can raise contains a line break and a NUL.
pub(crate) fn lane(name: &str, topic: &str) -> String {
    format!("{name}\n\0{topic}")
}

pub(super) fn event(action: &Action) -> Option<EventKind> {
    let Action::WaitExternal2 { name, topic, .. } = action else { return None };
    Some(EventKind::ExternalSubscribed2 { name: name.clone(), topic: topic.clone() })
}

pub(super) fn matches(action: &Action, recorded: &EventKind) -> bool {
    event(action).is_some_and(|event| event == *recorded)
}
