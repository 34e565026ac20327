//! Draws a timeline as text: one line per span, in a given width.

use crate::output::plain;
use outlast::lens::{Gap, Span, SpanKind, SpanStatus, Timeline, span};

/// The form of the chart.
pub(super) struct Look {
    /// The most characters of a line.
    pub(super) width: usize,
    pub(super) colours: bool,
}

/// The columns of a gap.
const GAP_COLUMNS: usize = 3;
/// The least columns of the bars.
const MIN_BARS: usize = 10;
/// The most columns of the names.
const MOST_LABEL: usize = 36;

/// The lines of the spans.
pub(super) fn draw(timeline: &Timeline, look: &Look) -> String {
    let rows: Vec<(String, String, &Span)> =
        timeline.spans.iter().map(|span| (label(span), result(span, timeline.to_ms), span)).collect();
    let widest = |cells: &mut dyn Iterator<Item = &String>| cells.map(|cell| cell.chars().count()).max();
    let label_width =
        widest(&mut rows.iter().map(|row| &row.0)).unwrap_or(0).min(MOST_LABEL).min(look.width / 2);
    let result_width = widest(&mut rows.iter().map(|row| &row.1)).unwrap_or(0);
    let left = look.width.saturating_sub(label_width + result_width + 4);
    // Results that do not fit are left out.
    let (bars, with_results) = match left >= MIN_BARS {
        true => (left, true),
        false => (look.width.saturating_sub(label_width + 2).max(1), false),
    };
    let axis = Axis::new(timeline, bars);
    let mut text = String::new();
    for (label, result, span) in &rows {
        let label = shortened(label, label_width);
        let bar: String = axis.bar(span).into_iter().collect();
        let result = if with_results { result.as_str() } else { "" };
        let line = format!("{label:<label_width$}  {bar}  {result}");
        text.push_str(&coloured(line.trim_end(), span.status, look.colours));
        text.push('\n');
    }
    text
}

fn label(span: &Span) -> String {
    let kind = match span.kind {
        SpanKind::Activity => "",
        SpanKind::Timer => "timer",
        SpanKind::Wait => "event ",
        SpanKind::Queue => "queue ",
        SpanKind::Child => "child ",
        SpanKind::Detached => "detached ",
        SpanKind::ContinueAsNew => "continue as new",
    };
    let tries = if span.attempts > span.count { format!(" x{}", span.attempts) } else { String::new() };
    let count = if span.count > 1 { format!(" ({} times)", span.count) } else { String::new() };
    format!("{} {kind}{}{tries}{count}", span.event_id, plain(&span.name))
}

/// The duration and the state.
fn result(of: &Span, to_ms: u64) -> String {
    let took = span(of.end_within(to_ms) - of.start_ms);
    match of.status {
        SpanStatus::Done => took,
        SpanStatus::Running => format!("{took} open"),
        SpanStatus::Failed => format!("{took} failed"),
        SpanStatus::Cancelled => format!("{took} cancelled"),
        SpanStatus::Abandoned => format!("{took} abandoned"),
    }
}

fn shortened(text: &str, width: usize) -> String {
    match text.chars().count() > width {
        true => text.chars().take(width.saturating_sub(1)).chain(['+']).collect(),
        false => text.to_string(),
    }
}

fn coloured(line: &str, status: SpanStatus, colours: bool) -> String {
    let code = match status {
        SpanStatus::Failed => "31",
        SpanStatus::Running => "33",
        SpanStatus::Cancelled | SpanStatus::Abandoned => "2",
        SpanStatus::Done => "",
    };
    match colours && !code.is_empty() {
        true => format!("\u{1b}[{code}m{line}\u{1b}[0m"),
        false => line.to_string(),
    }
}

/// The columns of the time axis; gaps are cut to a few columns.
struct Axis<'a> {
    from_ms: u64,
    to_ms: u64,
    gaps: &'a [Gap],
    columns: usize,
}

impl<'a> Axis<'a> {
    fn new(timeline: &'a Timeline, columns: usize) -> Self {
        // Without room for bars between them, gaps are not cut.
        let gaps = match timeline.gaps.len() * GAP_COLUMNS * 2 <= columns {
            true => timeline.gaps.as_slice(),
            false => &[],
        };
        Self { from_ms: timeline.from_ms, to_ms: timeline.to_ms, gaps, columns }
    }

