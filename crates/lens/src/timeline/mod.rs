//! The timeline of an execution: spans of its operations, for a chart.

mod build;
mod groups;
mod layout;
mod retries;
#[cfg(test)]
mod tests;

use serde::Serialize;

pub use build::timeline;

/// The spans of an execution and their layout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Timeline {
    /// The start of the time axis: the earliest event.
    pub from_ms: u64,
    /// The end of the time axis: the latest event, and the present for an execution that runs.
    pub to_ms: u64,
    /// The present.
    pub now_ms: u64,
    /// Whether the execution has no terminal event.
    pub is_running: bool,
    /// The number of events.
    pub events: usize,
    /// The spans by their start.
    pub spans: Vec<Span>,
    /// Whether each span stands for all operations of one name, because there are more than [`TimelineOptions::most_spans`].
    pub is_grouped: bool,
    /// The number of lanes: two spans of one lane do not overlap.
    pub lanes: u32,
    /// Long times without events and without a running activity, in their order.
    pub gaps: Vec<Gap>,
    /// The number of operations that run in each part of the time axis; the parts have equal lengths.
    pub bins: Vec<u32>,
}

/// An operation from its start to its end, or all operations of one name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Span {
    /// The event that started the operation; of a group, the first.
    pub event_id: u64,
    /// The kind of the operation.
    pub kind: SpanKind,
    /// The name of the activity, event, queue or orchestration; empty for a timer.
    pub name: String,
    /// The started instance of a child or a detached orchestration.
    pub instance: Option<String>,
    /// The start.
    pub start_ms: u64,
    /// The end; `None` while the operation runs.
    pub end_ms: Option<u64>,
    /// When an open timer is due.
    pub due_ms: Option<u64>,
    /// The state of the operation; of a group, the state that needs most attention.
    pub status: SpanStatus,
    /// The number of tries; of a group, their sum.
    pub attempts: u32,
    /// The tries of an activity that was tried more than once.
    pub tries: Vec<Try>,
    /// The number of operations: above 1 for a group.
    pub count: u32,
    /// The lane.
    pub lane: u32,
}

/// The kind of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SpanKind {
    /// An activity, with all its tries.
    Activity,
    /// A timer.
    Timer,
    /// A wait for a positional event.
    Wait,
    /// A wait for a message of a queue.
    Queue,
    /// A child.
    Child,
    /// The start of a detached orchestration.
    Detached,
    /// The end of the execution, whose successor begins.
    ContinueAsNew,
}

/// The state of a span, in the order of the attention that it needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SpanStatus {
    /// The operation has its result.
    Done,
    /// The execution ended before the operation.
    Abandoned,
    /// The code dropped the operation.
    Cancelled,
    /// The operation has no outcome yet.
    Running,
    /// The operation failed.
    Failed,
}

/// One try of an activity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Try {
    /// The event that scheduled it.
    pub event_id: u64,
    /// The start.
    pub start_ms: u64,
    /// The end; `None` while it runs.
    pub end_ms: Option<u64>,
    /// Its state.
    pub status: SpanStatus,
}

/// A time in which nothing happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Gap {
    /// The start.
    pub from_ms: u64,
    /// The end.
    pub to_ms: u64,
}

/// The options of a timeline.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TimelineOptions {
    /// The number of bins.
    pub bins: usize,
    /// The most spans: if there are more, the spans of one name are one span.
    pub most_spans: usize,
    /// Whether the tries of an activity are one span.
    pub folds_retries: bool,
}

impl Default for TimelineOptions {
    fn default() -> Self {
        Self { bins: 600, most_spans: 2_000, folds_retries: true }
    }
}

impl Span {
    /// The end of the span on an axis that ends at `to_ms`.
    pub fn end_within(&self, to_ms: u64) -> u64 {
        self.end_ms.unwrap_or(to_ms).max(self.start_ms)
    }
}
