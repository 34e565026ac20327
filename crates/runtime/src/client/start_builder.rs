//! Starting an instance with a say in everything, and an answer.

use super::{Client, ClientError};
use outlast_model::WorkItem;
use outlast_provider::{StartOutcome, StartPolicy, StartRequest};
use serde::Serialize;
use std::fmt;
use std::time::Duration;

/// What a start does when the instance exists already, finished or not, or its start waits in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Conflict {
    /// Store nothing. The receipt says that the instance exists.
    #[default]
    Fail,
    /// Start nothing, but deliver the events that go along to the instance that is there.
    UseExisting,
}

/// A start in the making: see [`Client::start_request`].
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
}

impl Client {
    /// A start with options, which says what it did:
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
    /// println!("{} {}", receipt.instance, if receipt.is_started() { "started" } else { "was there" });
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
        }
    }
}

impl StartBuilder<'_> {
    /// The id of the instance. Required, unless there is an idempotency token.
    pub fn instance(mut self, instance: impl Into<String>) -> Self {
        self.instance = Some(instance.into());
        self
    }

    /// Derives the id of the instance from the orchestration and this token, as `{orchestration}:{token}`: a caller that
    /// does not know whether its first try arrived sends the same token again and is given the same instance. The
    /// promise lasts as long as the instance is not deleted. Not together with [`StartBuilder::instance`].
    pub fn idempotency_token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// The input as text; empty if not given.
    pub fn input(mut self, input: impl Into<String>) -> Self {
        self.input = Ok(input.into());
        self
    }

    /// The input as a value. One that cannot be encoded is reported by [`StartBuilder::send`].
    pub fn input_typed<In: Serialize + ?Sized>(mut self, input: &In) -> Self {
        self.input = self.client.encoded(input);
        self
    }

    /// The version to run, instead of the one that the runtime's policy chooses.
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.version = Some(version.into());
        self
    }

    /// How long the start waits in the queue. The id is taken from now on.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = Some(delay);
        self
    }

    /// What to do when the instance exists; [`Conflict::Fail`] if not given.
    pub fn if_exists(mut self, conflict: Conflict) -> Self {
        self.conflict = conflict;
        self
    }

    /// Puts an event into a persistent queue of the instance in the same step (signal-with-start). May be called
    /// several times; the order is kept.
    pub fn with_event(mut self, queue: impl Into<String>, data: impl Into<String>) -> Self {
        self.events.push(Ok((queue.into(), data.into())));
        self
    }

    /// [`StartBuilder::with_event`] with a value. One that cannot be encoded is reported by [`StartBuilder::send`].
    pub fn with_event_typed<T: Serialize + ?Sized>(mut self, queue: impl Into<String>, data: &T) -> Self {
        let data = self.client.encoded(data);
        self.events.push(data.map(|data| (queue.into(), data)));
        self
    }

    /// Sends it: the start and its events are stored in one step. An instance that exists is no error here, the receipt
    /// tells; [`StartReceipt::started`] makes it one.
    ///
    /// With a store that does not override [`Provider::start_orchestration`](outlast_provider::Provider::start_orchestration)
    /// it is not one step: two callers at once may both be told that they started the instance.
    ///
    /// Cancellation safety: when the future is dropped, everything is stored or nothing is.
    ///
    /// # Errors
    ///
    /// [`ClientError::InvalidInput`] as for [`Client::start_orchestration`], and when there is neither an instance id nor
    /// an idempotency token, or both.
    pub async fn send(self) -> Result<StartReceipt, ClientError> {
        let client = self.client;
        let (instance, request) = self.into_request()?;
        let outcome = client.store.start_orchestration(request).await?;
        Ok(StartReceipt { instance, outcome })
    }

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
                    "the start of instance '{instance:.60}' has an idempotency token too, which is only good for deriving \
                     an id: give it one of the two"
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

/// What a start did.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
#[must_use = "it says whether the instance was started"]
pub struct StartReceipt {
    /// The instance.
    pub instance: String,
    /// Whether it was started by this call, and if not, the status of the one that exists.
    pub outcome: StartOutcome,
}

impl StartReceipt {
    /// Whether this call started the instance.
    pub fn is_started(&self) -> bool {
        self.outcome == StartOutcome::Started
    }

    /// The instance if this call started it; an error if it existed.
    pub fn started(self) -> Result<String, AlreadyExists> {
        match self.outcome {
            StartOutcome::Started => Ok(self.instance),
            StartOutcome::AlreadyExists { status } => Err(AlreadyExists { instance: self.instance, status }),
        }
    }
}

/// A start found its id taken.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AlreadyExists {
    /// The instance.
    pub instance: String,
    /// `Running`, `Completed`, `Failed` or `ContinuedAsNew`; `None` while its first turn has not been committed.
    pub status: Option<String>,
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
