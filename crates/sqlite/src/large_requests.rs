//! The share of the writer's time that large requests get.
//!
//! A call that stores megabytes, and a fetch of a turn with megabytes of messages, takes a hundred times as long as other
//! requests. Each instance needs several transactions one after the other, so without a limit a few instances with large messages
//! would slow down all others. Large requests therefore run in transactions without small calls. If small calls came before
//! such a transaction, a large turn has at most [`STEP_BYTES`] of messages, and large requests pause after it for [`SMALL_SHARE`] times its duration. The pause ends early when no request
//! comes for the duration of the transaction, and when a fetch that does not park could have a large turn.

use crate::command::Command;
use outlast_provider::MessageBound;
use std::collections::VecDeque;
use std::time::Duration;

/// A request with this many bytes is large.
pub(crate) const LARGE_BYTES: usize = 1 << 20;

/// The bytes of large calls in one transaction, and those of a large turn, if small requests came since the last one, and if none
/// came. A single call and a single message may be larger.
const STEP_BYTES: usize = 4 << 20;
const STEP_BYTES_ALONE: usize = 32 << 20;

/// After a transaction with large requests, only small requests run for this many times its duration.
const SMALL_SHARE: u64 = 5;

/// The longest duration of a transaction that counts, in case the clock was set.
const LONGEST_MS: u64 = 2_000;

/// Large requests that wait for the writer.
pub(crate) struct LargeRequests {
    calls: VecDeque<Command>,
    /// Whether a fetch passed over a large turn.
    turn_waits: bool,
    /// Whether no fetch was waiting when a large turn could be handed out: the next fetch may have it.
    next_fetch_may_take_large: bool,
    /// Whether a fetch that does not park waits for a large turn.
    is_urgent: bool,
    /// Whether the last transaction had large requests.
    was_last: bool,
    /// Whether a small call came since the last transaction with large requests.
    saw_small: bool,
    /// The end of the last transaction with large requests.
    ended_at: u64,
    /// How long only small requests run after `ended_at`.
    pause_ms: u64,
}

impl LargeRequests {
    pub(crate) fn new() -> Self {
        Self {
            calls: VecDeque::new(),
            turn_waits: false,
            next_fetch_may_take_large: false,
            is_urgent: false,
            was_last: false,
            saw_small: false,
            ended_at: 0,
            pause_ms: 0,
        }
    }

    /// Keeps a large call, and returns any other command.
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

    /// A transaction with small requests begins. Returns which large turns it hands out.
    pub(crate) fn small_begins(&mut self) -> LargeTurns {
        self.was_last = false;
        match self.next_fetch_may_take_large {
            true => LargeTurns::One { most_bytes: self.step_bytes() },
            false => LargeTurns::Held { was_passed_over: false },
        }
    }

    /// A transaction with small requests ended. If it handed out a large turn, large requests pause.
    pub(crate) fn small_ended(&mut self, ended: EndedTransaction) {
        if self.next_fetch_may_take_large && !ended.large_turns.is_left() {
            self.pause(ended);
        }
        self.note_passed_over(ended);
    }

    /// A transaction with large requests ended. `is_turn_due`: a fetch had passed over a large turn before it.
    pub(crate) fn large_ended(&mut self, ended: EndedTransaction, is_turn_due: bool) {
        self.pause(ended);
        self.note_passed_over(ended);
        // No fetch was waiting for the large turn, so the next fetch may have it.
        self.next_fetch_may_take_large |= is_turn_due && ended.large_turns.is_left();
    }

    fn note_passed_over(&mut self, ended: EndedTransaction) {
        if ended.large_turns.was_passed_over() {
            self.turn_waits = true;
            self.is_urgent |= ended.is_fetch_urgent;
        }
    }

    /// Whether the last transaction had large requests: then waiting small requests are applied first.
    pub(crate) fn was_last(&self) -> bool {
        self.was_last
    }

