//! Orchestrations that an orchestration starts: children, detached instances, and its own next execution.

use crate::call_error::{CallError, Callee};
use crate::definition::Orchestration;
use crate::payload;
use outlast_engine::{DurableFuture, OrchestrationContext, layer};
use outlast_model::codec::Codec;
use std::marker::PhantomData;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// A child orchestration. The call schedules it; awaiting it waits for the outcome. Its instance id is generated unless
/// [`Child::id`] gives one.
///
/// Cancellation safety: dropping the child cancels it.
#[must_use = "the child is cancelled when it is dropped: await it"]
pub struct Child<O: Orchestration> {
    /// The error if the input does not encode.
    outcome: Result<DurableFuture<layer::Outcome>, String>,
    codec: Codec,
    of: PhantomData<fn() -> O>,
}

impl<O: Orchestration> Child<O> {
    /// Schedules the child. The verb `child` of an orchestration calls this.
    #[track_caller]
    pub fn new(ctx: &OrchestrationContext, input: O::Input) -> Self {
        let site = Location::caller();
        let outcome = payload::encode_input::<O>(ctx.codec(), input)
            .map(|input| layer::child(ctx, O::NAME, O::VERSION, input, site));
        Self { outcome, codec: ctx.codec(), of: PhantomData }
    }

    /// Starts the child under this id. The call returns an error if an instance with the id exists.
    ///
    /// # Panics
    ///
    /// If the child was polled already.
    #[track_caller]
    pub fn id(self, id: impl Into<String>) -> Self {
        let id = id.into();
        let is_set = self.outcome.as_ref().map_or(true, |child| layer::set_child_id(child, id));
        assert!(is_set, "id() came too late: call it right after child()");
        self
    }

    /// Runs this version of the orchestration.
    ///
    /// # Panics
    ///
    /// If the child was polled already.
    #[track_caller]
    pub fn version(self, version: impl Into<String>) -> Self {
        let version = version.into();
        let is_set = self.outcome.as_ref().map_or(true, |child| layer::set_child_version(child, version));
        assert!(is_set, "version() came too late: call it right after child()");
        self
    }
}

/// The outcome of an orchestration as a typed value.
pub(crate) fn read<O: Orchestration>(
    outcome: layer::Outcome,
    codec: Codec,
) -> Result<O::Output, CallError<O::Error>> {
    let callee = if O::TEXT_ERRORS { Callee::OfText } else { Callee::Orchestration };
    match outcome {
        Ok(text) => payload::Payload::decode(text, codec).map_err(|error| {
            CallError::Other(format!("the output of orchestration '{}' does not decode: {error}", O::NAME))
        }),
        Err(details) => Err(CallError::of(*details, callee, codec)),
    }
}

impl<O: Orchestration> Unpin for Child<O> {}

impl<O: Orchestration> Future for Child<O> {
    type Output = Result<O::Output, CallError<O::Error>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let codec = self.codec;
        match &mut self.outcome {
            Ok(child) => Poll::Ready(read::<O>(ready!(Pin::new(child).poll(cx)), codec)),
            Err(text) => Poll::Ready(Err(CallError::Other(text.clone()))),
        }
    }
}

/// An instance that the calling orchestration does not wait for. [`Detached::id`] starts it.
#[must_use = "nothing is started until `.id(..)` names the instance"]
pub struct Detached<'a, O: Orchestration> {
    ctx: &'a OrchestrationContext,
    input: O::Input,
    version: Option<String>,
}

impl<'a, O: Orchestration> Detached<'a, O> {
    /// An instance in the making. The verb `detached` of an orchestration calls this.
    pub fn new(ctx: &'a OrchestrationContext, input: O::Input) -> Self {
        Self { ctx, input, version: O::VERSION.map(str::to_string) }
    }

    /// Runs this version of the orchestration.
    pub fn version(self, version: impl Into<String>) -> Self {
        Self { version: Some(version.into()), ..self }
    }

    /// Starts the instance under this id. A start is ignored if an instance with the id exists.
    ///
    /// # Errors
    ///
    /// If the input does not encode, or the id cannot be used.
    #[track_caller]
    pub fn id(self, id: impl Into<String>) -> Result<(), CallError<std::convert::Infallible>> {
        let input = payload::encode_input::<O>(self.ctx.codec(), self.input).map_err(CallError::Other)?;
        let started = self.ctx.try_schedule_orchestration(O::NAME, self.version, id, input);
        started.map_err(CallError::Other)
    }
}

/// The end of an execution, and the input of the next one. Awaiting it never returns.
#[must_use = "return it: `return fulfil::continue_as_new(&ctx, order).await`"]
pub struct ContinueAsNew<O: Orchestration> {
    /// The error if the input does not encode.
    error: Option<String>,
    of: PhantomData<fn() -> O>,
}

impl<O: Orchestration> ContinueAsNew<O> {
    /// Asks for the next execution. The verb `continue_as_new` of an orchestration calls this.
    #[track_caller]
    pub fn new(ctx: &OrchestrationContext, input: O::Input) -> Self {
        let error = match payload::encode_input::<O>(ctx.codec(), input) {
            Ok(input) => {
                match O::VERSION {
                    Some(version) => drop(ctx.continue_as_new_versioned(version, input)),
                    None => drop(ctx.continue_as_new(input)),
                }
                None
            }
            Err(error) => Some(error),
        };
        Self { error, of: PhantomData }
    }
}

impl<O: Orchestration> Unpin for ContinueAsNew<O> {}

impl<O: Orchestration> Future for ContinueAsNew<O> {
    type Output = Result<O::Output, O::Error>;

    fn poll(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &self.error {
            // The error type of the function cannot say this, so the instance fails with the text of the panic.
            Some(error) => panic!("{error}"),
            None => Poll::Pending,
        }
    }
}
