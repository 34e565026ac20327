//! Events with fields of text and numbers, decoded in one pass.
//!
//! The derived decoder of [`Event`] first gathers all fields of the flattened, tagged [`EventKind`] in a buffer, which takes most of
//! the time of a cold replay. [`event`] reads the fields of most kinds directly. It gives up on every text that it does not read
//! completely, also on unknown and repeated fields: then the derived decoder decides, and names the error.

use crate::{Event, EventKind};
use serde::Deserialize;

/// The fields of the kinds that [`event`] decodes.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FlatEvent<'a> {
    event_id: u64,
    source_event_id: Option<u64>,
    instance_id: String,
    execution_id: u64,
    timestamp_ms: u64,
    duroxide_version: String,
    #[serde(rename = "type")]
    kind: &'a str,
    data: Option<String>,
    fire_at_ms: Option<u64>,
    input: Option<String>,
    instance: Option<String>,
    key: Option<String>,
    last_updated_at_ms: Option<u64>,
    name: Option<String>,
    reason: Option<String>,
    result: Option<String>,
    session_id: Option<String>,
    tag: Option<String>,
    value: Option<String>,
}

/// A stored event, or `None` if the derived decoder must decide.
pub(super) fn event(text: &str) -> Option<Event> {
    // A derived struct is read from an array of its fields too, and an event is not.
    if !text.starts_with('{') {
        return None;
    }
    let flat: FlatEvent<'_> = serde_json::from_str(text).ok()?;
    let kind = match flat.kind {
        "ActivityScheduled" => EventKind::ActivityScheduled {
            name: flat.name?,
            input: flat.input?,
            session_id: flat.session_id,
            tag: flat.tag,
        },
        "ActivityCompleted" => EventKind::ActivityCompleted { result: flat.result? },
        "ActivityCancelRequested" => EventKind::ActivityCancelRequested { reason: flat.reason? },
        "TimerCreated" => EventKind::TimerCreated { fire_at_ms: flat.fire_at_ms? },
        "TimerFired" => EventKind::TimerFired { fire_at_ms: flat.fire_at_ms? },
        "ExternalSubscribed" => EventKind::ExternalSubscribed { name: flat.name? },
        "ExternalEvent" => EventKind::ExternalEvent { name: flat.name?, data: flat.data? },
        "ExternalSubscribedPersistent" => EventKind::QueueSubscribed { name: flat.name? },
        "ExternalEventPersistent" => EventKind::QueueEventDelivered { name: flat.name?, data: flat.data? },
        "OrchestrationChained" => {
            EventKind::OrchestrationChained { name: flat.name?, instance: flat.instance?, input: flat.input? }
        }
        "SubOrchestrationScheduled" => EventKind::SubOrchestrationScheduled {
            name: flat.name?,
            instance: flat.instance?,
            input: flat.input?,
        },
        "SubOrchestrationCompleted" => EventKind::SubOrchestrationCompleted { result: flat.result? },
        "OrchestrationContinuedAsNew" => EventKind::OrchestrationContinuedAsNew { input: flat.input? },
        "KeyValueSet" => EventKind::KeyValueSet {
            key: flat.key?,
            value: flat.value?,
            last_updated_at_ms: flat.last_updated_at_ms?,
        },
        "KeyValueCleared" => EventKind::KeyValueCleared { key: flat.key? },
        _ => return None,
    };
    Some(Event {
        event_id: flat.event_id,
        source_event_id: flat.source_event_id,
        instance_id: flat.instance_id,
        execution_id: flat.execution_id,
        timestamp_ms: flat.timestamp_ms,
        duroxide_version: flat.duroxide_version,
        kind,
    })
}
