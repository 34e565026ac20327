//! Operations that an execution began and that have no outcome yet.

use outlast_model::{Event, EventKind, build_child_instance_id};
use std::collections::BTreeMap;

/// An operation without an outcome.
///
/// The code need not wait for it any more: a timer that lost a race leaves no trace in a history, and stays open until it is
/// due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenOperation {
    /// The event that began it.
    pub event_id: u64,
    /// When that was.
    pub since_ms: u64,
    /// What it is.
    pub operation: Operation,
}

/// What code can wait for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// An activity.
    Activity {
        /// Its name.
        name: String,
        /// The tag of the nodes that may run it.
        tag: Option<String>,
        /// The session that it runs in.
        session_id: Option<String>,
    },
    /// A timer.
    Timer {
        /// When it is due.
        fire_at_ms: u64,
    },
    /// A positional event.
    Event {
        /// Its name.
        name: String,
    },
    /// A message of a queue.
    Queue {
        /// The queue.
        name: String,
    },
    /// A child.
    Child {
        /// Its orchestration.
        name: String,
        /// Its instance.
        instance: String,
    },
}

/// The open operations of an execution, in the order in which they began; none of an execution that has ended.
///
/// | operation | ends with |
/// |---|---|
/// | activity, child | its outcome, or the note that its cancellation was asked for |
/// | timer | its firing |
/// | event | the event, which goes to the oldest open wait of its name, or the note that it is given up |
/// | queue message | a message: as many waits of a name are over as messages of it came, given-up waits aside |
pub fn open_operations(history: &[Event]) -> Vec<OpenOperation> {
    if history.last().is_some_and(|last| ends(&last.kind)) {
        return Vec::new();
    }
    let mut open = Open::default();
    for event in history {
        open.read(event);
    }
    open.left()
}

fn ends(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::OrchestrationCompleted { .. }
            | EventKind::OrchestrationFailed { .. }
            | EventKind::OrchestrationContinuedAsNew { .. }
    )
}

#[derive(Default)]
struct Open {
    /// Operations by the event that began them.
    operations: BTreeMap<u64, OpenOperation>,
    /// Messages that came, by queue.
    messages: BTreeMap<String, usize>,
    /// Events that came before their wait, by name, where the execution keeps them.
    early: BTreeMap<String, usize>,
    keeps_early_events: bool,
}

impl Open {
    fn read(&mut self, event: &Event) {
        let operation = match &event.kind {
            EventKind::OrchestrationStarted { carry_forward_events, .. } => {
                // The engine marks executions that keep early events in the stamp of their first event.
                self.keeps_early_events = event.duroxide_version.ends_with("+buffered");
                for (name, _) in carry_forward_events.iter().flatten() {
                    *self.messages.entry(name.clone()).or_default() += 1;
                }
                return;
            }
            EventKind::ActivityScheduled { name, session_id, tag, .. } => {
                Operation::Activity { name: name.clone(), tag: tag.clone(), session_id: session_id.clone() }
            }
            EventKind::TimerCreated { fire_at_ms } => Operation::Timer { fire_at_ms: *fire_at_ms },
            EventKind::SubOrchestrationScheduled { name, instance, .. } => {
                // A generated id is stored without that of the parent.
                let instance = build_child_instance_id(&event.instance_id, instance);
                Operation::Child { name: name.clone(), instance }
            }
            EventKind::ExternalSubscribed { name } => {
                if let Some(kept) = self.early.get_mut(name).filter(|kept| **kept > 0) {
                    *kept -= 1;
                    return;
                }
                Operation::Event { name: name.clone() }
            }
            EventKind::QueueSubscribed { name } => Operation::Queue { name: name.clone() },
            EventKind::ExternalEvent { name, .. } => return self.answer_event(name),
            EventKind::QueueEventDelivered { name, .. } => {
                *self.messages.entry(name.clone()).or_default() += 1;
                return;
            }
            _ => {
                // Outcomes and notes name the event that began what they end.
                if let Some(source) = event.source_event_id {
                    self.operations.remove(&source);
                }
                return;
            }
        };
        let open = OpenOperation { event_id: event.event_id, since_ms: event.timestamp_ms, operation };
        self.operations.insert(event.event_id, open);
    }

