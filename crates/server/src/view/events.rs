//! Events of an execution. Payloads are shown on request, and cut if they are long.

use super::rfc3339;
use crate::problem::{Code, Problem};
use outlast::lens::is_without_payload;
use outlast::{Client, Event};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// Fields of [`EventView`] itself, and of the page.
const APART: &[&str] = &[
    "event_id",
    "source_event_id",
    "timestamp_ms",
    "type",
    "name",
    "instance_id",
    "execution_id",
    "duroxide_version",
];
/// The longest payload in a list, in bytes.
const LONGEST: usize = 16 * 1024;
/// The most events of a page.
const MOST: usize = 500;
/// The most bytes of the texts of a page of stored events, unless its first event is larger.
const LARGEST_PAGE: usize = 8 * 1024 * 1024;
/// The events that are read at a time while events of some kinds are searched.
const SEARCHED: usize = 1_000;

/// The parameters of the list of events.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct EventQuery {
    pub(crate) after: Option<u64>,
    pub(crate) limit: Option<usize>,
    /// Names of kinds, separated by commas.
    pub(crate) kinds: Option<String>,
}

/// An event.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EventView {
    pub(crate) id: u64,
    /// The event that this one answers.
    pub(crate) of: Option<u64>,
    pub(crate) at: String,
    pub(crate) at_ms: u64,
    pub(crate) kind: String,
    pub(crate) name: Option<String>,
    /// The other fields of the event, payloads only on request.
    #[schema(value_type = Object)]
    pub(crate) details: Map<String, Value>,
    /// The payloads that are cut; `payloads/{event}` has them whole.
    pub(crate) cut: Vec<String>,
}

/// A page of events, ascending.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EventPage {
    pub(crate) instance: String,
    pub(crate) execution: u64,
    pub(crate) items: Vec<EventView>,
    /// The parameter `after` of the next page.
    pub(crate) next: Option<u64>,
    /// The number of events of the execution.
    pub(crate) total: usize,
    /// Whether payloads are shown.
    pub(crate) payloads: bool,
}

/// A page of events as they are stored, ascending.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StoredEvents {
    pub(crate) instance: String,
    pub(crate) execution: u64,
    #[schema(value_type = Vec<Object>)]
    pub(crate) items: Vec<Map<String, Value>>,
    /// The parameter `after` of the next page.
    pub(crate) next: Option<u64>,
}

impl EventView {
    /// The event in a list.
    pub(crate) fn of(event: &Event, payloads: bool) -> Self {
        let mut fields = fields(event);
        let text = |value: Option<Value>| match value {
            Some(Value::String(text)) => Some(text),
            _ => None,
        };
        let (kind, name) = (text(fields.remove("type")).unwrap_or_default(), text(fields.remove("name")));
        fields.retain(|field, value| {
            !value.is_null() && !APART.contains(&field.as_str()) && (payloads || is_without_payload(field))
        });
        let mut cut = Vec::new();
        for (field, value) in &mut fields {
            if let Value::String(text) = value
                && text.len() > LONGEST
            {
                text.truncate(text.floor_char_boundary(LONGEST));
                cut.push(field.clone());
            }
        }
        let (at, at_ms) = (rfc3339(event.timestamp_ms), event.timestamp_ms);
        Self { id: event.event_id, of: event.source_event_id, at, at_ms, kind, name, details: fields, cut }
    }

    /// The fields other than name and kind as one line, for pages.
    pub(crate) fn line(&self) -> String {
        let word = |value: &Value| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let pairs = self.details.iter().map(|(field, value)| match (field.as_str(), value.as_u64()) {
            ("fire_at_ms", Some(ms)) => format!("due {}", rfc3339(ms)),
            _ => format!("{field}: {}", word(value)),
        });
        pairs.collect::<Vec<_>>().join(" · ")
    }
}

fn fields(event: &Event) -> Map<String, Value> {
    match serde_json::to_value(event) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}

