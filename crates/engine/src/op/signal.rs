//! Positional events: the n-th wait for a name gets the n-th event that was raised while a wait was open.
//!
//! | wait | event arrives | dropped |
//! |---|---|---|
//! | open (bound, unanswered) | the oldest open one is answered | closed; the next event goes to the next wait |
//! | answered, not read | - | the event is gone with it |
//! | none open | recorded, delivered to nobody (or kept for the next wait, if the execution buffers) | - |

use crate::context::OrchestrationContext;
use crate::future::{DurableFuture, Raw};
use crate::state::What;
use crate::version::Rules;
use outlast_model::{Action, EventKind, ScheduleKind, codec::Codec};
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, VecDeque};
use std::panic::Location;

impl OrchestrationContext {
    /// Waits for an event that a client raises under this name. Events raised while nobody waits are not delivered:
    /// prefer [`OrchestrationContext::dequeue_event`] unless that is wanted.
    #[track_caller]
    pub fn schedule_wait(&self, name: impl Into<String>) -> DurableFuture<String> {
        let name = name.into();
        let kind = ScheduleKind::ExternalWait { event_name: name.clone() };
        let mut state = self.lock();
        state.check_name("event name", &name);
        let action = Action::WaitExternal { scheduling_event_id: 0, name: name.clone() };
        let token = state.ask(What::Signal { name }, action, "schedule_wait", Location::caller());
        drop(state);
        DurableFuture::new(self, token, kind, Raw::into_data)
    }

    /// Waits for an event and decodes it; an error says what was sent instead.
    #[track_caller]
    pub fn try_schedule_wait_typed<T: DeserializeOwned + Send + 'static>(
        &self,
        name: impl Into<String>,
    ) -> DurableFuture<Result<T, String>> {
        let name = name.into();
        let what = format!("event '{name}'");
        let codec = self.codec();
        self.schedule_wait(name).map(move |data| undecodable(codec, &what, &data))
    }

    /// Waits for an event and decodes it. [`OrchestrationContext::try_schedule_wait_typed`] does not panic.
    ///
    /// # Panics
    ///
    /// The future panics, which fails the instance, if the data is not what was expected.
    #[track_caller]
    pub fn schedule_wait_typed<T: DeserializeOwned + Send + 'static>(
        &self,
        name: impl Into<String>,
    ) -> DurableFuture<T> {
        self.try_schedule_wait_typed(name).map(expected)
    }
}

/// Decodes data that somebody sent.
pub(super) fn undecodable<T: DeserializeOwned>(codec: Codec, what: &str, data: &str) -> Result<T, String> {
    codec.decode(data).map_err(|error| format!("{what} could not be decoded: {error}"))
}

/// What the panicking waits do with data of another shape.
pub(super) fn expected<T>(decoded: Result<T, String>) -> T {
    match decoded {
        Ok(value) => value,
        Err(error) => panic!("{error}"),
    }
}

pub(super) fn event(action: &Action) -> Option<EventKind> {
    let Action::WaitExternal { name, .. } = action else { return None };
    Some(EventKind::ExternalSubscribed { name: name.clone() })
}

pub(super) fn matches(action: &Action, recorded: &EventKind) -> bool {
    event(action).is_some_and(|event| event == *recorded)
}

/// All waits and events of an execution, by name.
pub(crate) struct Signals {
    rules: Rules,
    lanes: BTreeMap<String, Lane>,
}

#[derive(Default)]
struct Lane {
    /// Open waits, oldest first.
    open: VecDeque<Wait>,
    /// Events that came before their wait, if the execution buffers.
    early: VecDeque<String>,
    /// Under the legacy rules: all waits, and all events that were accepted.
    all: Vec<Wait>,
    accepted: Vec<String>,
}

struct Wait {
    event_id: u64,
    token: u64,
    /// Only under the legacy rules; a wait is removed otherwise.
    cancelled: bool,
}

/// What became of an event.
pub(crate) enum Arrival {
    /// It answers this wait.
    Answers { token: u64, data: String },
    /// It was accepted; under the legacy rules some wait reads it when the code runs.
    Accepted,
    /// It is kept for a wait to come.
    Kept,
    /// Nobody waits.
    Unwanted,
}

impl Signals {
    pub(crate) fn new(rules: Rules) -> Self {
        Self { rules, lanes: BTreeMap::new() }
    }

    /// A wait has its event now; returns the data if an early event is there for it.
    pub(crate) fn bind(&mut self, name: &str, event_id: u64, token: u64, dropped: bool) -> Option<String> {
        let lane = self.lanes.entry(name.to_string()).or_default();
        let wait = Wait { event_id, token, cancelled: false };
        if self.rules.legacy {
            lane.all.push(wait);
            return None;
        }
        if dropped {
            return None;
        }
        let early = lane.early.pop_front();
        if early.is_none() {
            lane.open.push_back(wait);
        }
        early
    }

    pub(crate) fn arrive(&mut self, name: &str, data: String) -> Arrival {
        if self.rules.buffers_early_signals && !self.lanes.contains_key(name) {
            self.lanes.insert(name.to_string(), Lane::default());
        }
        let Some(lane) = self.lanes.get_mut(name) else { return Arrival::Unwanted };
        if self.rules.legacy {
            let active = lane.all.iter().filter(|wait| !wait.cancelled).count();
            if active <= lane.accepted.len() {
                return Arrival::Unwanted;
            }
            lane.accepted.push(data);
            return Arrival::Accepted;
        }
        match lane.open.pop_front() {
            Some(wait) => Arrival::Answers { token: wait.token, data },
            None if self.rules.buffers_early_signals => {
                lane.early.push_back(data);
                Arrival::Kept
            }
            None => Arrival::Unwanted,
        }
    }

    /// Whether there was ever a wait of this name.
    #[cfg(feature = "replay-version-test")]
    pub(crate) fn knows(&self, name: &str) -> bool {
        self.lanes.contains_key(name)
    }

    /// A wait ended without an answer.
    pub(crate) fn cancel(&mut self, name: &str, event_id: u64) {
        let Some(lane) = self.lanes.get_mut(name) else { return };
        lane.open.retain(|wait| wait.event_id != event_id);
        for wait in lane.all.iter_mut().filter(|wait| wait.event_id == event_id) {
            wait.cancelled = true;
        }
    }

    /// Under the legacy rules, the data that a wait would read now.
    pub(crate) fn take(&mut self, name: &str, event_id: u64) -> Option<String> {
        let lane = self.lanes.get(name).filter(|_| self.rules.legacy)?;
        let place = lane.all.iter().position(|wait| wait.event_id == event_id)?;
        let given_up = lane.all[..place].iter().filter(|wait| wait.cancelled).count();
        lane.accepted.get(place - given_up).cloned()
    }
}
