//! Decodes stored rows. One undecodable row fails the whole history.

use outlast_model::{Event, json};

/// Decodes all events of an execution, or returns the reason why one of them does not decode.
pub fn decode_history<'a>(
    instance: &str,
    execution_id: u64,
    texts: impl IntoIterator<Item = &'a str>,
) -> Result<Vec<Event>, String> {
    let decoded = texts.into_iter().map(json::decode_event).collect::<Result<Vec<_>, _>>();
    decoded.map_err(|error| reason(instance, execution_id, &error.to_string()))
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
    }
}
