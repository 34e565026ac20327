//! The typed operations of an orchestration beside calls: messages, timers, keys and status.

use crate::call_error::CallError;
use crate::definition::Orchestration;
use crate::key::Key;
use crate::message::{Message, Next, NextRequest, Request};
use crate::payload::Payload;
use outlast_engine::{DurableFuture, OrchestrationContext};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::convert::Infallible;
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
