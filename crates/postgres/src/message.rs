//! Decodes the messages of a leased turn.

use crate::leased::RawMessage;
use outlast_model::WorkItem;
use outlast_provider_kit::rows;

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

/// Decodes the messages of an instance, and separates the damaged messages.
pub(crate) fn decode(instance: &str, messages: &[RawMessage]) -> Decoded {
    let mut decoded = Decoded { items: Vec::new(), kept: Vec::new(), damaged: Vec::new(), attempts: 0 };
    for message in messages {
        match rows::decode_message(instance, &message.text) {
            Ok(item) => {
                decoded.items.push(item);
                decoded.kept.push((message.id, message.available_at));
                decoded.attempts = decoded.attempts.max(message.attempts);
            }
            Err(reason) => decoded.damaged.push((message.id, reason)),
        }
    }
    decoded
}
