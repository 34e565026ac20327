//! Cancellation that an orchestration answers: `#[outlast::orchestration(on_cancel = undo)]`.
//!
//! | step | `on_cancel = undo` | `on_cancel = observe` |
//! |---|---|---|
//! | a request arrives | the grace period begins | the grace period begins |
//! | then | the body ends at its `.await`, unless it is in [`Durable::shielded`](crate::Durable::shielded): its activities and children are told | the body goes on, and `ctx.cancelled()` resolves |
//! | then | the children end, as their own `on_cancel` says; at most half of the grace period | |
//! | then | the steps of every [`Undo`](crate::Undo) run, the newest first | the body returns, or calls `ctx.end_cancelled()` |
//! | end | cancelled with the reason of the request; failed if a step failed | as the body decides |
//! | the grace period is over | cancelled; the reason says so | the same |

use crate::undo::{self, Step, UndoFailed};
use outlast_engine::OrchestrationContext;
use outlast_engine::layer::{self, Site};
use std::panic::Location;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

/// The answer of an orchestration to a request to cancel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct OnCancel {
    /// Whether the body is interrupted and its steps are undone.
    pub undoes: bool,
    /// The time for the answer. The instance then ends as cancelled, whatever its code does.
    pub grace: Duration,
}

impl OnCancel {
    const GRACE: Duration = Duration::from_secs(300);

    /// The request interrupts the body, and the steps of its `Undo` run.
    pub const fn undo() -> Self {
        Self { undoes: true, grace: Self::GRACE }
    }

    /// The body observes the request with `ctx.cancelled()`, and decides.
    pub const fn observe() -> Self {
        Self { undoes: false, grace: Self::GRACE }
    }

    /// The time for the answer; five minutes without this call.
    #[must_use]
    pub const fn grace(self, grace: Duration) -> Self {
        Self { grace, ..self }
    }
}

/// The steps of all `Undo`s of an execution, and its shields.
#[derive(Default)]
pub(crate) struct Registry(Mutex<Steps>);

#[derive(Default)]
struct Steps {
    /// The steps in the order in which they were added, each with the number of its `Undo`.
    steps: Vec<(u64, Step)>,
    undos: u64,
    shields: usize,
}

impl Registry {
    pub(crate) fn of(ctx: &OrchestrationContext) -> Arc<Self> {
        layer::extension(ctx)
    }

    /// The number of a new `Undo`.
    pub(crate) fn add(&self) -> u64 {
        let mut all = self.lock();
        all.undos += 1;
        all.undos
    }

    pub(crate) fn push(&self, undo: u64, step: Step) {
        self.lock().steps.push((undo, step));
    }

    pub(crate) fn len(&self, undo: u64) -> usize {
        self.lock().steps.iter().filter(|(of, _)| *of == undo).count()
    }

    /// Removes the steps of an `Undo`, the oldest first.
    pub(crate) fn take(&self, undo: u64) -> Vec<Step> {
        let mut all = self.lock();
        let (taken, kept) = std::mem::take(&mut all.steps).into_iter().partition(|(of, _)| *of == undo);
        all.steps = kept;
        let taken: Vec<(u64, Step)> = taken;
        taken.into_iter().map(|(_, step)| step).collect()
    }

    /// Removes all steps, the oldest first.
    fn take_all(&self) -> Vec<Step> {
        std::mem::take(&mut self.lock().steps).into_iter().map(|(_, step)| step).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Steps> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A part of the body that a request to cancel does not interrupt: [`Durable::shielded`](crate::Durable::shielded).
#[must_use = "nothing runs until it is awaited"]
pub struct Shielded<F> {
    future: Pin<Box<F>>,
    shield: Shield,
}

struct Shield {
    registry: Arc<Registry>,
    is_up: bool,
}

impl Drop for Shield {
    fn drop(&mut self) {
        if self.is_up {
            self.registry.lock().shields -= 1;
        }
    }
}

impl<F: Future> Shielded<F> {
    pub(crate) fn new(ctx: &OrchestrationContext, future: F) -> Self {
        let shield = Shield { registry: Registry::of(ctx), is_up: false };
        Self { future: Box::pin(future), shield }
    }
}

impl<F: Future> Future for Shielded<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        if !this.shield.is_up {
            this.shield.is_up = true;
            this.shield.registry.lock().shields += 1;
        }
        this.future.as_mut().poll(cx)
    }
}

