//! Decodes stored rows. One undecodable row fails the whole history.

use outlast_model::{Event, WorkItem, json};
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

/// The message for a history that does not decode.
pub fn reason(instance: &str, execution_id: u64, error: &str) -> String {
    format!("history of instance '{instance}', execution {execution_id}: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_model::EventKind;

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
}