    /// The time until the next transaction with large requests may begin; `None` without large requests. A clock that was set
    /// back ends the pause.
    pub(crate) fn due_in(&self, now: u64) -> Option<Duration> {
        let waits = self.turn_waits || !self.calls.is_empty();
        let paused = now.checked_sub(self.ended_at).unwrap_or(self.pause_ms);
        let left = if self.is_urgent { 0 } else { self.pause_ms.saturating_sub(paused) };
        waits.then(|| Duration::from_millis(left))
    }

    /// The pause ends when no request comes for this long.
    pub(crate) fn idle_limit(&self) -> Duration {
        Duration::from_millis(self.pause_ms / SMALL_SHARE)
    }

    /// Ends the pause of large requests.
    pub(crate) fn end_pause(&mut self) {
        self.pause_ms = 0;
    }

    /// Whether a small call came since the last transaction with large requests.
    pub(crate) fn saw_small(&self) -> bool {
        self.saw_small
    }

    /// The bytes of large calls, and those of a large turn, in the next transaction.
    pub(crate) fn step_bytes(&self) -> usize {
        if self.saw_small { STEP_BYTES } else { STEP_BYTES_ALONE }
    }

    /// The calls of the next transaction, and whether it may hand out a large turn.
    pub(crate) fn take(&mut self) -> (Vec<Command>, bool) {
        let mut taken = Vec::new();
        let mut bytes = 0;
        let most = self.step_bytes();
        while bytes < most
            && let Some(command) = self.calls.pop_front()
        {
            if let Command::Call(call) = &command {
                bytes += call.bytes();
            }
            taken.push(command);
        }
        self.is_urgent = false;
        (taken, std::mem::take(&mut self.turn_waits))
    }

    /// All calls, when the writer ends.
    pub(crate) fn take_all(&mut self) -> Vec<Command> {
        self.calls.drain(..).collect()
    }

    /// Begins the pause after a transaction with large requests, or after one that handed out a large turn.
    fn pause(&mut self, EndedTransaction { begun_at, ended_at, .. }: EndedTransaction) {
        let took = ended_at.saturating_sub(begun_at).min(LONGEST_MS);
        self.pause_ms = if std::mem::take(&mut self.saw_small) { took * SMALL_SHARE } else { 0 };
        self.ended_at = ended_at;
        self.next_fetch_may_take_large = false;
        self.was_last = true;
    }
}

/// A transaction that ended, as far as it concerns large requests.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EndedTransaction {
    pub(crate) begun_at: u64,
    pub(crate) ended_at: u64,
    pub(crate) large_turns: LargeTurns,
    /// Whether a fetch that does not park waits for a large turn.
    pub(crate) is_fetch_urgent: bool,
}

/// Whether fetches are given turns with large messages.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) enum LargeTurns {
    /// In every transaction: a writer without a thread.
    #[default]
    Unlimited,
    /// One in the next transaction.
    One { most_bytes: usize },
    /// None in the next transaction.
    Held {
        /// Whether a fetch passed over a large turn.
        was_passed_over: bool,
    },
}

impl LargeTurns {
    /// Whether a fetch passed over a large turn.
    fn was_passed_over(self) -> bool {
        matches!(self, Self::Held { was_passed_over: true })
    }

    /// Whether a large turn could have been handed out, and no fetch took one.
    fn is_left(self) -> bool {
        matches!(self, Self::One { .. })
    }

    /// A fetch reads no more messages of an instance after this many bytes: it passes the turn over.
    pub(crate) fn read_limit(self) -> usize {
        match self {
            Self::Held { .. } => LARGE_BYTES,
            Self::Unlimited | Self::One { .. } => usize::MAX,
        }
    }

    /// The messages that a fetch takes, of those that its own bound allows.
    pub(crate) fn narrow(self, bound: MessageBound) -> MessageBound {
        match self {
            Self::One { most_bytes } => MessageBound::new(bound.messages, bound.bytes.min(most_bytes)),
            Self::Unlimited | Self::Held { .. } => bound,
        }
    }

