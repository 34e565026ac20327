//! Compares two histories event by event.

use outlast_model::{Event, EventKind};
use serde::Serialize;

/// The events of two histories side by side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diff {
    /// The position, from 1, of the first event that differs by more than its payload; `None` if there is none.
    pub first_difference: Option<usize>,
    /// The position of the first event whose payload differs, of those before `first_difference`.
    pub first_payload_difference: Option<usize>,
    /// One row for each position.
    pub rows: Vec<DiffRow>,
}

/// The events at one position.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DiffRow {
    /// The event of the first history; `None` after its end.
    pub left: Option<EventLine>,
    /// The event of the second history; `None` after its end.
    pub right: Option<EventLine>,
    /// The result of the comparison.
    pub comparison: Comparison,
}

/// The result of the comparison of two events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Comparison {
    /// The events are equal, apart from times and from the id of their instance.
    Same,
    /// The events differ in a text of the user only: an input, output, error, value or reason.
    Payload,
    /// The events differ in their type, name, source event or target.
    Different,
}

/// An event without its payload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EventLine {
    /// Its id.
    pub event_id: u64,
    /// The event that it answers.
    pub source_event_id: Option<u64>,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its name, and the target, tag or session of an operation.
    pub details: String,
}

/// Compares two histories position by position.
///
/// Decisions are compared, and payloads beside them: two runs of one orchestration have other inputs and still take the same way.
/// Times never differ, because each run has its own.
pub fn diff(left: &[Event], right: &[Event]) -> Diff {
    let rows: Vec<DiffRow> = (0..left.len().max(right.len()))
        .map(|index| {
            let (left, right) = (left.get(index), right.get(index));
            DiffRow {
                left: left.map(EventLine::of),
                right: right.map(EventLine::of),
                comparison: compare(left, right),
            }
        })
        .collect();
    let first = |wanted: Comparison| rows.iter().position(|row| row.comparison == wanted);
    let first_difference = first(Comparison::Different);
    let first_payload = first(Comparison::Payload)
        .filter(|payload| first_difference.is_none_or(|different| *payload < different));
    let counted = |index: Option<usize>| index.map(|index| index + 1);
    Diff {
        first_difference: counted(first_difference),
        first_payload_difference: counted(first_payload),
        rows,
    }
}

fn compare(left: Option<&Event>, right: Option<&Event>) -> Comparison {
    let (Some(left), Some(right)) = (left, right) else { return Comparison::Different };
    let is_same_line = EventLine::of(left) == EventLine::of(right);
    match (is_same_line, without_times(&left.kind) == without_times(&right.kind)) {
        (false, _) => Comparison::Different,
        (true, true) => Comparison::Same,
        (true, false) => Comparison::Payload,
    }
}

/// The kind without the times of its run and without the ids of other instances: the line of the event has those that count.
fn without_times(kind: &EventKind) -> EventKind {
    let mut kind = kind.clone();
    match &mut kind {
        EventKind::TimerCreated { fire_at_ms } | EventKind::TimerFired { fire_at_ms } => *fire_at_ms = 0,
        EventKind::KeyValueSet { last_updated_at_ms, .. } => *last_updated_at_ms = 0,
        EventKind::OrchestrationStarted { parent_instance, parent_id, parent_execution_id, .. } => {
            (*parent_instance, *parent_id, *parent_execution_id) = (None, None, None);
        }
        EventKind::SubOrchestrationScheduled { instance, .. }
        | EventKind::OrchestrationChained { instance, .. } => {
            instance.clear();
        }
        _ => {}
    }
    kind
}

impl EventLine {
    /// The line of an event.
    pub fn of(event: &Event) -> Self {
        Self {
            event_id: event.event_id,
            source_event_id: event.source_event_id,
            kind: event.kind.type_name().to_string(),
            details: details(event),
        }
    }
}

/// The texts of an event that are no payload.
fn details(event: &Event) -> String {
    let label = |label: &str, value: &Option<String>| {
        value.as_ref().map_or(String::new(), |value| format!(" {label}={value}"))
    };
    match &event.kind {
        EventKind::OrchestrationStarted { name, version, .. } => format!("{name} {version}"),
        EventKind::ActivityScheduled { name, session_id, tag, .. } => {
            format!("{name}{}{}", label("tag", tag), label("session", session_id))
        }
        EventKind::SubOrchestrationScheduled { name, instance, .. }
        | EventKind::OrchestrationChained { name, instance, .. } => {
            // An id that begins with that of its parent differs between two parents.
            let own = instance.strip_prefix(&event.instance_id).unwrap_or(instance);
            format!("{name} {own}")
        }
        EventKind::ExternalSubscribed { name }
        | EventKind::QueueSubscribed { name }
        | EventKind::ExternalEvent { name, .. }
        | EventKind::QueueEventDelivered { name, .. } => name.clone(),
        EventKind::KeyValueSet { key, .. } | EventKind::KeyValueCleared { key } => key.clone(),
        EventKind::OrchestrationFailed { details }
        | EventKind::ActivityFailed { details }
        | EventKind::SubOrchestrationFailed { details } => details.category().to_string(),
        _ => String::new(),
    }
}
