//! Events and queue messages that are stored at most once.

use crate::HttpClient;
use crate::transport::{KEY, encoded, of_instance};
use crate::wire::Accepted;
use outlast::ClientError;
use serde_json::{Value, json};

impl HttpClient {
    /// [`HttpClient::raise_event`], unless an event with this key was stored for the instance. Returns whether this call stored it. The
    /// same call may be repeated until it is answered.
    ///
    /// # Errors
    ///
    /// As [`HttpClient::raise_event`].
    pub async fn raise_event_once(
        &self,
        instance: impl Into<String>,
        event_name: impl Into<String>,
        data: impl Into<String>,
        key: &str,
    ) -> Result<bool, ClientError> {
        let body = json!({ "name": event_name.into(), "data": data.into() });
        self.act_once(&instance.into(), "/events", body, key).await
    }

    /// [`HttpClient::enqueue_event`], unless an event with this key was stored for the instance. Returns whether this call stored it. The
    /// same call may be repeated until it is answered.
    ///
    /// # Errors
    ///
    /// As [`HttpClient::raise_event`].
    pub async fn enqueue_event_once(
        &self,
        instance: impl Into<String>,
        queue: impl Into<String>,
        data: impl Into<String>,
        key: &str,
    ) -> Result<bool, ClientError> {
        let path = format!("/queues/{}/messages", encoded(&queue.into()));
        self.act_once(&instance.into(), &path, json!({ "data": data.into() }), key).await
    }

    async fn act_once(
        &self,
        instance: &str,
        path: &str,
        body: Value,
        key: &str,
    ) -> Result<bool, ClientError> {
        let path = of_instance(instance, path, "");
        Ok(self.post::<Accepted>(instance, &path, body, &[(KEY, key)]).await?.value.changed)
    }
}