fn checked(query: &EventQuery) -> Result<usize, Problem> {
    match query.limit.unwrap_or(100) {
        limit @ 1..=MOST => Ok(limit),
        _ => Err(Problem::invalid(format!("the limit of a page is from 1 to {MOST}"))),
    }
}

/// A page of the events of an execution. The store reads the page only, and with `kinds` the events up to its end.
pub(crate) async fn events(
    client: &Client,
    id: &str,
    execution: u64,
    query: &EventQuery,
    payloads: bool,
) -> Result<EventPage, Problem> {
    let limit = checked(query)?;
    let kinds: Vec<&str> =
        query.kinds.as_deref().unwrap_or_default().split(',').filter(|kind| !kind.is_empty()).collect();
    // One event more says whether the page is the last one.
    let read = if kinds.is_empty() { limit + 1 } else { SEARCHED };
    let mut after = query.after.unwrap_or(0);
    let mut items: Vec<EventView> = Vec::new();
    let mut next = None;
    while next.is_none() {
        let found = client.history_page(id, execution, after, read).await?;
        let Some(last) = found.last() else { break };
        after = last.event_id;
        for event in found.iter().filter(|event| kinds.is_empty() || kinds.contains(&event.kind.type_name()))
        {
            if items.len() == limit {
                next = items.last().map(|last| last.id);
                break;
            }
            items.push(EventView::of(event, payloads));
        }
        if found.len() < read {
            break;
        }
    }
    let total = client.get_execution_info(id, execution).await?.event_count;
    Ok(EventPage { instance: id.to_string(), execution, items, next, total, payloads })
}

/// The events of a page as they are stored. A page with large payloads has fewer events than the limit.
pub(crate) async fn stored_events(
    client: &Client,
    id: &str,
    execution: u64,
    query: &EventQuery,
) -> Result<StoredEvents, Problem> {
    let limit = checked(query)?;
    let after = query.after.unwrap_or(0);
    let mut events = client.history_page(id, execution, after, limit + 1).await?;
    let mut bytes = 0;
    let fits = events.iter().take(limit).take_while(|event| {
        let is_first = bytes == 0;
        bytes += event.text_bytes().max(1);
        is_first || bytes <= LARGEST_PAGE
    });
    let shown = fits.count();
    let is_last = shown == events.len();
    events.truncate(shown);
    let next = events.last().filter(|_| !is_last).map(|last| last.event_id);
    let items = events.iter().map(fields).collect();
    Ok(StoredEvents { instance: id.to_string(), execution, items, next })
}

/// The whole event, as it is stored.
pub(crate) async fn payloads(
    client: &Client,
    id: &str,
    execution: u64,
    event_id: u64,
) -> Result<Value, Problem> {
    let found = client.history_page(id, execution, event_id.saturating_sub(1), 1).await?;
    match found.first().filter(|event| event.event_id == event_id) {
        Some(event) => Ok(Value::Object(fields(event))),
        None => Err(Problem::new(
            Code::NOT_FOUND,
            format!("execution {execution} of instance '{id:.80}' has no event {event_id}"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast::EventKind;

    fn scheduled(input: String) -> Event {
        let kind = EventKind::ActivityScheduled {
            name: "Charge".into(),
            input,
            session_id: None,
            tag: Some("gpu".into()),
        };
        Event::with_event_id(7, "order-1", 1, None, kind)
    }

    #[test]
    fn payloads_are_shown_only_on_request() {
        let event = scheduled("card 4711".into());
        let hidden = EventView::of(&event, false);
        assert_eq!((hidden.kind.as_str(), hidden.name.as_deref()), ("ActivityScheduled", Some("Charge")));
        assert_eq!(hidden.line(), "tag: gpu");
        assert!(EventView::of(&event, true).line().contains("card 4711"));
    }

    #[test]
    fn long_payloads_are_cut_between_characters() {
        let shown = EventView::of(&scheduled("ü".repeat(LONGEST)), true);
        assert_eq!(shown.cut, ["input"]);
        assert!(shown.details["input"].as_str().unwrap().len() <= LONGEST);
    }
}
