//! What keeps a process going: its tasks are polled while it beats.

use outlast_runtime::test_hooks::Pulse;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use tokio::sync::Notify;

/// The pulse of one life of a process.
pub(crate) struct Heart {
    state: Mutex<State>,
    /// It stopped by itself, at the poll that was chosen for it.
    pub(crate) stopped: Notify,
}

struct State {
    beats: u64,
    /// The process dies instead of this poll.
    last_beat: Option<u64>,
    is_stalled: bool,
    /// Tasks that wait for the end of a stall.
    waiting: Vec<Waker>,
}

impl Heart {
    pub(crate) fn new(last_beat: Option<u64>) -> Self {
        let state = State { beats: 0, last_beat, is_stalled: false, waiting: Vec::new() };
        Self { state: Mutex::new(state), stopped: Notify::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on no task is polled.
    pub(crate) fn stall(&self) {
        self.state().is_stalled = true;
    }

    /// Everything that wanted to be polled meanwhile is polled now.
    pub(crate) fn go_on(&self) {
        let waiting = {
            let mut state = self.state();
            state.is_stalled = false;
            std::mem::take(&mut state.waiting)
        };
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Polls so far.
    pub(crate) fn beats(&self) -> u64 {
        self.state().beats
    }
}

impl Pulse for Heart {
    fn beat(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.state();
        if state.is_stalled {
            state.waiting.push(context.waker().clone());
            return Poll::Pending;
        }
        state.beats += 1;
        match state.last_beat {
            Some(last) if state.beats > last => {
                // Nothing of this life is polled again.
                self.stopped.notify_one();
                Poll::Pending
            }
            _ => Poll::Ready(()),
        }
    }
}
