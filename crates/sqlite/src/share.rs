//! The share of the writer's time that large requests get.
//!
//! A call that stores some megabytes, and a fetch of a turn whose messages are some megabytes, take a hundred times as long as
//! others. Each instance needs several transactions one after the other, so without a limit a few instances with large messages
//! would make all others slow. Large requests therefore run in transactions of their own, and after each of them small requests
//! have the writer for [`REST`] times as long as it took. Without small requests there is no rest.

use crate::command::Command;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// A request with this many bytes is large.
pub(crate) const LARGE_BYTES: usize = 1 << 20;

/// Bytes of calls that one transaction takes, beside small requests and without them; one call may be larger.
const STEP_BYTES: usize = 4 << 20;
const STEP_BYTES_ALONE: usize = 32 << 20;

/// How many times as long as the last transaction with large requests small ones have the writer.
const REST: u32 = 5;

/// Large requests that wait for the writer.
pub(crate) struct LargeRequests {
    calls: VecDeque<Command>,
    /// A fetch passed a large turn over.
    turns_wait: bool,
    /// A small call was applied since the last transaction with large requests.
    saw_small: bool,
    rest_until: Instant,
}

impl LargeRequests {
    pub(crate) fn new() -> Self {
        Self { calls: VecDeque::new(), turns_wait: false, saw_small: false, rest_until: Instant::now() }
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

    pub(crate) fn turn_was_passed_over(&mut self) {
        self.turns_wait = true;
    }

    /// When the next transaction with large requests may begin, if one waits.
    pub(crate) fn due_at(&self) -> Option<Instant> {
        (self.turns_wait || !self.calls.is_empty()).then_some(self.rest_until)
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
        (taken, std::mem::take(&mut self.turns_wait))
    }

    /// All calls, for a writer that ends.
    pub(crate) fn take_all(&mut self) -> Vec<Command> {
        self.calls.drain(..).collect()
    }

    /// A transaction with large requests began at `begun` and is over.
    pub(crate) fn done(&mut self, begun: Instant, now: Instant) {
        let took = now.saturating_duration_since(begun);
        let rest =
            if std::mem::take(&mut self.saw_small) { took.saturating_mul(REST) } else { Duration::ZERO };
        self.rest_until = now + rest;
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
        assert_eq!(large.due_at(), None);
        for size in [LARGE_BYTES, 9 << 20, 2 << 20, 2 << 20, 2 << 20] {
            assert!(large.keep_if_large(call(size)).is_none());
        }
        assert_eq!(bytes(&large.take().0), [LARGE_BYTES, 9 << 20]);
        assert_eq!(bytes(&large.take().0), [2 << 20, 2 << 20]);
        assert_eq!(bytes(&large.take_all()), [2 << 20]);
        large.done(Instant::now(), Instant::now());
        for size in [2 << 20, 2 << 20, 40 << 20, 2 << 20] {
            large.keep_if_large(call(size));
        }
        assert_eq!(bytes(&large.take().0), [2 << 20, 2 << 20, 40 << 20], "no small call came since");
        assert_eq!(bytes(&large.take_all()), [2 << 20]);
        assert_eq!(large.due_at(), None);
    }

    #[test]
    fn small_calls_have_the_writer_five_times_as_long_as_a_large_transaction_took() {
        let begun = Instant::now();
        let ended = begun + Duration::from_millis(100);
        let mut large = LargeRequests::new();
        large.keep_if_large(call(1));
        large.done(begun, ended);
        large.turn_was_passed_over();
        assert_eq!(large.due_at(), Some(ended + Duration::from_millis(500)));
        assert!(matches!(large.take(), (calls, true) if calls.is_empty()));
        large.done(begun, ended);
        large.keep_if_large(call(LARGE_BYTES));
        assert_eq!(large.due_at(), Some(ended), "no small call came since");
    }
}
