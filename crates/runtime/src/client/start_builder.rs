//! Builder for starts: optional version, delay, idempotency token, conflict policy and events, and a receipt.

use super::{Client, ClientError};
use crate::dispatch::eager;
use crate::observer::{StartNote, is_traceparent};
use outlast_model::{WorkItem, wall_clock_ms};
use outlast_provider::{StartOutcome, StartPolicy, StartRequest};
use serde::Serialize;
use std::fmt;
use std::time::Duration;

/// The policy of a start if the instance exists already, has ended, or has a start in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Conflict {
    /// Store nothing. The receipt says that the instance exists.
    #[default]
    Fail,
    /// Store no start, but send the events of this request to the existing instance.
    UseExisting,
}

/// A start that has not been sent: see [`Client::start_request`].
#[must_use = "nothing is stored until it is sent"]
pub struct StartBuilder<'a> {
    client: &'a Client,
    orchestration: String,
    instance: Option<String>,
    token: Option<String>,
    version: Option<String>,
    input: Result<String, ClientError>,
    delay: Option<Duration>,
    conflict: Conflict,
    events: Vec<Result<(String, String), ClientError>>,
    traceparent: Option<String>,
}

impl Client {
    /// Builds a start with options. Its receipt says whether the instance was started:
    ///
    /// ```
    /// # use outlast_runtime::{Client, Conflict};
    /// # async fn start(client: Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let receipt = client
    ///     .start_request("Order")
    ///     .instance("order-1")
    ///     .input(r#"{"total":12}"#)
    ///     .if_exists(Conflict::UseExisting)
    ///     .with_event("items", "apple")
    ///     .send()
    ///     .await?;
    /// println!("{} {}", receipt.instance, if receipt.is_started() { "started" } else { "existed" });
    ///
    /// // Or as an error:
    /// let instance = client.start_request("Order").instance("order-2").send().await?.started()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn start_request(&self, orchestration: impl Into<String>) -> StartBuilder<'_> {
        StartBuilder {
            client: self,
            orchestration: orchestration.into(),
            instance: None,
            token: None,
            version: None,
            input: Ok(String::new()),
            delay: None,
            conflict: Conflict::default(),
            events: Vec::new(),
            traceparent: None,
        }
    }
}

