//! The share of the writer's time that large requests get.
//!
//! A call that stores some megabytes, and a fetch of a turn whose messages are some megabytes, take a hundred times as long as
//! others. Each instance needs several transactions one after the other, so without a limit a few instances with large messages
//! would make all others slow. Large requests therefore run in transactions without small calls. If small calls came before such a
//! transaction, the writer rests from large requests afterwards for [`REST`] times as long as it took. The rest ends early when no
//! request comes for as long as the transaction took, and when a fetch that does not wait could have a large turn.

use crate::command::Command;
use std::collections::VecDeque;
use std::time::Duration;

/// A request with this many bytes is large.
pub(crate) const LARGE_BYTES: usize = 1 << 20;

/// Bytes of calls that one transaction takes, beside small requests and without them; one call may be larger.
const STEP_BYTES: usize = 4 << 20;
const STEP_BYTES_ALONE: usize = 32 << 20;

/// How many times as long as the last transaction with large requests small ones have the writer.
const REST: u64 = 5;

/// A transaction counts as this long at most, whatever the clock says.
const LONGEST_MS: u64 = 2_000;

/// Large requests that wait for the writer.
pub(crate) struct LargeRequests {
    calls: VecDeque<Command>,
    /// A fetch passed a large turn over.
    turns_wait: bool,
    /// No fetch was there for a large turn when its time had come: the next fetch may have it.
    turn_is_owed: bool,
    /// A fetch that does not park waits for a large turn.
    is_urgent: bool,
    /// The last transaction had large requests.
    was_last: bool,
    /// A small call was applied since the last transaction with large requests.
    saw_small: bool,
    /// When the last transaction with large requests ended, and for how long small requests have the writer from then on.
    ended_at: u64,
    rest_ms: u64,
}

impl LargeRequests {
    pub(crate) fn new() -> Self {
        Self {
            calls: VecDeque::new(),
            turns_wait: false,
            turn_is_owed: false,
            is_urgent: false,
            was_last: false,
            saw_small: false,
            ended_at: 0,
            rest_ms: 0,
        }
    }

    /// Keeps a large call, and gives back any other command.
    pub(crate) fn keep_if_large(&mut self, command: Command) -> Option<Command> {
        match &command {
            Command::Call(call) if call.bytes() >= LARGE_BYTES => {
                self.calls.push_back(command);
                return None;
            }
            Command::Call(_) => self.saw_small = true,
            _ => {}
        }
        Some(command)
    }

    /// A fetch passed a large turn over. `is_urgent`: a fetch that does not park waits for it.
    pub(crate) fn turn_was_passed_over(&mut self, is_urgent: bool) {
        self.turns_wait = true;
        self.is_urgent |= is_urgent;
    }

    /// A large turn could have been handed out, but no fetch was there.
    pub(crate) fn no_fetch_came(&mut self) {
        self.turn_is_owed = true;
    }

    /// Whether a transaction with small requests may hand out a large turn.
    pub(crate) fn is_turn_owed(&self) -> bool {
        self.turn_is_owed
    }

    /// A transaction with small requests begins.
    pub(crate) fn small_begins(&mut self) {
        self.was_last = false;
    }

    /// Whether the last transaction had large requests: then small requests that have come are applied first.
    pub(crate) fn was_last(&self) -> bool {
        self.was_last
    }

    /// How long it takes until the next transaction with large requests may begin; `None` without such a request. A clock that
    /// was set back ends the wait.
    pub(crate) fn due_in(&self, now: u64) -> Option<Duration> {
        let waits = self.turns_wait || !self.calls.is_empty();
        let rested = now.checked_sub(self.ended_at).unwrap_or(self.rest_ms);
        let left = if self.is_urgent { 0 } else { self.rest_ms.saturating_sub(rested) };
        waits.then(|| Duration::from_millis(left))
    }

    /// The rest ends when no request comes for this long.
    pub(crate) fn idle_limit(&self) -> Duration {
        Duration::from_millis(self.rest_ms / REST)
    }

    pub(crate) fn end_rest(&mut self) {
        self.rest_ms = 0;
    }

    /// Whether a small call was applied since the last transaction with large requests.
    pub(crate) fn saw_small(&self) -> bool {
        self.saw_small
    }

