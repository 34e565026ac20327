//! Control over the polls of a runtime's tasks.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// Called before every poll of every task of a runtime. The simulator uses a pulse to stall a process, or to end a process between
/// two polls. Set as [`RuntimeOptions::pulse`](crate::RuntimeOptions::pulse).
pub trait Pulse: Send + Sync {
    /// Whether the task may be polled now. An implementation that returns `Pending` wakes the task when it may be polled, or never.
    fn beat(&self, context: &mut Context<'_>) -> Poll<()>;
}

/// A task that is polled only when its pulse allows it.
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

    /// Allows this number of polls.
    struct PollsLeft(AtomicUsize);

    impl Pulse for PollsLeft {
        fn beat(&self, _: &mut Context<'_>) -> Poll<()> {
            let taken = self.0.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1));
            if taken.is_ok() { Poll::Ready(()) } else { Poll::Pending }
        }
    }

    #[test]
    fn a_task_is_polled_only_when_its_pulse_allows_it() {
        let mut context = Context::from_waker(Waker::noop());
        let mut polls_of = |beats: usize| {
            let polls = Arc::new(AtomicUsize::new(0));
            let counted = Arc::clone(&polls);
            let task = std::future::poll_fn(move |_| {
                counted.fetch_add(1, Relaxed);
                Poll::<()>::Pending
            });
            let pulse: Arc<dyn Pulse> = Arc::new(PollsLeft(AtomicUsize::new(beats)));
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
