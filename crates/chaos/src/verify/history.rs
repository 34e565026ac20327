//! Checks that must hold in every history.

use outlast::{ErrorDetails, Event, EventKind};
use std::collections::{BTreeMap, BTreeSet};

/// Problems of the executions of an instance.
pub(super) fn problems(executions: &BTreeMap<u64, Vec<Event>>) -> Vec<String> {
    let mut problems = Vec::new();
    let newest = executions.keys().next_back().copied().unwrap_or(0);
    if !executions.keys().copied().eq(1..=newest) {
        problems.push(format!("its executions are {:?}", executions.keys().collect::<Vec<_>>()));
    }
    for (execution, events) in executions {
        let found =
            order(events).into_iter().chain(ends(events, *execution == newest)).chain(outcomes(events));
        problems
            .extend(found.map(|problem| format!("execution {execution}: {problem}; {}", one_line(events))));
    }
    problems
}

/// Storage errors and poison in a history, and timers that fired early.
pub(super) fn errors(executions: &BTreeMap<u64, Vec<Event>>) -> Vec<String> {
    executions.values().flatten().filter_map(error_of).collect()
}

pub(super) fn has_ended(executions: &BTreeMap<u64, Vec<Event>>) -> bool {
    executions.values().next_back().is_some_and(|events| events.iter().any(Event::is_terminal))
}

/// Event ids must be 1, 2, 3 and so on.
fn order(events: &[Event]) -> Option<String> {
    let wrong = events.iter().zip(1..).find(|(event, id)| event.event_id != *id)?;
    Some(format!("event {} is at position {}", wrong.0.event_id, wrong.1))
}

/// At most one terminal event, which is continue-as-new unless the execution is the newest. A running instance is
/// reported elsewhere.
fn ends(events: &[Event], is_newest: bool) -> Option<String> {
    let ends: Vec<&Event> = events.iter().filter(|event| event.is_terminal()).collect();
    match ends.as_slice() {
        [] if is_newest => None,
        [end] if matches!(end.kind, EventKind::OrchestrationContinuedAsNew { .. }) == is_newest => {
            Some(format!("it ends with {}", end.kind.type_name()))
        }
        [_] => None,
        _ => Some(format!("it has {} ends", ends.len())),
    }
}

/// Each scheduled operation has at most one outcome, and each outcome a scheduled operation of its kind before it.
fn outcomes(events: &[Event]) -> Vec<String> {
    let mut problems = Vec::new();
    let mut answered = BTreeSet::new();
    for event in events {
        let wanted = match event.kind {
            EventKind::ActivityCompleted { .. } | EventKind::ActivityFailed { .. } => "ActivityScheduled",
            EventKind::TimerFired { .. } => "TimerCreated",
            EventKind::SubOrchestrationCompleted { .. } | EventKind::SubOrchestrationFailed { .. } => {
                "SubOrchestrationScheduled"
            }
            _ => continue,
        };
        let source = event.source_event_id.unwrap_or(0);
        if !answered.insert(source) {
            problems.push(format!("event {source} has two outcomes"));
        }
        let fits = |decision: &Event| decision.event_id == source && decision.kind.type_name() == wanted;
        if source >= event.event_id || !events.iter().any(fits) {
            problems.push(format!("event {} is the outcome of no scheduled operation", event.event_id));
        }
    }
    problems
}

fn error_of(event: &Event) -> Option<String> {
    match &event.kind {
        EventKind::OrchestrationFailed { details }
        | EventKind::ActivityFailed { details }
        | EventKind::SubOrchestrationFailed { details }
            if !matches!(details, ErrorDetails::Application { .. }) =>
        {
            Some(format!("event {} says: {}", event.event_id, details.display_message()))
        }
        EventKind::TimerFired { fire_at_ms } if event.timestamp_ms < *fire_at_ms => {
            Some(format!("event {} came {} ms early", event.event_id, fire_at_ms - event.timestamp_ms))
        }
        _ => None,
    }
}

