//! The timeline of an execution.

use super::History;
use outlast::lens::{Timeline, TimelineOptions};
use outlast::providers::{Clock, SystemClock};
use serde::Serialize;
use serde_json::{Value, json};

/// The spans of an execution with folded retries, idle gaps, lanes and bins. Times are milliseconds since the Unix epoch.
#[derive(Debug, Serialize)]
pub(crate) struct TimelineView {
    pub(crate) instance: String,
    pub(crate) execution: u64,
    #[serde(flatten)]
    pub(crate) timeline: Timeline,
}

/// The schema of [`TimelineView`]. The types of its fields belong to the lens, which knows no OpenAPI.
pub(crate) fn schema() -> Value {
    let object = |fields: Value| {
        let required: Vec<&String> = fields.as_object().into_iter().flatten().map(|(name, _)| name).collect();
        json!({ "type": "object", "required": required, "properties": fields })
    };
    let list = |items: Value| json!({ "type": "array", "items": items });
    let (number, or_null) =
        (json!({ "type": "integer", "minimum": 0 }), json!({ "type": ["integer", "null"] }));
    let (text, flag) = (json!({ "type": "string" }), json!({ "type": "boolean" }));
    let status = json!({ "type": "string", "enum": ["done", "abandoned", "cancelled", "running", "failed"] });
    let kind = json!({
        "type": "string",
        "enum": ["activity", "timer", "wait", "queue", "child", "detached", "continue_as_new"],
    });
    let one_try =
        object(json!({ "event_id": number, "start_ms": number, "end_ms": or_null, "status": status }));
    let span = object(json!({
        "event_id": number, "kind": kind, "name": text, "instance": { "type": ["string", "null"] },
        "start_ms": number, "end_ms": or_null, "due_ms": or_null, "status": status, "attempts": number,
        "tries": list(one_try), "count": number, "lane": number,
    }));
    object(json!({
        "instance": text, "execution": number, "from_ms": number, "to_ms": number, "now_ms": number,
        "is_running": flag, "events": number, "spans": list(span), "is_grouped": flag, "lanes": number,
        "gaps": list(object(json!({ "from_ms": number, "to_ms": number }))), "bins": list(number.clone()),
    }))
}

/// The timeline. With more than `most_spans` operations, those of one name are one span.
pub(crate) fn timeline(
    id: &str,
    history: &History,
    folds_retries: bool,
    most_spans: Option<usize>,
) -> TimelineView {
    let mut options = TimelineOptions::default();
    options.folds_retries = folds_retries;
    if let Some(most) = most_spans {
        options.most_spans = most;
    }
    let timeline = outlast::lens::timeline(&history.events, SystemClock.now_ms(), &options);
    TimelineView { instance: id.to_string(), execution: history.execution, timeline }
}
