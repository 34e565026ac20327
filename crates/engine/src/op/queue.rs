//! Persistent queues: every message is read once, in order, also if it was sent long before its dequeue.
//!
//! The n-th waiting dequeue, in the order of events, reads the n-th unread message when its future is polled. If the code
//! drops a dequeue before that, later dequeues move up by one place.

use super::signal::{decode_sent, expected};
use super::{Bound, Held, Op, Operation};
use crate::context::OrchestrationContext;
use crate::draft::Draft;
use crate::execution::{Execution, Stop};
use crate::future::{DurableFuture, Raw};
use crate::history_summary::HistorySummary;
use crate::receive::Receipt;
use crate::state::Inboxes;
use crate::version::Rules;
use outlast_model::{Action, Event, EventKind, ScheduleKind, WorkItem};
use serde::de::DeserializeOwned;
use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::panic::Location;

/// The queue of the note for traces that travels with a start. No orchestration reads it, and no execution takes it over.
pub const START_NOTE_QUEUE: &str = "__outlast:start";

impl OrchestrationContext {
    /// Takes the next message of a queue. Unread messages are kept, across continue-as-new too.
    #[track_caller]
    pub fn dequeue_event(&self, queue: impl Into<String>) -> DurableFuture<String> {
        let name = queue.into();
        let kind = ScheduleKind::QueueDequeue { event_name: name.clone() };
        let mut state = self.lock();
        state.check_name("queue name", &name);
        let action = Action::DequeueEvent { scheduling_event_id: 0, name: name.clone() };
        let token = state.decide_with_future(Op::Queue, Some(name), action, "dequeue_event", Location::caller());
        drop(state);
        DurableFuture::new(self, token, kind, Raw::into_data)
    }

    /// Takes the next message of a queue and decodes it; the error quotes the decoder.
    #[track_caller]
    pub fn try_dequeue_event_typed<T: DeserializeOwned + Send + 'static>(
        &self,
        queue: impl Into<String>,
    ) -> DurableFuture<Result<T, String>> {
        let name = queue.into();
        let what = format!("message of queue '{name}'");
        let codec = self.codec();
        self.dequeue_event(name).map(move |data| decode_sent(codec, &what, &data))
    }

    /// Takes the next message of a queue and decodes it. [`OrchestrationContext::try_dequeue_event_typed`] does not
    /// panic.
    ///
    /// # Panics
    ///
    /// The future panics, which fails the instance, if the message does not decode as `T`.
    #[track_caller]
    pub fn dequeue_event_typed<T: DeserializeOwned>(
        &self,
        queue: impl Into<String>,
    ) -> impl Future<Output = T> {
        let name = queue.into();
        let what = format!("message of queue '{name}'");
        let message = self.dequeue_event(name);
        let codec = self.codec();
        async move { expected(decode_sent(codec, &what, &message.await)) }
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

pub(crate) struct Queue;

impl Operation for Queue {
    fn name(&self) -> &'static str {
        "wait"
    }

    fn event(&self, action: &Action, _execution_id: u64, _event_id: u64) -> Option<EventKind> {
        let Action::DequeueEvent { name, .. } = action else { return None };
        Some(EventKind::QueueSubscribed { name: name.clone() })
    }

    fn matches(&self, action: &Action, recorded: &EventKind) -> bool {
        self.event(action, 0, 0).is_some_and(|event| event == *recorded)
    }

    fn describe(&self, decision: &EventKind) -> String {
        match decision {
            EventKind::QueueSubscribed { name } => format!("a wait for a message of queue '{name}'"),
            other => other.type_name().to_string(),
        }
    }

    fn note_decision(&self, summary: &mut HistorySummary, event: &Event) {
        summary.expect_outcome(Op::Queue, event.event_id);
    }

    fn bind(&self, inboxes: &mut Inboxes, bound: Bound<'_>) -> Held {
        if inboxes.queues.bind(bound) { Held::Readable } else { Held::Nothing }
    }

    fn take(&self, inboxes: &mut Inboxes, inbox_name: &str, event_id: u64) -> Option<String> {
        inboxes.queues.take(inbox_name, event_id)
    }

    fn release(&self, inboxes: &mut Inboxes, inbox_name: &str, event_id: u64) -> Option<u64> {
        inboxes.queues.cancel(inbox_name, event_id)
    }

    fn inbox_of<'a>(&self, arrival: &'a EventKind) -> Option<(Op, Cow<'a, str>)> {
        let EventKind::QueueEventDelivered { name, .. } = arrival else { return None };
        Some((Op::Queue, Cow::Borrowed(name)))
    }

    fn receive(&self, _execution: &Execution, _draft: &mut Draft, message: WorkItem) -> Receipt {
        let WorkItem::QueueMessage { name, data, .. } = message else { return Receipt::Drop };
        Receipt::record(delivered(name, data))
    }

    fn deliver(&self, execution: &mut Execution, event: Event) -> Result<(), Stop> {
        let EventKind::QueueEventDelivered { name, data } = event.kind else { return Ok(()) };
        let mut state = execution.context.lock();
        let reader = state.inboxes.queues.arrive(&name, event.event_id, data);
        let waker = reader.and_then(|token| state.waker_of(token));
        drop(state);
        execution.wake(waker);
        Ok(())
    }

    fn cancellation(&self, reason: String) -> Option<EventKind> {
        Some(EventKind::QueueSubscriptionCancelled { reason })
    }

    fn dropped_name(&self) -> &'static str {
        "persistent waits"
    }
}

