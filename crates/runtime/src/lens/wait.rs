//! The progress of open operations, and whether a turn is due.

use super::open::{OpenOperation, Operation, open_operations};
use outlast_model::Event;
use outlast_provider::{PendingWork, QueuedItem};

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

/// The queued messages and activities of an execution.
struct Queues<'a> {
    pending: &'a PendingWork,
    execution_id: u64,
    /// The raised events and queue messages that have not ended a wait yet: each ends one.
    named: Vec<&'a QueuedItem>,
}

impl<'a> Queues<'a> {
    fn of(pending: &'a PendingWork, execution_id: u64) -> Self {
        let is_named = |item: &&QueuedItem| matches!(kind(item), "ExternalRaised" | "QueueMessage");
        Self { pending, execution_id, named: pending.messages.iter().filter(is_named).collect() }
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
        let has_id = |item: &&QueuedItem| item.id == Some(id) && item.execution_id == Some(self.execution_id);
        match self.pending.activities.iter().find(has_id) {
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
    fn outcome(&self, id: u64, kinds: &[&str]) -> Option<&'a QueuedItem> {
        self.pending.messages.iter().find(|item| {
            kinds.contains(&kind(item)) && item.id == Some(id) && item.execution_id == Some(self.execution_id)
        })
    }

    fn message(&mut self, of: &str, name: &str) -> Progress {
        let found = self.named.iter().position(|item| kind(item) == of && item.name.as_deref() == Some(name));
        match found {
            Some(index) => {
                self.named.remove(index);
                Progress::Answered
            }
            None => Progress::Outside,
        }
    }
}

fn kind(item: &QueuedItem) -> &str {
    item.kind.as_deref().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::open::tests::{activity, event};
    use super::*;
    use outlast_model::EventKind;

    const NOW: u64 = 1_000;

    fn item(kind: &str, name: Option<&str>, id: Option<u64>) -> QueuedItem {
        QueuedItem {
            kind: Some(kind.to_string()),
            name: name.map(str::to_string),
            execution_id: id.map(|_| 1),
            id,
            visible_at: 900,
            ..QueuedItem::default()
        }
    }

    fn pending(messages: Vec<QueuedItem>, activities: Vec<QueuedItem>) -> PendingWork {
        PendingWork {
            now_ms: NOW,
            turn_locked_until: None,
            message_count: messages.len() as u64,
            messages,
            activity_count: activities.len() as u64,
            activities,
        }
    }

    fn progress(kind: EventKind, pending: Option<&PendingWork>) -> Progress {
        let history = [event(2, None, kind)];
        waits(&history, pending).pop().unwrap().progress
    }

    #[test]
    fn the_queues_determine_the_progress_of_an_operation() {
        let queued = || item("ActivityExecute", Some("A"), Some(2));
        let waits = || EventKind::ExternalSubscribed { name: "go".into() };
        let takes = || EventKind::QueueSubscribed { name: "q".into() };
        let timer = || EventKind::TimerCreated { fire_at_ms: 5_000 };
        let child = || EventKind::SubOrchestrationScheduled {
            name: "C".into(),
            instance: "c".into(),
            input: "".into(),
        };
        let leased = QueuedItem { locked_until: Some(1_500), attempt_count: 2, ..queued() };
        let of_other_execution = QueuedItem { execution_id: Some(7), ..queued() };
        let another = QueuedItem { id: Some(3), ..queued() };
        let outcome_elsewhere =
            QueuedItem { execution_id: Some(7), ..item("ActivityCompleted", None, Some(2)) };
        let fires = |visible_at| QueuedItem { visible_at, ..item("TimerFired", None, Some(2)) };
        let none = Vec::new;
        for (kind, messages, activities, expected) in [
            (activity("A"), none(), vec![queued()], Progress::Queued { visible_at_ms: 900, deliveries: 0 }),
            (activity("A"), none(), vec![leased], Progress::Leased { until_ms: 1_500, deliveries: 2 }),
            (activity("A"), vec![item("ActivityFailed", None, Some(2))], none(), Progress::Answered),
            (activity("A"), vec![item("ActivityCompleted", None, Some(3))], none(), Progress::Lost),
            (activity("A"), vec![outcome_elsewhere], none(), Progress::Lost),
            (activity("A"), none(), vec![of_other_execution], Progress::Lost),
            (activity("A"), none(), vec![another], Progress::Lost),
            (timer(), vec![fires(5_000)], none(), Progress::Sleeping { until_ms: 5_000 }),
            (timer(), vec![fires(NOW)], none(), Progress::Answered),
            (timer(), none(), none(), Progress::Lost),
            (child(), none(), none(), Progress::Outside),
            (child(), vec![item("SubOrchCompleted", None, Some(2))], none(), Progress::Answered),
            (waits(), none(), none(), Progress::Outside),
            (waits(), vec![item("ExternalRaised", Some("stop"), None)], none(), Progress::Outside),
            (waits(), vec![item("QueueMessage", Some("go"), None)], none(), Progress::Outside),
            (waits(), vec![item("ExternalRaised", Some("go"), None)], none(), Progress::Answered),
            (takes(), vec![item("QueueMessage", Some("q"), None)], none(), Progress::Answered),
        ] {
            let shown = format!("{kind:?}");
            assert_eq!(progress(kind, Some(&pending(messages, activities))), expected, "{shown}");
        }
        assert_eq!(progress(activity("A"), None), Progress::Unknown);
        let cut_short = PendingWork { activity_count: 1, ..pending(none(), none()) };
        assert_eq!(
            progress(activity("A"), Some(&cut_short)),
            Progress::Unknown,
            "the activity may be beyond the limit"
        );
    }

    #[test]
    fn one_message_ends_one_wait() {
        let waits_for = |id| event(id, None, EventKind::ExternalSubscribed { name: "go".into() });
        let pending = pending(vec![item("ExternalRaised", Some("go"), None)], vec![]);
        let progress: Vec<Progress> = waits(&[waits_for(2), waits_for(3)], Some(&pending))
            .into_iter()
            .map(|wait| wait.progress)
            .collect();
        assert_eq!(progress, [Progress::Answered, Progress::Outside]);
    }

    #[test]
    fn a_turn_is_idle_due_or_leased() {
        let later = QueuedItem { visible_at: NOW + 1, ..item("TimerFired", None, Some(2)) };
        assert_eq!(turn_state(&pending(vec![later.clone()], vec![])), TurnState::Idle);
        let tried =
            QueuedItem { attempt_count: 7, visible_at: 950, ..item("ExternalRaised", Some("go"), None) };
        let waiting = vec![item("QueueMessage", Some("q"), None), tried.clone(), later];
        let due = TurnState::Due { messages: 2, since_ms: 900, deliveries: 7 };
        assert_eq!(turn_state(&pending(waiting, vec![])), due);
        let taken = QueuedItem { locked_until: Some(1_200), ..tried };
        let leased = PendingWork { turn_locked_until: Some(1_200), ..pending(vec![taken], vec![]) };
        assert_eq!(turn_state(&leased), TurnState::Leased { until_ms: 1_200, deliveries: 7 });
    }
}
