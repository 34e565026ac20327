//! Joins the tries of an activity into one span.
//!
//! All events of a turn have one time. The turn that receives the failure of a try sets the timer for the next one, so a failure and a
//! timer of one time belong together, in their order. The turn that receives the fired timer schedules the next try.

use super::build::span_of;
use super::{Span, Try};
use crate::operations::{Ending, Started};
use crate::steps::step;
use outlast_model::{Event, EventKind};
use std::collections::{HashMap, VecDeque};

/// The spans of operations, the tries of an activity joined.
pub(super) fn fold(history: &[Event], operations: &[Started<'_>], end: Option<&Event>) -> Vec<Span> {
    let mut fold = Fold {
        spans: Vec::new(),
        turn_ms: 0,
        failed: VecDeque::new(),
        backoffs: HashMap::new(),
        due: HashMap::new(),
    };
    let ended = operations.iter().filter_map(|one| Some((one.end?.event_id, one)));
    let ended: HashMap<u64, &Started<'_>> = ended.collect();
    let started: HashMap<u64, &Started<'_>> =
        operations.iter().map(|one| (one.event.event_id, one)).collect();
    let mut positions: HashMap<u64, usize> = HashMap::new();
    for event in history {
        step();
        fold.enter_turn(event.timestamp_ms);
        let ended = ended.get(&event.event_id);
        if let Some((one, position)) = ended.and_then(|one| Some((one, *positions.get(&one.event.event_id)?)))
        {
            fold.end(one, position);
        }
        let started = started.get(&event.event_id);
        if let Some((one, span)) = started.and_then(|one| Some((one, span_of(one, end)?))) {
            positions.insert(event.event_id, fold.start(one, span));
        }
    }
    fold.spans.into_iter().flatten().collect()
}

/// The name and the input of an activity.
type Call<'a> = (&'a str, &'a str);

struct Fold<'a> {
    /// `None` in place of a timer between two tries.
    spans: Vec<Option<Span>>,
    /// The time of the current turn.
    turn_ms: u64,
    /// The failed activities of the current turn that are not tried again yet, and the positions of their spans.
    failed: VecDeque<(Call<'a>, usize)>,
    /// By the position of a timer: the failed activity whose next try it delays.
    backoffs: HashMap<usize, (Call<'a>, usize)>,
    /// The activities whose next try is due: the position of the timer, and that of the activity.
    due: HashMap<Call<'a>, VecDeque<(usize, usize)>>,
}

impl<'a> Fold<'a> {
    fn enter_turn(&mut self, at_ms: u64) {
        if at_ms != self.turn_ms {
            self.turn_ms = at_ms;
            self.failed.clear();
        }
    }

    /// An operation has ended.
    fn end(&mut self, one: &Started<'a>, position: usize) {
        match (call(one.event), one.end.map(|end| end.how)) {
            (Some(call), Some(Ending::Failed)) => self.failed.push_back((call, position)),
            (Some(_), _) => {}
            (None, _) => {
                if let Some((call, activity)) = self.backoffs.remove(&position) {
                    self.due.entry(call).or_default().push_back((position, activity));
                }
            }
        }
    }

    /// An operation has started. Returns the position of its span.
    fn start(&mut self, one: &Started<'a>, span: Span) -> usize {
        let position = match call(one.event).and_then(|call| self.earlier_try(call)) {
            Some(earlier) => self.add_try(earlier, span),
            None => {
                self.spans.push(Some(span));
                self.spans.len() - 1
            }
        };
        if matches!(one.event.kind, EventKind::TimerCreated { .. })
            && let Some(failed) = self.failed.pop_front()
        {
            self.backoffs.insert(position, failed);
        }
        position
    }

    /// The position of the activity that is tried again.
    fn earlier_try(&mut self, call: Call<'a>) -> Option<usize> {
        if let Some((timer, activity)) = self.due.get_mut(&call).and_then(VecDeque::pop_front) {
            self.spans[timer] = None;
            return Some(activity);
        }
        // A policy without a delay sets no timer.
        let (_, activity) = self.failed.pop_front_if(|(failed, _)| *failed == call)?;
        Some(activity)
    }

    fn add_try(&mut self, position: usize, span: Span) -> usize {
        if let Some(first) = &mut self.spans[position] {
            if first.tries.is_empty() {
                first.tries.push(Try::of(first));
            }
            first.tries.push(Try::of(&span));
            first.attempts += 1;
            (first.end_ms, first.status) = (span.end_ms, span.status);
        }
        position
    }
}

fn call(event: &Event) -> Option<Call<'_>> {
    match &event.kind {
        EventKind::ActivityScheduled { name, input, .. } => Some((name, input)),
        _ => None,
    }
}

impl Try {
    fn of(span: &Span) -> Self {
        Self { event_id: span.event_id, start_ms: span.start_ms, end_ms: span.end_ms, status: span.status }
    }
}
