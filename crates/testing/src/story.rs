//! Histories as text for people: one line for each event, without times.

use outlast_author::plain_text;
use outlast_engine::patch_of;
use outlast_model::{ErrorDetails, Event, EventKind};
use outlast_runtime::lens::span;

/// The lines of a history. Equal runs have equal lines: times and random ids are left out.
pub fn story(history: &[Event]) -> Vec<String> {
    history.iter().map(|event| line(event, history)).collect()
}

/// One event as `id what it says`.
pub(crate) fn line(event: &Event, history: &[Event]) -> String {
    without_guids(&format!("{} {}", event.event_id, words(event, history)))
}

/// An event in words. The name of an outcome is that of its decision, which `history` holds.
pub(crate) fn words(event: &Event, history: &[Event]) -> String {
    let of = |what: &str| {
        let decision = history.iter().find(|other| Some(other.event_id) == event.source_event_id);
        let name = decision.and_then(|decision| name(&decision.kind)).unwrap_or(what);
        event.source_event_id.map_or(name.to_string(), |id| format!("{name} ({id})"))
    };
    match &event.kind {
        EventKind::OrchestrationStarted { name, version, input, .. } => {
            format!("start {name} {version} {}", value(input))
        }
        EventKind::OrchestrationCompleted { output } => format!("return {}", value(output)),
        EventKind::OrchestrationFailed { details } => format!("fail: {}", failure(details)),
        EventKind::OrchestrationContinuedAsNew { input } => format!("continue as new {}", value(input)),
        EventKind::OrchestrationCancelRequested { reason } => format!("cancelled: {reason}"),
        EventKind::ActivityScheduled { name, input, session_id, tag } => {
            let label = |label: &str, text: &Option<String>| {
                text.as_ref().map_or(String::new(), |text| format!(" {label}={text}"))
            };
            let (session, tag) = (label("session", session_id), label("tag", tag));
            format!("activity {name}{session}{tag} {}", value(input))
        }
        EventKind::ActivityCompleted { result } => format!("{} returned {}", of("activity"), value(result)),
        EventKind::ActivityFailed { details } => format!("{} failed: {}", of("activity"), failure(details)),
        EventKind::ActivityCancelRequested { .. } => format!("drop {}", of("activity")),
        EventKind::TimerCreated { fire_at_ms } => {
            format!("timer {}", span(fire_at_ms.saturating_sub(event.timestamp_ms)))
        }
        EventKind::TimerFired { .. } => format!("{} fired", of("timer")),
        EventKind::ExternalSubscribed { name } => format!("wait for event {name}"),
        EventKind::QueueSubscribed { name } => format!("wait for a message of queue {name}"),
        EventKind::ExternalEvent { name, data } => format!("event {name} {}", value(data)),
        EventKind::QueueEventDelivered { name, data } => format!("message of queue {name} {}", value(data)),
        EventKind::ExternalSubscribedCancelled { .. } | EventKind::QueueSubscriptionCancelled { .. } => {
            format!("drop {}", of("wait"))
        }
        EventKind::OrchestrationChained { name, instance, input } => {
            format!("detached {name} '{instance}' {}", value(input))
        }
        EventKind::SubOrchestrationScheduled { name, instance, input } => {
            format!("child {name} '{instance}' {}", value(input))
        }
        EventKind::SubOrchestrationCompleted { result } => {
            format!("{} returned {}", of("child"), value(result))
        }
        EventKind::SubOrchestrationFailed { details } => {
            format!("{} failed: {}", of("child"), failure(details))
        }
        EventKind::SubOrchestrationCancelRequested { .. } => format!("drop {}", of("child")),
        EventKind::CustomStatusUpdated { status: Some(status) } => format!("status {}", value(status)),
        EventKind::CustomStatusUpdated { status: None } => "status cleared".to_string(),
        kind @ EventKind::KeyValueSet { .. } if patch_of(kind).is_some() => {
            format!("take patch {}", patch_of(kind).unwrap_or_default())
        }
        EventKind::KeyValueSet { key, value: text, .. } => format!("key {key} = {}", value(text)),
        EventKind::KeyValueCleared { key } => format!("key {key} cleared"),
        EventKind::KeyValuesCleared => "all keys cleared".to_string(),
        // Events that only tests of other versions of the contract have.
        #[allow(unreachable_patterns, reason = "reachable with the feature `replay-version-test`")]
        other => other.type_name().to_string(),
    }
}

/// The name of the operation that a decision starts.
fn name(kind: &EventKind) -> Option<&str> {
    match kind {
        EventKind::ActivityScheduled { name, .. }
        | EventKind::SubOrchestrationScheduled { name, .. }
        | EventKind::ExternalSubscribed { name }
        | EventKind::QueueSubscribed { name } => Some(name),
        _ => None,
    }
}

/// A payload. An empty text is the value of a function without one.
pub(crate) fn value(text: &str) -> String {
    match text {
        "" | "null" => "()".to_string(),
        text => text.replace('\n', "\\n"),
    }
}

fn failure(details: &ErrorDetails) -> String {
    value(&plain_text(&details.display_message()))
}

/// The text with every random id replaced.
pub(crate) fn without_guids(text: &str) -> String {
    const SHAPE: &[u8; 36] = b"xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
    let is_guid = |bytes: &[u8]| {
        bytes.len() == SHAPE.len()
            && bytes.iter().zip(SHAPE).all(|(byte, shape)| match shape {
                b'-' => *byte == b'-',
                _ => byte.is_ascii_hexdigit(),
            })
    };
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        if rest.as_bytes().get(..SHAPE.len()).is_some_and(is_guid) {
            result.push_str("<guid>");
            rest = &rest[SHAPE.len()..];
        } else {
            result.push(next);
            rest = &rest[next.len_utf8()..];
        }
    }
    result
}

/// The first event of a history in words.
pub(crate) fn words_of_first(history: &[Event]) -> String {
    history.first().map_or("not there".to_string(), |event| words(event, history))
}
