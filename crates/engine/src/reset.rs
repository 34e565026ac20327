//! Resets and forks: an execution that begins with a copy of the first events of another one.
//!
//! | in the copied events | in the new execution |
//! |---|---|
//! | an activity or a timer without an outcome | is scheduled again |
//! | a child without an outcome that has ended | is answered with its stored outcome |
//! | a child without an outcome that runs | refuses the cut, or is cancelled and answered as cancelled |
//!
//! | after the copied events | in the new execution |
//! |---|---|
//! | a queue message | is sent again, before messages that wait |
//! | an activity that runs | is cancelled by a reset |
//! | a child that runs | refuses a reset, or is cancelled |
//! | a child with an id of its own | refuses the cut: its id is taken when the code starts it again |
//! | a positional event, a detached start | is not repeated |

mod error;
mod keys;
mod plan;

pub use error::CutError;
pub use plan::{Branch, ResetSummary};

use crate::op::entropy::SystemCall;
use crate::op::{HasOutcome, Op, Role};
use crate::receive::system_failure;
use outlast_model::{
    ErrorDetails, Event, EventKind, ScheduledActivityIdentifier, build_child_instance_id,
    is_auto_generated_sub_orch_id,
};
use std::collections::BTreeMap;

/// A history that is cut after one of its events.
#[derive(Debug)]
pub struct Cut<'a> {
    pub(super) kept: &'a [Event],
    pub(super) left: &'a [Event],
    pub(super) has_ended: bool,
    /// Decisions of the kept events without an outcome, by event.
    pub(super) open: BTreeMap<u64, &'a Event>,
    children: Vec<CutChild>,
}

/// A child whose state decides whether and how the history can be cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CutChild {
    /// The event that scheduled it.
    pub event_id: u64,
    /// The instance of the child.
    pub instance: String,
    /// Whether the event is among those that are kept.
    pub is_kept: bool,
    /// Whether the code gave it its id.
    pub has_own_id: bool,
    /// The outcome that the history has after the cut.
    pub(super) outcome: Option<EventKind>,
}

impl CutChild {
    /// Whether the caller must look the state of the child up.
    pub fn is_open(&self) -> bool {
        self.outcome.is_none()
    }
}

/// The state of a child that the history has no outcome of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChildState {
    /// It has completed with this output.
    Completed(String),
    /// It has failed.
    Failed(ErrorDetails),
    /// It runs, its start waits, or the store does not know it.
    Running,
}

impl<'a> Cut<'a> {
    /// Cuts the history of the newest execution of an instance after an event.
    pub fn at(history: &'a [Event], to_event: u64) -> Result<Self, CutError> {
        let last = history.last().map_or(0, |event| event.event_id);
        if to_event == 0 || to_event > last {
            return Err(CutError::OutOfRange { event: to_event, last });
        }
        let terminal = history.iter().position(Event::is_terminal);
        if terminal.is_some_and(|at| is_continued(&history[at].kind)) {
            return Err(CutError::Continues);
        }
        let place = history.partition_point(|event| event.event_id <= to_event);
        let (kept, left) = history.split_at(place);
        refuse_ending(history, kept, terminal)?;
        let open = open_decisions(kept);
        let children = children(kept, left, &open);
        Ok(Self { kept, left, has_ended: terminal.is_some(), open, children })
    }

    /// The children whose state matters, by ascending event.
    pub fn children(&self) -> &[CutChild] {
        &self.children
    }

    /// The activities of the execution that may be in the queue.
    fn running_activities(&self) -> Vec<ScheduledActivityIdentifier> {
        if self.has_ended {
            return Vec::new();
        }
        let open = open_decisions(self.kept.iter().chain(self.left));
        let activities =
            open.into_values().filter(|event| matches!(event.kind, EventKind::ActivityScheduled { .. }));
        activities
            .map(|event| ScheduledActivityIdentifier {
                instance: event.instance_id.clone(),
                execution_id: event.execution_id,
                activity_id: event.event_id,
            })
            .collect()
    }
}

fn is_continued(kind: &EventKind) -> bool {
    matches!(kind, EventKind::OrchestrationContinuedAsNew { .. })
}

