//! Positional events: the n-th wait for a name gets the n-th event that was raised while a wait was open.
//!
//! | wait | an event arrives | the code drops the wait |
//! |---|---|---|
//! | open (bound, without outcome) | the oldest open wait resolves | the wait is removed; the next event goes to the next wait |
//! | resolved, not read | - | the event is lost |
//! | none open | the event is recorded and not delivered (or kept for the next wait, if the execution buffers) | - |

use super::{Bound, Held, Op, Operation};
use crate::context::OrchestrationContext;
use crate::draft::Draft;
use crate::execution::{Execution, Stop};
use crate::future::{DurableFuture, Raw};
use crate::history_summary::HistorySummary;
use crate::receive::Receipt;
use crate::state::Inboxes;
use crate::version::Rules;
use outlast_model::{Action, Event, EventKind, ScheduleKind, WorkItem, codec::Codec};
use serde::de::DeserializeOwned;
use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::panic::Location;

impl OrchestrationContext {
    /// Waits for an event that a client raises under this name. An event that is raised while no wait is open is not
    /// delivered: prefer [`OrchestrationContext::dequeue_event`].
    #[track_caller]
    pub fn schedule_wait(&self, name: impl Into<String>) -> DurableFuture<String> {
        let name = name.into();
        let kind = ScheduleKind::ExternalWait { event_name: name.clone() };
        let mut state = self.lock();
        state.check_name("event name", &name);
        let action = Action::WaitExternal { scheduling_event_id: 0, name: name.clone() };
        let token = state.decide_with_future(Op::Signal, Some(name), action, "schedule_wait", Location::caller());
        drop(state);
        DurableFuture::new(self, token, kind, Raw::into_data)
    }

    /// Waits for an event and decodes it; the error quotes the decoder.
    #[track_caller]
    pub fn try_schedule_wait_typed<T: DeserializeOwned + Send + 'static>(
        &self,
        name: impl Into<String>,
    ) -> DurableFuture<Result<T, String>> {
        let name = name.into();
        let what = format!("event '{name}'");
        let codec = self.codec();
        self.schedule_wait(name).map(move |data| decode_sent(codec, &what, &data))
    }

    /// Waits for an event and decodes it. [`OrchestrationContext::try_schedule_wait_typed`] does not panic.
    ///
    /// # Panics
    ///
    /// The future panics, which fails the instance, if the data does not decode as `T`.
    #[track_caller]
    pub fn schedule_wait_typed<T: DeserializeOwned + Send + 'static>(
        &self,
        name: impl Into<String>,
    ) -> DurableFuture<T> {
        self.try_schedule_wait_typed(name).map(expected)
    }
}

/// Decodes data that a client sent; the error names the event or the queue.
pub(super) fn decode_sent<T: DeserializeOwned>(codec: Codec, what: &str, data: &str) -> Result<T, String> {
    codec.decode(data).map_err(|error| format!("{what} could not be decoded: {error}"))
}

/// Panics with the error of a wait that has no fallible form.
pub(super) fn expected<T>(decoded: Result<T, String>) -> T {
    match decoded {
        Ok(value) => value,
        Err(error) => panic!("{error}"),
    }
}

pub(crate) struct Signal;

impl Operation for Signal {
    fn name(&self) -> &'static str {
        "wait"
    }

    fn event(&self, action: &Action, _execution_id: u64, _event_id: u64) -> Option<EventKind> {
        let Action::WaitExternal { name, .. } = action else { return None };
        Some(EventKind::ExternalSubscribed { name: name.clone() })
    }

    fn matches(&self, action: &Action, recorded: &EventKind) -> bool {
        self.event(action, 0, 0).is_some_and(|event| event == *recorded)
    }

    fn describe(&self, decision: &EventKind) -> String {
        match decision {
            EventKind::ExternalSubscribed { name } => format!("a wait for event '{name}'"),
            other => other.type_name().to_string(),
        }
    }

    fn note_decision(&self, summary: &mut HistorySummary, event: &Event) {
        summary.expect_outcome(Op::Signal, event.event_id);
    }

    fn bind(&self, inboxes: &mut Inboxes, bound: Bound<'_>) -> Held {
        inboxes.signals.bind(bound).map_or(Held::Nothing, Held::Data)
    }

    fn take(&self, inboxes: &mut Inboxes, inbox_name: &str, event_id: u64) -> Option<String> {
        inboxes.signals.take(inbox_name, event_id)
    }

    fn release(&self, inboxes: &mut Inboxes, inbox_name: &str, event_id: u64) -> Option<u64> {
        inboxes.signals.cancel(inbox_name, event_id);
        None
    }

    fn inbox_of<'a>(&self, arrival: &'a EventKind) -> Option<(Op, Cow<'a, str>)> {
        let EventKind::ExternalEvent { name, .. } = arrival else { return None };
        Some((Op::Signal, Cow::Borrowed(name)))
    }

    fn receive(&self, _execution: &Execution, _draft: &mut Draft, message: WorkItem) -> Receipt {
        let WorkItem::ExternalRaised { name, data, .. } = message else { return Receipt::Drop };
        Receipt::record(EventKind::ExternalEvent { name, data })
    }

    fn deliver(&self, execution: &mut Execution, event: Event) -> Result<(), Stop> {
        if let EventKind::ExternalEvent { name, data } = event.kind {
            arrive(execution, &name, data);
        }
        Ok(())
    }

    fn cancellation(&self, reason: String) -> Option<EventKind> {
        Some(EventKind::ExternalSubscribedCancelled { reason })
    }

    fn dropped_name(&self) -> &'static str {
        "external waits"
    }
}