    /// The column of a time.
    fn column(&self, at_ms: u64) -> usize {
        let at_ms = at_ms.clamp(self.from_ms, self.to_ms);
        let mut busy_ms = at_ms - self.from_ms;
        let mut gap_columns = 0;
        let mut all_busy_ms = self.to_ms - self.from_ms;
        for gap in self.gaps {
            all_busy_ms -= gap.to_ms - gap.from_ms;
            busy_ms -= at_ms.clamp(gap.from_ms, gap.to_ms) - gap.from_ms;
            // The start of a gap is before it, and every later time after it.
            gap_columns += if at_ms > gap.from_ms { GAP_COLUMNS } else { 0 };
        }
        let bars = self.columns - self.gaps.len() * GAP_COLUMNS;
        let scaled = u128::from(busy_ms) * bars as u128 / (u128::from(all_busy_ms) + 1);
        (usize::try_from(scaled).unwrap_or(0) + gap_columns).min(self.columns - 1)
    }

    fn bar(&self, span: &Span) -> Vec<char> {
        let mut bar = vec![' '; self.columns];
        let (first, last) = (self.column(span.start_ms), self.column(span.end_within(self.to_ms)));
        let is_activity = span.kind == SpanKind::Activity && span.count == 1;
        bar[first..=last].fill(if is_activity && span.tries.is_empty() { '#' } else { '-' });
        for one in span.tries.iter().filter(|_| is_activity) {
            let end = self.column(one.end_ms.unwrap_or(self.to_ms));
            bar[self.column(one.start_ms).min(end)..=end].fill('#');
            if one.status == SpanStatus::Failed {
                bar[end] = 'x';
            }
        }
        for gap in self.gaps {
            let start = self.column(gap.to_ms).saturating_sub(GAP_COLUMNS);
            for cell in bar[start..].iter_mut().take(GAP_COLUMNS).filter(|cell| **cell == '-') {
                *cell = '~';
            }
        }
        match span.status {
            SpanStatus::Failed => bar[last] = 'x',
            SpanStatus::Running => bar[last] = '>',
            _ if span.start_ms == span.end_within(self.to_ms) => bar[first] = '|',
            _ => {}
        }
        bar
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast::lens::{TimelineOptions, timeline};
    use outlast::{AppErrorKind, ErrorDetails, Event, EventKind};

    fn chart(events: Vec<(u64, Option<u64>, EventKind)>, now_ms: u64, width: usize) -> String {
        let events: Vec<Event> = (1..)
            .zip(events)
            .map(|(id, (at_ms, source, kind))| Event {
                timestamp_ms: at_ms,
                ..Event::with_event_id(id, "i", 1, source, kind)
            })
            .collect();
        let timeline = timeline(&events, now_ms, &TimelineOptions::default());
        draw(&timeline, &Look { width, colours: false })
    }

    fn activity(name: &str) -> EventKind {
        EventKind::ActivityScheduled { name: name.into(), input: "x".into(), session_id: None, tag: None }
    }

    fn failed() -> EventKind {
        let kind = AppErrorKind::ActivityFailed;
        let details = ErrorDetails::Application { kind, message: "x".into(), retryable: false };
        EventKind::ActivityFailed { details }
    }

    fn order() -> Vec<(u64, Option<u64>, EventKind)> {
        vec![
            (0, None, activity("Reserve")),
            (400, Some(1), EventKind::ActivityCompleted { result: "x".into() }),
            (400, None, activity("Charge")),
            (600, Some(3), failed()),
            (600, None, EventKind::TimerCreated { fire_at_ms: 1_000 }),
            (1_000, Some(5), EventKind::TimerFired { fire_at_ms: 1_000 }),
            (1_000, None, activity("Charge")),
            (1_300, Some(7), EventKind::ActivityCompleted { result: "x".into() }),
            (1_300, None, EventKind::ExternalSubscribed { name: "approve".into() }),
            (1_300, None, activity("Watch\u{1b}")),
            (1_400, Some(10), failed()),
            (
                1_500,
                None,
                EventKind::OrchestrationChained {
                    name: "Log".into(),
                    instance: "l".into(),
                    input: "".into(),
                },
            ),
        ]
    }

    #[test]
    fn spans_are_bars_and_idle_times_are_cut() {
        let expected = [
            "1 Reserve        ##########                             400ms",
            "3 Charge x2               ####x--------########         900ms",
            "9 event approve                               ----~~~>  1h open",
            "10 Watch\\u{1b}                                ##x       100ms failed",
            "12 detached Log                                   |     0ms",
        ];
        assert_eq!(chart(order(), 3_601_500, 68).lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn lines_fit_the_width() {
        let mut events = order();
        events.push((1_600, None, activity(&"long".repeat(30))));
        for width in [20, 40, 60, 80, 100, 200] {
            for line in chart(events.clone(), 3_601_500, width).lines() {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
        }
    }
}
