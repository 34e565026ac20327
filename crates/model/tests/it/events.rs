//! Every kind of event, inside its envelope.

use crate::golden::{self, Row, Variants, variants};
use outlast_model::{AppErrorKind, ErrorDetails, Event, EventKind};

variants! {
    EventKind:
    OrchestrationStarted, OrchestrationCompleted, OrchestrationFailed, ActivityScheduled, ActivityCompleted,
    ActivityFailed, ActivityCancelRequested, TimerCreated, TimerFired, ExternalSubscribed, ExternalEvent,
    OrchestrationChained, SubOrchestrationScheduled, SubOrchestrationCompleted, SubOrchestrationFailed,
    SubOrchestrationCancelRequested, OrchestrationContinuedAsNew, OrchestrationCancelRequested,
    ExternalSubscribedCancelled, QueueSubscribed, QueueEventDelivered, QueueSubscriptionCancelled,
    CustomStatusUpdated, KeyValueSet, KeyValueCleared, KeyValuesCleared,
    #[cfg(feature = "replay-version-test")] ExternalSubscribed2,
    #[cfg(feature = "replay-version-test")] ExternalEvent2,
}

/// A full event with its full text. The envelope is the same for all, the source id aside.
pub(crate) fn rows() -> Vec<Row<Event>> {
    let without_source = kinds().into_iter().map(|(kind, payload)| (None, "null", kind, payload));
    let with_source = kinds_with_source().into_iter().map(|(kind, payload)| (Some(2), "2", kind, payload));
    without_source
        .chain(with_source)
        .map(|(source, source_text, kind, payload)| {
            let envelope = format!(
                "\"event_id\":3,\"source_event_id\":{source_text},\"instance_id\":\"order-1\",\"execution_id\":1,\
                 \"timestamp_ms\":1700000000000,\"duroxide_version\":\"0.1.32\""
            );
            (Event::at(1_700_000_000_000, 3, "order-1", 1, source, kind), format!("{{{envelope},{payload}}}"))
        })
        .collect()
}

