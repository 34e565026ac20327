//! `outlast instance history`

use super::args::HistoryArgs;
use super::{execution, follow_history};
use crate::failure::Failure;
use crate::output::{plain, print_list, table};
use crate::store::{self, Intent};
use outlast::lens::{counted, is_without_payload, moment};
use serde::Serialize;
use serde_json::{Map, Value};

/// Fields that have their own columns, or are shown above.
const APART: &[&str] = &[
    "event_id",
    "source_event_id",
    "timestamp_ms",
    "type",
    "instance_id",
    "execution_id",
    "duroxide_version",
];

pub(super) const COLUMNS: [&str; 5] = ["ID", "TIME (UTC)", "EVENT", "OF", "DETAILS"];

pub(super) async fn run(args: HistoryArgs) -> Result<(), Failure> {
    if args.follow {
        return follow_history::run(args).await;
    }
    let place = args.common.store.place()?;
    let client = store::open(&place, Intent::Read).await?;
    let (execution, events) = execution(&client, &place, &args.instance, args.execution).await?;
    let events = events.iter().map(|event| visible(event, args.payloads)).collect::<Result<_, _>>()?;
    let history = History { instance: args.instance, execution, events };
    print_list(args.common.output, &history, &history.events, None, History::text)
}

/// The event as JSON, with payloads only on request.
pub(super) fn visible(event: &outlast::Event, payloads: bool) -> Result<Map<String, Value>, Failure> {
    match serde_json::to_value(event) {
        Ok(Value::Object(mut fields)) => {
            fields.retain(|name, _| payloads || is_without_payload(name));
            Ok(fields)
        }
        _ => Err(Failure::new(format!("event {} cannot be shown as JSON", event.event_id))),
    }
}

#[derive(Serialize)]
struct History {
    instance: String,
    execution: u64,
    events: Vec<Map<String, Value>>,
}

impl History {
    fn text(&self) -> String {
        let rows: Vec<Vec<String>> = self.events.iter().map(row).collect();
        format!(
            "{} execution {}, {}\n{}",
            plain(&self.instance),
            self.execution,
            counted(self.events.len(), "event"),
            table(&COLUMNS, &rows)
        )
    }
}

/// The cells of [`COLUMNS`].
pub(super) fn row(event: &Map<String, Value>) -> Vec<String> {
    let text = |name: &str| event.get(name).map(word).unwrap_or_default();
    let titles = ["name", "version"];
    let mut details: Vec<String> = titles.map(text).into_iter().filter(|title| !title.is_empty()).collect();
    let hidden = |name: &str| APART.contains(&name) || titles.contains(&name);
    for (name, value) in event.iter().filter(|(name, value)| !hidden(name) && !value.is_null()) {
        details.push(match (name.as_str(), value.as_u64()) {
            ("fire_at_ms", Some(ms)) => format!("at {}", moment(ms)),
            _ => format!("{name}={}", word(value)),
        });
    }
    let time = event.get("timestamp_ms").and_then(Value::as_u64).map(moment).unwrap_or_default();
    vec![text("event_id"), time, text("type"), text("source_event_id"), details.join(" ")]
}

/// A string without its quotes, everything else as JSON.
fn word(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => plain(text),
        other => plain(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast::{Event, EventKind};

    fn line(kind: EventKind, source: Option<u64>, payloads: bool) -> String {
        let event = Event { timestamp_ms: 0, ..Event::with_event_id(7, "order-1", 2, source, kind) };
        row(&visible(&event, payloads).unwrap()).join("|")
    }

    #[test]
    fn payloads_are_shown_only_on_request() {
        let scheduled = || EventKind::ActivityScheduled {
            name: "Charge".to_string(),
            input: "card 4711".to_string(),
            session_id: None,
            tag: Some("gpu".to_string()),
        };
        let start = "7|1970-01-01 00:00:00.000|ActivityScheduled||";
        assert_eq!(line(scheduled(), None, false), format!("{start}Charge tag=gpu"));
        assert_eq!(line(scheduled(), None, true), format!("{start}Charge input=card 4711 tag=gpu"));
        let completed = || EventKind::ActivityCompleted { result: "a\nb".to_string() };
        assert_eq!(line(completed(), Some(3), false), "7|1970-01-01 00:00:00.000|ActivityCompleted|3|");
        assert_eq!(
            line(completed(), Some(3), true),
            "7|1970-01-01 00:00:00.000|ActivityCompleted|3|result=a\\nb"
        );
    }
}
