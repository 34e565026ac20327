//! The future of a durable operation.

use crate::context::OrchestrationContext;
use outlast_model::{ErrorDetails, ScheduleKind};
use std::fmt;

use std::pin::Pin;
use std::task::{Context, Poll};

/// The outcome of a durable operation, before it is decoded.
#[derive(Debug)]
pub(crate) enum Raw {
    /// An activity or a child.
    Result(Result<String, Box<ErrorDetails>>),
    /// A positional event or a queue message.
    Data(String),
    /// A timer.
    Fired,
}

impl Raw {
    /// For futures of activities and children, which receive `Result` only.
    pub(crate) fn into_result(self) -> Result<String, String> {
        self.into_details().map_err(|details| details.display_message())
    }

    /// [`Raw::into_result`] with the failure as it is recorded.
    pub(crate) fn into_details(self) -> Result<String, Box<ErrorDetails>> {
        match self {
            Self::Result(result) => result,
            Self::Data(data) => Ok(data),
            Self::Fired => Ok(String::new()),
        }
    }

    /// For futures of events and queue messages, which receive `Data` only.
    pub(crate) fn into_data(self) -> String {
        match self {
            Self::Data(data) | Self::Result(Ok(data)) => data,
            Self::Result(Err(_)) | Self::Fired => String::new(),
        }
    }
}

type Decode<T> = Box<dyn FnOnce(Raw) -> T + Send>;

/// The future of a durable operation. The call that returns it schedules the operation. Awaiting it waits for the outcome.
/// Dropping it before the outcome cancels the operation; a dropped timer fires without effect.
///
/// Cancellation safety: dropping the future cancels the operation; `&mut` to the future can be awaited repeatedly.
#[must_use = "the operation is cancelled when its future is dropped: await it"]
pub struct DurableFuture<T> {
    pub(crate) context: OrchestrationContext,
    pub(crate) token: u64,
    pub(crate) kind: ScheduleKind,
    /// Taken when the future returns the outcome.
    decode: Option<Decode<T>>,
}

impl<T> DurableFuture<T> {
    pub(crate) fn new(
        context: &OrchestrationContext,
        token: u64,
        kind: ScheduleKind,
        decode: impl FnOnce(Raw) -> T + Send + 'static,
    ) -> Self {
        Self { context: context.clone(), token, kind, decode: Some(Box::new(decode)) }
    }

    /// Marks the operation as this attempt of a retry policy, for metrics. History does not hold the attempt.
    pub(crate) fn with_attempt(self, attempt: u32) -> Self {
        self.context.lock().future_state_mut(self.token).attempt = attempt;
        self
    }
}

impl<T: Send + 'static> DurableFuture<T> {
    /// The same operation with its outcome passed through `f`.
    pub fn map<U: Send + 'static>(mut self, f: impl FnOnce(T) -> U + Send + 'static) -> DurableFuture<U> {
        let decode = self.decode.take().map(|decode| Box::new(|raw| f(decode(raw))) as Decode<U>);
        DurableFuture { context: self.context.clone(), token: self.token, kind: self.kind.clone(), decode }
    }
}

impl<T> Future for DurableFuture<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        assert!(self.decode.is_some(), "a durable future was awaited again after its outcome was taken");
        let polled = self.context.lock().poll(self.token, cx);
        match (polled, self.decode.take()) {
            (Poll::Ready(raw), Some(decode)) => Poll::Ready(decode(raw)),
            (_, decode) => {
                self.decode = decode;
                Poll::Pending
            }
        }
    }
}

impl<T> Drop for DurableFuture<T> {
    fn drop(&mut self) {
        if self.decode.is_some() {
            // Woken after the lock is released: a waker may run any code.
            let waker = self.context.lock().drop_future(self.token);
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }
}

impl<T> Unpin for DurableFuture<T> {}

impl<T> fmt::Debug for DurableFuture<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DurableFuture").field("kind", &self.kind).finish_non_exhaustive()
    }
}
