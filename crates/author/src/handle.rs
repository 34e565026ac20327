//! An instance, as a client sees it.

use crate::call_error::CallError;
use crate::child;
use crate::definition::{AcceptedBy, Orchestration};
use crate::instance_error::InstanceError;
use crate::key::Key;
use crate::known::{self, Presence};
use crate::message::{self, Message, Outgoing, Request, Route};
use crate::payload::Payload;
use outlast_provider::{Entropy, OsEntropy};
use outlast_runtime::{Client, ClientError, OrchestrationStatus, Reset, ResetSummary};
use serde::de::DeserializeOwned;
use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

/// An instance of the orchestration `O`. The verbs `start` and `handle` of an orchestration return one. Cloning a handle is cheap.
pub struct Handle<O: Orchestration> {
    client: Client,
    instance: String,
    of: PhantomData<fn() -> O>,
}

impl<O: Orchestration> Handle<O> {
    /// The handle of an instance, which need not exist. The verb `handle` of an orchestration calls this.
    pub fn new(client: &Client, instance: impl Into<String>) -> Self {
        Self { client: client.clone(), instance: instance.into(), of: PhantomData }
    }

    /// The id of the instance.
    pub fn id(&self) -> &str {
        &self.instance
    }

    /// The output of the instance, or the error with which it failed. Awaiting it waits until the instance ends;
    /// [`ResultOf::within`] sets a limit.
    pub fn result(&self) -> ResultOf<'_, O> {
        ResultOf { handle: self, patience: None }
    }

    /// Sends a message: `Approval { yes: true }`, or a reference to a message.
    ///
    /// Cancellation safety: when the future is dropped, the message is stored or it is not.
    ///
    /// # Errors
    ///
    /// [`InstanceError::NotFound`] and [`InstanceError::Ended`] by one look before the message is stored. An instance that ends
    /// between the two does not read the message.
    pub fn send<M: Outgoing<Message: Message + AcceptedBy<O>>>(&self, message: M) -> Sending<'_> {
        let (name, route) = (M::Message::NAME, M::Message::ROUTE);
        let text =
            message.message().encode(self.client.codec()).map_err(|error| self.unencodable(name, &error));
        // Not an `async fn`: the compiler would repeat the error for a message that is not accepted.
        Sending(Box::pin(async move { self.send_text(name, route, text?).await }))
    }

    /// Sends a message, or a reference to one, and waits for the answer. [`Asking::within`] sets the limit, which is 30 seconds without it.
    // The answer is a parameter: the compiler would repeat the error for a message without one at each use of `M::Reply`.
    pub fn ask<M: Outgoing<Message: Request<Reply = R> + AcceptedBy<O>>, R>(
        &self,
        message: M,
    ) -> Asking<'_, O, R> {
        let (name, route) = (M::Message::NAME, M::Message::ROUTE);
        let id = format!("{:032x}", OsEntropy.next_u128());
        let text = message::write_request(message.message(), &id, self.client.codec());
        Asking {
            handle: self,
            name,
            route,
            text: text.map_err(|error| self.unencodable(name, &error)),
            id,
            patience: Duration::from_secs(30),
            of: PhantomData,
        }
    }

    /// Cancels the instance, which then fails with this reason.
    ///
    /// Cancellation safety: when the future is dropped, the request is stored or it is not.
    ///
    /// # Errors
    ///
    /// As [`Handle::send`].
    pub async fn cancel(&self, reason: impl Into<String> + Send) -> Result<(), InstanceError> {
        self.look().await?;
        Ok(self.client.cancel_instance(&self.instance, reason).await?)
    }

    /// Ends the instance in its next turn, also if its orchestration has `on_cancel`: no code of the orchestration runs any more.
    ///
    /// Cancellation safety: when the future is dropped, the request is stored or it is not.
    ///
    /// # Errors
    ///
    /// As [`Handle::send`].
    pub async fn terminate(&self, reason: impl Into<String> + Send) -> Result<(), InstanceError> {
        self.look().await?;
        Ok(self.client.terminate_instance(&self.instance, reason).await?)
    }

    /// Begins the next execution with a copy of the first events of the newest one: [`Client::reset_instance`].
    ///
    /// Cancellation safety: when the future is dropped, the instance is reset or not.
    ///
    /// # Errors
    ///
    /// [`InstanceError::Client`] if the instance is not known, its history cannot be cut there, or children are in the way.
    pub async fn reset(&self, reset: &Reset) -> Result<ResetSummary, InstanceError> {
        Ok(self.client.reset_instance(&self.instance, reset).await?)
    }

    /// Starts a new instance with a copy of the first events of this one: [`Client::fork_instance`].
    ///
    /// Cancellation safety: when the future is dropped, the new instance exists or not.
    ///
    /// # Errors
    ///
    /// As [`Handle::reset`], and if the new id is taken.
    pub async fn fork(&self, new_id: &str, fork: &Reset) -> Result<Self, InstanceError> {
        self.client.fork_instance(&self.instance, new_id, fork).await?;
        Ok(Self::new(&self.client, new_id))
    }

    /// The custom status; `None` if the instance has set none.
    ///
    /// Cancellation safety: the call only reads.
    ///
    /// # Errors
    ///
    /// [`InstanceError::NotFound`] if no turn of the instance is committed, and [`InstanceError::Value`] if the status does not
    /// decode.
    pub async fn status(&self) -> Result<Option<O::Status>, InstanceError> {
        let text = match self.client.get_orchestration_status(&self.instance).await? {
            OrchestrationStatus::NotFound => {
                return Err(InstanceError::NotFound { instance: self.instance.clone() });
            }
            OrchestrationStatus::Running { custom_status, .. }
            | OrchestrationStatus::Completed { custom_status, .. }
            | OrchestrationStatus::Failed { custom_status, .. } => custom_status,
        };
        let decode = |text: String| O::Status::decode(text, self.client.codec());
        text.map(decode).transpose().map_err(|error| self.undecodable("the custom status", &error))
    }

    /// The value of a key; `None` if the instance or the key does not exist.
    ///
    /// Cancellation safety: the call only reads.
    ///
    /// # Errors
    ///
    /// [`InstanceError::Value`] if the value does not decode.
    pub async fn get<T: DeserializeOwned>(&self, key: Key<T>) -> Result<Option<T>, InstanceError> {
        let text = self.client.get_kv_value(&self.instance, key.name()).await?;
        let decode = |text: String| {
            let opened = self.client.codec().open(&text)?;
            serde_json::from_str(&opened).map_err(|error| error.to_string())
        };
        let what = || format!("key '{}'", key.name());
        text.map(decode).transpose().map_err(|error| self.undecodable(&what(), &error))
    }

    async fn look(&self) -> Result<(), InstanceError> {
        Presence::of(&self.client, &self.instance).await?.reachable(&self.instance)
    }

    /// Sends an encoded message, after a check that the instance exists and has not ended.
    async fn send_text(&self, name: &str, route: Route, text: String) -> Result<(), InstanceError> {
        self.look().await?;
        match route {
            Route::Queue => self.client.enqueue_event(&self.instance, name, text).await?,
            Route::Event => self.client.raise_event(&self.instance, name, text).await?,
        }
        Ok(())
    }

    fn unencodable(&self, name: &str, error: &str) -> InstanceError {
        let problem = format!("a message of '{name}' does not encode: {error}");
        InstanceError::Value { instance: self.instance.clone(), problem }
    }

    fn undecodable(&self, what: &str, error: &str) -> InstanceError {
        InstanceError::Value {
            instance: self.instance.clone(),
            problem: format!("{what} does not decode: {error}"),
        }
    }
}