    fn answer_event(&mut self, name: &str) {
        let is_waited_for =
            |open: &OpenOperation| matches!(&open.operation, Operation::Event { name: of } if of == name);
        let oldest = self.operations.values().find(|open| is_waited_for(open)).map(|open| open.event_id);
        match oldest {
            Some(oldest) => drop(self.operations.remove(&oldest)),
            None if self.keeps_early_events => *self.early.entry(name.to_string()).or_default() += 1,
            None => {}
        }
    }

    fn left(mut self) -> Vec<OpenOperation> {
        let mut left: Vec<OpenOperation> = self.operations.into_values().collect();
        left.retain(|open| match &open.operation {
            Operation::Queue { name } => match self.messages.get_mut(name).filter(|came| **came > 0) {
                Some(came) => {
                    *came -= 1;
                    false
                }
                None => true,
            },
            _ => true,
        });
        left
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use outlast_model::{AppErrorKind, CONTRACT_VERSION, ErrorDetails};

    pub(in crate::lens) fn event(event_id: u64, source: Option<u64>, kind: EventKind) -> Event {
        Event { timestamp_ms: event_id * 10, ..Event::with_event_id(event_id, "i", 1, source, kind) }
    }

    pub(in crate::lens) fn activity(name: &str) -> EventKind {
        EventKind::ActivityScheduled { name: name.into(), input: "x".into(), session_id: None, tag: None }
    }

    fn started(stamp: &str, carried: &[&str]) -> Event {
        let kind = EventKind::OrchestrationStarted {
            name: "O".into(),
            version: "1.0.0".into(),
            input: "x".into(),
            parent_instance: None,
            parent_id: None,
            parent_execution_id: None,
            carry_forward_events: Some(carried.iter().map(|name| (name.to_string(), "x".into())).collect()),
            initial_custom_status: None,
        };
        Event { duroxide_version: stamp.into(), ..event(1, None, kind) }
    }

    fn failed() -> ErrorDetails {
        let kind = AppErrorKind::ActivityFailed;
        ErrorDetails::Application { kind, message: "x".into(), retryable: false }
    }

    /// One line per open operation.
    fn lines(history: &[Event]) -> Vec<String> {
        let line = |open: OpenOperation| {
            let what = match open.operation {
                Operation::Activity { name, .. } => format!("activity {name}"),
                Operation::Timer { fire_at_ms } => format!("timer {fire_at_ms}"),
                Operation::Event { name } => format!("event {name}"),
                Operation::Queue { name } => format!("queue {name}"),
                Operation::Child { instance, .. } => format!("child {instance}"),
            };
            format!("{} {what} since {}", open.event_id, open.since_ms)
        };
        open_operations(history).into_iter().map(line).collect()
    }

    #[test]
    fn operations_are_open_until_their_outcome() {
        let child = || EventKind::SubOrchestrationScheduled {
            name: "C".into(),
            instance: "sub::2".into(),
            input: "x".into(),
        };
        let reason = || "x".to_string();
        let name = |name: &str| name.to_string();
        let waits = |of: &str| EventKind::ExternalSubscribed { name: name(of) };
        let raised = |of: &str| EventKind::ExternalEvent { name: name(of), data: reason() };
        let takes = |of: &str| EventKind::QueueSubscribed { name: name(of) };
        let came = |of: &str| EventKind::QueueEventDelivered { name: name(of), data: reason() };
        // What the code did, what happened (with the event that it answers), what is open.
        type Case = (Vec<EventKind>, Vec<(Option<u64>, EventKind)>, &'static [&'static str]);
        let cases: Vec<Case> = vec![
            (vec![], vec![], &[]),
            (vec![activity("A")], vec![], &["2 activity A since 20"]),
            (vec![activity("A")], vec![(Some(2), EventKind::ActivityCompleted { result: reason() })], &[]),
            (vec![activity("A")], vec![(Some(2), EventKind::ActivityFailed { details: failed() })], &[]),
            (
                vec![activity("A")],
                vec![(Some(2), EventKind::ActivityCancelRequested { reason: reason() })],
                &[],
            ),
            (
                vec![activity("A"), activity("B")],
                vec![(Some(2), EventKind::ActivityCompleted { result: reason() })],
                &["3 activity B since 30"],
            ),
            (vec![EventKind::TimerCreated { fire_at_ms: 99 }], vec![], &["2 timer 99 since 20"]),
            (
                vec![EventKind::TimerCreated { fire_at_ms: 99 }],
                vec![(Some(2), EventKind::TimerFired { fire_at_ms: 99 })],
                &[],
            ),
            (vec![child()], vec![], &["2 child i::sub::2 since 20"]),
            (vec![child()], vec![(Some(2), EventKind::SubOrchestrationCompleted { result: reason() })], &[]),
            (vec![child()], vec![(Some(2), EventKind::SubOrchestrationFailed { details: failed() })], &[]),
            (
                vec![child()],
                vec![(Some(2), EventKind::SubOrchestrationCancelRequested { reason: reason() })],
                &[],
            ),
            (vec![waits("go")], vec![(None, raised("stop"))], &["2 event go since 20"]),
            (vec![waits("go"), waits("go")], vec![(None, raised("go"))], &["3 event go since 30"]),
            (
                vec![waits("go"), waits("go")],
                vec![
                    (Some(2), EventKind::ExternalSubscribedCancelled { reason: reason() }),
                    (None, raised("go")),
                ],
                &[],
            ),
            (vec![raised("go"), waits("go")], vec![], &["3 event go since 30"]),
            (vec![takes("q"), takes("q")], vec![(None, came("q"))], &["3 queue q since 30"]),
            (vec![came("q"), takes("q")], vec![], &[]),
            (
                vec![takes("q"), takes("q")],
                vec![
                    (None, came("q")),
                    (Some(2), EventKind::QueueSubscriptionCancelled { reason: reason() }),
                ],
                &[],
            ),
            (vec![takes("q"), takes("other")], vec![(None, came("other"))], &["2 queue q since 20"]),
            (vec![activity("A")], vec![(None, EventKind::OrchestrationCompleted { output: reason() })], &[]),
            (
                vec![activity("A")],
                vec![(None, EventKind::OrchestrationContinuedAsNew { input: reason() })],
                &[],
            ),
            (vec![activity("A")], vec![(None, EventKind::OrchestrationFailed { details: failed() })], &[]),
        ];
        for (did, happened, expected) in cases {
            let events = did.into_iter().map(|kind| (None, kind)).chain(happened);
            let mut history = vec![started(CONTRACT_VERSION, &[])];
            history.extend(events.zip(2..).map(|((source, kind), id)| event(id, source, kind)));
            assert_eq!(lines(&history), expected, "{history:#?}");
        }
    }

    #[test]
    fn carried_messages_and_kept_events_answer_waits() {
        let takes = || event(2, None, EventKind::QueueSubscribed { name: "q".into() });
        assert_eq!(lines(&[started(CONTRACT_VERSION, &["q"]), takes()]), [""; 0]);
        assert_eq!(lines(&[started(CONTRACT_VERSION, &["r"]), takes()]), ["2 queue q since 20"]);
        let early = || {
            let raised = EventKind::ExternalEvent { name: "go".into(), data: "x".into() };
            let waits = EventKind::ExternalSubscribed { name: "go".into() };
            [event(2, None, raised), event(3, None, waits)]
        };
        let keeps = started(&format!("{CONTRACT_VERSION}+buffered"), &[]);
        assert_eq!(lines(&[&[keeps][..], &early()].concat()), [""; 0]);
        assert_eq!(
            lines(&[&[started(CONTRACT_VERSION, &[])][..], &early()].concat()),
            ["3 event go since 30"]
        );
    }
}
