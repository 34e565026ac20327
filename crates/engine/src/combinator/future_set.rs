//! A set of futures that polls only the futures that were woken.
//!
//! | a pending future | is polled again |
//! |---|---|
//! | keeps its waker | when it is woken |
//! | keeps no waker (written by hand) | at every poll of the set |

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

pub(super) struct FutureSet<F> {
    futures: Vec<Option<Pin<Box<F>>>>,
    wakers: Vec<Arc<IndexWaker>>,
    wake_ups: Arc<Mutex<WakeUps>>,
    /// Futures that keep no waker.
    without_waker: BTreeSet<usize>,
    running: usize,
}

/// The indexes of woken futures, and the waker of the set.
struct WakeUps {
    woken: BTreeSet<usize>,
    parent: Option<Waker>,
}

struct IndexWaker {
    index: usize,
    wake_ups: Arc<Mutex<WakeUps>>,
}

impl Wake for IndexWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let parent = {
            let mut wake_ups = lock(&self.wake_ups);
            wake_ups.woken.insert(self.index);
            wake_ups.parent.clone()
        };
        if let Some(parent) = parent {
            parent.wake();
        }
    }
}

fn lock(wake_ups: &Mutex<WakeUps>) -> MutexGuard<'_, WakeUps> {
    wake_ups.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<F: Future> FutureSet<F> {
    pub(super) fn new(futures: impl IntoIterator<Item = F>) -> Self {
        let futures: Vec<_> = futures.into_iter().map(|future| Some(Box::pin(future))).collect();
        let wake_ups = WakeUps { woken: (0..futures.len()).collect(), parent: None };
        let wake_ups = Arc::new(Mutex::new(wake_ups));
        let waker = |index| Arc::new(IndexWaker { index, wake_ups: Arc::clone(&wake_ups) });
        let wakers = (0..futures.len()).map(waker).collect();
        let running = futures.len();
        Self { futures, wakers, wake_ups, without_waker: BTreeSet::new(), running }
    }

    pub(super) fn len(&self) -> usize {
        self.futures.len()
    }

    pub(super) fn is_done(&self) -> bool {
        self.running == 0
    }

    /// Polls the woken futures in the order of indexes, and gives outputs to `finished` until it returns false.
    pub(super) fn poll(&mut self, cx: &Context<'_>, mut finished: impl FnMut(usize, F::Output) -> bool) {
        let mut due = {
            let mut wake_ups = lock(&self.wake_ups);
            wake_ups.parent = Some(cx.waker().clone());
            std::mem::take(&mut wake_ups.woken)
        };
        due.extend(&self.without_waker);
        for index in due {
            let Some(future) = &mut self.futures[index] else { continue };
            let waker = Waker::from(Arc::clone(&self.wakers[index]));
            let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
            drop(waker);
            match polled {
                Poll::Ready(output) => {
                    self.futures[index] = None;
                    self.without_waker.remove(&index);
                    self.running -= 1;
                    if !finished(index, output) {
                        return;
                    }
                }
                Poll::Pending if Arc::strong_count(&self.wakers[index]) == 1 => {
                    self.without_waker.insert(index);
                }
                Poll::Pending => {
                    self.without_waker.remove(&index);
                }
            }
        }
        // No running future keeps a waker, so the set must not keep one either: the engine checks whether a waker is kept.
        if self.without_waker.len() == self.running {
            lock(&self.wake_ups).parent = None;
        }
    }
}