/// Gives an event to the oldest open wait of its inbox.
pub(super) fn arrive(execution: &mut Execution, inbox_name: &str, data: String) {
    let mut state = execution.context.lock();
    let waker = match state.inboxes.signals.arrive(inbox_name, data) {
        Arrival::Answers { token, data } => state.settle(token, Raw::Data(data)),
        Arrival::Accepted => None,
        Arrival::Kept => return,
        Arrival::Unwanted => {
            if !execution.after_stored {
                state.warnings.push(format!(
                    "event '{inbox_name}' was raised while no wait for it was open, and is not delivered"
                ));
            }
            return;
        }
    };
    drop(state);
    execution.wake(waker);
}

/// All waits and events of an execution, by name.
pub(crate) struct Signals {
    rules: Rules,
    inboxes: BTreeMap<String, Inbox>,
}

#[derive(Default)]
struct Inbox {
    /// Open waits, oldest first.
    open: VecDeque<Wait>,
    /// Events that arrived before their wait, if the execution buffers.
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

/// The effect of an event that arrives.
enum Arrival {
    /// The event resolves this wait.
    Answers { token: u64, data: String },
    /// Under the legacy rules: a wait reads the event when its future is polled.
    Accepted,
    /// The event is kept for a later wait.
    Kept,
    /// No wait is open.
    Unwanted,
}

impl Signals {
    pub(crate) fn new(rules: Rules) -> Self {
        Self { rules, inboxes: BTreeMap::new() }
    }

    /// A wait has its event; returns the data of an early event, if there is one.
    fn bind(&mut self, bound: Bound<'_>) -> Option<String> {
        let Bound { inbox_name, event_id, token, is_dropped } = bound;
        let inbox = self.inboxes.entry(inbox_name.to_string()).or_default();
        let wait = Wait { event_id, token, cancelled: false };
        if self.rules.legacy {
            inbox.all.push(wait);
            return None;
        }
        if is_dropped {
            return None;
        }
        let early = inbox.early.pop_front();
        if early.is_none() {
            inbox.open.push_back(wait);
        }
        early
    }

    fn arrive(&mut self, name: &str, data: String) -> Arrival {
        if self.rules.buffers_early_signals && !self.inboxes.contains_key(name) {
            self.inboxes.insert(name.to_string(), Inbox::default());
        }
        let Some(inbox) = self.inboxes.get_mut(name) else { return Arrival::Unwanted };
        if self.rules.legacy {
            let active = inbox.all.iter().filter(|wait| !wait.cancelled).count();
            if active <= inbox.accepted.len() {
                return Arrival::Unwanted;
            }
            inbox.accepted.push(data);
            return Arrival::Accepted;
        }
        match inbox.open.pop_front() {
            Some(wait) => Arrival::Answers { token: wait.token, data },
            None if self.rules.buffers_early_signals => {
                inbox.early.push_back(data);
                Arrival::Kept
            }
            None => Arrival::Unwanted,
        }
    }

    /// Whether a wait of this name was ever bound.
    #[cfg(feature = "replay-version-test")]
    pub(super) fn has_inbox(&self, name: &str) -> bool {
        self.inboxes.contains_key(name)
    }

    /// Removes a wait that its code dropped.
    fn cancel(&mut self, name: &str, event_id: u64) {
        let Some(inbox) = self.inboxes.get_mut(name) else { return };
        inbox.open.retain(|wait| wait.event_id != event_id);
        for wait in inbox.all.iter_mut().filter(|wait| wait.event_id == event_id) {
            wait.cancelled = true;
        }
    }

    /// Under the legacy rules: the data at the place of a wait.
    fn take(&mut self, name: &str, event_id: u64) -> Option<String> {
        let inbox = self.inboxes.get(name).filter(|_| self.rules.legacy)?;
        let place = inbox.all.iter().position(|wait| wait.event_id == event_id)?;
        let given_up = inbox.all[..place].iter().filter(|wait| wait.cancelled).count();
        inbox.accepted.get(place - given_up).cloned()
    }
}
