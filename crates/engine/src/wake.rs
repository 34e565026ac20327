//! Distinguishes wake-ups by durable futures from wake-ups by futures that are not durable.
//!
//! | thread of the wake-up | time | meaning |
//! |---|---|---|
//! | the thread that runs the turn | during the turn | a durable future, or code of the same orchestration: the code is polled again |
//! | any other thread | any time | a timer, channel or task that is not durable: the instance fails at its next turn |

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Wake, Waker};

thread_local! {
    /// The execution whose turn runs on this thread, by address; 0 for none.
    static TURN: Cell<usize> = const { Cell::new(0) };
}

/// The target of the waker of an execution's root future.
#[derive(Default)]
struct Root {
    woken: AtomicBool,
    from_outside: AtomicBool,
}

impl Wake for Root {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let here = TURN.try_with(Cell::get).unwrap_or(0);
        let flag = if here == address(self) { &self.woken } else { &self.from_outside };
        flag.store(true, Relaxed);
    }
}

fn address(root: &Arc<Root>) -> usize {
    Arc::as_ptr(root).addr()
}

/// The waker of one execution's root future.
pub(crate) struct RootWaker {
    root: Arc<Root>,
    waker: Waker,
}

/// References to the root in [`RootWaker`] itself: the field and the waker.
const OWN_REFERENCES: usize = 2;

impl RootWaker {
    pub(crate) fn new() -> Self {
        let root = Arc::new(Root::default());
        let waker = Waker::from(Arc::clone(&root));
        Self { root, waker }
    }

    pub(crate) fn get(&self) -> &Waker {
        &self.waker
    }

    /// Marks this thread as running the execution's turn until the guard is dropped.
    pub(crate) fn enter(&self) -> TurnGuard {
        TurnGuard { outer: TURN.replace(address(&self.root)) }
    }

    /// Whether the turn requested another poll since the last call of this method.
    pub(crate) fn take_woken(&self) -> bool {
        self.root.woken.swap(false, Relaxed)
    }

    /// Whether the execution was ever woken from outside of its turn.
    pub(crate) fn woken_from_outside(&self) -> bool {
        self.root.from_outside.load(Relaxed)
    }

    /// Whether a future keeps a clone of the waker, durable futures included.
    pub(crate) fn is_kept_by_others(&self) -> bool {
        Arc::strong_count(&self.root) > OWN_REFERENCES
    }
}

/// See [`RootWaker::enter`].
pub(crate) struct TurnGuard {
    outer: usize,
}

impl Drop for TurnGuard {
    fn drop(&mut self) {
        TURN.set(self.outer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wake_up_is_inside_only_on_the_thread_and_during_the_turn_of_its_execution() {
        let waker = RootWaker::new();
        let turn = waker.enter();
        waker.get().wake_by_ref();
        assert!(waker.take_woken() && !waker.take_woken() && !waker.woken_from_outside());
        let kept = waker.get().clone();
        assert!(waker.is_kept_by_others());
        std::thread::scope(|scope| {
            scope.spawn(move || kept.wake());
        });
        assert!(!waker.take_woken() && waker.woken_from_outside() && !waker.is_kept_by_others());
        let other = RootWaker::new();
        other.get().wake_by_ref();
        assert!(other.woken_from_outside() && !other.take_woken(), "the turn of another execution");
        drop(turn);
        let waker = RootWaker::new();
        drop(waker.enter());
        waker.get().wake_by_ref();
        assert!(waker.woken_from_outside() && !waker.take_woken(), "its turn is over");
    }
}
