//! The ids and counts of a store operation that its tracing span shows. Payloads are never shown.

use outlast_model::{Event, SystemStats, WorkItem};
use outlast_provider::{
    BoundedTurn, Completion, EagerStart, EnqueueOnce, FetchedTurn, FetchedWork, FusedCompletion, HoldOutcome,
    InstanceOutcome, LoadedTurn, OrchestrationItem, StartOutcome, TurnCommit,
};
use std::collections::HashMap;
use tracing::Span;

/// The ids and counts of an operation; `None` for those that it does not have.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Subject<'a> {
    pub(super) instance: Option<&'a str>,
    pub(super) execution: Option<u64>,
    pub(super) activity: Option<u64>,
    pub(super) events: Option<usize>,
    pub(super) messages: Option<usize>,
    pub(super) activities: Option<usize>,
    pub(super) attempt: Option<u32>,
}

impl<'a> Subject<'a> {
    pub(super) fn instance(instance: &'a str) -> Self {
        Self { instance: Some(instance), ..Self::default() }
    }

    pub(super) fn execution(instance: &'a str, execution: u64) -> Self {
        Self { execution: Some(execution), ..Self::instance(instance) }
    }

    /// A commit of a turn. A wrapper cannot read the instance from the token, so this takes the instance from the events or activities.
    pub(super) fn commit(
        execution: u64,
        events: &'a [Event],
        activities: &'a [WorkItem],
        messages: usize,
    ) -> Self {
        let of_event = events.first().map(|event| event.instance_id.as_str());
        Self {
            instance: of_event.or_else(|| activities.first().map(WorkItem::target_instance)),
            execution: Some(execution),
            events: Some(events.len()),
            messages: Some(messages),
            activities: Some(activities.len()),
            ..Self::default()
        }
    }

    pub(super) fn turn(commit: &'a TurnCommit) -> Self {
        let messages = commit.orchestrator_items.len();
        Self::commit(commit.execution_id, &commit.history_delta, &commit.worker_items, messages)
    }

    pub(super) fn message(item: &'a WorkItem) -> Self {
        let (execution, activity) = match item {
            WorkItem::ActivityExecute { execution_id, id, .. }
            | WorkItem::ActivityCompleted { execution_id, id, .. }
            | WorkItem::ActivityFailed { execution_id, id, .. } => (Some(*execution_id), Some(*id)),
            WorkItem::TimerFired { execution_id, .. } => (Some(*execution_id), None),
            WorkItem::SubOrchCompleted { parent_execution_id, .. }
            | WorkItem::SubOrchFailed { parent_execution_id, .. } => (Some(*parent_execution_id), None),
            _ => (None, None),
        };
        Self { execution, activity, ..Self::instance(item.target_instance()) }
    }

    /// Records the ids and counts in the span of the operation.
    pub(super) fn record(self, span: &Span) {
        // `None` does not change a field.
        span.record("instance_id", self.instance);
        span.record("execution_id", self.execution);
        span.record("activity_id", self.activity);
        span.record("events", self.events);
        span.record("messages", self.messages);
        span.record("activities", self.activities);
        span.record("attempt", self.attempt);
    }
}

/// A result of a store operation, whose ids and counts the span of the operation shows.
pub(super) trait Found {
    fn subject(&self) -> Subject<'_> {
        Subject::default()
    }
}

impl Found for () {}
impl Found for bool {}
impl Found for usize {}
impl Found for Completion {}
impl Found for FusedCompletion {}
impl Found for EagerStart {}
impl Found for EnqueueOnce {}
impl Found for HoldOutcome {}
impl Found for StartOutcome {}
impl Found for Option<u64> {}
impl Found for Option<String> {}
impl Found for Option<(Option<String>, u64)> {}
impl Found for HashMap<String, String> {}
impl Found for Option<SystemStats> {}

impl Found for Option<InstanceOutcome> {
    fn subject(&self) -> Subject<'_> {
        Subject { execution: self.as_ref().map(|outcome| outcome.execution_id), ..Subject::default() }
    }
}

impl Found for Vec<Event> {
    fn subject(&self) -> Subject<'_> {
        let execution = self.first().map(|event| event.execution_id);
        Subject { execution, events: Some(self.len()), ..Subject::default() }
    }
}

impl Found for LoadedTurn {
    fn subject(&self) -> Subject<'_> {
        Subject { events: Some(self.history.len()), ..Subject::default() }
    }
}

impl Found for BoundedTurn {
    fn subject(&self) -> Subject<'_> {
        match self {
            Self::Whole(loaded) => loaded.subject(),
            Self::Oversized(turn) => {
                Subject { events: usize::try_from(turn.events).ok(), ..Subject::default() }
            }
        }
    }
}

fn fetched(item: &OrchestrationItem, attempt: u32, history_loaded: bool) -> Subject<'_> {
    Subject {
        events: history_loaded.then_some(item.history.len()),
        messages: Some(item.messages.len()),
        attempt: Some(attempt),
        ..Subject::execution(&item.instance, item.execution_id)
    }
}

impl Found for Option<(OrchestrationItem, String, u32)> {
    fn subject(&self) -> Subject<'_> {
        match self {
            Some((item, _, attempt)) => fetched(item, *attempt, true),
            None => Subject { messages: Some(0), ..Subject::default() },
        }
    }
}

impl Found for Option<FetchedTurn> {
    fn subject(&self) -> Subject<'_> {
        match self {
            Some(turn) => fetched(&turn.item, turn.attempt_count, turn.history_loaded),
            None => Subject { messages: Some(0), ..Subject::default() },
        }
    }
}

impl Found for Option<(WorkItem, String, u32)> {
    fn subject(&self) -> Subject<'_> {
        match self {
            Some((item, _, attempt)) => {
                Subject { activities: Some(1), attempt: Some(*attempt), ..Subject::message(item) }
            }
            None => Subject { activities: Some(0), ..Subject::default() },
        }
    }
}

impl Found for Vec<FetchedWork> {
    /// A batch may belong to several instances, so only its size is shown.
    fn subject(&self) -> Subject<'_> {
        let activities = Some(self.len());
        match self.as_slice() {
            [one] => Subject { activities, attempt: Some(one.attempt_count), ..Subject::message(&one.item) },
            _ => Subject { activities, ..Subject::default() },
        }
    }
}
