//! The start of an instance by a client.

use crate::definition::{AcceptedBy, Orchestration};
use crate::handle::Handle;
use crate::instance_error::InstanceError;
use crate::message::{Message, Route};
use crate::payload::{self, Payload};
use outlast_provider::{Entropy, OsEntropy, StartOutcome};
use outlast_runtime::{Client, Conflict};
use std::marker::PhantomData;
use std::pin::Pin;
use std::time::Duration;

/// A start in the making. Awaiting it stores the start and returns a [`Handle`].
///
/// Without an id the instance gets a random one that begins with the name of the orchestration.
#[must_use = "nothing is stored until it is awaited"]
pub struct Start<'a, O: Orchestration> {
    client: &'a Client,
    input: Result<String, String>,
    id: Option<String>,
    version: Option<String>,
    delay: Option<Duration>,
    conflict: Conflict,
    messages: Vec<(&'static str, Result<String, String>)>,
    traceparent: Option<String>,
    of: PhantomData<fn() -> O>,
}

impl<'a, O: Orchestration> Start<'a, O> {
    /// A start of this orchestration. The verb `start` of an orchestration calls this.
    pub fn new(client: &'a Client, input: O::Input) -> Self {
        Self {
            client,
            input: payload::encode_input::<O>(client.codec(), input),
            id: None,
            version: O::VERSION.map(str::to_string),
            delay: None,
            conflict: Conflict::Fail,
            messages: Vec::new(),
            traceparent: None,
            of: PhantomData,
        }
    }

    /// The id of the instance.
    pub fn id(self, id: impl Into<String>) -> Self {
        Self { id: Some(id.into()), ..self }
    }

    /// Runs this version of the orchestration.
    pub fn version(self, version: impl Into<String>) -> Self {
        Self { version: Some(version.into()), ..self }
    }

    /// Begins after this time. The id is reserved from the moment the start is stored.
    pub fn delay(self, delay: Duration) -> Self {
        Self { delay: Some(delay), ..self }
    }

    /// The W3C `traceparent` of the caller, whose trace the traces of the instance continue:
    /// [`StartBuilder::traceparent`](outlast_runtime::StartBuilder::traceparent).
    pub fn traceparent(self, traceparent: impl Into<String>) -> Self {
        Self { traceparent: Some(traceparent.into()), ..self }
    }

    /// Returns the handle of an existing instance instead of [`InstanceError::AlreadyExists`].
    pub fn or_existing(self) -> Self {
        Self { conflict: Conflict::UseExisting, ..self }
    }

    /// Stores a message in the same step, with [`Start::or_existing`] also for an existing instance. An existing instance that has
    /// ended reads no message: [`InstanceError::Ended`].
    ///
    /// The message needs the route `queue`: an event would come before the instance waits for it.
    pub fn with<M: Message + AcceptedBy<O>>(mut self, message: &M) -> Self {
        let text = match M::ROUTE {
            Route::Queue => message.encode(self.client.codec()),
            Route::Event => {
                Err("its route is `event`, and a start takes messages of queues only".to_string())
            }
        };
        self.messages.push((M::NAME, text));
        self
    }

    async fn send(self) -> Result<Handle<O>, InstanceError> {
        let instance = self.id.unwrap_or_else(|| format!("{}-{:032x}", O::NAME, OsEntropy.next_u128()));
        let value = |problem| InstanceError::Value { instance: instance.clone(), problem };
        let mut request = self
            .client
            .start_request(O::NAME)
            .instance(&instance)
            .input(self.input.map_err(value)?)
            .if_exists(self.conflict);
        if let Some(version) = self.version {
            request = request.version(version);
        }
        if let Some(delay) = self.delay {
            request = request.delay(delay);
        }
        if let Some(traceparent) = self.traceparent {
            request = request.traceparent(traceparent);
        }
        let has_messages = !self.messages.is_empty();
        for (queue, message) in self.messages {
            let message =
                message.map_err(|error| value(format!("a message of '{queue}' cannot be sent: {error}")))?;
            request = request.with_event(queue, message);
        }
        let receipt = request.send().await?;
        match (self.conflict, &receipt.outcome) {
            (Conflict::UseExisting, StartOutcome::AlreadyExists { status: Some(status) }) if has_messages => {
                if let Some(status) = ["Completed", "Failed"].into_iter().find(|ended| ended == status) {
                    return Err(InstanceError::Ended { instance, status });
                }
            }
            (Conflict::UseExisting, _) => {}
            (Conflict::Fail, _) => receipt.started().map(drop)?,
        }
        Ok(Handle::new(self.client, instance))
    }
}

impl<'a, O: Orchestration> IntoFuture for Start<'a, O> {
    type Output = Result<Handle<O>, InstanceError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}
