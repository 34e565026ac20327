//! Sending events, queue messages and cancellations.

use super::{Client, ClientError};
use outlast_engine::layer::TERMINATE;
use outlast_model::WorkItem;
use serde::Serialize;

impl Client {
    /// Raises an event for a wait by name. The event is delivered if the instance waits for it, and dropped otherwise: use
    /// [`Client::enqueue_event`] for data that must not be lost. Also `Ok` if the instance does not exist or has ended.
    ///
    /// The call does not read the instance. So an event with the name of a queue is no error, and the queue does not get
    /// it: a queue gets only the data of [`Client::enqueue_event`].
    ///
    /// Cancellation safety: when the future is dropped, the event is stored or it is not.
    ///
    /// # Errors
    ///
    /// [`ClientError::InvalidInput`] for an id that no instance can have, and for a name or data above the limits.
    pub async fn raise_event(
        &self,
        instance: impl Into<String>,
        event_name: impl Into<String>,
        data: impl Into<String>,
    ) -> Result<(), ClientError> {
        let (instance, name, data) = self.checked_event(instance, event_name, data)?;
        self.send(WorkItem::ExternalRaised { instance, name, data }).await
    }

    /// [`Client::raise_event`] with a typed value.
    ///
    /// Cancellation safety: when the future is dropped, the event is stored or it is not.
    pub async fn try_raise_event_typed<T: Serialize>(
        &self,
        instance: impl Into<String>,
        event_name: impl Into<String>,
        data: &T,
    ) -> Result<(), ClientError> {
        self.raise_event(instance, event_name, self.encoded(data)?).await
    }

    /// [`Client::try_raise_event_typed`] that panics instead of returning an encoding error. Prefer the method that returns the error.
    ///
    /// Cancellation safety: when the future is dropped, the event is stored or it is not.
    ///
    /// # Panics
    ///
    /// If the value cannot be encoded as JSON.
    pub async fn raise_event_typed<T: Serialize>(
        &self,
        instance: impl Into<String>,
        event_name: impl Into<String>,
        data: &T,
    ) -> Result<(), ClientError> {
        self.raise_event(instance, event_name, self.expect_encoded(data)).await
    }

    /// Puts an event into a persistent queue of the instance, where it stays until the instance takes it.
    ///
    /// An event for an instance whose start is queued or delayed waits for that start. An event for an instance that does not exist
    /// or has ended is dropped. The call does not read the instance: data for a queue that no code reads, for example one with the name
    /// of a positional event, stays in the queue without an error. To start and enqueue in one step: [`StartBuilder::with_event`](super::StartBuilder::with_event).
    ///
    /// Cancellation safety: when the future is dropped, the event is stored or it is not.
    ///
    /// # Errors
    ///
    /// [`ClientError::InvalidInput`] for an id that no instance can have, and for a name or data above the limits.
    pub async fn enqueue_event(
        &self,
        instance: impl Into<String>,
        queue: impl Into<String>,
        data: impl Into<String>,
    ) -> Result<(), ClientError> {
        let (instance, name, data) = self.checked_event(instance, queue, data)?;
        self.send(WorkItem::QueueMessage { instance, name, data }).await
    }

    /// [`Client::enqueue_event`] with a typed value.
    ///
    /// Cancellation safety: when the future is dropped, the event is stored or it is not.
    pub async fn try_enqueue_event_typed<T: Serialize>(
        &self,
        instance: impl Into<String>,
        queue: impl Into<String>,
        data: &T,
    ) -> Result<(), ClientError> {
        self.enqueue_event(instance, queue, self.encoded(data)?).await
    }

    /// [`Client::try_enqueue_event_typed`] that panics instead of returning an encoding error. Prefer the method that returns the error.
    ///
    /// Cancellation safety: when the future is dropped, the event is stored or it is not.
    ///
    /// # Panics
    ///
    /// If the value cannot be encoded as JSON.
    pub async fn enqueue_event_typed<T: Serialize>(
        &self,
        instance: impl Into<String>,
        queue: impl Into<String>,
        data: &T,
    ) -> Result<(), ClientError> {
        self.enqueue_event(instance, queue, self.expect_encoded(data)).await
    }