    /// The calls for one transaction, and whether a fetch may be given a large turn in it.
    pub(crate) fn take(&mut self) -> (Vec<Command>, bool) {
        let mut taken = Vec::new();
        let mut bytes = 0;
        let most = if self.saw_small { STEP_BYTES } else { STEP_BYTES_ALONE };
        while bytes < most
            && let Some(command) = self.calls.pop_front()
        {
            if let Command::Call(call) = &command {
                bytes += call.bytes();
            }
            taken.push(command);
        }
        self.is_urgent = false;
        (taken, std::mem::take(&mut self.turns_wait))
    }

    /// All calls, for a writer that ends.
    pub(crate) fn take_all(&mut self) -> Vec<Command> {
        self.calls.drain(..).collect()
    }

    /// A transaction with large requests began at `begun` and is over.
    pub(crate) fn done(&mut self, begun: u64, now: u64) {
        let took = now.saturating_sub(begun).min(LONGEST_MS);
        self.rest_ms = if std::mem::take(&mut self.saw_small) { took * REST } else { 0 };
        self.ended_at = now;
        self.turn_is_owed = false;
        self.was_last = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{Body, Cx};

    fn call(bytes: usize) -> Command {
        let (reply, _) = tokio::sync::oneshot::channel();
        Command::Call(Box::new(Body {
            operation: "test",
            instance: None,
            bytes,
            body: |_: &mut Cx<'_>| Ok(()),
            then: |(): &()| {},
            outcome: None,
            reply,
            room: None,
        }))
    }

    fn bytes(commands: &[Command]) -> Vec<usize> {
        let of = |command: &Command| match command {
            Command::Call(call) => call.bytes(),
            _ => 0,
        };
        commands.iter().map(of).collect()
    }

    #[test]
    fn only_large_calls_are_kept_back_and_leave_in_order_a_few_megabytes_at_a_time() {
        let mut large = LargeRequests::new();
        assert!(large.keep_if_large(call(LARGE_BYTES - 1)).is_some());
        assert!(large.keep_if_large(Command::Stop).is_some());
        assert_eq!(large.due_in(0), None);
        for size in [LARGE_BYTES, 9 << 20, 2 << 20, 2 << 20, 2 << 20] {
            assert!(large.keep_if_large(call(size)).is_none());
        }
        assert_eq!(bytes(&large.take().0), [LARGE_BYTES, 9 << 20]);
        assert_eq!(bytes(&large.take().0), [2 << 20, 2 << 20]);
        assert_eq!(bytes(&large.take_all()), [2 << 20]);
        large.done(0, 0);
        for size in [2 << 20, 2 << 20, 40 << 20, 2 << 20] {
            large.keep_if_large(call(size));
        }
        assert_eq!(bytes(&large.take().0), [2 << 20, 2 << 20, 40 << 20], "no small call came since");
        assert_eq!(bytes(&large.take_all()), [2 << 20]);
        assert_eq!(large.due_in(0), None);
    }

    #[test]
    fn small_calls_have_the_writer_five_times_as_long_as_a_large_transaction_took() {
        let mut large = LargeRequests::new();
        large.keep_if_large(call(1));
        large.done(1_000, 1_100);
        large.turn_was_passed_over(false);
        let due_in = |large: &LargeRequests, now| large.due_in(now).map(|wait| wait.as_millis());
        for (now, wait) in [(1_100, 500), (1_599, 1), (1_600, 0), (9_000, 0), (1_099, 0)] {
            assert_eq!(due_in(&large, now), Some(wait), "at {now}");
        }
        assert_eq!(large.idle_limit(), Duration::from_millis(100));
        large.turn_was_passed_over(true);
        assert_eq!(due_in(&large, 1_100), Some(0), "a fetch that does not park does not wait for the rest");
        assert!(matches!(large.take(), (calls, true) if calls.is_empty()));
        assert_eq!(due_in(&large, 1_100), None);
        large.turn_was_passed_over(false);
        assert_eq!(due_in(&large, 1_100), Some(500));
        large.end_rest();
        assert_eq!(due_in(&large, 1_100), Some(0));
        large.done(1_000, 1_100);
        large.keep_if_large(call(LARGE_BYTES));
        assert_eq!(due_in(&large, 1_100), Some(0), "no small call came since");
    }
}
