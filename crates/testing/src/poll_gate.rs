//! Decides whether the tasks of a process are polled.

use outlast_runtime::test_hooks::Pulse;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use tokio::sync::Notify;

/// The gate of one process, as the [`Pulse`] of its runtime.
pub struct PollGate {
    state: Mutex<State>,
    /// Notified when the life ends at its last poll.
    pub reached_last_poll: Notify,
    /// Notified when the polls stop at a pause. [`PollGate::resume`] lets them go on.
    pub reached_pause: Notify,
}

struct State {
    polls: u64,
    /// The process crashes instead of the poll after this one.
    last_poll: Option<u64>,
    /// The gate stalls instead of the poll after this one.
    pause: Option<u64>,
    is_stalled: bool,
    /// Tasks that wait for the end of a stall.
    waiting: Vec<Waker>,
}

impl PollGate {
    /// A gate that stays closed after `last_poll` polls.
    pub fn new(last_poll: Option<u64>) -> Self {
        let state = State { polls: 0, last_poll, pause: None, is_stalled: false, waiting: Vec::new() };
        Self { state: Mutex::new(state), reached_last_poll: Notify::new(), reached_pause: Notify::new() }
    }

    /// A gate that stalls once, after this number of polls.
    pub fn pausing(after: u64) -> Self {
        let gate = Self::new(None);
        gate.state().pause = Some(after);
        gate
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops all polls.
    pub fn stall(&self) {
        self.state().is_stalled = true;
    }

    /// Ends a stall: tasks that were woken meanwhile are polled now.
    pub fn resume(&self) {
        let waiting = {
            let mut state = self.state();
            state.is_stalled = false;
            std::mem::take(&mut state.waiting)
        };
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Number of polls so far.
    pub fn polls(&self) -> u64 {
        self.state().polls
    }
}

impl Pulse for PollGate {
    fn beat(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.state();
        if state.is_stalled {
            state.waiting.push(context.waker().clone());
            return Poll::Pending;
        }
        if state.pause == Some(state.polls) {
            (state.pause, state.is_stalled) = (None, true);
            state.waiting.push(context.waker().clone());
            self.reached_pause.notify_one();
            return Poll::Pending;
        }
        state.polls += 1;
        match state.last_poll {
            Some(last) if state.polls > last => {
                // No task of this life is polled again.
                self.reached_last_poll.notify_one();
                Poll::Pending
            }
            _ => Poll::Ready(()),
        }
    }
}