/// Refuses a cut behind a request to cancel, or behind the first event of the end of the execution: a failure that the code did not
/// see, an event that may have arrived after the code had returned, the notes of open waits, and the terminal event.
fn refuse_ending(history: &[Event], kept: &[Event], terminal: Option<usize>) -> Result<(), CutError> {
    for event in kept {
        if matches!(event.kind, EventKind::OrchestrationCancelRequested { .. }) {
            return Err(CutError::Cancelled { event: event.event_id });
        }
        if is_system_failure(&event.kind) {
            return Err(CutError::Ending { event: event.event_id });
        }
    }
    let Some(mut first) = terminal else { return Ok(()) };
    while first > 0 && is_note_of_end(&history[first - 1]) {
        first -= 1;
    }
    let first = second_of_last_batch(&history[..first]).unwrap_or(first);
    match kept.len() > first {
        true => Err(CutError::Ending { event: history[first].event_id }),
        false => Ok(()),
    }
}

/// The place of the second event in the batch of the last turn. The code may have returned after the first, and replay refuses events
/// that the code does not see.
fn second_of_last_batch(history: &[Event]) -> Option<usize> {
    let last = (0..history.len()).rev().find(|at| is_received(history, *at))?;
    let mut first = last;
    while first > 0
        && history[first - 1].timestamp_ms == history[last].timestamp_ms
        && is_received(history, first - 1)
    {
        first -= 1;
    }
    (first < last).then_some(first + 1)
}

/// Whether an event came to the code from outside: the start, an arrival, or an outcome that the turn itself did not write.
fn is_received(history: &[Event], at: usize) -> bool {
    let event = &history[at];
    match Op::of_event(&event.kind) {
        Some((_, Role::Arrival)) => true,
        Some((_, Role::Outcome)) => {
            let is_system_call = event.source_event_id.is_some_and(|source| {
                at > 0 && history[at - 1].event_id == source && is_answered_at_once(&history[at - 1].kind)
            });
            !is_system_call
        }
        None => at == 0,
        _ => false,
    }
}

fn is_answered_at_once(decision: &EventKind) -> bool {
    match decision {
        EventKind::ActivityScheduled { name, .. } => SystemCall::answer(name, 0, || 0).is_some(),
        _ => false,
    }
}

fn is_system_failure(kind: &EventKind) -> bool {
    match kind {
        EventKind::ActivityFailed { details } | EventKind::SubOrchestrationFailed { details } => {
            system_failure(details).is_some()
        }
        _ => false,
    }
}

/// Whether an event notes that a wait was open when its execution ended.
fn is_note_of_end(event: &Event) -> bool {
    match Op::of_event(&event.kind) {
        Some((op, Role::Cancellation)) => {
            op.cancellation(crate::drops::DROPPED.to_string()).as_ref() != Some(&event.kind)
        }
        _ => false,
    }
}

/// The operation of a decision, if it waits for an outcome.
fn operation_with_outcome(event: &Event) -> Option<&'static dyn HasOutcome> {
    let (operation, role) = Op::of_event(&event.kind)?;
    operation.with_outcome().filter(|_| role == Role::Decision)
}

/// The decisions that wait for an outcome, and have neither an outcome nor a note of their drop.
fn open_decisions<'e>(events: impl IntoIterator<Item = &'e Event>) -> BTreeMap<u64, &'e Event> {
    let mut open = BTreeMap::new();
    for event in events {
        match event.source_event_id {
            Some(source) => {
                open.remove(&source);
            }
            None if operation_with_outcome(event).is_some() => {
                open.insert(event.event_id, event);
            }
            None => {}
        }
    }
    open
}

/// The children of the kept events that have no outcome there, and all children that were scheduled later.
fn children(kept: &[Event], left: &[Event], open: &BTreeMap<u64, &Event>) -> Vec<CutChild> {
    let outcome_of = |id: u64| {
        let outcome = left.iter().find(|event| {
            event.source_event_id == Some(id) && matches!(Op::of_event(&event.kind), Some((_, Role::Outcome)))
        });
        outcome.map(|event| event.kind.clone()).filter(|kind| !is_system_failure(kind))
    };
    let child = |event: &Event, is_kept: bool| {
        let EventKind::SubOrchestrationScheduled { instance, .. } = &event.kind else { return None };
        Some(CutChild {
            event_id: event.event_id,
            instance: build_child_instance_id(&event.instance_id, instance),
            is_kept,
            has_own_id: !is_auto_generated_sub_orch_id(instance),
            outcome: outcome_of(event.event_id),
        })
    };
    let from_kept = kept.iter().filter(|event| open.contains_key(&event.event_id));
    let from_kept = from_kept.filter_map(|event| child(event, true));
    from_kept.chain(left.iter().filter_map(|event| child(event, false))).collect()
}