impl StartBuilder<'_> {
    /// The id of the instance. Required unless an idempotency token is given.
    pub fn instance(mut self, instance: impl Into<String>) -> Self {
        self.instance = Some(instance.into());
        self
    }

    /// Derives the id of the instance from the orchestration and this token, as `{orchestration}:{token}`. A caller that does not
    /// know whether its first request arrived repeats it with the same token and gets the same instance. This holds until the
    /// instance is deleted. Cannot be combined with [`StartBuilder::instance`].
    pub fn idempotency_token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// The input as text; empty if not given.
    pub fn input(mut self, input: impl Into<String>) -> Self {
        self.input = Ok(input.into());
        self
    }

    /// The input as a typed value. [`StartBuilder::send`] returns the error if it cannot be encoded.
    pub fn input_typed<In: Serialize + ?Sized>(mut self, input: &In) -> Self {
        self.input = self.client.encoded(input);
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

    /// Puts an event into a persistent queue of the instance in the same step as the start (signal-with-start). May be called
    /// several times; the events keep their order.
    pub fn with_event(mut self, queue: impl Into<String>, data: impl Into<String>) -> Self {
        self.events.push(Ok((queue.into(), data.into())));
        self
    }

    /// [`StartBuilder::with_event`] with a typed value. [`StartBuilder::send`] returns the error if it cannot be encoded.
    pub fn with_event_typed<T: Serialize + ?Sized>(mut self, queue: impl Into<String>, data: &T) -> Self {
        let data = self.client.encoded(data);
        self.events.push(data.map(|data| (queue.into(), data)));
        self
    }

    /// The W3C `traceparent` of the caller. The traces of the instance continue the trace of the caller, if runtimes make traces. A
    /// text that is no `traceparent` is ignored, as the format requires.
    ///
    /// The store keeps it as a message of a reserved queue, in the same step as the start. An instance that exists does not get it.
    pub fn traceparent(mut self, traceparent: impl Into<String>) -> Self {
        self.traceparent = Some(traceparent.into()).filter(|text| is_traceparent(text));
        self
    }

    /// Stores the start and its events in one step. If the instance exists, this is not an error: the receipt says so, and
    /// [`StartReceipt::started`] turns it into an error.
    ///
    /// If a runtime of this process uses the same store object, the call may run the first turn of an instance without events and
    /// delay: the store then commits start and turn in one step.
    ///
    /// With a store that does not override [`Provider::start_orchestration`](outlast_provider::Provider::start_orchestration)
    /// it is more than one step: two concurrent callers may both get a receipt that says started.
    ///
    /// Cancellation safety: when the future is dropped, start and events are stored or none of them is.
    ///
    /// # Errors
    ///
    /// [`ClientError::InvalidInput`] as for [`Client::start_orchestration`], and if the request has both an instance id and an
    /// idempotency token, or neither.
    pub async fn send(self) -> Result<StartReceipt, ClientError> {
        let client = self.client;
        let note = self
            .traceparent
            .clone()
            .map(|traceparent| StartNote::Caller { traceparent, sent_at_ms: wall_clock_ms() });
        let (instance, request) = self.into_request()?;
        // Messages and a delayed start wait in the queue of the instance, so a turn is run when the store delivers them.
        let is_alone = note.is_none() && request.messages.is_empty() && request.delay.is_none();
        if is_alone && eager::start(&client.store, client.store_id, &request.start).await? {
            return Ok(StartReceipt::new(instance, StartOutcome::Started));
        }
        if let Some(note) = note.and_then(|note| note.message(instance.clone())) {
            let mut noted = StartRequest { policy: StartPolicy::FailIfExists, ..request.clone() };
            noted.messages.insert(0, note);
            let outcome = client.store.start_orchestration(noted).await?;
            // The note must not reach an existing instance, so the messages for such an instance are sent in a second call.
            if outcome == StartOutcome::Started || request.policy == StartPolicy::FailIfExists {
                return Ok(StartReceipt::new(instance, outcome));
            }
        }
        let outcome = client.store.start_orchestration(request).await?;
        Ok(StartReceipt::new(instance, outcome))
    }

    /// Checks the arguments and builds the request, with the id of the instance.
    fn into_request(self) -> Result<(String, StartRequest), ClientError> {
        let orchestration = self.orchestration;
        let instance = match (self.instance, self.token) {
            (Some(instance), None) => instance,
            (None, Some(token)) => format!("{orchestration}:{token}"),
            (None, None) => {
                return Err(ClientError::invalid(format!(
                    "the start of '{orchestration:.60}' has no instance id: give it an instance id or an idempotency token"
                )));
            }
            (Some(instance), Some(_)) => {
                return Err(ClientError::invalid(format!(
                    "the start of instance '{instance:.60}' has both an instance id and an idempotency token, from which \
                     an id is derived: give it only one of the two"
                )));
            }
        };
        let start = self.client.start_item(instance.clone(), orchestration, self.version, self.input?)?;
        let mut messages = Vec::with_capacity(self.events.len());
        for event in self.events {
            let (name, data) = event?;
            self.client.check_name("queue name", &name, &instance)?;
            self.client.check_payload("event", &data, &instance)?;
            messages.push(WorkItem::QueueMessage { instance: instance.clone(), name, data });
        }
        let policy = match self.conflict {
            Conflict::Fail => StartPolicy::FailIfExists,
            Conflict::UseExisting => StartPolicy::UseExisting,
        };
        Ok((instance, StartRequest { start, delay: self.delay, policy, messages }))
    }
}

/// The result of a start.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
#[must_use = "the receipt says whether the instance was started"]
pub struct StartReceipt {
    /// The instance.
    pub instance: String,
    /// Whether this call started the instance, and if not, the status of the existing instance.
    pub outcome: StartOutcome,
}

impl StartReceipt {
    /// A receipt, for clients of other transports.
    pub fn new(instance: impl Into<String>, outcome: StartOutcome) -> Self {
        Self { instance: instance.into(), outcome }
    }

    /// Whether this call started the instance.
    pub fn is_started(&self) -> bool {
        self.outcome == StartOutcome::Started
    }

    /// The instance id if this call started the instance; an error if the instance existed.
    pub fn started(self) -> Result<String, AlreadyExists> {
        match self.outcome {
            StartOutcome::Started => Ok(self.instance),
            StartOutcome::AlreadyExists { status } => Err(AlreadyExists { instance: self.instance, status }),
        }
    }
}

/// An instance with the id of the start existed already.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AlreadyExists {
    /// The instance.
    pub instance: String,
    /// `Running`, `Completed`, `Failed` or `ContinuedAsNew`; `None` while its first turn has not been committed.
    pub status: Option<String>,
}

/// Prints the sentence of `Display`, because `unwrap` and a `main` that returns an error print `Debug`.
impl fmt::Debug for AlreadyExists {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AlreadyExists").field(&self.to_string()).finish()
    }
}

impl fmt::Display for AlreadyExists {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = self.status.as_deref().unwrap_or("queued");
        write!(
            f,
            "instance '{}' exists already ({status}): choose another id, delete it first, or use the existing one",
            self.instance
        )
    }
}

impl std::error::Error for AlreadyExists {}
