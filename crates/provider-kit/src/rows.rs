//! Decodes stored rows. One undecodable row fails the whole history.

use outlast_model::{ErrorDetails, Event, EventKind, WorkItem, json};
use outlast_provider::{KvEntry, LoadedTurn};
use std::collections::HashMap;

/// Decodes all events of an execution, or returns the reason why one of them does not decode.
pub fn decode_history<'a>(
    instance: &str,
    execution_id: u64,
    texts: impl IntoIterator<Item = &'a str>,
) -> Result<Vec<Event>, String> {
    let decoded = texts.into_iter().map(json::decode_event).collect::<Result<Vec<_>, _>>();
    decoded.map_err(|error| reason(instance, execution_id, &error.to_string()))
}

/// Decodes the history of a turn that has this key-value snapshot.
pub fn decode_turn<'a>(
    instance: &str,
    execution_id: u64,
    texts: impl IntoIterator<Item = &'a str>,
    kv_snapshot: HashMap<String, KvEntry>,
) -> LoadedTurn {
    match decode_history(instance, execution_id, texts) {
        Ok(history) => LoadedTurn { history, kv_snapshot, history_error: None },
        Err(reason) => LoadedTurn { history: Vec::new(), kv_snapshot, history_error: Some(reason) },
    }
}

/// Decodes a message of an instance, or returns the reason for its dead letter: it does not decode, belongs to another instance, or
/// is an activity.
pub fn decode_message(instance: &str, text: &str) -> Result<WorkItem, String> {
    let item = json::decode_work_item(text).map_err(|error| error.to_string())?;
    let is_activity = matches!(item, WorkItem::ActivityExecute { .. });
    if is_activity { Err(misplaced(&item, instance)) } else { of_instance(item, instance) }
}

/// Decodes an activity of an instance, or returns the reason for its dead letter: it does not decode, belongs to another instance,
/// or is a message.
pub fn decode_activity(instance: &str, text: &str) -> Result<WorkItem, String> {
    let item = json::decode_work_item(text).map_err(|error| error.to_string())?;
    let is_activity = matches!(item, WorkItem::ActivityExecute { .. });
    if is_activity { of_instance(item, instance) } else { Err(misplaced(&item, instance)) }
}

fn of_instance(item: WorkItem, instance: &str) -> Result<WorkItem, String> {
    if item.target_instance() == instance { Ok(item) } else { Err(misplaced(&item, instance)) }
}

/// The reason for the dead letter of an item in a row of another instance, or in the wrong queue.
fn misplaced(item: &WorkItem, instance: &str) -> String {
    let (kind, owner) = (item.kind_name(), item.target_instance());
    format!("a {kind} for instance '{owner}' in a row of instance '{instance}'")
}

/// The failure that the last event of an execution records; `None` if the event does not decode or records no failure.
pub fn failure(last_event: &str) -> Option<ErrorDetails> {
    match json::decode_event(last_event).ok()?.kind {
        EventKind::OrchestrationFailed { details } => Some(details),
        _ => None,
    }
}

/// The number of queue messages that the first event of an execution carries from the execution before it, or the reason why the
/// event does not decode.
pub fn carried_messages(instance: &str, first_event: &str) -> Result<u64, String> {
    let event = json::decode_event(first_event)
        .map_err(|error| format!("first event of instance '{instance}': {error}"))?;
    Ok(match event.kind {
        EventKind::OrchestrationStarted { carry_forward_events: Some(carried), .. } => carried.len() as u64,
        _ => 0,
    })
}

/// The message for a history that does not decode.
pub fn reason(instance: &str, execution_id: u64, error: &str) -> String {
    format!("history of instance '{instance}', execution {execution_id}: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_undecodable_event_fails_the_whole_history() {
        let event = |id| Event::at(0, id, "i", 3, None, EventKind::KeyValuesCleared);
        let texts = [1, 2].map(|id| json::encode_event(&event(id)).unwrap());
        let texts = texts.each_ref().map(String::as_str);
        assert_eq!(decode_history("i", 3, texts), Ok(vec![event(1), event(2)]));
        let refusal = decode_history("i", 3, [texts[0], "damaged"]).unwrap_err();
        assert!(refusal.starts_with("history of instance 'i', execution 3: "), "{refusal}");
        let loaded = decode_turn("i", 3, texts, HashMap::new());
        assert_eq!((loaded.history.len(), loaded.history_error), (2, None));
        let loaded = decode_turn("i", 3, [texts[0], "damaged"], HashMap::new());
        assert_eq!((loaded.history.len(), loaded.history_error), (0, Some(refusal)));
    }

    #[test]
    fn items_of_another_instance_or_queue_are_refused_with_the_reason() {
        let (instance, input) = ("i".to_string(), String::new());
        let message = WorkItem::CancelInstance { instance: instance.clone(), reason: "r".into() };
        let (session_id, tag) = (None, None);
        let activity = WorkItem::ActivityExecute {
            instance,
            execution_id: 1,
            id: 2,
            name: "A".into(),
            input,
            session_id,
            tag,
        };
        let [cancel, execute] = [&message, &activity].map(|item| json::encode_work_item(item).unwrap());
        let refused = |item: &WorkItem, row: &str| {
            Err(format!("a {} for instance 'i' in a row of instance '{row}'", item.kind_name()))
        };
        assert_eq!(decode_message("i", &cancel), Ok(message.clone()));
        assert_eq!(decode_message("j", &cancel), refused(&message, "j"));
        assert_eq!(decode_message("i", &execute), refused(&activity, "i"));
        assert_eq!(decode_activity("i", &execute), Ok(activity.clone()));
        assert_eq!(decode_activity("j", &execute), refused(&activity, "j"));
        assert_eq!(decode_activity("i", &cancel), refused(&message, "i"));
        assert!(decode_message("i", "damaged").is_err() && decode_activity("i", "damaged").is_err());
    }

    #[test]
    fn failure_and_carried_messages_are_read_from_their_events_only() {
        let details =
            ErrorDetails::Infrastructure { operation: "o".into(), message: "m".into(), retryable: false };
        let started = |carry_forward_events| EventKind::OrchestrationStarted {
            name: "O".into(),
            version: "1".into(),
            input: String::new(),
            parent_instance: None,
            parent_id: None,
            parent_execution_id: None,
            carry_forward_events,
            initial_custom_status: None,
        };
        let text = |kind| json::encode_event(&Event::at(0, 1, "i", 1, None, kind)).unwrap();
        let failed = text(EventKind::OrchestrationFailed { details: details.clone() });
        let carried = text(started(Some(vec![("q".into(), "d".into()); 2])));
        assert_eq!(failure(&failed), Some(details));
        assert_eq!((failure(&carried), failure("damaged")), (None, None));
        assert_eq!(carried_messages("i", &carried), Ok(2));
        assert_eq!(carried_messages("i", &text(started(None))), Ok(0));
        assert_eq!(carried_messages("i", &failed), Ok(0));
        let refusal = carried_messages("i", "damaged").unwrap_err();
        assert!(refusal.starts_with("first event of instance 'i': "), "{refusal}");
    }
}
