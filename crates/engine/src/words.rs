//! Events in words for people, without payloads. Replay errors name decisions by the same words.

use crate::op::{Op, Role};
use outlast_model::{Event, EventKind};

/// An event in words: `a wait for a message of queue 'approvals'`. The words have no payload, and no ids of sessions and instances, so that
/// the same decision of two instances has the same words. `history` holds the decision that an outcome belongs to.
pub fn in_words(event: &Event, history: &[Event]) -> String {
    let Some((op, role)) = Op::of_event(&event.kind) else { return of_execution(&event.kind) };
    let decision = || {
        let source = history.iter().find(|other| Some(other.event_id) == event.source_event_id);
        source.map_or_else(|| op.name().to_string(), |source| described(op, &source.kind))
    };
    match (role, &event.kind) {
        (Role::Decision, kind) => described(op, kind),
        (Role::Outcome, EventKind::ActivityFailed { .. } | EventKind::SubOrchestrationFailed { .. }) => {
            format!("the failure of {}", decision())
        }
        (Role::Outcome, _) => format!("the outcome of {}", decision()),
        (Role::Cancellation, _) => format!("the drop of {}", decision()),
        (Role::Arrival, EventKind::ExternalEvent { name, .. }) => format!("event '{name}'"),
        (Role::Arrival, EventKind::QueueEventDelivered { name, .. }) => {
            format!("a message of queue '{name}'")
        }
        (Role::Arrival, kind) => kind.type_name().to_string(),
    }
}

/// A decision without ids.
fn described(op: Op, decision: &EventKind) -> String {
    match decision {
        EventKind::ActivityScheduled { name, input, tag, session_id: Some(_) } => {
            let (name, input, tag) = (name.clone(), input.clone(), tag.clone());
            op.describe(&EventKind::ActivityScheduled { name, input, tag, session_id: None })
        }
        EventKind::OrchestrationChained { name, .. } => format!("a detached orchestration '{name}'"),
        other => op.describe(other),
    }
}

fn of_execution(kind: &EventKind) -> String {
    match kind {
        EventKind::OrchestrationStarted { name, version, .. } => {
            format!("the start of orchestration '{name}' {version}")
        }
        EventKind::OrchestrationCompleted { .. } => "the return of a value".to_string(),
        EventKind::OrchestrationFailed { .. } => "the return of an error".to_string(),
        EventKind::OrchestrationContinuedAsNew { .. } => "continue-as-new".to_string(),
        EventKind::OrchestrationCancelRequested { .. } => "a request to cancel".to_string(),
        other => other.type_name().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_model::{AppErrorKind, ErrorDetails};

    fn event(id: u64, source: Option<u64>, kind: EventKind) -> Event {
        Event::at(0, id, "i", 1, source, kind)
    }

    #[test]
    fn every_role_has_words_without_payloads_and_type_names() {
        let secret = || "s3cret".to_string();
        let details = || ErrorDetails::Application {
            kind: AppErrorKind::ActivityFailed,
            message: secret(),
            retryable: false,
        };
        let activity = EventKind::ActivityScheduled {
            name: "charge".into(),
            input: secret(),
            session_id: Some("of one instance".into()),
            tag: Some("gpu".into()),
        };
        let queue = || EventKind::QueueSubscribed { name: "approvals".into() };
        let history = [
            event(2, None, activity),
            event(3, None, queue()),
            event(4, None, EventKind::TimerCreated { fire_at_ms: 7 }),
        ];
        let words = |source, kind| in_words(&event(9, source, kind), &history);
        for (source, kind, expected) in [
            (None, queue(), "a wait for a message of queue 'approvals'"),
            (None, EventKind::TimerCreated { fire_at_ms: 7 }, "a timer"),
            (
                None,
                EventKind::OrchestrationChained {
                    name: "survey".into(),
                    instance: secret(),
                    input: secret(),
                },
                "a detached orchestration 'survey'",
            ),
            (
                Some(2),
                EventKind::ActivityCompleted { result: secret() },
                "the outcome of activity 'charge' with tag 'gpu'",
            ),
            (
                Some(2),
                EventKind::ActivityFailed { details: details() },
                "the failure of activity 'charge' with tag 'gpu'",
            ),
            (
                Some(2),
                EventKind::ActivityCancelRequested { reason: secret() },
                "the drop of activity 'charge' with tag 'gpu'",
            ),
            (Some(4), EventKind::TimerFired { fire_at_ms: 7 }, "the outcome of a timer"),
            (
                Some(3),
                EventKind::QueueSubscriptionCancelled { reason: secret() },
                "the drop of a wait for a message of queue 'approvals'",
            ),
            (
                None,
                EventKind::QueueEventDelivered { name: "approvals".into(), data: secret() },
                "a message of queue 'approvals'",
            ),
            (None, EventKind::ExternalEvent { name: "paid".into(), data: secret() }, "event 'paid'"),
            (None, EventKind::OrchestrationCompleted { output: secret() }, "the return of a value"),
            (None, EventKind::OrchestrationFailed { details: details() }, "the return of an error"),
            (None, EventKind::OrchestrationContinuedAsNew { input: secret() }, "continue-as-new"),
            (None, EventKind::OrchestrationCancelRequested { reason: secret() }, "a request to cancel"),
        ] {
            assert_eq!(words(source, kind), expected);
        }
    }
}
