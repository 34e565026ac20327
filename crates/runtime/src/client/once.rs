//! Events and queue messages that are stored at most once.

use super::{Client, ClientError};
use outlast_model::WorkItem;
use outlast_model::limits::MAX_MESSAGE_KEY_BYTES;
use outlast_provider::EnqueueOnce;

/// Events with a key, for senders that repeat a delivery until it is answered, such as webhooks. A key belongs to one instance and is
/// deleted with it: an instance takes the event of a key once, also after a crash of the sender, the client or the runtime.
impl Client {
    /// [`Client::raise_event`], unless an event with this key was stored for the instance.
    ///
    /// Cancellation safety: when the future is dropped, the event and its key are stored, or neither.
    ///
    /// # Errors
    ///
    /// As [`Client::raise_event`], and [`ClientError::InvalidInput`] for a key that is empty or has more than 1,024 bytes, and for a store
    /// that keeps no keys.
    pub async fn raise_event_once(
        &self,
        instance: impl Into<String>,
        event_name: impl Into<String>,
        data: impl Into<String>,
        key: &str,
    ) -> Result<EnqueueOnce, ClientError> {
        let (instance, name, data) = self.checked_event(instance, event_name, data)?;
        self.send_once(WorkItem::ExternalRaised { instance, name, data }, key).await
    }

    /// [`Client::enqueue_event`], unless an event with this key was stored for the instance.
    ///
    /// Cancellation safety: when the future is dropped, the event and its key are stored, or neither.
    ///
    /// # Errors
    ///
    /// As [`Client::raise_event_once`].
    pub async fn enqueue_event_once(
        &self,
        instance: impl Into<String>,
        queue: impl Into<String>,
        data: impl Into<String>,
        key: &str,
    ) -> Result<EnqueueOnce, ClientError> {
        let (instance, name, data) = self.checked_event(instance, queue, data)?;
        self.send_once(WorkItem::QueueMessage { instance, name, data }, key).await
    }

    /// Stores a message under a key, after a check of the key.
    async fn send_once(&self, item: WorkItem, key: &str) -> Result<EnqueueOnce, ClientError> {
        if key.is_empty() || key.len() > MAX_MESSAGE_KEY_BYTES {
            let message = format!("the key of an event has 1 to {MAX_MESSAGE_KEY_BYTES} bytes");
            return Err(ClientError::invalid(message));
        }
        let instance = item.target_instance().to_string();
        match self.store.enqueue_once(item, key, self.limits.mailbox_messages).await? {
            EnqueueOnce::Full => Err(self.full(&instance)),
            EnqueueOnce::Unsupported => Err(ClientError::invalid(
                "this store keeps no keys of events: use a store that keeps keys, or send the event without a key",
            )),
            outcome => Ok(outcome),
        }
    }
}
