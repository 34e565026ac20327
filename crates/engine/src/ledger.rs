//! What the events of an execution add up to, whatever its code does: which operations were asked for, which were
//! answered, which are open. Kept up to date event by event, so that no turn looks at the whole history.

use crate::draft::ChildEnded;
use crate::opening::Ended;
use outlast_model::{AppErrorKind, ErrorDetails, Event, EventKind, build_child_instance_id};
use std::collections::{BTreeMap, BTreeSet};

/// The kind of a scheduled operation, as messages name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Activity,
    Timer,
    Child,
    Wait,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Activity => "activity",
            Self::Timer => "timer",
            Self::Child => "suborchestration",
            Self::Wait => "wait",
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Schedule {
    event_id: u64,
    kind: Kind,
    answered: bool,
}

/// A child as its parent scheduled it.
#[derive(Debug)]
struct Child {
    name: String,
    scheduled_at_ms: u64,
}

impl Child {
    fn ended(&self, outcome: &'static str, now_ms: u64) -> ChildEnded {
        let took_ms = now_ms.saturating_sub(self.scheduled_at_ms);
        ChildEnded { name: self.name.clone(), outcome, took_ms }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) last_event_id: u64,
    pub(crate) events: usize,
    /// Bytes of text, roughly what the history takes.
    pub(crate) bytes: usize,
    pub(crate) started_at_ms: u64,
    /// In ascending order of ids, since ids only grow.
    schedules: Vec<Schedule>,
    /// Scheduled, neither answered nor given up.
    pub(crate) open_activities: BTreeSet<u64>,
    /// The same for children, with the instance of each.
    pub(crate) open_children: BTreeMap<u64, String>,
    /// Children whose outcome is not recorded, also those that were given up, for metrics.
    unanswered_children: BTreeMap<u64, Child>,
    pub(crate) cancel_reason: Option<String>,
    pub(crate) ended: Option<Ended>,
}

/// Whether an outcome is welcome.
pub(crate) enum Standing {
    Open,
    Answered,
    AnotherKind(Kind),
    Unknown,
}

impl Ledger {
    pub(crate) fn note(&mut self, event: &Event) {
        self.last_event_id = self.last_event_id.max(event.event_id);
        self.events += 1;
        self.bytes += event.text_bytes();
        match (&event.kind, event.source_event_id) {
            (EventKind::OrchestrationStarted { .. }, _) => self.started_at_ms = event.timestamp_ms,
            (EventKind::OrchestrationCancelRequested { reason }, _) => {
                self.cancel_reason.get_or_insert_with(|| reason.clone());
            }
            (EventKind::OrchestrationContinuedAsNew { input }, _) => {
                self.ended = Some(Ended::Continued { input: input.clone() });
            }
            (EventKind::OrchestrationCompleted { .. } | EventKind::OrchestrationFailed { .. }, _) => {
                self.ended = Some(Ended::Finished);
            }
            (kind, Some(source)) => self.settle(source, kind),
            (_, None) => self.open(event),
        }
    }

    fn open(&mut self, event: &Event) {
        let kind = match &event.kind {
            EventKind::ActivityScheduled { .. } => {
                self.open_activities.insert(event.event_id);
                Kind::Activity
            }
            EventKind::SubOrchestrationScheduled { name, instance, .. } => {
                let child = build_child_instance_id(&event.instance_id, instance);
                self.open_children.insert(event.event_id, child);
                let child = Child { name: name.clone(), scheduled_at_ms: event.timestamp_ms };
                self.unanswered_children.insert(event.event_id, child);
                Kind::Child
            }
            EventKind::TimerCreated { .. } => Kind::Timer,
            EventKind::ExternalSubscribed { .. } | EventKind::QueueSubscribed { .. } => Kind::Wait,
            #[cfg(feature = "replay-version-test")]
            EventKind::ExternalSubscribed2 { .. } => Kind::Wait,
            _ => return,
        };
        self.schedules.push(Schedule { event_id: event.event_id, kind, answered: false });
    }

    fn settle(&mut self, source: u64, kind: &EventKind) {
        self.open_activities.remove(&source);
        self.open_children.remove(&source);
        let answered = matches!(
            kind,
            EventKind::ActivityCompleted { .. }
                | EventKind::ActivityFailed { .. }
                | EventKind::TimerFired { .. }
                | EventKind::SubOrchestrationCompleted { .. }
                | EventKind::SubOrchestrationFailed { .. }
        );
        if let Some(place) = self.place(source).filter(|_| answered) {
            self.schedules[place].answered = true;
            self.unanswered_children.remove(&source);
        }
    }

    /// How the call of a child ends with this outcome; `None` for anything else. Asked before the outcome is noted.
    pub(crate) fn child_ended(
        &self,
        source: Option<u64>,
        kind: &EventKind,
        now_ms: u64,
    ) -> Option<ChildEnded> {
        let outcome = match kind {
            EventKind::SubOrchestrationCompleted { .. } => "completed",
            EventKind::SubOrchestrationFailed {
                details: ErrorDetails::Application { kind: AppErrorKind::Cancelled { .. }, .. },
            } => "cancelled",
            EventKind::SubOrchestrationFailed { .. } => "failed",
            _ => return None,
        };
        Some(self.unanswered_children.get(&source?)?.ended(outcome, now_ms))
    }

    /// The calls of children that end without an outcome because the parent ends first, if `was_started`.
    pub(crate) fn abandoned_children(
        &self,
        now_ms: u64,
        was_started: impl Fn(u64) -> bool,
    ) -> Vec<ChildEnded> {
        let started = self.unanswered_children.iter().filter(|(event_id, _)| was_started(**event_id));
        started.map(|(_, child)| child.ended("abandoned", now_ms)).collect()
    }

    fn place(&self, event_id: u64) -> Option<usize> {
        self.schedules.binary_search_by_key(&event_id, |schedule| schedule.event_id).ok()
    }

    /// How an operation stands towards an outcome of this kind.
    pub(crate) fn standing(&self, event_id: u64, kind: Kind) -> Standing {
        match self.place(event_id).map(|place| self.schedules[place]) {
            None => Standing::Unknown,
            Some(schedule) if schedule.kind != kind => Standing::AnotherKind(schedule.kind),
            Some(Schedule { answered: true, .. }) => Standing::Answered,
            Some(_) => Standing::Open,
        }
    }
}
