//! A future that is dropped when it is ready, and its output.

use std::pin::Pin;
use std::task::{Context, Poll};

pub(super) enum Child<F: Future> {
    Running(Pin<Box<F>>),
    Done(Option<F::Output>),
}

impl<F: Future> Child<F> {
    pub(super) fn new(future: F) -> Self {
        Self::Running(Box::pin(future))
    }

    /// Polls the future; returns whether it is ready.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> bool {
        let Self::Running(future) = self else { return true };
        let Poll::Ready(output) = future.as_mut().poll(cx) else { return false };
        *self = Self::Done(Some(output));
        true
    }
}
