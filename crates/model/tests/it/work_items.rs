//! Every work item.

use crate::golden::{self, Row, variants};
use outlast_model::{AppErrorKind, ErrorDetails, WorkItem};

variants! {
    WorkItem:
    StartOrchestration, ActivityExecute, ActivityCompleted, ActivityFailed, TimerFired, ExternalRaised,
    SubOrchCompleted, SubOrchFailed, CancelInstance, ContinueAsNew, QueueMessage,
    #[cfg(feature = "replay-version-test")] ExternalRaised2,
}

pub(crate) fn rows() -> Vec<Row<WorkItem>> {
    table().into_iter().map(|(item, text)| (item, text.to_string())).collect()
}

/// The text of a `ContinueAsNew` without a parent before the parent's keys existed. It must not change.
const PARENTLESS: &str = r#"{"ContinueAsNew":{"instance":"i","orchestration":"Order","input":"x","version":null,"carry_forward_events":[]}}"#;

fn parentless() -> WorkItem {
    WorkItem::ContinueAsNew {
        instance: "i".into(),
        orchestration: "Order".into(),
        input: "x".into(),
        version: None,
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        carry_forward_events: vec![],
        initial_custom_status: None,
    }
}

fn table() -> Vec<(WorkItem, &'static str)> {
    #[allow(unused_mut, reason = "only a feature adds rows")]
    let mut rows = vec![
        (
            WorkItem::StartOrchestration {
                instance: "i".into(),
                orchestration: "Order".into(),
                input: "x".into(),
                version: None,
                parent_instance: None,
                parent_id: None,
                parent_execution_id: None,
                execution_id: 1,
            },
            r#"{"StartOrchestration":{"instance":"i","orchestration":"Order","input":"x","version":null,"parent_instance":null,"parent_id":null,"execution_id":1}}"#,
        ),
        (
            WorkItem::StartOrchestration {
                instance: "i".into(),
                orchestration: "Order".into(),
                input: "x".into(),
                version: Some("1.0.0".into()),
                parent_instance: Some("p".into()),
                parent_id: Some(2),
                parent_execution_id: Some(3),
                execution_id: 1,
            },
            r#"{"StartOrchestration":{"instance":"i","orchestration":"Order","input":"x","version":"1.0.0","parent_instance":"p","parent_id":2,"parent_execution_id":3,"execution_id":1}}"#,
        ),
        (
            WorkItem::ActivityExecute {
                instance: "i".into(),
                execution_id: 1,
                id: 2,
                name: "Ship".into(),
                input: "x".into(),
                session_id: None,
                tag: None,
            },
            r#"{"ActivityExecute":{"instance":"i","execution_id":1,"id":2,"name":"Ship","input":"x"}}"#,
        ),
        (
            WorkItem::ActivityExecute {
                instance: "i".into(),
                execution_id: 1,
                id: 2,
                name: "Ship".into(),
                input: "x".into(),
                session_id: Some("s".into()),
                tag: Some("gpu".into()),
            },
            r#"{"ActivityExecute":{"instance":"i","execution_id":1,"id":2,"name":"Ship","input":"x","session_id":"s","tag":"gpu"}}"#,
        ),
        (
            WorkItem::ActivityCompleted { instance: "a".into(), execution_id: 1, id: 2, result: "r".into() },
            r#"{"ActivityCompleted":{"instance":"a","execution_id":1,"id":2,"result":"r"}}"#,
        ),
        (
            WorkItem::ActivityFailed { instance: "a".into(), execution_id: 1, id: 2, details: stopped() },
            r#"{"ActivityFailed":{"instance":"a","execution_id":1,"id":2,"details":{"Application":{"kind":{"Cancelled":{"reason":"stop"}},"message":"","retryable":true}}}}"#,
        ),
        (
            WorkItem::TimerFired { instance: "a".into(), execution_id: 1, id: 2, fire_at_ms: u64::MAX },
            r#"{"TimerFired":{"instance":"a","execution_id":1,"id":2,"fire_at_ms":18446744073709551615}}"#,
        ),
        (
            WorkItem::ExternalRaised { instance: "a".into(), name: "paid".into(), data: "42".into() },
            r#"{"ExternalRaised":{"instance":"a","name":"paid","data":"42"}}"#,
        ),
        (
            WorkItem::SubOrchCompleted {
                parent_instance: "p".into(),
                parent_execution_id: 1,
                parent_id: 2,
                result: "r".into(),
            },
            r#"{"SubOrchCompleted":{"parent_instance":"p","parent_execution_id":1,"parent_id":2,"result":"r"}}"#,
        ),
        (
            WorkItem::SubOrchFailed {
                parent_instance: "p".into(),
                parent_execution_id: 1,
                parent_id: 2,
                details: stopped(),
            },
            r#"{"SubOrchFailed":{"parent_instance":"p","parent_execution_id":1,"parent_id":2,"details":{"Application":{"kind":{"Cancelled":{"reason":"stop"}},"message":"","retryable":true}}}}"#,
        ),
        (
            WorkItem::CancelInstance { instance: "a".into(), reason: "stop".into() },
            r#"{"CancelInstance":{"instance":"a","reason":"stop"}}"#,
        ),
        (parentless(), PARENTLESS),
        (
            WorkItem::ContinueAsNew {
                instance: "i".into(),
                orchestration: "Order".into(),
                input: "x".into(),
                version: Some("2.0.0".into()),
                parent_instance: Some("p".into()),
                parent_id: Some(2),
                parent_execution_id: Some(3),
                carry_forward_events: vec![("q".into(), "1".into())],
                initial_custom_status: Some("half".into()),
            },
            r#"{"ContinueAsNew":{"instance":"i","orchestration":"Order","input":"x","version":"2.0.0","parent_instance":"p","parent_id":2,"parent_execution_id":3,"carry_forward_events":[["q","1"]],"initial_custom_status":"half"}}"#,
        ),
        (
            WorkItem::QueueMessage { instance: "a".into(), name: "inbox".into(), data: "m".into() },
            r#"{"QueueMessage":{"instance":"a","name":"inbox","data":"m"}}"#,
        ),
    ];
    #[cfg(feature = "replay-version-test")]
    rows.push((
        WorkItem::ExternalRaised2 {
            instance: "a".into(),
            name: "paid".into(),
            topic: "eu".into(),
            data: "42".into(),
        },
        r#"{"ExternalRaised2":{"instance":"a","name":"paid","topic":"eu","data":"42"}}"#,
    ));
    rows
}

fn stopped() -> ErrorDetails {
    ErrorDetails::Application {
        kind: AppErrorKind::Cancelled { reason: "stop".into() },
        message: String::new(),
        retryable: true,
    }
}

#[test]
fn every_variant_has_its_text() {
    let rows = rows();
    golden::check(&rows);
    golden::assert_covered(rows.iter().map(|(item, _)| item));
}

#[test]
fn continue_as_new_without_a_parent_keeps_its_older_form() {
    golden::check(&[(parentless(), PARENTLESS.to_string())]);
    assert!(!PARENTLESS.contains("parent"));
}

#[test]
fn target_of_child_outcome_is_the_parent_and_of_other_items_the_instance() {
    for (item, text) in rows() {
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        let fields = &json[item.kind_name()];
        let key = if item.kind_name().starts_with("SubOrch") { "parent_instance" } else { "instance" };
        assert_eq!(fields[key], item.target_instance(), "{text}");
    }
}
