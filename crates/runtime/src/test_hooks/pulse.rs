//! When the tasks of a runtime run.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// Asked before every poll of every task of a runtime. A simulator stalls a process with it, or kills it between two polls
/// of its choice. Set as [`RuntimeOptions::pulse`](crate::RuntimeOptions::pulse).
pub trait Pulse: Send + Sync {
    /// Whether the task may be polled now. Whoever answers `Pending` wakes the task when it may, or never.
    fn beat(&self, context: &mut Context<'_>) -> Poll<()>;
}

/// A task under a pulse.
pub(crate) struct Paced<T> {
    pulse: Option<Arc<dyn Pulse>>,
    task: Pin<Box<dyn Future<Output = T> + Send>>,
}

impl<T> Paced<T> {
    pub(crate) fn new(pulse: Option<Arc<dyn Pulse>>, task: impl Future<Output = T> + Send + 'static) -> Self {
        Self { pulse, task: Box::pin(task) }
    }
}

impl<T> Future for Paced<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        if let Some(pulse) = &self.pulse {
            ready!(pulse.beat(context));
        }
        self.task.as_mut().poll(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    use std::task::Waker;

    /// Allows so many polls.
    struct Left(AtomicUsize);

    impl Pulse for Left {
        fn beat(&self, _: &mut Context<'_>) -> Poll<()> {
            let taken = self.0.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1));
            if taken.is_ok() { Poll::Ready(()) } else { Poll::Pending }
        }
    }

    #[test]
    fn a_task_is_polled_only_on_a_beat() {
        let mut context = Context::from_waker(Waker::noop());
        let mut polls_of = |beats: usize| {
            let polls = Arc::new(AtomicUsize::new(0));
            let counted = Arc::clone(&polls);
            let task = std::future::poll_fn(move |_| {
                counted.fetch_add(1, Relaxed);
                Poll::<()>::Pending
            });
            let pulse: Arc<dyn Pulse> = Arc::new(Left(AtomicUsize::new(beats)));
            let mut task = Paced::new(Some(pulse), task);
            for _ in 0..5 {
                assert!(Pin::new(&mut task).poll(&mut context).is_pending());
            }
            polls.load(Relaxed)
        };
        assert_eq!((polls_of(0), polls_of(3), polls_of(9)), (0, 3, 5));
        let mut free = Paced::new(None, std::future::ready(7));
        assert_eq!(Pin::new(&mut free).poll(&mut context), Poll::Ready(7));
    }
}