/// The event of a queue message: one that was sent, or one that the previous execution left unread.
pub(crate) fn delivered(name: String, data: String) -> EventKind {
    EventKind::QueueEventDelivered { name, data }
}

/// The message that sends an unread queue message to its instance again.
pub(super) fn message(instance: &str, name: String, data: String) -> WorkItem {
    WorkItem::QueueMessage { instance: instance.to_string(), name, data }
}

/// All dequeues and messages of an execution, by queue.
pub(crate) struct Queues {
    rules: Rules,
    inboxes: BTreeMap<String, Inbox>,
}

#[derive(Default)]
struct Inbox {
    /// Messages that no dequeue has read, oldest first.
    unread: VecDeque<Message>,
    /// Dequeues that have read no message, in the order of their events.
    waiting: VecDeque<Dequeue>,
    /// Under the legacy rules: every message and every dequeue, read or not.
    messages: Vec<Message>,
    dequeues: Vec<Dequeue>,
}

#[derive(Clone)]
struct Message {
    /// The event of the message, which orders messages across queues.
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
        Self { rules, inboxes: BTreeMap::new() }
    }

    /// A dequeue has its event; returns whether a poll of its future may read a message.
    fn bind(&mut self, bound: Bound<'_>) -> bool {
        let Bound { inbox_name, event_id, token, is_dropped } = bound;
        let inbox = self.inboxes.entry(inbox_name.to_string()).or_default();
        let dequeue = Dequeue { event_id, token, cancelled: false };
        if self.rules.legacy {
            inbox.dequeues.push(dequeue);
            return true;
        }
        if is_dropped {
            return false;
        }
        inbox.waiting.push_back(dequeue);
        inbox.waiting.len() <= inbox.unread.len()
    }

    /// Adds a message; returns the token of the dequeue that can read it. Under the legacy rules every dequeue tries.
    fn arrive(&mut self, name: &str, event_id: u64, data: String) -> Option<u64> {
        let inbox = self.inboxes.entry(name.to_string()).or_default();
        let message = Message { event_id, data };
        if self.rules.legacy {
            inbox.messages.push(message);
            return None;
        }
        inbox.unread.push_back(message);
        inbox.waiting.get(inbox.unread.len() - 1).map(|dequeue| dequeue.token)
    }

    /// Removes a dequeue that the code dropped; returns the token of the dequeue that can read a message because of that.
    fn cancel(&mut self, name: &str, event_id: u64) -> Option<u64> {
        let inbox = self.inboxes.get_mut(name)?;
        if self.rules.legacy {
            for dequeue in inbox.dequeues.iter_mut().filter(|dequeue| dequeue.event_id == event_id) {
                dequeue.cancelled = true;
            }
            return None;
        }
        let place = inbox.place(event_id)?;
        inbox.waiting.remove(place);
        let last_served = inbox.unread.len().checked_sub(1)?;
        inbox.waiting.get(last_served).filter(|_| place <= last_served).map(|dequeue| dequeue.token)
    }

    /// Reads the message at the place of a dequeue.
    fn take(&mut self, name: &str, event_id: u64) -> Option<String> {
        let inbox = self.inboxes.get_mut(name)?;
        if self.rules.legacy {
            let earlier = inbox.dequeues.iter().take_while(|dequeue| dequeue.event_id != event_id);
            let place = earlier.filter(|dequeue| !dequeue.cancelled).count();
            return inbox.messages.get(place).map(|message| message.data.clone());
        }
        let place = inbox.place(event_id)?;
        let message = inbox.unread.remove(place)?;
        inbox.waiting.remove(place);
        Some(message.data)
    }

    /// The messages that no dequeue has read, with their queue, oldest first.
    pub(super) fn unread(&self) -> Vec<(String, String)> {
        let mut unread: Vec<(u64, &str, &str)> = Vec::new();
        for (name, inbox) in &self.inboxes {
            let active = inbox.dequeues.iter().filter(|dequeue| !dequeue.cancelled).count();
            let legacy = inbox.messages.iter().skip(active);
            let messages = inbox.unread.iter().chain(legacy);
            unread.extend(messages.map(|message| (message.event_id, name.as_str(), message.data.as_str())));
        }
        unread.sort_unstable();
        unread.into_iter().map(|(_, name, data)| (name.to_string(), data.to_string())).collect()
    }
}

impl Inbox {
    fn place(&self, event_id: u64) -> Option<usize> {
        self.waiting.binary_search_by_key(&event_id, |dequeue| dequeue.event_id).ok()
    }
}
