//! Starts, events, messages and cancellations.

use crate::HttpClient;
use crate::transport::{KEY, encoded, of_instance};
use crate::wire::{Accepted, Started};
use outlast::ClientError;
use serde::Serialize;
use serde_json::{Value, json};

impl HttpClient {
    /// Starts an instance. Unlike [`outlast::Client::start_orchestration`], an instance that exists is an error.
    ///
    /// # Errors
    ///
    /// [`ClientError::InvalidInput`] if the instance exists or an argument is not valid.
    pub async fn start_orchestration(
        &self,
        instance: impl Into<String>,
        orchestration: impl Into<String>,
        input: impl Into<String>,
    ) -> Result<(), ClientError> {
        self.start(instance.into(), orchestration.into(), None, input.into()).await
    }

    /// [`HttpClient::start_orchestration`] with a version instead of the version that the runtime's policy selects.
    ///
    /// # Errors
    ///
    /// As [`HttpClient::start_orchestration`].
    pub async fn start_orchestration_versioned(
        &self,
        instance: impl Into<String>,
        orchestration: impl Into<String>,
        version: impl Into<String>,
        input: impl Into<String>,
    ) -> Result<(), ClientError> {
        self.start(instance.into(), orchestration.into(), Some(version.into()), input.into()).await
    }

    /// [`HttpClient::start_orchestration`] with a typed value as input.
    ///
    /// # Errors
    ///
    /// As [`HttpClient::start_orchestration`].
    pub async fn start_orchestration_typed<In: Serialize>(
        &self,
        instance: impl Into<String>,
        orchestration: impl Into<String>,
        input: In,
    ) -> Result<(), ClientError> {
        let input = self.encoded_value(&input)?;
        self.start(instance.into(), orchestration.into(), None, input).await
    }

    /// [`HttpClient::start_orchestration_versioned`] with a typed value as input.
    ///
    /// # Errors
    ///
    /// As [`HttpClient::start_orchestration`].
    pub async fn start_orchestration_versioned_typed<In: Serialize>(
        &self,
        instance: impl Into<String>,
        orchestration: impl Into<String>,
        version: impl Into<String>,
        input: In,
    ) -> Result<(), ClientError> {
        let input = self.encoded_value(&input)?;
        self.start(instance.into(), orchestration.into(), Some(version.into()), input).await
    }

    /// Starts an instance under an id that is made of the orchestration and this key. The same call may be repeated: it starts one
    /// instance. Returns the id, and whether this call started the instance.
    ///
    /// # Errors
    ///
    /// [`ClientError::InvalidInput`] if an argument is not valid.
    pub async fn start_idempotent(
        &self,
        orchestration: impl Into<String>,
        key: &str,
        input: impl Into<String>,
    ) -> Result<(String, bool), ClientError> {
        let body = json!({ "orchestration": orchestration.into(), "input": input.into() });
        let started = self.post::<Started>("", "/instances", body, &[(KEY, key)]).await?.value;
        Ok((started.instance, started.started))
    }

    async fn start(
        &self,
        instance: String,
        orchestration: String,
        version: Option<String>,
        input: String,
    ) -> Result<(), ClientError> {
        let body = json!({ "instance": instance, "orchestration": orchestration, "version": version, "input": input });
        self.post::<Started>(&instance, "/instances", body, &[]).await.map(drop)
    }

    /// Raises an event for a wait by name. Unlike [`outlast::Client::raise_event`], an instance that does not exist or has ended is an error.
    ///
    /// # Errors
    ///
    /// [`ClientError::InstanceNotFound`], or [`ClientError::InvalidInput`] for an ended instance.
    pub async fn raise_event(
        &self,
        instance: impl Into<String>,
        event_name: impl Into<String>,
        data: impl Into<String>,
    ) -> Result<(), ClientError> {
        let body = json!({ "name": event_name.into(), "data": data.into() });
        self.act(&instance.into(), "/events", body).await.map(drop)
    }

    /// [`HttpClient::raise_event`] with a typed value.
    ///
    /// # Errors
    ///
    /// As [`HttpClient::raise_event`].
    pub async fn try_raise_event_typed<T: Serialize>(
        &self,
        instance: impl Into<String>,
        event_name: impl Into<String>,
        data: &T,
    ) -> Result<(), ClientError> {
        self.raise_event(instance, event_name, self.encoded_value(data)?).await
    }

    /// Puts an event into a persistent queue of the instance.
    ///
    /// # Errors
    ///
    /// As [`HttpClient::raise_event`].
    pub async fn enqueue_event(
        &self,
        instance: impl Into<String>,
        queue: impl Into<String>,
        data: impl Into<String>,
    ) -> Result<(), ClientError> {
        let path = format!("/queues/{}/messages", encoded(&queue.into()));
        self.act(&instance.into(), &path, json!({ "data": data.into() })).await.map(drop)
    }

    /// [`HttpClient::enqueue_event`] with a typed value.
    ///
    /// # Errors
    ///
    /// As [`HttpClient::raise_event`].
    pub async fn try_enqueue_event_typed<T: Serialize>(
        &self,
        instance: impl Into<String>,
        queue: impl Into<String>,
        data: &T,
    ) -> Result<(), ClientError> {
        self.enqueue_event(instance, queue, self.encoded_value(data)?).await
    }

    /// Cancels an instance.
    ///
    /// # Errors
    ///
    /// As [`HttpClient::raise_event`].
    pub async fn cancel_instance(
        &self,
        instance: impl Into<String>,
        reason: impl Into<String>,
    ) -> Result<(), ClientError> {
        self.act(&instance.into(), "/cancel", json!({ "reason": reason.into() })).await.map(drop)
    }

    /// Ends an instance in its next turn, without running its code.
    ///
    /// # Errors
    ///
    /// As [`HttpClient::raise_event`].
    pub async fn terminate_instance(
        &self,
        instance: impl Into<String>,
        reason: impl Into<String>,
    ) -> Result<(), ClientError> {
        self.act(&instance.into(), "/terminate", json!({ "reason": reason.into() })).await.map(drop)
    }

    /// Posts a request about an instance; returns whether it changed the instance.
    pub(crate) async fn act(&self, instance: &str, path: &str, body: Value) -> Result<bool, ClientError> {
        let accepted = self.post::<Accepted>(instance, &of_instance(instance, path, ""), body, &[]).await?;
        Ok(accepted.value.changed)
    }

    pub(crate) fn encoded_value<T: Serialize + ?Sized>(&self, value: &T) -> Result<String, ClientError> {
        let text = self.codec.encode(value);
        text.map_err(|error| ClientError::InvalidInput { message: format!("encode: {error}") })
    }
}
