//! Cancellation that orchestration code observes.
//!
//! | the code | a request to cancel |
//! |---|---|
//! | does not observe cancellation | ends the execution in the turn that records the request |
//! | observes it | is recorded, resolves [`Cancelled`], and the code goes on |
//! | has observed it and continues as new | ends the execution, so that the request is not lost |
//! | any | ends the execution at once if the request begins with [`TERMINATE`] |
//!
//! The request is the event `OrchestrationCancelRequested`. It has a place in the history, so replay delivers it to the code at the same
//! place. A history in which an event follows the request exists only if the code observed cancellation.

use crate::context::OrchestrationContext;
use std::collections::BTreeMap;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

/// The beginning of the reason of a request that no code observes. The rest is the reason.
pub const TERMINATE: &str = "__outlast:terminate:";

/// The cancellation of one execution.
#[derive(Default)]
pub(crate) struct Cancellation {
    /// The code observes requests.
    pub(crate) is_observed: bool,
    /// The reason of the request, after its event was applied.
    pub(crate) reason: Option<String>,
    /// The reason with which the code ends the execution.
    pub(crate) ends_with: Option<String>,
    /// The wakers of waiting futures, by number.
    waiting: BTreeMap<u64, Waker>,
    last_number: u64,
}

impl Cancellation {
    /// Applies the request; returns the wakers to wake.
    pub(crate) fn request(&mut self, reason: &str) -> Vec<Waker> {
        self.reason.get_or_insert_with(|| reason.to_string());
        self.take_wakers()
    }

    /// Takes the wakers of all waiting futures.
    pub(crate) fn take_wakers(&mut self) -> Vec<Waker> {
        std::mem::take(&mut self.waiting).into_values().collect()
    }

    pub(crate) fn is_awaited(&self) -> bool {
        !self.waiting.is_empty()
    }

    fn number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }
}

/// Resolves with the reason when a request to cancel arrives. Never resolves if the code does not observe cancellation.
///
/// Cancellation safety: dropping it has no effect.
#[must_use = "it waits only while it is awaited"]
pub struct Cancelled {
    context: OrchestrationContext,
    number: u64,
}

impl Cancelled {
    pub(crate) fn new(context: &OrchestrationContext) -> Self {
        let number = context.lock().cancellation.number();
        Self { context: context.clone(), number }
    }
}

impl Future for Cancelled {
    type Output = String;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<String> {
        let mut state = self.context.lock();
        let cancellation = &mut state.cancellation;
        match &cancellation.reason {
            Some(reason) if cancellation.is_observed => Poll::Ready(reason.clone()),
            _ => {
                cancellation.waiting.insert(self.number, cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Drop for Cancelled {
    fn drop(&mut self) {
        // The waker is dropped after the lock is released: it may run any code.
        let waker = self.context.lock().cancellation.waiting.remove(&self.number);
        drop(waker);
    }
}

/// Resolves when every child that the code dropped has its outcome. The outcome is an event of the history like that of a child that the
/// code awaits, so replay resolves the future at the same place.
///
/// Cancellation safety: dropping it has no effect.
#[must_use = "it waits only while it is awaited"]
pub struct DroppedChildren {
    context: OrchestrationContext,
    number: u64,
}

impl DroppedChildren {
    pub(crate) fn new(context: &OrchestrationContext) -> Self {
        let number = context.lock().cancellation.number();
        Self { context: context.clone(), number }
    }
}

impl Future for DroppedChildren {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.context.lock();
        if !state.has_dropped_children() {
            return Poll::Ready(());
        }
        state.cancellation.waiting.insert(self.number, cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for DroppedChildren {
    fn drop(&mut self) {
        // The waker is dropped after the lock is released: it may run any code.
        let waker = self.context.lock().cancellation.waiting.remove(&self.number);
        drop(waker);
    }
}
