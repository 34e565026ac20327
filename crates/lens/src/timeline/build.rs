//! Builds the spans of a timeline from the operations of a history.

use super::{Span, SpanKind, SpanStatus, Timeline, TimelineOptions, groups, layout, retries};
use crate::open::Operation;
use crate::operations::{Ending, Started, operations};
use crate::steps::step;
use outlast_model::{Event, EventKind};

/// The timeline of an execution at a time. The cost grows with the number of events.
///
/// | span | from | to |
/// |---|---|---|
/// | activity, child, wait, queue | its decision | its outcome, or its cancellation |
/// | activity with retries | its first decision | the outcome of the last try; the timers between the tries have no span |
/// | timer | its decision | its fired event |
/// | detached, continue-as-new | its decision | the same time |
///
/// The retries of a policy are not marked in a history. An activity is taken for a retry if it has the name and input of an activity
/// that failed, and a timer lies between the two: the turn that received the failure set it, and it fired. A policy without a delay sets no
/// timer; there the turn that received the failure schedules the retry.
pub fn timeline(history: &[Event], now_ms: u64, options: &TimelineOptions) -> Timeline {
    let end = history.last().filter(|last| last.is_terminal());
    let from_ms = history.iter().map(|event| event.timestamp_ms).min().unwrap_or(now_ms);
    let latest_ms = history.iter().map(|event| event.timestamp_ms).max().unwrap_or(now_ms);
    let to_ms = if end.is_some() { latest_ms } else { latest_ms.max(now_ms) };

    let operations = operations(history).all;
    let spans = match options.folds_retries {
        true => retries::fold(history, &operations, end),
        false => operations.iter().filter_map(|started| span_of(started, end)).collect(),
    };
    let mut spans = with_points(spans, history);
    spans.sort_by_key(|span| (span.start_ms, span.event_id));

    let gaps = layout::gaps(history, &spans, from_ms, to_ms);
    let bins = layout::bins(&spans, from_ms, to_ms, options.bins);
    let is_grouped = spans.len() > options.most_spans;
    if is_grouped {
        spans = groups::by_name(spans, options.most_spans);
    }
    let lanes = layout::assign_lanes(&mut spans);
    let is_running = end.is_none();
    Timeline {
        from_ms,
        to_ms,
        now_ms,
        is_running,
        events: history.len(),
        spans,
        is_grouped,
        lanes,
        gaps,
        bins,
    }
}

/// The span of an operation in an execution that ends with the event `end`.
pub(super) fn span_of(started: &Started<'_>, end: Option<&Event>) -> Option<Span> {
    let event = started.event;
    let (kind, name, instance, due_ms) = match Operation::of(event)? {
        Operation::Activity { name, .. } => (SpanKind::Activity, name, None, None),
        Operation::Timer { fire_at_ms } => (SpanKind::Timer, String::new(), None, Some(fire_at_ms)),
        Operation::Event { name } => (SpanKind::Wait, name, None, None),
        Operation::Queue { name } => (SpanKind::Queue, name, None, None),
        Operation::Child { name, instance } => (SpanKind::Child, name, Some(instance), None),
    };
    let (end_ms, status) = match (started.end, end) {
        (Some(ended), _) => (Some(ended.at_ms), ended.how.into()),
        (None, Some(end)) => (Some(end.timestamp_ms), SpanStatus::Abandoned),
        (None, None) => (None, SpanStatus::Running),
    };
    Some(Span {
        due_ms: due_ms.filter(|_| status == SpanStatus::Running),
        // The clocks of two processes may differ, so that an outcome has an earlier time than its decision.
        end_ms: end_ms.map(|end| end.max(event.timestamp_ms)),
        instance,
        status,
        ..Span::at(event, kind, name)
    })
}

/// Adds the decisions that are done when they are made.
fn with_points(mut spans: Vec<Span>, history: &[Event]) -> Vec<Span> {
    for event in history {
        step();
        match &event.kind {
            EventKind::OrchestrationChained { name, instance, .. } => {
                let instance = Some(instance.clone());
                spans.push(Span { instance, ..Span::at(event, SpanKind::Detached, name.clone()) });
            }
            EventKind::OrchestrationContinuedAsNew { .. } => {
                spans.push(Span::at(event, SpanKind::ContinueAsNew, String::new()));
            }
            _ => {}
        }
    }
    spans
}

impl Span {
    /// A span without length.
    fn at(event: &Event, kind: SpanKind, name: String) -> Self {
        Self {
            event_id: event.event_id,
            kind,
            name,
            instance: None,
            start_ms: event.timestamp_ms,
            end_ms: Some(event.timestamp_ms),
            due_ms: None,
            status: SpanStatus::Done,
            attempts: 1,
            tries: Vec::new(),
            count: 1,
            lane: 0,
        }
    }
}

impl From<Ending> for SpanStatus {
    fn from(how: Ending) -> Self {
        match how {
            Ending::Done => Self::Done,
            Ending::Failed => Self::Failed,
            Ending::Cancelled => Self::Cancelled,
        }
    }
}
