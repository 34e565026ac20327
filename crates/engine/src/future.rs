//! The future of a durable operation.

use crate::context::OrchestrationContext;
use outlast_model::ScheduleKind;
use std::fmt;

use std::pin::Pin;
use std::task::{Context, Poll};

/// What a durable operation resolves to, before it is decoded for the author.
#[derive(Debug)]
pub(crate) enum Raw {
    /// An activity or a child.
    Result(Result<String, String>),
    /// A positional event or a queue message.
    Data(String),
    /// A timer.
    Fired,
}

impl Raw {
    /// For futures of activities and children; anything else cannot reach them, since a slot has one kind.
    pub(crate) fn into_result(self) -> Result<String, String> {
        match self {
            Self::Result(result) => result,
            Self::Data(data) => Ok(data),
            Self::Fired => Ok(String::new()),
        }
    }

    /// For futures of events and queue messages.
    pub(crate) fn into_data(self) -> String {
        match self {
            Self::Data(data) | Self::Result(Ok(data) | Err(data)) => data,
            Self::Fired => String::new(),
        }
    }
}

type Decode<T> = Box<dyn FnOnce(Raw) -> T + Send>;

/// A durable operation that was asked for. It is scheduled already: awaiting it waits for the outcome, and dropping it
/// before that cancels it (a timer just fires for nobody).
///
/// Cancellation safety: dropping it is the way to cancel; `&mut` to it can be awaited repeatedly.
#[must_use = "the operation is cancelled when its future is dropped: await it"]
pub struct DurableFuture<T> {
    context: OrchestrationContext,
    token: u64,
    kind: ScheduleKind,
    /// Taken when the outcome is handed out.
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

    /// The same operation as this attempt of a retry policy. Metrics show it; history does not hold it.
    pub(crate) fn with_attempt(self, attempt: u32) -> Self {
        self.context.lock().slot_mut(self.token).attempt = attempt;
        self
    }
}

impl<T: Send + 'static> DurableFuture<T> {
    /// The same operation with its outcome passed through `f`.
    pub fn map<U: Send + 'static>(mut self, f: impl FnOnce(T) -> U + Send + 'static) -> DurableFuture<U> {
        let decode = self.decode.take().map(|decode| Box::new(|raw| f(decode(raw))) as Decode<U>);
        DurableFuture { context: self.context.clone(), token: self.token, kind: self.kind.clone(), decode }
    }

    /// Sends the activity to workers that subscribe to `tag`. The last call counts.
    ///
    /// # Panics
    ///
    /// If this is not an activity, or if it was scheduled already: call it in the same expression as `schedule_activity`.
    #[track_caller]
    pub fn with_tag(self, tag: impl Into<String>) -> Self {
        assert!(
            matches!(self.kind, ScheduleKind::Activity { .. }),
            "with_tag() can only be called on activity futures, got {:?}",
            self.kind
        );
        // Before the lock is taken: the conversion may be anybody's code.
        let tag = tag.into();
        let tagged = self.context.lock().tag_activity(self.token, tag);
        assert!(
            tagged,
            "with_tag() came too late: {:?} was scheduled already; call it right after scheduling",
            self.kind
        );
        self
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
            let freed = self.context.lock().drop_future(self.token);
            freed.into_iter().for_each(std::task::Waker::wake);
        }
    }
}

impl<T> Unpin for DurableFuture<T> {}

impl<T> fmt::Debug for DurableFuture<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DurableFuture").field("kind", &self.kind).finish_non_exhaustive()
    }
}
