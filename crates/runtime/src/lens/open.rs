//! The operations that an execution started and that have no outcome yet.

use outlast_model::{Event, EventKind, build_child_instance_id};
use std::collections::BTreeMap;

/// An operation without an outcome.
///
/// The code may no longer wait for it: a history does not record that a timer lost a race, so the timer is open until it fires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenOperation {
    /// The id of the event that started it.
    pub event_id: u64,
    /// The time of that event.
    pub since_ms: u64,
    /// The operation.
    pub operation: Operation,
}

/// An operation that orchestration code can wait for.
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

/// The open operations of an execution, in the order in which they started; empty for an execution that has ended.
///
/// | operation | ends with |
/// |---|---|
/// | activity, child | its outcome, or the event that records the request to cancel it |
/// | timer | its fired event |
/// | event | the event, which ends the oldest open wait of its name, or the event that records the cancelled wait |
/// | queue message | a message: each delivered message of a queue ends one wait that was not cancelled |
pub fn open_operations(history: &[Event]) -> Vec<OpenOperation> {
    if history.last().is_some_and(|last| is_end(&last.kind)) {
        return Vec::new();
    }
    let mut open = Open::default();
    for event in history {
        open.apply(event);
    }
    open.into_operations()
}

fn is_end(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::OrchestrationCompleted { .. }
            | EventKind::OrchestrationFailed { .. }
            | EventKind::OrchestrationContinuedAsNew { .. }
    )
}

#[derive(Default)]
struct Open {
    /// Operations by the id of the event that started them.
    operations: BTreeMap<u64, OpenOperation>,
    /// The number of delivered messages by queue.
    messages: BTreeMap<String, usize>,
    /// The number of events that arrived before their wait, by name. Filled only if `keeps_early_events`.
    early: BTreeMap<String, usize>,
    keeps_early_events: bool,
}

impl Open {
    fn apply(&mut self, event: &Event) {
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
                // A generated id is stored without the id of the parent.
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
            EventKind::ExternalEvent { name, .. } => return self.deliver_event(name),
            EventKind::QueueEventDelivered { name, .. } => {
                *self.messages.entry(name.clone()).or_default() += 1;
                return;
            }
            _ => {
                // Outcomes and cancellations have the id of the event that started their operation.
                if let Some(source) = event.source_event_id {
                    self.operations.remove(&source);
                }
                return;
            }
        };
        let open = OpenOperation { event_id: event.event_id, since_ms: event.timestamp_ms, operation };
        self.operations.insert(event.event_id, open);
    }

    fn deliver_event(&mut self, name: &str) {
        let waits_for_it =
            |open: &OpenOperation| matches!(&open.operation, Operation::Event { name: of } if of == name);
        let oldest = self.operations.values().find(|open| waits_for_it(open)).map(|open| open.event_id);
        match oldest {
            Some(oldest) => drop(self.operations.remove(&oldest)),
            None if self.keeps_early_events => *self.early.entry(name.to_string()).or_default() += 1,
            None => {}
        }
    }

    /// The operations that are open after the delivered messages have ended waits for their queues.
    fn into_operations(mut self) -> Vec<OpenOperation> {
        let mut operations: Vec<OpenOperation> = self.operations.into_values().collect();
        operations.retain(|open| match &open.operation {
            Operation::Queue { name } => match self.messages.get_mut(name).filter(|count| **count > 0) {
                Some(count) => {
                    *count -= 1;
                    false
                }
                None => true,
            },
            _ => true,
        });
        operations
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
        // The events of the code, the events after them (with their source event), and the expected open operations.
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
    fn carried_messages_and_early_events_end_waits() {
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
