//! Folds a history into the operations that the code started, each with its end.
//!
//! | operation | ends with |
//! |---|---|
//! | activity, child | its outcome, or the event that records the request to cancel it |
//! | timer | its fired event |
//! | event | the event, which ends the oldest open wait of its name, or the event that records the cancelled wait |
//! | queue message | a message: each delivered message of a queue ends one wait that was not cancelled |

use crate::steps::step;
use outlast_model::{Event, EventKind};
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

/// An operation and its end.
pub(crate) struct Started<'a> {
    /// The event that started it.
    pub(crate) event: &'a Event,
    pub(crate) end: Option<End>,
}

/// The end of an operation.
#[derive(Clone, Copy)]
pub(crate) struct End {
    pub(crate) event_id: u64,
    pub(crate) at_ms: u64,
    pub(crate) how: Ending,
}

/// The way in which an operation ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Done,
    Failed,
    Cancelled,
}

/// The operations of an execution in the order in which they started.
pub(crate) struct Operations<'a> {
    pub(crate) all: Vec<Started<'a>>,
    /// The number of positional events, by name, that came before a wait and were dropped.
    pub(crate) dropped_events: BTreeMap<&'a str, u64>,
}

/// Folds a history in time that grows with its length.
pub(crate) fn operations(history: &[Event]) -> Operations<'_> {
    let mut fold = Fold {
        found: Operations { all: Vec::new(), dropped_events: BTreeMap::new() },
        by_event: HashMap::new(),
        events: BTreeMap::new(),
        queues: BTreeMap::new(),
        cancelled_dequeues: cancelled_dequeues(history),
        keeps_early_events: false,
    };
    for event in history {
        step();
        fold.apply(event);
    }
    fold.found
}

/// The waits for queue messages that are cancelled later: a message passes them by.
fn cancelled_dequeues(history: &[Event]) -> HashSet<u64> {
    let cancelled =
        history.iter().filter(|event| matches!(event.kind, EventKind::QueueSubscriptionCancelled { .. }));
    cancelled.filter_map(|event| event.source_event_id).collect()
}

/// The open waits of one name, oldest first, and the data that no wait has taken yet.
#[derive(Default)]
struct Named {
    waits: VecDeque<usize>,
    kept: u64,
}

struct Fold<'a> {
    found: Operations<'a>,
    /// Positions in the list by the event that started the operation.
    by_event: HashMap<u64, usize>,
    events: BTreeMap<&'a str, Named>,
    queues: BTreeMap<&'a str, Named>,
    cancelled_dequeues: HashSet<u64>,
    keeps_early_events: bool,
}

impl<'a> Fold<'a> {
    fn apply(&mut self, event: &'a Event) {
        match &event.kind {
            EventKind::OrchestrationStarted { carry_forward_events, .. } => {
                // The engine marks executions that keep early events in the stamp of their first event.
                self.keeps_early_events = event.duroxide_version.ends_with("+buffered");
                for (name, _) in carry_forward_events.iter().flatten() {
                    self.queues.entry(name).or_default().kept += 1;
                }
            }
            EventKind::ActivityScheduled { .. }
            | EventKind::TimerCreated { .. }
            | EventKind::SubOrchestrationScheduled { .. } => {
                self.start(event);
            }
            EventKind::ExternalSubscribed { name } => {
                let index = self.start(event);
                self.wait(index, name, |fold| &mut fold.events);
            }
            EventKind::QueueSubscribed { name } => {
                let index = self.start(event);
                if !self.cancelled_dequeues.contains(&event.event_id) {
                    self.wait(index, name, |fold| &mut fold.queues);
                }
            }
            EventKind::ExternalEvent { name, .. } => {
                if !self.deliver(event, name, |fold| &mut fold.events) {
                    match self.keeps_early_events {
                        true => self.events.entry(name).or_default().kept += 1,
                        false => *self.found.dropped_events.entry(name).or_default() += 1,
                    }
                }
            }
            EventKind::QueueEventDelivered { name, .. } => {
                if !self.deliver(event, name, |fold| &mut fold.queues) {
                    self.queues.entry(name).or_default().kept += 1;
                }
            }
            // Outcomes and cancellations have the id of the event that started their operation.
            kind => {
                let started = event.source_event_id.and_then(|source| self.by_event.get(&source).copied());
                if let Some(index) = started {
                    self.end(index, event, ending(kind));
                }
            }
        }
    }

    fn start(&mut self, event: &'a Event) -> usize {
        let index = self.found.all.len();
        self.found.all.push(Started { event, end: None });
        self.by_event.insert(event.event_id, index);
        index
    }

    /// Ends the operation, unless it has an end: only first outcomes count.
    fn end(&mut self, index: usize, by: &Event, how: Ending) {
        let end = End { event_id: by.event_id, at_ms: by.timestamp_ms, how };
        self.found.all[index].end.get_or_insert(end);
    }

    /// A wait takes the data that came before it, or is open.
    fn wait(&mut self, index: usize, name: &'a str, of: impl Fn(&mut Self) -> &mut BTreeMap<&'a str, Named>) {
        let named = of(self).entry(name).or_default();
        if named.kept == 0 {
            return named.waits.push_back(index);
        }
        named.kept -= 1;
        let event = self.found.all[index].event;
        self.end(index, event, Ending::Done);
    }

    /// Ends the oldest open wait; false if there is none.
    fn deliver(
        &mut self,
        event: &Event,
        name: &'a str,
        of: impl Fn(&mut Self) -> &mut BTreeMap<&'a str, Named>,
    ) -> bool {
        while let Some(index) = of(self).entry(name).or_default().waits.pop_front() {
            step();
            // A wait that was cancelled has an end already.
            if self.found.all[index].end.is_none() {
                self.end(index, event, Ending::Done);
                return true;
            }
        }
        false
    }
}

fn ending(kind: &EventKind) -> Ending {
    match kind {
        EventKind::ActivityFailed { .. } | EventKind::SubOrchestrationFailed { .. } => Ending::Failed,
        EventKind::ActivityCancelRequested { .. }
        | EventKind::SubOrchestrationCancelRequested { .. }
        | EventKind::ExternalSubscribedCancelled { .. }
        | EventKind::QueueSubscriptionCancelled { .. } => Ending::Cancelled,
        _ => Ending::Done,
    }
}
