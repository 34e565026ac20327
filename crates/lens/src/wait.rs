//! The progress of open operations, and whether a turn is due.

use crate::open::{OpenOperation, Operation, open_operations};
use outlast_model::{Event, EventKind, PendingWork, QueuedItem};
use std::collections::HashMap;

/// An open operation and its progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// The operation.
    pub open: OpenOperation,
    /// Its progress.
    pub progress: Progress,
}

/// The progress of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// An activity is queued and not leased.
    Queued {
        /// The time from which it can be fetched.
        visible_at_ms: u64,
        /// The number of its deliveries so far.
        deliveries: u32,
    },
    /// An activity is leased to a worker.
    Leased {
        /// The end of the lease, which the worker renews.
        until_ms: u64,
        /// The number of its deliveries, including this one.
        deliveries: u32,
    },
    /// A timer is not due yet.
    Sleeping {
        /// The time when it is due.
        until_ms: u64,
    },
    /// The outcome is queued and waits for the next turn.
    Answered,
    /// The operation ends when a child ends or a sender sends its event.
    Outside,
    /// The queues hold no message that could end it: the store is damaged, or the operation ended while its state was read.
    Lost,
    /// The store does not report it, or the request had a limit that was too low.
    Unknown,
}

/// Whether a turn of the instance runs or is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnState {
    /// No message can be fetched.
    Idle,
    /// A worker has the instance's lease.
    Leased {
        /// The end of the lease, which the worker renews.
        until_ms: u64,
        /// The most deliveries of any of its messages, including this one.
        deliveries: u32,
    },
    /// Messages can be fetched and are not leased.
    Due {
        /// Their number, up to the limit of the request.
        messages: usize,
        /// The time from which the oldest can be fetched.
        since_ms: u64,
        /// The most deliveries of any of them. Above 0: turns started and were not committed.
        deliveries: u32,
    },
}

/// Whether a turn runs or is due.
pub fn turn_state(pending: &PendingWork) -> TurnState {
    let most = |items: &[&QueuedItem]| items.iter().map(|item| item.attempt_count).max().unwrap_or(0);
    if let Some(until_ms) = pending.turn_locked_until {
        let leased: Vec<&QueuedItem> = pending.messages.iter().filter(|m| m.locked_until.is_some()).collect();
        return TurnState::Leased { until_ms, deliveries: most(&leased) };
    }
    let due: Vec<&QueuedItem> =
        pending.messages.iter().filter(|message| message.visible_at <= pending.now_ms).collect();
    match due.iter().map(|message| message.visible_at).min() {
        Some(since_ms) => TurnState::Due { messages: due.len(), since_ms, deliveries: most(&due) },
        None => TurnState::Idle,
    }
}

/// The operations that the execution with this history waits for. Without `pending` their progress is `Unknown`.
pub fn waits(history: &[Event], pending: Option<&PendingWork>) -> Vec<Wait> {
    let execution_id = history.first().map_or(0, |event| event.execution_id);
    let mut queues = pending.map(|pending| Queues::of(pending, execution_id));
    let progress = |open: OpenOperation| {
        let progress = queues.as_mut().map_or(Progress::Unknown, |queues| queues.progress(&open));
        Wait { open, progress }
    };
    open_operations(history).into_iter().map(progress).collect()
}

/// Whether a queued message is a timer whose time has not come.
pub(crate) fn is_future_timer(history: &[Event], now_ms: u64, item: &QueuedItem) -> bool {
    if item.kind.as_deref() != Some("TimerFired") {
        return false;
    }
    let created = history.iter().find(|event| item.id == Some(event.event_id)).map(|event| &event.kind);
    match created {
        Some(EventKind::TimerCreated { fire_at_ms, .. }) => *fire_at_ms > now_ms,
        // The history does not say when it is due; the delay of its delivery does.
        _ => item.visible_at > now_ms,
    }
}

/// The queued messages and activities of an execution.
struct Queues<'a> {
    pending: &'a PendingWork,
    /// The queued outcomes by kind and by the event that started their operation.
    outcomes: HashMap<(&'a str, u64), &'a QueuedItem>,
    activities: HashMap<u64, &'a QueuedItem>,
    /// The number of raised events and queue messages, by kind and name, that have not ended a wait yet: each ends one.
    named: HashMap<&'a str, HashMap<&'a str, u64>>,
}

impl<'a> Queues<'a> {
    fn of(pending: &'a PendingWork, execution_id: u64) -> Self {
        let mut queues =
            Self { pending, outcomes: HashMap::new(), activities: HashMap::new(), named: HashMap::new() };
        let id_of = |item: &QueuedItem| item.id.filter(|_| item.execution_id == Some(execution_id));
        for item in &pending.messages {
            let kind = item.kind.as_deref().unwrap_or_default();
            if let (None, Some(name)) = (item.id, item.name.as_deref()) {
                *queues.named.entry(kind).or_default().entry(name).or_default() += 1;
            }
            if let Some(id) = id_of(item) {
                queues.outcomes.entry((kind, id)).or_insert(item);
            }
        }
        for item in &pending.activities {
            if let Some(id) = id_of(item) {
                queues.activities.entry(id).or_insert(item);
            }
        }
        queues
    }

    fn progress(&mut self, open: &OpenOperation) -> Progress {
        match &open.operation {
            Operation::Activity { .. } => self.activity(open.event_id),
            Operation::Timer { .. } => match self.outcome(open.event_id, &["TimerFired"]) {
                Some(fired) if fired.visible_at <= self.pending.now_ms => Progress::Answered,
                Some(fired) => Progress::Sleeping { until_ms: fired.visible_at },
                None => self.missing(),
            },
            Operation::Child { .. } => {
                match self.outcome(open.event_id, &["SubOrchCompleted", "SubOrchFailed"]) {
                    Some(_) => Progress::Answered,
                    None => Progress::Outside,
                }
            }
            Operation::Event { name } => self.message("ExternalRaised", name),
            Operation::Queue { name } => self.message("QueueMessage", name),
        }
    }

    fn activity(&self, id: u64) -> Progress {
        if self.outcome(id, &["ActivityCompleted", "ActivityFailed"]).is_some() {
            return Progress::Answered;
        }
        match self.activities.get(&id) {
            Some(item) => match item.locked_until {
                Some(until_ms) => Progress::Leased { until_ms, deliveries: item.attempt_count },
                None => Progress::Queued { visible_at_ms: item.visible_at, deliveries: item.attempt_count },
            },
            None => self.missing(),
        }
    }

    /// The progress of an operation whose message was not found: `Unknown` if the limit of the request cut a list off.
    fn missing(&self) -> Progress {
        let is_complete = |count: u64, items: &[QueuedItem]| count <= items.len() as u64;
        let all_listed = is_complete(self.pending.message_count, &self.pending.messages)
            && is_complete(self.pending.activity_count, &self.pending.activities);
        if all_listed { Progress::Lost } else { Progress::Unknown }
    }

    /// The queued message of one of these kinds for the operation with this event id.
    fn outcome(&self, id: u64, kinds: &[&'static str]) -> Option<&'a QueuedItem> {
        kinds.iter().find_map(|kind| self.outcomes.get(&(*kind, id)).copied())
    }

    fn message(&mut self, kind: &str, name: &str) -> Progress {
        let left = self.named.get_mut(kind).and_then(|of_kind| of_kind.get_mut(name));
        match left.filter(|left| **left > 0) {
            Some(left) => {
                *left -= 1;
                Progress::Answered
            }
            None => Progress::Outside,
        }
    }
}
