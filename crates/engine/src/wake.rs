//! Who woke the orchestration, and from where.
//!
//! | wake | while | means |
//! |---|---|---|
//! | from the thread that runs the turn | the turn runs | something durable, or code of the same orchestration: poll again |
//! | from anywhere else | any time | a timer, channel or task that is not durable: the instance fails at its next turn |

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Wake, Waker};

thread_local! {
    /// The execution whose turn runs on this thread, by address; 0 for none.
    static TURN: Cell<usize> = const { Cell::new(0) };
}

/// What the waker of an execution's root future points at.
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

/// The waker of one execution.
pub(crate) struct Alarm {
    root: Arc<Root>,
    waker: Waker,
}

/// References to the root that the alarm itself holds: the field and the waker.
const OWN_REFERENCES: usize = 2;

impl Alarm {
    pub(crate) fn new() -> Self {
        let root = Arc::new(Root::default());
        let waker = Waker::from(Arc::clone(&root));
        Self { root, waker }
    }

    pub(crate) fn waker(&self) -> &Waker {
        &self.waker
    }

    /// Marks this thread as running the execution's turn until the guard is dropped.
    pub(crate) fn enter(&self) -> TurnGuard {
        TurnGuard { outer: TURN.replace(address(&self.root)) }
    }

    /// Whether something in the turn asked for another poll since the last call.
    pub(crate) fn take_woken(&self) -> bool {
        self.root.woken.swap(false, Relaxed)
    }

    /// Whether something that is no part of the orchestration ever woke it.
    pub(crate) fn woken_from_outside(&self) -> bool {
        self.root.from_outside.load(Relaxed)
    }

    /// Whether anybody keeps a waker, durable futures included.
    pub(crate) fn is_kept_by_others(&self) -> bool {
        Arc::strong_count(&self.root) > OWN_REFERENCES
    }
}

/// See [`Alarm::enter`].
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
    fn a_wake_counts_by_where_it_comes_from() {
        let alarm = Alarm::new();
        let turn = alarm.enter();
        alarm.waker().wake_by_ref();
        assert!(alarm.take_woken() && !alarm.take_woken() && !alarm.woken_from_outside());
        let kept = alarm.waker().clone();
        assert!(alarm.is_kept_by_others());
        std::thread::scope(|scope| {
            scope.spawn(move || kept.wake());
        });
        assert!(!alarm.take_woken() && alarm.woken_from_outside() && !alarm.is_kept_by_others());
        let other = Alarm::new();
        other.waker().wake_by_ref();
        assert!(other.woken_from_outside() && !other.take_woken(), "the turn of another one");
        drop(turn);
        let alarm = Alarm::new();
        drop(alarm.enter());
        alarm.waker().wake_by_ref();
        assert!(alarm.woken_from_outside() && !alarm.take_woken(), "its turn is over");
    }
}