/// A history in one line.
pub(super) fn one_line(events: &[Event]) -> String {
    let words = events.iter().map(|event| match event.source_event_id {
        Some(source) => format!("{}:{}<-{source}", event.event_id, event.kind.type_name()),
        None => format!("{}:{}", event.event_id, event.kind.type_name()),
    });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A history from words `kind` or `kind<-source`.
    pub(crate) fn events(text: &str) -> Vec<Event> {
        let event = |(id, word): (u64, &str)| {
            let (name, source) = match word.split_once("<-") {
                Some((name, source)) => (name, source.parse().ok()),
                None => (word, None),
            };
            let text = String::new;
            let kind = match name {
                "started" => EventKind::CustomStatusUpdated { status: None },
                "scheduled" => {
                    EventKind::ActivityScheduled { name: text(), input: text(), session_id: None, tag: None }
                }
                "completed" => EventKind::ActivityCompleted { result: text() },
                "dropped" => EventKind::ActivityCancelRequested { reason: text() },
                "timer" => EventKind::TimerCreated { fire_at_ms: 1 },
                "fired" => EventKind::TimerFired { fire_at_ms: 1 },
                "early" => EventKind::TimerFired { fire_at_ms: u64::MAX },
                "trouble" => EventKind::ActivityFailed {
                    details: ErrorDetails::Infrastructure {
                        operation: "commit".to_string(),
                        message: "disk".to_string(),
                        retryable: true,
                    },
                },
                "ended" => EventKind::OrchestrationCompleted { output: text() },
                "continued" => EventKind::OrchestrationContinuedAsNew { input: text() },
                other => panic!("{other}"),
            };
            Event::with_event_id(id, "i", 1, source, kind)
        };
        (1..).zip(text.split(' ')).map(event).collect()
    }

    fn check(executions: &[&str]) -> Vec<String> {
        let all = (1..).zip(executions.iter().map(|text| events(text))).collect();
        let cut = |problem: String| problem.split("; ").next().unwrap().to_string();
        problems(&all).into_iter().map(cut).collect()
    }

    const GOOD: &str = "started scheduled timer fired<-3 completed<-2 ended";

    #[test]
    fn valid_histories_have_no_problem() {
        assert_eq!(check(&[GOOD]), [""; 0]);
        assert_eq!(check(&["started continued", GOOD]), [""; 0]);
    }

    #[test]
    fn every_double_completion_is_found() {
        let found = [
            ("started scheduled completed<-2 completed<-2 ended", "execution 1: event 2 has two outcomes"),
            ("started timer fired<-2 fired<-2 ended", "execution 1: event 2 has two outcomes"),
            ("started scheduled completed<-2 ended ended", "execution 1: it has 2 ends"),
            ("started completed<-1 ended", "execution 1: event 2 is the outcome of no scheduled operation"),
            (
                "started timer completed<-2 ended",
                "execution 1: event 3 is the outcome of no scheduled operation",
            ),
            ("started continued", "execution 1: it ends with OrchestrationContinuedAsNew"),
        ];
        for (text, problem) in found {
            assert_eq!(check(&[text]), [problem], "{text}");
        }
        assert_eq!(check(&["started ended", GOOD]), ["execution 1: it ends with OrchestrationCompleted"]);
        assert_eq!(check(&["started", GOOD]), ["execution 1: it has 0 ends"]);
    }

    #[test]
    fn storage_errors_and_early_timers_are_found() {
        let found = |text: &str| errors(&BTreeMap::from([(1, events(text))])).join("; ");
        assert_eq!(found(GOOD), "");
        let early = found("started timer early<-2 ended");
        assert!(early.starts_with("event 3 came") && early.ends_with("ms early"), "{early}");
        let error_of = found("started scheduled trouble<-2 ended");
        assert!(error_of.starts_with("event 3 says: ") && error_of.contains("disk"), "{error_of}");
    }

    #[test]
    fn gaps_in_ids_and_executions_are_found() {
        let mut all = BTreeMap::from([(1, events(GOOD))]);
        all.get_mut(&1).unwrap().remove(0);
        assert!(problems(&all)[0].starts_with("execution 1: event 2 is at position 1"));
        let later = BTreeMap::from([(2, events(GOOD))]);
        assert_eq!(problems(&later), ["its executions are [2]"]);
        assert!(has_ended(&later) && !has_ended(&BTreeMap::from([(1, events("started"))])));
    }
}
