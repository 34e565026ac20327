//! Decodes the messages of a leased turn.

use crate::leased::RawMessage;
use outlast_model::{WorkItem, json};

/// A batch of messages.
pub(crate) struct Decoded {
    pub(crate) items: Vec<WorkItem>,
    /// Ids and times of the messages that decoded.
    pub(crate) kept: Vec<(i64, u64)>,
    /// Ids of messages that do not decode or belong to another instance, each with the reason.
    pub(crate) damaged: Vec<(i64, String)>,
    /// The highest count of deliveries among the messages that decoded.
    pub(crate) attempts: u32,
}

pub(crate) fn decode(instance: &str, messages: &[RawMessage]) -> Decoded {
    let mut decoded = Decoded { items: Vec::new(), kept: Vec::new(), damaged: Vec::new(), attempts: 0 };
    for message in messages {
        match json::decode_work_item(&message.text) {
            Ok(item)
                if item.target_instance() == instance
                    && !matches!(item, WorkItem::ActivityExecute { .. }) =>
            {
                decoded.items.push(item);
                decoded.kept.push((message.id, message.available_at));
                decoded.attempts = decoded.attempts.max(message.attempts);
            }
            Ok(item) => decoded.damaged.push((message.id, misplaced(&item, instance))),
            Err(error) => decoded.damaged.push((message.id, error.to_string())),
        }
    }
    decoded
}

/// The reason for setting aside an item of another instance, or of the other queue.
pub(crate) fn misplaced(item: &WorkItem, instance: &str) -> String {
    let (kind, owner) = (item.kind_name(), item.target_instance());
    format!("a {kind} for instance '{owner}' in a row of instance '{instance}'")
}
