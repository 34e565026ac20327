//! Many futures, of which only those are polled that were woken.
//!
//! | a pending child | is polled again |
//! |---|---|
//! | keeps its waker | when it is woken |
//! | keeps no waker (a hand-written future that expects to be asked) | at every poll of the crowd |

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

pub(super) struct Crowd<F> {
    children: Vec<Option<Pin<Box<F>>>>,
    wakers: Vec<Arc<ChildWaker>>,
    roll: Arc<Mutex<Roll>>,
    /// Children that keep no waker.
    restless: BTreeSet<usize>,
    running: usize,
}

/// Who was woken, in the order of indexes, and who wants to know.
struct Roll {
    woken: BTreeSet<usize>,
    parent: Option<Waker>,
}

struct ChildWaker {
    index: usize,
    roll: Arc<Mutex<Roll>>,
}

impl Wake for ChildWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let parent = {
            let mut roll = lock(&self.roll);
            roll.woken.insert(self.index);
            roll.parent.clone()
        };
        if let Some(parent) = parent {
            parent.wake();
        }
    }
}

fn lock(roll: &Mutex<Roll>) -> MutexGuard<'_, Roll> {
    roll.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<F: Future> Crowd<F> {
    pub(super) fn new(futures: impl IntoIterator<Item = F>) -> Self {
        let children: Vec<_> = futures.into_iter().map(|future| Some(Box::pin(future))).collect();
        let roll = Roll { woken: (0..children.len()).collect(), parent: None };
        let roll = Arc::new(Mutex::new(roll));
        let waker = |index| Arc::new(ChildWaker { index, roll: Arc::clone(&roll) });
        let wakers = (0..children.len()).map(waker).collect();
        let running = children.len();
        Self { children, wakers, roll, restless: BTreeSet::new(), running }
    }

    pub(super) fn len(&self) -> usize {
        self.children.len()
    }

    pub(super) fn is_done(&self) -> bool {
        self.running == 0
    }

    /// Polls whoever has reason to run, in the order of indexes, and hands outputs to `finished` until that says false.
    pub(super) fn poll(&mut self, cx: &Context<'_>, mut finished: impl FnMut(usize, F::Output) -> bool) {
        let mut due = {
            let mut roll = lock(&self.roll);
            roll.parent = Some(cx.waker().clone());
            std::mem::take(&mut roll.woken)
        };
        due.extend(&self.restless);
        for index in due {
            let Some(child) = &mut self.children[index] else { continue };
            let waker = Waker::from(Arc::clone(&self.wakers[index]));
            let polled = child.as_mut().poll(&mut Context::from_waker(&waker));
            drop(waker);
            match polled {
                Poll::Ready(output) => {
                    self.children[index] = None;
                    self.restless.remove(&index);
                    self.running -= 1;
                    if !finished(index, output) {
                        return;
                    }
                }
                Poll::Pending if Arc::strong_count(&self.wakers[index]) == 1 => {
                    self.restless.insert(index);
                }
                Poll::Pending => {
                    self.restless.remove(&index);
                }
            }
        }
        // If nobody can wake a child, nobody should look as if he could wake the parent: the engine asks whether anybody
        // outside keeps a waker.
        if self.restless.len() == self.running {
            lock(&self.roll).parent = None;
        }
    }
}
