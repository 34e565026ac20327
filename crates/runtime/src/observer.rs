//! The hook for traces: an observer sees the turns and activities that the store has committed.
//!
//! The runtime calls the observer after the answer of the store, never for a replay and never for a commit that the store refused.
//! Without an observer every call is one branch. The package `outlast-otel` has an observer that exports spans.

use crate::core::Core;
use crate::handler::Attempt;
use async_trait::async_trait;
use outlast_engine::START_NOTE_QUEUE;
use outlast_model::{ErrorDetails, Event, EventKind, TurnCommit, WorkItem};
use outlast_provider::Provider;
use serde::{Deserialize, Serialize};
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// Makes an observer for each runtime, see [`RuntimeOptions::observer`](crate::RuntimeOptions::observer).
pub trait Observe: Send + Sync {
    /// The observer of a runtime that starts on this store.
    fn observer(&self, store: Arc<dyn Provider>) -> Arc<dyn CommitObserver>;
}

/// The future of one run of an activity.
pub type AttemptFuture = Pin<Box<dyn Future<Output = Attempt> + Send>>;

/// Sees committed turns and activities. The methods without `async` run on the path of a commit: they must neither block nor wait.
#[async_trait]
pub trait CommitObserver: Send + Sync {
    /// The store has committed a turn.
    fn turn_committed(&self, turn: CommittedTurn<'_>);

    /// The store has committed the outcome of an activity, or the failure of a run that is tried again.
    fn activity_committed(&self, activity: CommittedActivity<'_>);

    /// The W3C `traceparent` under which a delivery runs. The handler starts after the answer of this call, so an observer that
    /// reads from a store has to bound the time of the read.
    ///
    /// Cancellation safety: the runtime drops the call when it is aborted.
    async fn traceparent(&self, delivery: &ActivityDelivery<'_>) -> Option<String>;

    /// Wraps the run of a handler whose delivery has a `traceparent`, so that the handler runs under that context.
    fn under(&self, _traceparent: &str, run: AttemptFuture) -> AttemptFuture {
        run
    }
}

/// A turn that the store has committed.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct CommittedTurn<'a> {
    /// The instance.
    pub instance: &'a str,
    /// The execution of the turn.
    pub execution_id: u64,
    /// The events that the turn added to the history, never empty. They hold payloads.
    pub events: &'a [Event],
}

/// One delivery of an activity.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ActivityDelivery<'a> {
    /// The instance that scheduled the activity.
    pub instance: &'a str,
    /// The execution that scheduled the activity.
    pub execution_id: u64,
    /// The event that scheduled the activity.
    pub activity_id: u64,
    /// The name of the activity.
    pub activity: &'a str,
    /// The tag of the activity.
    pub tag: Option<&'a str>,
    /// The number of the delivery, counted from 1.
    pub attempt: u32,
}

/// A run of an activity whose end the store has committed.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct CommittedActivity<'a> {
    /// The delivery.
    pub delivery: ActivityDelivery<'a>,
    /// When the handler started, in milliseconds since the epoch by the clock of the runtime.
    pub started_at_ms: u64,
    /// When the handler returned.
    pub ended_at_ms: u64,
    /// The end of the run.
    pub outcome: ActivityOutcome<'a>,
}

/// The end of a run of an activity.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum ActivityOutcome<'a> {
    /// The handler returned a result.
    Completed,
    /// The activity failed. The details hold the text of the failure.
    Failed(&'a ErrorDetails),
    /// The run failed, and the activity is delivered again after this time.
    Retried(Duration),
}

/// A note for traces that travels with the start of an instance, as the first message of the queue [`START_NOTE_QUEUE`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StartNote {
    /// The trace context of the client that started the instance.
    Caller {
        /// The W3C `traceparent`.
        traceparent: String,
        /// When the client sent the start, in milliseconds since the epoch by its clock.
        sent_at_ms: u64,
    },
    /// The event by which an orchestration started this instance detached.
    Starter {
        /// The instance of that orchestration.
        instance: String,
        /// Its execution.
        execution_id: u64,
        /// The event that recorded the start.
        event_id: u64,
    },
}

impl StartNote {
    /// The note of an event, if the event carries one.
    pub fn of(event: &Event) -> Option<Self> {
        match &event.kind {
            EventKind::QueueEventDelivered { name, data } if name == START_NOTE_QUEUE => {
                serde_json::from_str(data).ok()
            }
            _ => None,
        }
    }

    /// The note as a message for the started instance.
    pub(crate) fn message(&self, instance: String) -> Option<WorkItem> {
        let data = serde_json::to_string(self).ok()?;
        Some(WorkItem::QueueMessage { instance, name: START_NOTE_QUEUE.to_string(), data })
    }
}

