//! Messages to an orchestration, and the answers to them.

use crate::call_error::CallError;
use crate::payload::{self, Payload};
use outlast_engine::{DurableFuture, OrchestrationContext, layer};
use outlast_model::codec::Codec;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::convert::Infallible;
use std::marker::PhantomData;
use std::ops::Deref;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// A message that clients send to orchestrations. `#[derive(outlast::Message)]` implements it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a message",
    note = "put `#[derive(serde::Serialize, serde::Deserialize, outlast::Message)]` on it"
)]
pub trait Message: Serialize + DeserializeOwned + Send + 'static {
    /// The name of its queue or event.
    const NAME: &'static str;
    /// The route of the message.
    const ROUTE: Route;
}

/// A message, or a reference to one: the argument of [`Handle::send`](crate::Handle::send) and [`Handle::ask`](crate::Handle::ask).
/// `#[derive(outlast::Message)]` implements it for references to the type.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a message",
    note = "put `#[derive(serde::Serialize, serde::Deserialize, outlast::Message)]` on it"
)]
pub trait Outgoing {
    /// The type of the message. Without a bound, so that the compiler reports a type that is no message once.
    type Message;

    /// The message.
    fn message(&self) -> &Self::Message;
}

impl<M: Message> Outgoing for M {
    type Message = M;

    fn message(&self) -> &M {
        self
    }
}

/// The route of a message to an orchestration: a queue or a positional event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// A persistent queue: each message is read once, in order, also if it was sent before the orchestration reads.
    Queue,
    /// A positional event, which is dropped if the orchestration does not wait for it.
    Event,
}

/// A message with an answer. `#[message(reply = Total)]` implements it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no answer",
    label = "the message has no type of answer",
    note = "add `#[message(reply = ..)]` with the type of the answer"
)]
pub trait Request: Message {
    /// The type of the answer.
    type Reply: Payload;
}

/// A message with the address of its answer, as `Handle::ask` sends it.
#[derive(Serialize, Deserialize)]
struct Envelope {
    #[serde(rename = "__outlast:ask")]
    ask: String,
    message: Value,
}

const ENVELOPE: &str = "{\"__outlast:ask\":";

/// The text of a message that expects an answer under this id.
pub(crate) fn write_request<M: Message>(message: &M, id: &str, codec: Codec) -> Result<String, String> {
    let message = serde_json::to_value(message).map_err(|error| error.to_string())?;
    let envelope = Envelope { ask: id.to_string(), message };
    codec.seal(serde_json::to_string(&envelope).map_err(|error| error.to_string())?)
}

/// The message of a text, and the id of the answer that its sender waits for.
fn read<M: Message>(text: &str, codec: Codec) -> Result<(M, Option<String>), CallError<Infallible>> {
    let undecodable =
        |error: String| CallError::Other(format!("a message of '{}' does not decode: {error}", M::NAME));
    let opened = codec.open(text).map_err(undecodable)?;
    if opened.starts_with(ENVELOPE)
        && let Ok(envelope) = serde_json::from_str::<Envelope>(&opened)
    {
        let message =
            serde_json::from_value(envelope.message).map_err(|error| undecodable(error.to_string()))?;
        return Ok((message, Some(envelope.ask)));
    }
    payload::decode(codec, text).map(|message| (message, None)).map_err(undecodable)
}

/// The key of an answer.
pub(crate) fn reply_key(id: &str) -> String {
    format!("{REPLY_PREFIX}{id}")
}

const REPLY_PREFIX: &str = "__outlast:reply:";
/// The number of answers that an instance keeps. Senders wait for their answers, so old answers are not read any more.
const KEPT_REPLIES: usize = 64;

/// The wait for the next message of a type: [`Durable::next`](crate::Durable::next).
///
/// Cancellation safety: dropping the wait ends it. A message of a queue stays in the queue.
#[must_use = "the wait ends when it is dropped: await it"]
pub struct Next<M> {
    ctx: OrchestrationContext,
    text: DurableFuture<String>,
    of: PhantomData<fn() -> M>,
}

