//! Persistent queues: every message that was sent is read once, in order, however late the code asks for it.
//!
//! | dequeue | what it reads | dropped before |
//! |---|---|---|
//! | the n-th that waits, in the order of their events | the n-th unread message, when it is polled | its place goes to the next |
//!
//! A message is read when a dequeue returns it, and by that dequeue alone.

use super::signal::{expected, undecodable};
use crate::context::OrchestrationContext;
use crate::future::{DurableFuture, Raw};
use crate::state::What;
use crate::version::Rules;
use outlast_model::{Action, EventKind, ScheduleKind};
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, VecDeque};
use std::panic::Location;

impl OrchestrationContext {
    /// Takes the next message of a queue. Messages wait for the code, across continue-as-new too.
    #[track_caller]
    pub fn dequeue_event(&self, queue: impl Into<String>) -> DurableFuture<String> {
        let name = queue.into();
        let kind = ScheduleKind::QueueDequeue { event_name: name.clone() };
        let mut state = self.lock();
        state.check_name("queue name", &name);
        let action = Action::DequeueEvent { scheduling_event_id: 0, name: name.clone() };
        let token = state.ask(What::Queue { name }, action, "dequeue_event", Location::caller());
        drop(state);
        DurableFuture::new(self, token, kind, Raw::into_data)
    }

    /// Takes the next message of a queue and decodes it; an error says what was sent instead.
    #[track_caller]
    pub fn try_dequeue_event_typed<T: DeserializeOwned + Send + 'static>(
        &self,
        queue: impl Into<String>,
    ) -> DurableFuture<Result<T, String>> {
        let name = queue.into();
        let what = format!("message of queue '{name}'");
        let codec = self.codec();
        self.dequeue_event(name).map(move |data| undecodable(codec, &what, &data))
    }

    /// Takes the next message of a queue and decodes it. [`OrchestrationContext::try_dequeue_event_typed`] does not
    /// panic.
    ///
    /// # Panics
    ///
    /// The future panics, which fails the instance, if the message is not what was expected.
    #[track_caller]
    pub fn dequeue_event_typed<T: DeserializeOwned>(
        &self,
        queue: impl Into<String>,
    ) -> impl Future<Output = T> {
        let name = queue.into();
        let what = format!("message of queue '{name}'");
        let message = self.dequeue_event(name);
        let codec = self.codec();
        async move { expected(undecodable(codec, &what, &message.await)) }
    }

    /// [`OrchestrationContext::dequeue_event`] under its old name.
    #[deprecated(note = "use dequeue_event")]
    #[track_caller]
    pub fn schedule_wait_persistent(&self, name: impl Into<String>) -> DurableFuture<String> {
        self.dequeue_event(name)
    }

    /// [`OrchestrationContext::dequeue_event_typed`] under its old name.
    #[deprecated(note = "use dequeue_event_typed")]
    #[track_caller]
    pub fn schedule_wait_persistent_typed<T: DeserializeOwned>(
        &self,
        name: impl Into<String>,
    ) -> impl Future<Output = T> {
        self.dequeue_event_typed(name)
    }
}

pub(super) fn event(action: &Action) -> Option<EventKind> {
    let Action::DequeueEvent { name, .. } = action else { return None };
    Some(EventKind::QueueSubscribed { name: name.clone() })
}

pub(super) fn matches(action: &Action, recorded: &EventKind) -> bool {
    event(action).is_some_and(|event| event == *recorded)
}

/// All dequeues and messages of an execution, by queue.
pub(crate) struct Queues {
    rules: Rules,
    lanes: BTreeMap<String, Lane>,
}

#[derive(Default)]
struct Lane {
    /// Messages that no dequeue returned, oldest first.
    unread: VecDeque<Message>,
    /// Dequeues that returned nothing yet, in the order of their events.
    waiting: VecDeque<Dequeue>,
    /// Under the legacy rules: every message and every dequeue, read or not.
    messages: Vec<Message>,
    dequeues: Vec<Dequeue>,
}

#[derive(Clone)]
struct Message {
    /// Its event: the order across queues.
    event_id: u64,
    data: String,
}

struct Dequeue {
    event_id: u64,
    token: u64,
    /// Only under the legacy rules; a dequeue is removed otherwise.
    cancelled: bool,
}

impl Queues {
    pub(crate) fn new(rules: Rules) -> Self {
        Self { rules, lanes: BTreeMap::new() }
    }

    /// A dequeue has its event now; says whether it may be able to read at once.
    pub(crate) fn bind(&mut self, name: &str, event_id: u64, token: u64, dropped: bool) -> bool {
        let lane = self.lanes.entry(name.to_string()).or_default();
        let dequeue = Dequeue { event_id, token, cancelled: false };
        if self.rules.legacy {
            lane.dequeues.push(dequeue);
            return true;
        }
        if dropped {
            return false;
        }
        lane.waiting.push_back(dequeue);
        lane.waiting.len() <= lane.unread.len()
    }

    /// A message came; returns the dequeue that may read it. Under the legacy rules all of them try.
    pub(crate) fn arrive(&mut self, name: &str, event_id: u64, data: String) -> Option<u64> {
        let lane = self.lanes.entry(name.to_string()).or_default();
        let message = Message { event_id, data };
        if self.rules.legacy {
            lane.messages.push(message);
            return None;
        }
        lane.unread.push_back(message);
        lane.waiting.get(lane.unread.len() - 1).map(|dequeue| dequeue.token)
    }

    /// A dequeue ended without a message; returns the one that has become able to read.
    pub(crate) fn cancel(&mut self, name: &str, event_id: u64) -> Option<u64> {
        let lane = self.lanes.get_mut(name)?;
        if self.rules.legacy {
            for dequeue in lane.dequeues.iter_mut().filter(|dequeue| dequeue.event_id == event_id) {
                dequeue.cancelled = true;
            }
            return None;
        }
        let place = lane.place(event_id)?;
        lane.waiting.remove(place);
        let last_served = lane.unread.len().checked_sub(1)?;
        lane.waiting.get(last_served).filter(|_| place <= last_served).map(|dequeue| dequeue.token)
    }

    /// The message that a dequeue returns now, if there is one for it.
    pub(crate) fn take(&mut self, name: &str, event_id: u64) -> Option<String> {
        let lane = self.lanes.get_mut(name)?;
        if self.rules.legacy {
            let earlier = lane.dequeues.iter().take_while(|dequeue| dequeue.event_id != event_id);
            let place = earlier.filter(|dequeue| !dequeue.cancelled).count();
            return lane.messages.get(place).map(|message| message.data.clone());
        }
        let place = lane.place(event_id)?;
        let message = lane.unread.remove(place)?;
        lane.waiting.remove(place);
        Some(message.data)
    }

    /// What the next execution is given: everything that no dequeue returned, oldest first, with its queue.
    pub(crate) fn unread(&self) -> Vec<(String, String)> {
        let mut unread: Vec<(u64, &str, &str)> = Vec::new();
        for (name, lane) in &self.lanes {
            let active = lane.dequeues.iter().filter(|dequeue| !dequeue.cancelled).count();
            let legacy = lane.messages.iter().skip(active);
            let messages = lane.unread.iter().chain(legacy);
            unread.extend(messages.map(|message| (message.event_id, name.as_str(), message.data.as_str())));
        }
        unread.sort_unstable();
        unread.into_iter().map(|(_, name, data)| (name.to_string(), data.to_string())).collect()
    }
}

impl Lane {
    fn place(&self, event_id: u64) -> Option<usize> {
        self.waiting.binary_search_by_key(&event_id, |dequeue| dequeue.event_id).ok()
    }
}