/// Kinds that do not point back at a scheduling event, with the text after the envelope.
fn kinds() -> Vec<(EventKind, &'static str)> {
    #[allow(unused_mut, reason = "only a feature adds rows")]
    let mut rows = vec![
        (
            EventKind::OrchestrationStarted {
                name: "Order".into(),
                version: "1.0.0".into(),
                input: "{}".into(),
                parent_instance: None,
                parent_id: None,
                parent_execution_id: None,
                carry_forward_events: None,
                initial_custom_status: None,
            },
            r#""type":"OrchestrationStarted","name":"Order","version":"1.0.0","input":"{}","parent_instance":null,"parent_id":null"#,
        ),
        (
            EventKind::OrchestrationStarted {
                name: "Order".into(),
                version: "1.0.0".into(),
                input: "{}".into(),
                parent_instance: Some("root".into()),
                parent_id: Some(7),
                parent_execution_id: Some(3),
                carry_forward_events: Some(vec![("q".into(), "1".into()), ("r".into(), "2".into())]),
                initial_custom_status: Some("half".into()),
            },
            r#""type":"OrchestrationStarted","name":"Order","version":"1.0.0","input":"{}","parent_instance":"root","parent_id":7,"parent_execution_id":3,"carry_forward_events":[["q","1"],["r","2"]],"initial_custom_status":"half""#,
        ),
        (
            EventKind::OrchestrationCompleted { output: "done".into() },
            r#""type":"OrchestrationCompleted","output":"done""#,
        ),
        (
            EventKind::OrchestrationFailed { details: no_stock() },
            r#""type":"OrchestrationFailed","details":{"Application":{"kind":"ActivityFailed","message":"no stock","retryable":false}}"#,
        ),
        (
            EventKind::ActivityScheduled {
                name: "Ship".into(),
                input: "x".into(),
                session_id: None,
                tag: None,
            },
            r#""type":"ActivityScheduled","name":"Ship","input":"x""#,
        ),
        (
            EventKind::ActivityScheduled {
                name: "Ship".into(),
                input: "x".into(),
                session_id: Some("s".into()),
                tag: Some("gpu".into()),
            },
            r#""type":"ActivityScheduled","name":"Ship","input":"x","session_id":"s","tag":"gpu""#,
        ),
        (EventKind::TimerCreated { fire_at_ms: 5_000 }, r#""type":"TimerCreated","fire_at_ms":5000"#),
        // Integers stay integers all the way up: no detour over a float.
        (
            EventKind::TimerCreated { fire_at_ms: u64::MAX },
            r#""type":"TimerCreated","fire_at_ms":18446744073709551615"#,
        ),
        (
            EventKind::ExternalSubscribed { name: "paid".into() },
            r#""type":"ExternalSubscribed","name":"paid""#,
        ),
        (
            EventKind::ExternalEvent { name: "paid".into(), data: "42".into() },
            r#""type":"ExternalEvent","name":"paid","data":"42""#,
        ),
        (
            EventKind::OrchestrationChained { name: "Audit".into(), instance: "a".into(), input: "x".into() },
            r#""type":"OrchestrationChained","name":"Audit","instance":"a","input":"x""#,
        ),
        (
            EventKind::SubOrchestrationScheduled {
                name: "Pay".into(),
                instance: "sub::3".into(),
                input: "x".into(),
            },
            r#""type":"SubOrchestrationScheduled","name":"Pay","instance":"sub::3","input":"x""#,
        ),
        (
            EventKind::OrchestrationContinuedAsNew { input: "next".into() },
            r#""type":"OrchestrationContinuedAsNew","input":"next""#,
        ),
        (
            EventKind::OrchestrationCancelRequested { reason: "stop".into() },
            r#""type":"OrchestrationCancelRequested","reason":"stop""#,
        ),
        // The queue kinds keep the names that they had before they were renamed in code.
        (
            EventKind::QueueSubscribed { name: "inbox".into() },
            r#""type":"ExternalSubscribedPersistent","name":"inbox""#,
        ),
        (
            EventKind::QueueEventDelivered { name: "inbox".into(), data: "m".into() },
            r#""type":"ExternalEventPersistent","name":"inbox","data":"m""#,
        ),
        (EventKind::CustomStatusUpdated { status: None }, r#""type":"CustomStatusUpdated","status":null"#),
        (
            EventKind::CustomStatusUpdated { status: Some("50%".into()) },
            r#""type":"CustomStatusUpdated","status":"50%""#,
        ),
        (
            EventKind::KeyValueSet { key: "k".into(), value: "v".into(), last_updated_at_ms: 0 },
            r#""type":"KeyValueSet","key":"k","value":"v","last_updated_at_ms":0"#,
        ),
        (
            EventKind::KeyValueSet { key: "k".into(), value: "v".into(), last_updated_at_ms: 9 },
            r#""type":"KeyValueSet","key":"k","value":"v","last_updated_at_ms":9"#,
        ),
        (EventKind::KeyValueCleared { key: "k".into() }, r#""type":"KeyValueCleared","key":"k""#),
        (EventKind::KeyValuesCleared, r#""type":"KeyValuesCleared""#),
    ];
    #[cfg(feature = "replay-version-test")]
    rows.extend([
        (
            EventKind::ExternalSubscribed2 { name: "paid".into(), topic: "eu".into() },
            r#""type":"ExternalSubscribed2","name":"paid","topic":"eu""#,
        ),
        (
            EventKind::ExternalEvent2 { name: "paid".into(), topic: "eu".into(), data: "42".into() },
            r#""type":"ExternalEvent2","name":"paid","topic":"eu","data":"42""#,
        ),
    ]);
    rows
}

/// Completions and cancellation notes, which point back at a scheduling event.
fn kinds_with_source() -> Vec<(EventKind, &'static str)> {
    vec![
        (EventKind::ActivityCompleted { result: "ok".into() }, r#""type":"ActivityCompleted","result":"ok""#),
        (
            EventKind::ActivityFailed { details: no_stock() },
            r#""type":"ActivityFailed","details":{"Application":{"kind":"ActivityFailed","message":"no stock","retryable":false}}"#,
        ),
        (
            EventKind::ActivityCancelRequested { reason: "dropped_future".into() },
            r#""type":"ActivityCancelRequested","reason":"dropped_future""#,
        ),
        (EventKind::TimerFired { fire_at_ms: 5_000 }, r#""type":"TimerFired","fire_at_ms":5000"#),
        (
            EventKind::SubOrchestrationCompleted { result: "ok".into() },
            r#""type":"SubOrchestrationCompleted","result":"ok""#,
        ),
        (
            EventKind::SubOrchestrationFailed { details: no_stock() },
            r#""type":"SubOrchestrationFailed","details":{"Application":{"kind":"ActivityFailed","message":"no stock","retryable":false}}"#,
        ),
        (
            EventKind::SubOrchestrationCancelRequested { reason: "dropped_future".into() },
            r#""type":"SubOrchestrationCancelRequested","reason":"dropped_future""#,
        ),
        (
            EventKind::ExternalSubscribedCancelled { reason: "dropped_future".into() },
            r#""type":"ExternalSubscribedCancelled","reason":"dropped_future""#,
        ),
        (
            EventKind::QueueSubscriptionCancelled { reason: "dropped_future".into() },
            r#""type":"ExternalSubscribedPersistentCancelled","reason":"dropped_future""#,
        ),
    ]
}

fn no_stock() -> ErrorDetails {
    ErrorDetails::Application {
        kind: AppErrorKind::ActivityFailed,
        message: "no stock".into(),
        retryable: false,
    }
}

#[test]
fn every_kind_has_its_text() {
    let rows = rows();
    golden::check(&rows);
    golden::assert_covered(rows.iter().map(|(event, _)| &event.kind));
}

/// The one line that the contract itself shows.
#[test]
fn example_event_of_the_contract_has_its_text() {
    let kind =
        EventKind::ActivityScheduled { name: "A".into(), input: "x".into(), session_id: None, tag: None };
    let text = r#"{"event_id":2,"source_event_id":null,"instance_id":"i","execution_id":1,"timestamp_ms":5,"duroxide_version":"0.1.32","type":"ActivityScheduled","name":"A","input":"x"}"#;
    golden::check(&[(Event::at(5, 2, "i", 1, None, kind), text.to_string())]);
}

#[test]
fn the_type_name_is_the_type_key() {
    for (event, text) in rows() {
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(json["type"], event.kind.type_name(), "{text}");
    }
}

#[test]
fn three_kinds_end_an_execution() {
    let rows = rows();
    let ends: Vec<&str> =
        rows.iter().filter(|(event, _)| event.is_terminal()).map(|(event, _)| event.kind.variant()).collect();
    assert_eq!(ends, ["OrchestrationCompleted", "OrchestrationFailed", "OrchestrationContinuedAsNew"]);
}

#[test]
fn constructors_stamp_version_and_time() {
    let made = Event::new("i", 4, Some(1), EventKind::KeyValuesCleared);
    assert_eq!((made.event_id(), made.execution_id, made.source_event_id()), (0, 4, Some(1)));
    assert_eq!(made.duroxide_version, "0.1.32");
    assert!(made.timestamp_ms > 1_700_000_000_000, "the wall clock, got {}", made.timestamp_ms);
    assert_eq!(Event::with_event_id(8, "i", 4, None, EventKind::KeyValuesCleared).event_id, 8);
}