impl<O: Orchestration> Clone for Handle<O> {
    fn clone(&self) -> Self {
        Self::new(&self.client, &self.instance)
    }
}

impl<O: Orchestration> fmt::Debug for Handle<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("orchestration", &O::NAME).field("instance", &self.instance).finish()
    }
}

/// A message on its way: [`Handle::send`].
#[must_use = "nothing is sent until it is awaited"]
pub struct Sending<'a>(Pin<Box<dyn Future<Output = Result<(), InstanceError>> + Send + 'a>>);

impl Future for Sending<'_> {
    type Output = Result<(), InstanceError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.as_mut().poll(cx)
    }
}

/// A wait for the end of an instance: [`Handle::result`].
///
/// Cancellation safety: the call only reads.
#[must_use = "nothing is read until it is awaited"]
pub struct ResultOf<'a, O: Orchestration> {
    handle: &'a Handle<O>,
    patience: Option<Duration>,
}

impl<O: Orchestration> ResultOf<'_, O> {
    /// Waits at most this long, and then returns [`CallError::TimedOut`] with the state of the instance, in the words of
    /// [`Client::diagnose_instance`]: not started, paused or parked, not registered by a live node, or waiting for an operation. The
    /// state is read for at most 3 seconds more.
    pub fn within(self, patience: Duration) -> Self {
        Self { patience: Some(patience), ..self }
    }

    async fn wait(self) -> Result<O::Output, CallError<O::Error>> {
        let Handle { client, instance, .. } = self.handle;
        let patience = self.patience.unwrap_or(Duration::MAX);
        let ended = loop {
            match client.wait_for_orchestration(instance, patience).await {
                Err(ClientError::Timeout) if self.patience.is_none() => {}
                ended => break ended,
            }
        };
        match ended {
            Ok(OrchestrationStatus::Completed { output, .. }) => child::read::<O>(Ok(output), client.codec()),
            Ok(OrchestrationStatus::Failed { details, .. }) => {
                child::read::<O>(Err(Box::new(details)), client.codec())
            }
            Ok(OrchestrationStatus::NotFound | OrchestrationStatus::Running { .. })
            | Err(ClientError::Timeout) => {
                Err(CallError::TimedOut(known::describe(client, instance, O::NAME, patience).await))
            }
            Err(error) => Err(CallError::Other(error.to_string())),
        }
    }
}