    /// [`Client::enqueue_event`] under its old name.
    ///
    /// Cancellation safety: when the future is dropped, the event is stored or it is not.
    #[deprecated(note = "use enqueue_event")]
    pub async fn raise_event_persistent(
        &self,
        instance: impl Into<String>,
        event_name: impl Into<String>,
        data: impl Into<String>,
    ) -> Result<(), ClientError> {
        self.enqueue_event(instance, event_name, data).await
    }

    /// [`Client::raise_event`] with a topic, for tests of a newer version of the contract.
    ///
    /// Cancellation safety: when the future is dropped, the event is stored or it is not.
    #[cfg(feature = "replay-version-test")]
    pub async fn raise_event2(
        &self,
        instance: impl Into<String>,
        event_name: impl Into<String>,
        topic: impl Into<String>,
        data: impl Into<String>,
    ) -> Result<(), ClientError> {
        let (instance, name, data) = self.checked_event(instance, event_name, data)?;
        let topic = topic.into();
        self.check_name("topic", &topic, &instance)?;
        self.send(WorkItem::ExternalRaised2 { instance, name, topic, data }).await
    }

    /// Cancels an instance. The instance fails with this reason in its next turn, which also cancels its children and activities.
    /// An orchestration with `on_cancel` observes the request instead, and decides how to end. `Ok` without effect if the instance
    /// does not exist or has ended. The first reason is kept.
    ///
    /// Cancellation safety: when the future is dropped, the request is stored or it is not.
    ///
    /// # Errors
    ///
    /// [`ClientError::InvalidInput`] for an id that no instance can have, and for a reason above the payload limit.
    pub async fn cancel_instance(
        &self,
        instance: impl Into<String>,
        reason: impl Into<String>,
    ) -> Result<(), ClientError> {
        let (instance, reason) = (instance.into(), reason.into());
        self.check_target(&instance)?;
        self.check_payload("reason", &reason, &instance)?;
        // Not limited by `mailbox_messages`: the cancellation ends the instance and so removes its messages.
        Ok(self.store.enqueue_for_orchestrator(WorkItem::CancelInstance { instance, reason }, None).await?)
    }

    /// Ends an instance in its next turn, also if its orchestration has `on_cancel`: no code of the orchestration runs any more. Apart
    /// from that it is [`Client::cancel_instance`].
    ///
    /// Cancellation safety: when the future is dropped, the request is stored or it is not.
    ///
    /// # Errors
    ///
    /// As [`Client::cancel_instance`].
    pub async fn terminate_instance(
        &self,
        instance: impl Into<String>,
        reason: impl Into<String>,
    ) -> Result<(), ClientError> {
        self.cancel_instance(instance, format!("{TERMINATE} {}", reason.into())).await
    }

    /// Checks the instance id, the name and the data of an event.
    pub(super) fn checked_event(
        &self,
        instance: impl Into<String>,
        name: impl Into<String>,
        data: impl Into<String>,
    ) -> Result<(String, String, String), ClientError> {
        let (instance, name, data) = (instance.into(), name.into(), data.into());
        self.check_target(&instance)?;
        self.check_name("event name", &name, &instance)?;
        self.check_payload("event", &data, &instance)?;
        Ok((instance, name, data))
    }

    /// Sends an event, unless `mailbox_messages` messages wait for the instance already.
    async fn send(&self, item: WorkItem) -> Result<(), ClientError> {
        let (instance, limit) = (item.target_instance().to_string(), self.limits.mailbox_messages);
        match self.store.enqueue_within(item, limit).await? {
            true => Ok(()),
            false => Err(self.full(&instance)),
        }
    }

    /// The error for an instance with a full mailbox.
    pub(super) fn full(&self, instance: &str) -> ClientError {
        let limit = self.limits.mailbox_messages;
        ClientError::invalid(format!(
            "instance '{instance:.60}' has {limit} messages waiting, which is the limit mailbox_messages: wait until \
             it has read some, or raise Limits::mailbox_messages in the client"
        ))
    }
}

impl Client {
    #[allow(
        clippy::expect_used,
        reason = "the panic is the documented behaviour of the typed methods without `try_`"
    )]
    fn expect_encoded<T: Serialize>(&self, value: &T) -> String {
        self.codec.encode(value).expect("the value of a typed event must be encodable as JSON")
    }
}
