//! Payloads are any Unicode text, and come back as they went in.

use outlast_model::json::{decode_event, decode_work_item, encode_event, encode_work_item};
use outlast_model::{ErrorDetails, Event, EventKind, WorkItem};

fn awkward() -> Vec<String> {
    let short = [
        "",
        " \t\r\n",
        "a\0b",
        "\u{1}\u{1f}\u{7f}",
        r#""quoted" and \ back and / slash"#,
        "🦀 naïve 東京 e\u{301} \u{202e}right to left",
        "\u{2028}\u{2029}\u{feff}\u{fffd}\u{10ffff}",
        r#"{"type":"KeyValuesCleared","event_id":9}"#,
        r"\u0000 \ud800 is text here",
        "null",
        "'; DROP TABLE history; --",
    ];
    let long = ["x".repeat(100 * 1024), "🦀".repeat(25 * 1024), "\"\0".repeat(50 * 1024)];
    short.into_iter().map(str::to_string).chain(long).collect()
}

#[test]
fn events_and_work_items_keep_every_string() {
    for text in awkward() {
        let shown: String = text.chars().take(20).collect();
        let kind = EventKind::OrchestrationStarted {
            name: text.clone(),
            version: text.clone(),
            input: text.clone(),
            parent_instance: Some(text.clone()),
            parent_id: None,
            parent_execution_id: None,
            carry_forward_events: Some(vec![(text.clone(), text.clone())]),
            initial_custom_status: Some(text.clone()),
        };
        let mut event = Event::at(1, 1, text.clone(), 1, None, kind);
        event.duroxide_version.clone_from(&text);
        assert_eq!(decode_event(&encode_event(&event).unwrap()).unwrap(), event, "{shown:?}");

        let details =
            ErrorDetails::Infrastructure { operation: text.clone(), message: text.clone(), retryable: true };
        let item = WorkItem::ActivityFailed { instance: text, execution_id: 1, id: 1, details };
        assert_eq!(decode_work_item(&encode_work_item(&item).unwrap()).unwrap(), item, "{shown:?}");
    }
}

/// Escapes are part of the bytes: control characters by number, quotes and backslashes by backslash, nothing else.
#[test]
fn escapes_are_pinned() {
    let item = WorkItem::CancelInstance {
        instance: "i".into(),
        reason: "\0\u{1f}\n\"\\/é🦀\u{7f}\u{2028}".into(),
    };
    assert_eq!(
        encode_work_item(&item).unwrap(),
        "{\"CancelInstance\":{\"instance\":\"i\",\"reason\":\"\\u0000\\u001f\\n\\\"\\\\/é🦀\u{7f}\u{2028}\"}}"
    );
}