/// The end of a body that observes cancellation.
pub(crate) enum Ended<T> {
    Returned(T),
    /// The body was interrupted, and not every step could be undone. The text is for people.
    NotUndone(String),
}

/// Runs the body of an orchestration that answers requests to cancel.
pub(crate) async fn run<T>(
    ctx: &OrchestrationContext,
    on_cancel: OnCancel,
    body: impl Future<Output = T>,
) -> Ended<T> {
    let site: Site = Location::caller();
    layer::observe_cancellation(ctx);
    let registry = Registry::of(ctx);
    let mut body = Some(Box::pin(body));
    let reason = {
        let mut cancelled = pin!(layer::cancelled(ctx));
        let first = std::future::poll_fn(|cx| {
            if let Some(body) = &mut body
                && let Poll::Ready(value) = body.as_mut().poll(cx)
            {
                return Poll::Ready(Ok(value));
            }
            cancelled.as_mut().poll(cx).map(Err)
        });
        match first.await {
            Ok(value) => return Ended::Returned(value),
            Err(reason) => reason,
        }
    };
    let patience = layer::timer(ctx, on_cancel.grace, site);
    let answer = async {
        if let Some(running) = &mut body {
            let may_interrupt = || on_cancel.undoes && registry.lock().shields == 0;
            let ended = std::future::poll_fn(|cx| match may_interrupt() {
                true => Poll::Ready(None),
                false => match running.as_mut().poll(cx) {
                    Poll::Ready(value) => Poll::Ready(Some(value)),
                    Poll::Pending if may_interrupt() => Poll::Ready(None),
                    Poll::Pending => Poll::Pending,
                },
            });
            if let Some(value) = ended.await {
                return Ended::Returned(value);
            }
        }
        let steps = registry.take_all();
        // The commit of this turn tells the activities and children that the body waits for.
        body = None;
        children_end(ctx, on_cancel.grace / 2, site).await;
        match undo::run(ctx, steps).await {
            Ok(()) => {
                layer::end_cancelled(ctx, reason.clone());
                std::future::pending().await
            }
            Err(failed) => Ended::NotUndone(not_undone(&reason, &failed)),
        }
    };
    let (mut answer, mut patience) = (pin!(answer), pin!(patience));
    std::future::poll_fn(|cx| {
        if let Poll::Ready(ended) = answer.as_mut().poll(cx) {
            return Poll::Ready(ended);
        }
        if patience.as_mut().poll(cx).is_ready() {
            let grace = on_cancel.grace;
            layer::end_cancelled(
                ctx,
                format!("{reason} (not answered within the grace period of {grace:?})"),
            );
            return Poll::Pending;
        }
        Poll::Pending
    })
    .await
}

/// Waits until the children that the body had have ended: a child is undone before its parent. The wait is limited, so that a child
/// that does not answer leaves time for the steps of the parent.
async fn children_end(ctx: &OrchestrationContext, limit: Duration, site: Site) {
    if !layer::has_dropped_children(ctx) {
        return;
    }
    let (mut limit, mut ended) = (pin!(layer::timer(ctx, limit, site)), pin!(layer::dropped_children(ctx)));
    std::future::poll_fn(|cx| match ended.as_mut().poll(cx) {
        Poll::Ready(()) => Poll::Ready(()),
        Poll::Pending => limit.as_mut().poll(cx),
    })
    .await;
}

fn not_undone(reason: &str, failed: &UndoFailed) -> String {
    format!("cancelled ({reason}), and {failed}")
}
