//! The timeline as rows of bars.

use super::axis::{Axis, WIDTH};
use crate::link::encoded;
use outlast::lens::{Span, SpanKind, SpanStatus, Timeline, span};
use std::fmt::Write;

/// The most rows of a chart: above it, the operations of one name are one row.
pub(super) const MOST_ROWS: usize = 200;
/// The start of the names of activities that the runtime has itself, such as `new_guid`.
const BUILTIN: &str = "__duroxide_syscall:";
/// The smallest width of a bar.
const THINNEST: f64 = 2.5;

/// A chart for the template.
pub(super) struct Chart {
    pub(super) rows: Vec<Row>,
    pub(super) gaps: Vec<Cut>,
    pub(super) is_grouped: bool,
    pub(super) is_running: bool,
    /// Whether tries are folded into rows.
    pub(super) has_tries: bool,
    pub(super) took: String,
    /// The outline of the number of running operations over time.
    pub(super) minimap: String,
    pub(super) left_out: usize,
}

/// An operation.
pub(super) struct Row {
    pub(super) event: u64,
    pub(super) kind: &'static str,
    pub(super) name: String,
    /// `×3` for three tries, `3 of them` for a group.
    pub(super) note: String,
    pub(super) href: Option<String>,
    pub(super) bars: Vec<Bar>,
    pub(super) took: String,
    pub(super) tone: &'static str,
    pub(super) status: &'static str,
}

pub(super) struct Bar {
    pub(super) x: String,
    pub(super) width: String,
    pub(super) tone: &'static str,
}

/// A gap that is cut from the axis.
pub(super) struct Cut {
    pub(super) x: String,
    pub(super) width: String,
    pub(super) took: String,
}

impl Chart {
    pub(super) fn of(timeline: &Timeline, base: &str) -> Self {
        let axis = Axis::new(timeline.from_ms, timeline.to_ms, &timeline.gaps);
        let cut = |(from, to, ms): (f64, f64, u64)| Cut {
            x: number(from),
            width: number(to - from),
            took: span(ms),
        };
        Self {
            rows: timeline
                .spans
                .iter()
                .take(MOST_ROWS)
                .map(|one| Row::of(one, timeline.to_ms, &axis, base))
                .collect(),
            gaps: axis.gaps().map(cut).collect(),
            is_grouped: timeline.is_grouped,
            is_running: timeline.is_running,
            has_tries: timeline.spans.iter().any(|one| one.attempts > 1),
            took: span(timeline.to_ms.saturating_sub(timeline.from_ms)),
            minimap: outline(&timeline.bins),
            left_out: timeline.spans.len().saturating_sub(MOST_ROWS),
        }
    }
}

impl Row {
    fn of(one: &Span, to_ms: u64, axis: &Axis, base: &str) -> Self {
        let bar = |start_ms: u64, end_ms: Option<u64>, tone: &'static str| {
            let from = axis.place(start_ms);
            let width = (axis.place(end_ms.unwrap_or(to_ms).max(start_ms)) - from).max(THINNEST);
            // A bar at the end of the axis stays visible.
            Bar { x: number(from.min(WIDTH - width)), width: number(width), tone }
        };
        let mut bars = Vec::new();
        if one.tries.len() > 1 {
            bars.push(bar(one.start_ms, one.end_ms, "pause"));
            bars.extend(one.tries.iter().map(|one| bar(one.start_ms, one.end_ms, tone(one.status))));
        } else {
            let tone = match (one.kind, one.status) {
                (SpanKind::Timer | SpanKind::Wait | SpanKind::Queue, SpanStatus::Done) => "wait",
                (SpanKind::Timer | SpanKind::Wait | SpanKind::Queue, SpanStatus::Running) => "waiting",
                (_, status) => tone(status),
            };
            bars.push(bar(one.start_ms, one.end_ms, tone));
        }
        Self {
            event: one.event_id,
            kind: kind(one.kind),
            name: match one.name.strip_prefix(BUILTIN).unwrap_or(&one.name) {
                "" => kind(one.kind).to_string(),
                name => name.to_string(),
            },
            note: match (one.count, one.attempts) {
                (2.., _) => format!("{} of them", one.count),
                (_, 2..) => format!("×{}", one.attempts),
                _ => String::new(),
            },
            href: one.instance.as_ref().map(|id| format!("{base}/instances/{}", encoded(id))),
            bars,
            took: span(one.end_within(to_ms) - one.start_ms),
            tone: tone(one.status),
            status: status(one.status),
        }
    }
}

fn tone(status: SpanStatus) -> &'static str {
    match status {
        SpanStatus::Done => "ok",
        SpanStatus::Failed => "bad",
        SpanStatus::Running => "run",
        SpanStatus::Cancelled | SpanStatus::Abandoned => "quiet",
    }
}

fn status(status: SpanStatus) -> &'static str {
    match status {
        SpanStatus::Done => "done",
        SpanStatus::Failed => "failed",
        SpanStatus::Running => "running",
        SpanStatus::Cancelled => "cancelled",
        SpanStatus::Abandoned => "abandoned",
    }
}

fn kind(kind: SpanKind) -> &'static str {
    match kind {
        SpanKind::Activity => "activity",
        SpanKind::Timer => "timer",
        SpanKind::Wait => "event",
        SpanKind::Queue => "queue",
        SpanKind::Child => "child",
        SpanKind::Detached => "detached",
        SpanKind::ContinueAsNew => "continue as new",
    }
}

fn number(value: f64) -> String {
    format!("{value:.1}")
}

/// The path of an area: one step per bin, 24 units high.
fn outline(bins: &[u32]) -> String {
    let most = bins.iter().copied().max().unwrap_or(0).max(1);
    let step = WIDTH / bins.len().max(1) as f64;
    let mut path = String::from("M0 24");
    let mut last = None;
    for (at, count) in (0..).zip(bins) {
        if last != Some(count) {
            let (x, y) = (f64::from(at) * step, 24.0 - 22.0 * f64::from(*count) / f64::from(most));
            // Writing to a String cannot fail.
            let _ = write!(path, "H{x:.1}V{y:.1}");
            last = Some(count);
        }
    }
    path + "H1000V24Z"
}
