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

/// Texts near that of an event: each field missing, of another type, repeated, renamed or escaped, cut texts, and fields of other
/// kinds.
fn changed_texts(text: &str) -> Vec<String> {
    let whole: Value = serde_json::from_str(text).unwrap();
    let fields: Vec<(String, Value)> =
        whole.as_object().unwrap().iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    let object = |fields: &[(String, Value)]| {
        let fields: Vec<String> =
            fields.iter().map(|(key, value)| format!("{}:{value}", Value::from(key.as_str()))).collect();
        format!("{{{}}}", fields.join(","))
    };
    let strange = [
        json!(null),
        json!(true),
        json!(7),
        json!(-7),
        json!(7.5),
        json!("x"),
        json!("7"),
        json!("\u{0}\"\u{10ffff}"),
        json!([]),
        json!([["q", "1"]]),
        json!({}),
        json!({ "a": [null] }),
    ];
    let mut texts: Vec<String> =
        (0..text.len()).filter_map(|end| text.get(..end)).map(str::to_string).collect();
    texts.push(format!(" {text}\n"));
    texts.push(format!("{text}{text}"));
    texts.push(text.replace("\"type\"", "\"\\u0074ype\""));
    texts.push(text.replace("\"type\":\"", "\"type\":\"\\u0041"));
    texts.push(Value::Array(fields.iter().map(|(_, value)| value.clone()).collect()).to_string());
    texts.push(object(&fields.iter().rev().cloned().collect::<Vec<_>>()));
    let known = ["data", "fire_at_ms", "input", "instance", "key", "last_updated_at_ms", "name", "reason"];
    let others = ["result", "session_id", "tag", "value", "details", "status", "unknown", ""];
    for key in known.into_iter().chain(others) {
        for value in &strange {
            texts.push(object(&[fields.clone(), vec![(key.to_string(), value.clone())]].concat()));
        }
    }
    // Values that only a decoder that reads them refuses.
    for value in [r#""\ud800""#, "1e999", "18446744073709551616", "007", &"[".repeat(500)] {
        texts.push(text.replacen('{', &format!("{{\"unknown\":{value},"), 1));
    }
    for at in 0..fields.len() {
        let mut without = fields.clone();
        let (key, value) = without.remove(at);
        texts.push(object(&without));
        texts.push(object(&[fields.clone(), vec![(key.clone(), value)]].concat()));
        for value in &strange {
            let mut with = fields.clone();
            with[at].1 = value.clone();
            texts.push(object(&with));
        }
    }
    texts
}

#[test]
fn event_decodes_as_the_derived_decoder_decodes_it() {
    let mut decoded = 0;
    for (event, text) in events::rows() {
        assert_eq!(decode_event(&text).unwrap(), event);
        for changed in changed_texts(&text) {
            let derived = serde_json::from_str::<outlast_model::Event>(&changed);
            decoded += usize::from(derived.is_ok());
            let derived = derived.map_err(|error| format!("cannot decode event: {error}"));
            assert_eq!(decode_event(&changed).map_err(|error| error.to_string()), derived, "{changed}");
        }
    }
    assert!(decoded > 1_000, "{decoded} changed texts decode");
}

#[test]
fn array_of_the_values_of_an_event_does_not_decode() {
    let rest = [json!(null), json!(5)].into_iter().chain(vec![json!(null); 10]);
    let head = [json!(1), json!(null), json!("i"), json!(1), json!(1), json!("0.1.32"), json!("TimerFired")];
    let values: Vec<Value> = head.into_iter().chain(rest).collect();
    assert!(decode_event(&Value::Array(values.clone()).to_string()).is_err(), "{values:?}");
}