impl<'a, O: Orchestration> IntoFuture for ResultOf<'a, O> {
    type Output = Result<O::Output, CallError<O::Error>>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.wait())
    }
}

/// A message whose answer the client waits for: [`Handle::ask`].
///
/// Cancellation safety: when the future is dropped, the message is stored or it is not.
#[must_use = "nothing is sent until it is awaited"]
pub struct Asking<'a, O: Orchestration, R> {
    handle: &'a Handle<O>,
    /// The name of the message.
    name: &'static str,
    route: Route,
    text: Result<String, InstanceError>,
    /// The id of the answer.
    id: String,
    patience: Duration,
    of: PhantomData<fn() -> R>,
}

impl<O: Orchestration, R: Payload> Asking<'_, O, R> {
    /// Waits at most this long for the answer, and then returns [`InstanceError::TimedOut`]. The message stays stored.
    pub fn within(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    async fn wait(self) -> Result<R, InstanceError> {
        let Self { handle, name, route, text, id, patience, .. } = self;
        handle.send_text(name, route, text?).await?;
        let Handle { client, instance, .. } = handle;
        let answer = client.wait_for_kv_value_or_end(instance, &message::reply_key(&id), patience).await;
        match answer {
            Ok(Some(text)) => R::decode(text, client.codec())
                .map_err(|error| handle.undecodable(&format!("the answer to '{name}'"), &error)),
            Ok(None) => Err(match Presence::of(client, instance).await? {
                Presence::Ended(status) => InstanceError::Ended { instance: instance.clone(), status },
                _ => InstanceError::NotFound { instance: instance.clone() },
            }),
            Err(ClientError::Timeout) => {
                let state = known::describe(client, instance, O::NAME, patience).await;
                let known = format!("no answer to '{name}' came within {patience:?}: {state}");
                Err(InstanceError::TimedOut { instance: instance.clone(), known })
            }
            Err(error) => Err(error.into()),
        }
    }
}

impl<'a, O: Orchestration, R: Payload> IntoFuture for Asking<'a, O, R> {
    type Output = Result<R, InstanceError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.wait())
    }
}
