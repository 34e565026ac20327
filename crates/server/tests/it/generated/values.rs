//! Values for parameters and fields: valid, at boundaries, and hostile.

use serde_json::{Value, json};

/// Texts that break programs which trust their input.
pub(super) const TEXTS: &[&str] = &[
    "",
    " ",
    "a",
    "run",
    "done",
    "failed",
    "missing",
    "count",
    "latest",
    ".",
    "..",
    "../../etc/passwd",
    "a/b",
    "a%2Fb",
    "%",
    "%zz",
    "?&=#",
    "' OR 1=1 --",
    "\"; DROP TABLE instances; --",
    "<script>alert(1)</script>",
    "{{7*7}}",
    "a\u{0}b",
    "line\r\nx-injected: 1",
    "\u{202e}txt.exe",
    "\u{1f600}\u{200d}",
    "ｎｕｌｌ",
    "null",
    "true",
    "-1",
    "18446744073709551615",
    "18446744073709551616",
    "9223372036854775808",
    "1e400",
    "NaN",
    "0x10",
    "\u{fffd}",
    "*",
    "_%",
    "\\",
];

/// Numbers at the ends of their types, and texts that are no numbers.
pub(super) const NUMBERS: &[&str] = &[
    "0",
    "1",
    "2",
    "60",
    "61",
    "500",
    "501",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "99999999999999999999999999999999999999",
    "-1",
    "-9223372036854775809",
    "1.5",
    "1e3",
    "+1",
    " 1",
    "",
    "one",
    "\u{661}",
];

pub(super) const FLAGS: &[&str] = &["true", "false", "TRUE", "1", "0", "", "yes", "null"];

/// Segments and parameters as they are sent: not UTF-8, not percent-encoded well, or very long.
pub(super) fn raw() -> Vec<String> {
    vec![
        "%FF%FE".to_string(),
        "%C3%28".to_string(),
        "%ED%A0%80".to_string(),
        "%00".to_string(),
        "%".to_string(),
        "%2".to_string(),
        "%GG".to_string(),
        "%2F%2E%2E%2F".to_string(),
        "a+b".to_string(),
        "x".repeat(513),
        "%C3%BC".repeat(300),
        "x".repeat(20_000),
    ]
}

/// Values of every JSON type, for a field of any type.
pub(super) fn json_values() -> Vec<Value> {
    let mut values = vec![
        Value::Null,
        json!(true),
        json!(false),
        json!(0),
        json!(1),
        json!(-1),
        json!(1.5),
        json!(1e308),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(u64::from(u32::MAX) + 1),
        json!([]),
        json!({}),
        json!(["run", 1, null]),
        json!({ "a": { "b": [] } }),
        json!("x".repeat(1_001)),
        json!("x".repeat(70_000)),
    ];
    values.extend(TEXTS.iter().map(|text| json!(text)));
    values
}

/// Bodies that are no JSON objects, or no JSON at all.
pub(super) fn bodies() -> Vec<Vec<u8>> {
    let mut bodies: Vec<Vec<u8>> = [
        "",
        " ",
        "null",
        "true",
        "7",
        "\"text\"",
        "[]",
        "{}",
        "[{}]",
        "{",
        "{\"a\":}",
        "{\"a\":1,}",
        "{\"a\":1}{\"a\":1}",
        "{\"count\":1e999}",
        "{\"count\":99999999999999999999999999}",
        "{\"reason\":\"\\ud800\"}",
        "\u{feff}{}",
        "{\"reason\":\"a\",\"reason\":\"b\"}",
    ]
    .into_iter()
    .map(|text| text.as_bytes().to_vec())
    .collect();
    bodies.push(b"{\"reason\":\"\xff\xfe\"}".to_vec());
    bodies.push(vec![0; 64]);
    bodies.push("[".repeat(5_000).into_bytes());
    bodies.push(format!("{{\"reason\":\"{}\"}}", "x".repeat(5 * 1024 * 1024)).into_bytes());
    bodies
}

/// Media types of a body; `None` sends no header.
pub(super) const MEDIA: &[Option<&str>] = &[
    None,
    Some(""),
    Some("text/plain"),
    Some("application/xml"),
    Some("application/x-www-form-urlencoded"),
    Some("multipart/form-data; boundary=x"),
    Some("application/json; charset=utf-16"),
    Some("application/json;;;"),
    Some("APPLICATION/JSON"),
    Some("application/cloudevents+json"),
    Some("application/cloudevents-batch+json"),
    Some("\u{fc}/\u{fc}"),
    Some("garbage"),
];

/// Keys of the header Idempotency-Key.
pub(super) fn keys() -> Vec<String> {
    vec![
        String::new(),
        "k".to_string(),
        "\u{fc}".to_string(),
        "x".repeat(1_024),
        "x".repeat(1_025),
        "a b\tc".to_string(),
    ]
}