impl<M: Message> Next<M> {
    #[track_caller]
    pub(crate) fn new(ctx: &OrchestrationContext) -> Self {
        let text = match M::ROUTE {
            Route::Queue => ctx.dequeue_event(M::NAME),
            Route::Event => ctx.schedule_wait(M::NAME),
        };
        Self { ctx: ctx.clone(), text, of: PhantomData }
    }

    /// Waits at most this long; `None` if no message comes in time.
    #[track_caller]
    pub fn within(self, patience: Duration) -> Within<Self> {
        let timer = self.ctx.schedule_timer(patience);
        Within { wait: self, timer }
    }
}

impl<M> Unpin for Next<M> {}

impl<M: Message> Future for Next<M> {
    type Output = Result<M, CallError<Infallible>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let text = ready!(Pin::new(&mut self.text).poll(cx));
        Poll::Ready(read(&text, self.ctx.codec()).map(|(message, _)| message))
    }
}

/// The wait for the next message with an answer: [`Durable::next_request`](crate::Durable::next_request).
///
/// Cancellation safety: as [`Next`].
#[must_use = "the wait ends when it is dropped: await it"]
pub struct NextRequest<M>(Next<M>);

impl<M: Request> NextRequest<M> {
    #[track_caller]
    pub(crate) fn new(ctx: &OrchestrationContext) -> Self {
        Self(Next::new(ctx))
    }

    /// Waits at most this long; `None` if no message comes in time.
    #[track_caller]
    pub fn within(self, patience: Duration) -> Within<Self> {
        let timer = self.0.ctx.schedule_timer(patience);
        Within { wait: self, timer }
    }
}

impl<M: Request> Future for NextRequest<M> {
    type Output = Result<Asked<M>, CallError<Infallible>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let text = ready!(Pin::new(&mut self.0.text).poll(cx));
        let ctx = self.0.ctx.clone();
        Poll::Ready(read(&text, ctx.codec()).map(|(message, reply_to)| Asked { message, reply_to, ctx }))
    }
}

/// A wait with a limit.
#[must_use = "the wait ends when it is dropped: await it"]
pub struct Within<W> {
    wait: W,
    timer: DurableFuture<()>,
}

impl<T, E, W: Future<Output = Result<T, E>> + Unpin> Future for Within<W> {
    type Output = Result<Option<T>, E>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Poll::Ready(message) = Pin::new(&mut self.wait).poll(cx) {
            return Poll::Ready(message.map(Some));
        }
        ready!(Pin::new(&mut self.timer).poll(cx));
        Poll::Ready(Ok(None))
    }
}

/// A message that its sender may wait for an answer to. Dereferences to the message.
#[must_use = "the sender waits: call `.answer(..)`"]
pub struct Asked<M: Request> {
    message: M,
    reply_to: Option<String>,
    ctx: OrchestrationContext,
}

impl<M: Request> Asked<M> {
    /// Answers the sender. Without effect if the sender does not wait for an answer. An instance keeps its last 64 answers.
    ///
    /// # Errors
    ///
    /// If the answer does not encode.
    #[track_caller]
    pub fn answer(self, reply: &M::Reply) -> Result<(), CallError<Infallible>> {
        let Some(id) = &self.reply_to else { return Ok(()) };
        let codec = match self.ctx.codec() {
            // Answers are always JSON, so that both codecs without a mark read them.
            Codec::Contract => Codec::Json,
            other => other,
        };
        let text = reply.encode(codec).map_err(|error| {
            CallError::Other(format!("the answer to '{}' does not encode: {error}", M::NAME))
        })?;
        self.ctx.set_kv_value(reply_key(id), text);
        let kept = layer::reserved_keys(&self.ctx, REPLY_PREFIX);
        for old in &kept[..kept.len().saturating_sub(KEPT_REPLIES)] {
            self.ctx.clear_kv_value(old);
        }
        Ok(())
    }

    /// The message.
    pub fn message(&self) -> &M {
        &self.message
    }
}

impl<M: Request> Deref for Asked<M> {
    type Target = M;

    fn deref(&self) -> &M {
        &self.message
    }
}