    /// Whether the fetch takes a turn with this many bytes now.
    pub(crate) fn take(&mut self, bytes: usize) -> bool {
        if bytes < LARGE_BYTES {
            return true;
        }
        match self {
            Self::Unlimited => true,
            Self::One { .. } => {
                *self = Self::Held { was_passed_over: false };
                true
            }
            Self::Held { was_passed_over } => {
                *was_passed_over = true;
                false
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::command::{CallInfo, PendingCall};

    /// A call that stores this many bytes.
    pub(crate) fn call(bytes: usize) -> Command {
        let info = CallInfo::of("test").bytes(bytes);
        Command::Call(Box::new(PendingCall::new(info, (), |_, ()| Ok(()), |_, ()| {}, None).0))
    }

    /// A transaction that handed out no large turn.
    pub(crate) fn ended(begun_at: u64, ended_at: u64) -> EndedTransaction {
        let large_turns = LargeTurns::Held { was_passed_over: false };
        EndedTransaction { begun_at, ended_at, large_turns, is_fetch_urgent: false }
    }

    fn passed_over(is_fetch_urgent: bool) -> EndedTransaction {
        let large_turns = LargeTurns::Held { was_passed_over: true };
        EndedTransaction { large_turns, is_fetch_urgent, ..ended(0, 0) }
    }

    fn bytes(commands: &[Command]) -> Vec<usize> {
        let of = |command: &Command| match command {
            Command::Call(call) => call.bytes(),
            _ => 0,
        };
        commands.iter().map(of).collect()
    }

    #[test]
    fn large_calls_are_kept_and_taken_in_order_within_the_step_bytes() {
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
        large.pause(ended(0, 0));
        for size in [2 << 20, 2 << 20, 40 << 20, 2 << 20] {
            large.keep_if_large(call(size));
        }
        assert_eq!(bytes(&large.take().0), [2 << 20, 2 << 20, 40 << 20], "no small call came since");
        assert_eq!(bytes(&large.take_all()), [2 << 20]);
        assert_eq!(large.due_in(0), None);
    }

    #[test]
    fn large_turn_has_the_step_bytes_only_beside_small_calls() {
        let bound = MessageBound::new(10, 8 << 20);
        let mut large = LargeRequests::new();
        large.next_fetch_may_take_large = true;
        assert_eq!(large.small_begins().narrow(bound).bytes, 8 << 20);
        large.keep_if_large(call(1));
        assert_eq!(large.small_begins().narrow(bound).bytes, STEP_BYTES);
        assert_eq!(large.small_begins().narrow(MessageBound::new(10, 7)).bytes, 7);
        assert_eq!(LargeTurns::Unlimited.narrow(bound).bytes, 8 << 20);
    }

    #[test]
    fn pause_after_large_transaction_is_five_times_its_duration_if_small_calls_came() {
        let mut large = LargeRequests::new();
        large.keep_if_large(call(1));
        large.pause(ended(1_000, 1_100));
        large.note_passed_over(passed_over(false));
        let due_in = |large: &LargeRequests, now| large.due_in(now).map(|wait| wait.as_millis());
        for (now, wait) in [(1_100, 500), (1_599, 1), (1_600, 0), (9_000, 0), (1_099, 0)] {
            assert_eq!(due_in(&large, now), Some(wait), "at {now}");
        }
        assert_eq!(large.idle_limit(), Duration::from_millis(100));
        large.note_passed_over(passed_over(true));
        assert_eq!(due_in(&large, 1_100), Some(0), "the pause ends for a fetch that does not park");
        assert!(matches!(large.take(), (calls, true) if calls.is_empty()));
        assert_eq!(due_in(&large, 1_100), None);
        large.note_passed_over(passed_over(false));
        assert_eq!(due_in(&large, 1_100), Some(500));
        large.end_pause();
        assert_eq!(due_in(&large, 1_100), Some(0));
        large.pause(ended(1_000, 1_100));
        large.keep_if_large(call(LARGE_BYTES));
        assert_eq!(due_in(&large, 1_100), Some(0), "no small call came since");
    }
}