/// Whether a text is a W3C `traceparent` with ids that are not zero. A later version of the format may have further parts.
pub fn is_traceparent(text: &str) -> bool {
    let is_hex = |part: &str| part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let is_id =
        |part: &str, length| part.len() == length && is_hex(part) && part.bytes().any(|byte| byte != b'0');
    let mut parts = text.splitn(5, '-');
    let (Some(version), Some(trace), Some(span), Some(flags)) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    let is_known = version == "00" && parts.next().is_none();
    let is_later = version.len() == 2 && is_hex(version) && version != "00" && version != "ff";
    (is_known || is_later) && is_id(trace, 32) && is_id(span, 16) && flags.len() == 2 && is_hex(flags)
}

/// Reports a committed turn.
pub(crate) fn turn(core: &Core, instance: &str, commit: &TurnCommit) {
    if let Some(observer) = core.observer.as_ref().filter(|_| !commit.history_delta.is_empty()) {
        let (execution_id, events) = (commit.execution_id, commit.history_delta.as_slice());
        guarded(instance, || observer.turn_committed(CommittedTurn { instance, execution_id, events }));
    }
}

/// Adds a note to the start of each detached instance of a turn, so that its trace can refer to the trace of its starter.
pub(crate) fn note_detached(core: &Core, instance: &str, commit: &mut TurnCommit) {
    if core.observer.is_none() {
        return;
    }
    for event in &commit.history_delta {
        if let EventKind::OrchestrationChained { instance: started, .. } = &event.kind {
            let (execution_id, event_id) = (commit.execution_id, event.event_id);
            let note = StartNote::Starter { instance: instance.to_string(), execution_id, event_id };
            commit.orchestrator_items.extend(note.message(started.clone()));
        }
    }
}

/// The times of a run of an activity. Exists only if the runtime has an observer.
#[derive(Clone, Copy)]
pub(crate) struct Times {
    started_at_ms: u64,
    ended_at_ms: u64,
}

impl Times {
    /// The times of a run that starts now; `None` without an observer.
    pub(crate) fn start(core: &Core) -> Option<Self> {
        core.observer.as_ref()?;
        let now_ms = core.now_ms();
        Some(Self { started_at_ms: now_ms, ended_at_ms: now_ms })
    }

    pub(crate) fn after(self, took: Duration) -> Self {
        let took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        Self { ended_at_ms: self.started_at_ms.saturating_add(took_ms), ..self }
    }
}

/// Reports a run of an activity whose end was committed.
pub(crate) fn activity(
    core: &Core,
    delivery: ActivityDelivery<'_>,
    times: Option<Times>,
    outcome: ActivityOutcome<'_>,
) {
    if let (Some(observer), Some(Times { started_at_ms, ended_at_ms })) = (&core.observer, times) {
        let activity = CommittedActivity { delivery, started_at_ms, ended_at_ms, outcome };
        guarded(delivery.instance, || observer.activity_committed(activity));
    }
}

/// A panic of an observer must not end the task of a commit.
fn guarded(instance: &str, call: impl FnOnce()) {
    if std::panic::catch_unwind(AssertUnwindSafe(call)).is_err() {
        tracing::error!(target: "duroxide::runtime", instance_id = instance, "the observer of the runtime panicked");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_traceparent_has_a_known_shape_and_ids_that_are_not_zero() {
        let (trace, span) = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331");
        assert!(is_traceparent(&format!("00-{trace}-{span}-01")));
        assert!(is_traceparent(&format!("cc-{trace}-{span}-00-more")), "a later version");
        let zero = "0".repeat(32);
        for malformed in [
            String::new(),
            format!("00-{trace}-{span}"),
            format!("00-{trace}-{span}-01-more"),
            format!("00-{trace}-{span}-1"),
            format!("ff-{trace}-{span}-01"),
            format!("0-{trace}-{span}-01"),
            format!("00-{zero}-{span}-01"),
            format!("00-{trace}-{}-01", &zero[..16]),
            format!("00-{}-{span}-01", trace.to_uppercase()),
            format!("00-{span}-{trace}-01"),
        ] {
            assert!(!is_traceparent(&malformed), "{malformed}");
        }
    }

    #[test]
    fn a_note_is_read_back_from_its_event() {
        let note =
            StartNote::Starter { instance: "order: 7 \"x\"".to_string(), execution_id: 2, event_id: 9 };
        let Some(WorkItem::QueueMessage { instance, name, data }) = note.message("mail".to_string()) else {
            panic!("no message")
        };
        assert_eq!((instance.as_str(), name.as_str()), ("mail", START_NOTE_QUEUE));
        let event = |name: String, data| {
            Event::at(1, 2, "mail", 1, None, EventKind::QueueEventDelivered { name, data })
        };
        assert_eq!(StartNote::of(&event(name.clone(), data.clone())), Some(note));
        assert_eq!(StartNote::of(&event(name, "{}".to_string())), None);
        assert_eq!(StartNote::of(&event("orders".to_string(), data)), None);
    }
}
