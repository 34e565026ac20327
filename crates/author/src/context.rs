//! The typed operations of an orchestration beside calls: messages, timers, keys and status.

use crate::call_error::CallError;
use crate::cancel::Shielded;
use crate::definition::Orchestration;
use crate::key::Key;
use crate::message::{Message, Next, NextRequest, Request};
use crate::payload::Payload;
use outlast_engine::layer::{self, Cancelled};
use outlast_engine::{DurableFuture, OrchestrationContext};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::convert::Infallible;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

/// The typed operations of an [`OrchestrationContext`]. The prelude has this trait.
pub trait Durable {
    /// Waits for the next message of a type: `let approval: Approval = ctx.next().await?`.
    #[track_caller]
    fn next<M: Message>(&self) -> Next<M>;

    /// Waits for the next message of a type whose sender may wait for an answer.
    #[track_caller]
    fn next_request<M: Request>(&self) -> NextRequest<M>;

    /// Waits at least this long. The timer survives a restart of the process.
    #[track_caller]
    fn sleep(&self, delay: Duration) -> DurableFuture<()>;

    /// Writes a key.
    ///
    /// # Panics
    ///
    /// If the value does not encode, such as a map with keys that are no strings. The instance fails with that text.
    #[track_caller]
    fn set<T: Serialize>(&self, key: Key<T>, value: &T);

    /// Reads a key.
    ///
    /// # Errors
    ///
    /// If the stored value does not decode.
    fn get<T: DeserializeOwned>(&self, key: Key<T>) -> Result<Option<T>, CallError<Infallible>>;

    /// Removes a key.
    #[track_caller]
    fn clear<T>(&self, key: Key<T>);

    /// Waits for a request to cancel, and returns its reason. In an orchestration with `on_cancel = observe` the body decides how to
    /// answer. Without `on_cancel` it never resolves, because the request ends the instance.
    fn cancelled(&self) -> Cancelled;

    /// Runs a part of the body that a request to cancel does not interrupt in an orchestration with `on_cancel = undo`. The body is
    /// interrupted after it.
    fn shielded<F: Future>(&self, part: F) -> Shielded<F>;

    /// Ends the instance as cancelled, with the reason of the request: `return ctx.end_cancelled().await`. Never returns. Without a
    /// request to cancel the instance waits for one.
    fn end_cancelled<T>(&self) -> EndCancelled<T>;
}

impl Durable for OrchestrationContext {
    fn next<M: Message>(&self) -> Next<M> {
        Next::new(self)
    }

    fn next_request<M: Request>(&self) -> NextRequest<M> {
        NextRequest::new(self)
    }

    fn sleep(&self, delay: Duration) -> DurableFuture<()> {
        self.schedule_timer(delay)
    }

    fn set<T: Serialize>(&self, key: Key<T>, value: &T) {
        self.set_kv_value_typed(key.name(), value);
    }

    fn get<T: DeserializeOwned>(&self, key: Key<T>) -> Result<Option<T>, CallError<Infallible>> {
        self.get_kv_value_typed(key.name()).map_err(CallError::Other)
    }

    fn clear<T>(&self, key: Key<T>) {
        self.clear_kv_value(key.name());
    }

    fn cancelled(&self) -> Cancelled {
        layer::cancelled(self)
    }

    fn shielded<F: Future>(&self, part: F) -> Shielded<F> {
        Shielded::new(self, part)
    }

    fn end_cancelled<T>(&self) -> EndCancelled<T> {
        EndCancelled { ctx: self.clone(), cancelled: layer::cancelled(self), of: PhantomData }
    }
}

/// The end of a cancelled instance: [`Durable::end_cancelled`]. Awaiting it never returns.
#[must_use = "await it: `return ctx.end_cancelled().await`"]
pub struct EndCancelled<T> {
    ctx: OrchestrationContext,
    cancelled: Cancelled,
    of: PhantomData<fn() -> T>,
}

impl<T> Future for EndCancelled<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        if let Poll::Ready(reason) = Pin::new(&mut self.cancelled).poll(cx) {
            layer::end_cancelled(&self.ctx, reason);
        }
        Poll::Pending
    }
}

/// Sets the custom status. The verb `set_status` of an orchestration with `status = ..` calls this.
///
/// # Panics
///
/// If the value does not encode. The instance fails with that text.
#[track_caller]
pub fn set_status<O: Orchestration>(ctx: &OrchestrationContext, status: &O::Status) {
    match status.encode(ctx.codec()) {
        Ok(text) => ctx.set_custom_status(text),
        Err(error) => panic!("the status of orchestration '{}' does not encode: {error}", O::NAME),
    }
}
