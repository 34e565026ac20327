//! Makes spans from committed turns and activities.

use crate::fold::{Closed, Opening, Operation};
use crate::ids::span_id;
use crate::origin::{Origin, parsed};
use crate::seen::{Ending, Kind, Seen};
use opentelemetry::trace::{Link, SpanContext, SpanId, SpanKind, Status};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};
use outlast::runtime::observer::StartNote;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A delivery of an activity whose end was committed.
pub(crate) struct Delivered {
    pub(crate) activity_id: u64,
    pub(crate) name: String,
    pub(crate) tag: Option<String>,
    pub(crate) attempt: u32,
    pub(crate) from_ms: u64,
    pub(crate) to_ms: u64,
    pub(crate) outcome: &'static str,
    pub(crate) error_type: Option<&'static str>,
}

/// Makes the spans of one execution.
pub(crate) struct Spans<'a> {
    pub(crate) instance: &'a str,
    pub(crate) execution_id: u64,
    pub(crate) origin: &'a Origin,
    pub(crate) scope: &'a InstrumentationScope,
}

fn time(ms: u64) -> SystemTime {
    UNIX_EPOCH.checked_add(Duration::from_millis(ms)).unwrap_or(UNIX_EPOCH)
}

impl Spans<'_> {
    fn id(&self, event_id: u64, attempt: u32) -> SpanId {
        span_id(self.origin.trace, self.instance, self.execution_id, event_id, attempt)
    }

    /// A span below the orchestration.
    fn span(&self, id: SpanId, name: String, from_ms: u64, to_ms: u64) -> SpanData {
        SpanData {
            span_context: self.origin.context(id),
            parent_span_id: self.origin.span,
            parent_span_is_remote: false,
            span_kind: SpanKind::Internal,
            name: name.into(),
            start_time: time(from_ms),
            // Events of one history may come from machines whose clocks differ.
            end_time: time(to_ms.max(from_ms)),
            attributes: vec![
                KeyValue::new("outlast.instance.id", self.instance.to_string()),
                KeyValue::new("outlast.execution.id", number(self.execution_id)),
                KeyValue::new("outlast.orchestration.name", self.origin.orchestration.to_string()),
            ],
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links: SpanLinks::default(),
            status: Status::Unset,
            instrumentation_scope: self.scope.clone(),
        }
    }

    /// The spans of the beginning of an execution: the start by a client, and a mark that the orchestration runs.
    pub(crate) fn begun(&self, opening: &Opening) -> Vec<SpanData> {
        let mut spans = Vec::new();
        if let Some(StartNote::Caller { traceparent, sent_at_ms }) = &opening.note
            && let Some((_, caller, _)) = parsed(traceparent)
            && self.origin.parent == self.id(0, 0)
        {
            let name = format!("start {}", opening.name);
            let mut span = self.span(self.origin.parent, name, *sent_at_ms, opening.at_ms);
            (span.parent_span_id, span.parent_span_is_remote) = (caller, true);
            span.span_kind = SpanKind::Producer;
            spans.push(span);
        }
        let name = "orchestration.started".to_string();
        let mut span = self.span(self.id(1, 1), name, opening.at_ms, opening.at_ms);
        span.attributes.push(KeyValue::new("outlast.orchestration.version", opening.version.clone()));
        spans.push(span);
        spans
    }

    /// The span of an operation that has ended.
    pub(crate) fn closed(&self, closed: Closed) -> SpanData {
        let Closed { event_id, operation, from_ms, to_ms, ending } = closed;
        let name = match &operation {
            Operation::Activity(name) => format!("activity {name}"),
            Operation::Timer => "timer".to_string(),
            Operation::Wait(name) => format!("wait {name}"),
        };
        let mut span = self.span(self.id(event_id, 0), name, from_ms, to_ms);
        if matches!(operation, Operation::Activity(_)) {
            span.attributes.push(KeyValue::new("outlast.activity.id", number(event_id)));
        }
        if ending == Ending::Cancelled {
            span.attributes.push(KeyValue::new("outlast.outcome", "cancelled"));
        }
        span
    }

    /// The spans of the events that need no earlier event: detached starts, and the end of the orchestration.
    pub(crate) fn event(
        &self,
        seen: &Seen,
        opening: &Opening,
        link: Option<SpanContext>,
    ) -> Option<SpanData> {
        let (outcome, error_type) = match &seen.kind {
            Kind::Detached(name, started) => {
                let mut span =
                    self.span(self.id(seen.id, 0), format!("start {name}"), seen.at_ms, seen.at_ms);
                span.span_kind = SpanKind::Producer;
                span.attributes.push(KeyValue::new("outlast.started.instance.id", started.clone()));
                return Some(span);
            }
            Kind::Completed => ("completed", None),
            Kind::Failed(error_type) => ("failed", Some(*error_type)),
            Kind::ContinuedAsNew => ("continued_as_new", None),
            _ => return None,
        };
        let name = format!("orchestration {}", opening.name);
        let mut span = self.span(self.origin.span, name, opening.at_ms, seen.at_ms);
        span.parent_span_id = self.origin.parent;
        span.links.links.extend(link.map(Link::with_context));
        span.attributes.push(KeyValue::new("outlast.orchestration.version", opening.version.clone()));
        end(&mut span, outcome, error_type);
        Some(span)
    }

    /// The span of a delivery of an activity.
    pub(crate) fn activity(&self, delivered: Delivered) -> SpanData {
        let Delivered { activity_id, attempt, from_ms, to_ms, .. } = delivered;
        let name = format!("activity {}", delivered.name);
        let mut span = self.span(self.id(activity_id, attempt), name, from_ms, to_ms);
        span.span_kind = SpanKind::Consumer;
        span.attributes.push(KeyValue::new("outlast.activity.id", number(activity_id)));
        span.attributes.push(KeyValue::new("outlast.attempt", i64::from(attempt)));
        if let Some(tag) = delivered.tag {
            span.attributes.push(KeyValue::new("outlast.activity.tag", tag));
        }
        end(&mut span, delivered.outcome, delivered.error_type);
        span
    }
}

/// The text of a failure may quote a payload, so a span has only its type.
fn end(span: &mut SpanData, outcome: &'static str, error_type: Option<&'static str>) {
    span.attributes.push(KeyValue::new("outlast.outcome", outcome));
    if let Some(error_type) = error_type {
        span.attributes.push(KeyValue::new("error.type", error_type));
        span.status = Status::error(error_type);
    }
}

/// Attributes have signed numbers.
fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
