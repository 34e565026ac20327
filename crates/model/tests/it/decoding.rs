//! Decoding of damaged rows: every golden row is changed at every level of nesting.

use crate::golden::Row;
use crate::{errors, events, stats, work_items};
use outlast_model::json::{decode_event, decode_work_item};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Debug;

/// Keys that may be missing, by the variant that holds them. Every other key is required.
const OPTIONAL: &[(&str, &[&str])] = &[
    (ANY_EVENT, &["source_event_id"]),
    (
        "OrchestrationStarted",
        &[
            "parent_instance",
            "parent_id",
            "parent_execution_id",
            "carry_forward_events",
            "initial_custom_status",
        ],
    ),
    ("ActivityScheduled", &["session_id", "tag"]),
    ("CustomStatusUpdated", &["status"]),
    ("KeyValueSet", &["last_updated_at_ms"]),
    ("StartOrchestration", &["version", "parent_instance", "parent_id", "parent_execution_id"]),
    ("ActivityExecute", &["session_id", "tag"]),
    (
        "ContinueAsNew",
        &[
            "version",
            "parent_instance",
            "parent_id",
            "parent_execution_id",
            "carry_forward_events",
            "initial_custom_status",
        ],
    ),
    ("Configuration", &["message"]),
];
const ANY_EVENT: &str = "*";

fn optional(variant: &str, key: &str) -> Option<(&'static str, &'static str)> {
    let of_variant = OPTIONAL.iter().filter(|(owner, _)| *owner == variant || *owner == ANY_EVENT);
    of_variant.flat_map(|(owner, keys)| keys.iter().map(move |k| (*owner, *k))).find(|(_, k)| *k == key)
}

/// The JSON objects that hold fields, each with its place in the document and the variant that it belongs to. An
/// object with a single capitalized key only names a variant.
fn records(value: &Value, place: &str, variant: &str, found: &mut Vec<(String, String)>) {
    let Value::Object(fields) = value else { return };
    let tag = fields.keys().next().filter(|key| fields.len() == 1 && key.starts_with(char::is_uppercase));
    if let Some(tag) = tag {
        return records(&fields[tag], &format!("{place}/{tag}"), tag, found);
    }
    let variant = fields.get("type").and_then(Value::as_str).unwrap_or(variant);
    found.push((place.to_string(), variant.to_string()));
    for (key, inner) in fields {
        records(inner, &format!("{place}/{key}"), key, found);
    }
}

fn records_of(document: &Value) -> Vec<(String, String)> {
    let mut found = Vec::new();
    records(document, "", "", &mut found);
    found
}

fn record_mut<'a>(document: &'a mut Value, place: &str) -> &'a mut serde_json::Map<String, Value> {
    document.pointer_mut(place).unwrap().as_object_mut().unwrap()
}

/// Runs a check on the golden rows of all types.
macro_rules! on_all_rows {
    ($check:ident) => {
        [$check(events::rows()), $check(work_items::rows()), $check(errors::rows()), $check(stats::rows())]
    };
}

#[test]
fn unknown_keys_are_tolerated_at_every_level() {
    fn check<T: DeserializeOwned + PartialEq + Debug>(rows: Vec<Row<T>>) {
        for (value, text) in rows {
            let mut document: Value = serde_json::from_str(&text).unwrap();
            for (place, _) in records_of(&document) {
                let strange = json!({ "nested": [1, null, { "deep": "x" }] });
                record_mut(&mut document, &place).insert("added_by_a_later_version".to_string(), strange);
            }
            assert_eq!(serde_json::from_value::<T>(document.clone()).unwrap(), value, "{document}");
            assert_eq!(serde_json::from_str::<T>(&document.to_string()).unwrap(), value, "{document}");
        }
    }
    on_all_rows!(check);
}

#[test]
fn optional_keys_may_be_missing_and_no_others() {
    /// Removes each key in turn; returns the optional ones that were met.
    fn check<T: Serialize + DeserializeOwned>(rows: Vec<Row<T>>) -> BTreeSet<(&'static str, &'static str)> {
        let mut met = BTreeSet::new();
        for (_, text) in rows {
            let full: Value = serde_json::from_str(&text).unwrap();
            for (place, variant) in records_of(&full) {
                for key in full.pointer(&place).unwrap().as_object().unwrap().keys() {
                    let mut document = full.clone();
                    record_mut(&mut document, &place).remove(key);
                    let decoded = serde_json::from_str::<T>(&document.to_string());
                    let Some(entry) = optional(&variant, key) else {
                        let error =
                            decoded.err().unwrap_or_else(|| panic!("decoded without {key}: {document}"));
                        assert!(error.to_string().contains(&format!("missing field `{key}`")), "{error}");
                        continue;
                    };
                    met.insert(entry);
                    let value = decoded.unwrap_or_else(|error| panic!("{error}: {document}"));
                    let again = serde_json::to_value(&value).unwrap();
                    let default = again.pointer(&format!("{place}/{key}")).cloned().unwrap_or(Value::Null);
                    let empty = [Value::Null, json!(0), json!([])];
                    assert!(empty.contains(&default), "{key} became {default} in {again}");
                }
            }
        }
        met
    }
    let met: BTreeSet<_> = on_all_rows!(check).into_iter().flatten().collect();
    let listed =
        OPTIONAL.iter().flat_map(|(owner, keys)| keys.iter().map(move |key| (*owner, *key))).collect();
    assert_eq!(met, listed, "every optional key occurs in a golden row");
}

#[test]
fn an_unknown_type_is_an_error() {
    let event = |kind: &str| {
        format!(
            r#"{{"event_id":1,"source_event_id":null,"instance_id":"i","execution_id":1,"timestamp_ms":1,"duroxide_version":"0.1.32","type":"{kind}","name":"n"}}"#
        )
    };
    assert!(decode_event(&event("ExternalSubscribed")).is_ok());
    // The names in code of renamed kinds are not names on the wire.
    for kind in ["Unheard", "QueueSubscribed", "externalSubscribed", ""] {
        let error = decode_event(&event(kind)).unwrap_err().to_string();
        assert!(error.starts_with("cannot decode event: unknown variant"), "{kind}: {error}");
    }
    let error = decode_work_item(r#"{"Unheard":{"instance":"i"}}"#).unwrap_err().to_string();
    assert!(error.starts_with("cannot decode work item: unknown variant `Unheard`"), "{error}");
}

#[test]
fn event_without_version_stamp_fails_to_decode_and_names_the_field() {
    let text = r#"{"event_id":1,"source_event_id":null,"instance_id":"i","execution_id":1,"timestamp_ms":1,"type":"KeyValuesCleared"}"#;
    let error = decode_event(text).unwrap_err().to_string();
    assert!(error.contains("missing field `duroxide_version`"), "{error}");
}

#[test]
fn row_with_damage_does_not_decode() {
    for (_, text) in events::rows() {
        let half = &text[..text.len() / 2];
        for damaged in
            ["", "null", "[]", "NOT_VALID_JSON{{{", half, &format!("{text}x"), &format!("{text}{text}")]
        {
            assert!(decode_event(damaged).is_err(), "{damaged}");
        }
        assert!(decode_work_item(&text).is_err(), "an event is not a work item: {text}");
    }
}
