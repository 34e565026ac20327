//! The summary of an execution's history: its size, its decisions, and whether each has an outcome. The summary is updated
//! with every event, so that no turn reads the whole history.

use crate::op::activity::OpenActivities;
use crate::op::child::Children;
use crate::op::{Op, Role};
use crate::opening::Ended;
use outlast_model::{Event, EventKind};

/// A decision with an outcome to come.
#[derive(Debug, Clone, Copy)]
struct Schedule {
    event_id: u64,
    op: Op,
    answered: bool,
}

#[derive(Debug, Default)]
pub(crate) struct HistorySummary {
    pub(crate) last_event_id: u64,
    pub(crate) events: usize,
    /// Bytes of text, roughly the size of the history.
    pub(crate) bytes: usize,
    pub(crate) started_at_ms: u64,
    /// In ascending order of ids, since ids only grow.
    schedules: Vec<Schedule>,
    pub(crate) activities: OpenActivities,
    pub(crate) children: Children,
    pub(crate) cancel_reason: Option<String>,
    pub(crate) ended: Option<Ended>,
}

/// Where a decision stands when an outcome of an operation arrives for it.
pub(crate) enum Standing {
    Open,
    Answered,
    /// The decision is of another operation.
    AnotherKind(Op),
    Unknown,
}

impl HistorySummary {
    pub(crate) fn note(&mut self, event: &Event) {
        self.last_event_id = self.last_event_id.max(event.event_id);
        self.events += 1;
        self.bytes += event.text_bytes();
        match (Op::of_event(&event.kind), event.source_event_id) {
            (None, _) => self.note_lifecycle(event),
            (Some((_, role)), Some(source)) => self.close(source, role == Role::Outcome),
            (Some((op, Role::Decision)), None) => op.note_decision(self, event),
            (Some(_), None) => {}
        }
    }

    fn note_lifecycle(&mut self, event: &Event) {
        match &event.kind {
            EventKind::OrchestrationStarted { .. } => self.started_at_ms = event.timestamp_ms,
            EventKind::OrchestrationCancelRequested { reason } => {
                self.cancel_reason.get_or_insert_with(|| reason.clone());
            }
            EventKind::OrchestrationContinuedAsNew { input } => {
                self.ended = Some(Ended::Continued { input: input.clone() });
            }
            EventKind::OrchestrationCompleted { .. } | EventKind::OrchestrationFailed { .. } => {
                self.ended = Some(Ended::Finished);
            }
            _ => {}
        }
    }

    /// Enters a decision with an outcome to come.
    pub(crate) fn expect_outcome(&mut self, op: Op, event_id: u64) {
        self.schedules.push(Schedule { event_id, op, answered: false });
    }

    fn close(&mut self, source: u64, answered: bool) {
        let Some(place) = self.place(source) else { return };
        let op = self.schedules[place].op;
        op.note_closed(self, source);
        if answered {
            self.schedules[place].answered = true;
            op.note_answered(self, source);
        }
    }

    fn place(&self, event_id: u64) -> Option<usize> {
        self.schedules.binary_search_by_key(&event_id, |schedule| schedule.event_id).ok()
    }

    /// Where decision `event_id` stands towards an outcome of operation `op`.
    pub(crate) fn standing(&self, event_id: u64, op: Op) -> Standing {
        match self.place(event_id).map(|place| self.schedules[place]) {
            None => Standing::Unknown,
            Some(schedule) if schedule.op != op => Standing::AnotherKind(schedule.op),
            Some(Schedule { answered: true, .. }) => Standing::Answered,
            Some(_) => Standing::Open,
        }
    }
}
