//! When the next transaction runs: polls of parked fetches, large requests, and the wait for the next command.

use super::{Writer, WriterLoop};
use crate::large_requests::{EndedTransaction, LargeTurns};
use std::time::Duration;

impl Writer {
    /// When the parked fetches must be polled; `None` if no fetch is parked.
    pub(crate) fn wake_at(&mut self) -> Option<u64> {
        // Both calls remove the fetches of dropped callers.
        let is_any_waiting = self.parked.turns.is_any_waiting() | self.parked.activities.is_any_waiting();
        is_any_waiting.then_some(self.wake_at)
    }

    /// Whether another process committed since the last check.
    pub(crate) fn has_foreign_commit(&mut self) -> bool {
        let seen = self.connection.has_foreign_commit();
        if seen {
            self.invalidate();
        }
        seen
    }

    /// Whether another process died with leases, according to a look that is due now or to an earlier one.
    pub(crate) fn has_dead_owner(&mut self) -> bool {
        let clock = &self.options.clock;
        self.owners.look(|| clock.now_ms())
    }

    /// The large turns that the next transaction hands out, or the result for them in the last one.
    pub(crate) fn large_turns(&mut self) -> &mut LargeTurns {
        &mut self.fetch_state.large_turns
    }

    /// Whether a fetch that does not park waits for a large turn.
    pub(crate) fn has_fetch_that_does_not_park(&self) -> bool {
        self.parked.turns.has_fetch_that_does_not_park()
    }
}

/// How long the loop waits for a command.
pub(super) struct Wait {
    until_poll: Option<Duration>,
    until_pause_ends: Option<Duration>,
}

impl Wait {
    /// `None` if the loop waits until a command comes.
    pub(super) fn patience(&self) -> Option<Duration> {
        self.until_poll.into_iter().chain(self.until_pause_ends).min()
    }

    /// Whether the pause of large requests ends before the next poll.
    fn ends_with_pause(&self) -> bool {
        self.until_pause_ends.is_some_and(|pause| self.until_poll.is_none_or(|poll| pause <= poll))
    }
}

impl WriterLoop {
    /// How long to wait for a command if large requests are due after `until_large`, and no request has come since `idle_from`.
    /// `None` if the parked fetches must be polled first.
    pub(super) fn wait(&mut self, now: u64, idle_from: u64, until_large: Option<Duration>) -> Option<Wait> {
        // Longer than a tick of the clock of a file system: two writes within one tick have the same time.
        const SHORTEST_PAUSE: Duration = Duration::from_millis(10);
        let idle = Duration::from_millis(now.saturating_sub(idle_from));
        let until_pause_ends =
            until_large.map(|until| until.min(self.large.idle_limit().saturating_sub(idle)));
        let until_poll = match self.writer.wake_at() {
            None => None,
            Some(wake_at) => {
                let until = wake_at.checked_sub(self.writer.now()).filter(|until| *until > 0)?;
                let poll_interval = self.writer.options.foreign_poll_interval.max(SHORTEST_PAUSE);
                Some(Duration::from_millis(until).min(poll_interval))
            }
        };
        Some(Wait { until_poll, until_pause_ends })
    }

    /// No command came meanwhile.
    pub(super) fn on_timeout(&mut self, wait: &Wait) {
        if wait.ends_with_pause() {
            self.large.end_pause();
        } else if self.writer.has_foreign_commit() | self.writer.has_dead_owner() {
            self.poll_parked();
        }
    }

    /// Polls the parked fetches.
    pub(super) fn poll_parked(&mut self) {
        let begun = self.writer.now();
        *self.writer.large_turns() = self.large.small_begins();
        self.writer.process(Vec::new(), true, &self.handle);
        self.large.small_ended(ended(&mut self.writer, begun));
    }

    /// Runs a transaction with large requests.
    pub(super) fn large_step(&mut self) {
        let begun = self.writer.now();
        let beside_small = self.large.saw_small();
        let most_bytes = self.large.step_bytes();
        let (calls, is_turn_due) = self.large.take();
        *self.writer.large_turns() = LargeTurns::One { most_bytes };
        self.writer.process(calls, is_turn_due, &self.handle);
        if beside_small {
            self.writer.connection.checkpoint();
        }
        self.large.large_ended(ended(&mut self.writer, begun), is_turn_due);
    }
}

/// The transaction that ended last.
pub(super) fn ended(writer: &mut Writer, begun_at: u64) -> EndedTransaction {
    EndedTransaction {
        begun_at,
        ended_at: writer.now(),
        large_turns: *writer.large_turns(),
        is_fetch_urgent: writer.has_fetch_that_does_not_park(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SqliteOptions;
    use crate::activity::ActivityAsk;
    use crate::command::{Command, Handle};
    use crate::large_requests::LARGE_BYTES;
    use crate::large_requests::tests::{call, ended};
    use crate::park::Fetch;
    use crate::url::Location;
    use crate::writer::Next;
    use outlast_provider::{Clock, TagFilter};
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::{Arc, mpsc};

    /// A clock on which every reading takes 50 ms.
    struct SteppingClock(AtomicU64);

    impl Clock for SteppingClock {
        fn now_ms(&self) -> u64 {
            self.0.fetch_add(50, Ordering::Relaxed)
        }
    }

    #[test]
    fn pause_of_large_requests_ends_on_an_idle_store_although_a_fetch_is_parked() {
        let clock = Arc::new(SteppingClock(AtomicU64::new(10_000)));
        let options = SqliteOptions {
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
            foreign_poll_interval: Duration::ZERO,
            ..SqliteOptions::default()
        };
        let writer = Writer::open(Location::Memory, options, Arc::default()).unwrap();
        let (sender, commands) = mpsc::channel();
        let mut writer_loop = WriterLoop::new(writer, commands, Handle::Threaded(sender));
        let ask = ActivityAsk { max_items: 1, lock_ms: 1_000, session: None, tags: TagFilter::DefaultOnly };
        let (fetch, _answer) = Fetch::<ActivityAsk>::new(ask, Duration::from_secs(600));
        writer_loop.small_step(Command::FetchActivities(fetch, None));
        // A large transaction took one second beside small calls: large requests pause for five seconds, or until no request
        // came for one second.
        writer_loop.large.keep_if_large(call(1));
        let ended_at = clock.now_ms();
        writer_loop.large.large_ended(ended(ended_at - 1_000, ended_at), false);
        writer_loop.large.keep_if_large(call(LARGE_BYTES));
        assert!(matches!(writer_loop.next(), Next::Large));
        let paused = clock.now_ms() - ended_at;
        assert!((1_000..2_000).contains(&paused), "{paused} ms");
        assert!(writer_loop.writer.wake_at().is_some(), "the fetch is still parked");
    }
}
