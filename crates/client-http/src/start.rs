//! Starts with options.

use crate::HttpClient;
use crate::transport::KEY;
use crate::wire::Started;
use outlast::ClientError;
use outlast::client::{Conflict, StartReceipt};
use outlast::providers::StartOutcome;
use outlast::runtime::observer::is_traceparent;
use serde::Serialize;
use serde_json::json;
use std::time::Duration;

/// A start that has not been sent: see [`HttpClient::start_request`].
#[must_use = "nothing is stored until it is sent"]
pub struct HttpStartBuilder<'a> {
    client: &'a HttpClient,
    orchestration: String,
    instance: Option<String>,
    token: Option<String>,
    version: Option<String>,
    input: Result<String, ClientError>,
    delay: Option<Duration>,
    conflict: Conflict,
    messages: Vec<Result<(String, String), ClientError>>,
    traceparent: Option<String>,
}

impl HttpClient {
    /// Builds a start with options, as [`outlast::Client::start_request`] does.
    pub fn start_request(&self, orchestration: impl Into<String>) -> HttpStartBuilder<'_> {
        HttpStartBuilder {
            client: self,
            orchestration: orchestration.into(),
            instance: None,
            token: None,
            version: None,
            input: Ok(String::new()),
            delay: None,
            conflict: Conflict::default(),
            messages: Vec::new(),
            traceparent: None,
        }
    }
}

impl HttpStartBuilder<'_> {
    /// The id of the instance. Required unless an idempotency token is given.
    pub fn instance(mut self, instance: impl Into<String>) -> Self {
        self.instance = Some(instance.into());
        self
    }

    /// Derives the id of the instance from the orchestration and this token, as `{orchestration}:{token}`. The token is visible ASCII
    /// text. Cannot be combined with [`HttpStartBuilder::instance`].
    pub fn idempotency_token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// The input as text; empty if not given.
    pub fn input(mut self, input: impl Into<String>) -> Self {
        self.input = Ok(input.into());
        self
    }

    /// The input as a typed value. [`HttpStartBuilder::send`] returns the error if it cannot be encoded.
    pub fn input_typed<In: Serialize + ?Sized>(mut self, input: &In) -> Self {
        self.input = self.client.encoded_value(input);
        self
    }

    /// The version to run, instead of the version that the runtime's policy selects.
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.version = Some(version.into());
        self
    }

    /// The time for which the start waits in the queue. The id is reserved from the moment it is sent.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = Some(delay);
        self
    }

    /// Sets the policy for an existing instance. The default is [`Conflict::Fail`].
    pub fn if_exists(mut self, conflict: Conflict) -> Self {
        self.conflict = conflict;
        self
    }

    /// Puts an event into a persistent queue of the instance in the same step as the start. May be called several times; the events
    /// keep their order.
    pub fn with_event(mut self, queue: impl Into<String>, data: impl Into<String>) -> Self {
        self.messages.push(Ok((queue.into(), data.into())));
        self
    }

    /// [`HttpStartBuilder::with_event`] with a typed value. [`HttpStartBuilder::send`] returns the error if it cannot be encoded.
    pub fn with_event_typed<T: Serialize + ?Sized>(mut self, queue: impl Into<String>, data: &T) -> Self {
        let data = self.client.encoded_value(data);
        self.messages.push(data.map(|data| (queue.into(), data)));
        self
    }

    /// The W3C `traceparent` of the caller, as for [`outlast::client::StartBuilder::traceparent`].
    pub fn traceparent(mut self, traceparent: impl Into<String>) -> Self {
        self.traceparent = Some(traceparent.into()).filter(|text| is_traceparent(text));
        self
    }

    /// Sends the start and its events. If the instance exists, this is not an error: the receipt says so.
    ///
    /// # Errors
    ///
    /// [`ClientError::InvalidInput`] if an argument is not valid; an error of the server or of the connection.
    pub async fn send(self) -> Result<StartReceipt, ClientError> {
        let mut messages = Vec::with_capacity(self.messages.len());
        for message in self.messages {
            let (queue, data) = message?;
            messages.push(json!({ "queue": queue, "data": data }));
        }
        let body = json!({
            "instance": self.instance,
            "orchestration": self.orchestration,
            "version": self.version,
            "input": self.input?,
            "delay_ms": self.delay.map(|delay| u64::try_from(delay.as_millis()).unwrap_or(u64::MAX)),
            "if_exists": match self.conflict {
                Conflict::Fail => "report",
                Conflict::UseExisting => "use_existing",
            },
            "messages": messages,
        });
        let instance = self.instance.unwrap_or_default();
        let key = self.token.as_deref().map(|token| (KEY, token));
        let headers: Vec<_> =
            key.into_iter().chain(self.traceparent.as_deref().map(|text| ("traceparent", text))).collect();
        let answer = self.client.post::<Started>(&instance, "/instances", body, &headers).await?;
        let Started { instance, started, status } = answer.value;
        let outcome = if started { StartOutcome::Started } else { StartOutcome::AlreadyExists { status } };
        Ok(StartReceipt::new(instance, outcome))
    }
}
