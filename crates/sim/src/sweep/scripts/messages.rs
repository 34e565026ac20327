//! Scripts of messages that clients send.

use super::*;
use crate::program::{DequeueCall, WaitCall};

pub(super) fn scripts() -> Vec<Script> {
    let queue = || name("q");
    let take = || Step::Dequeue(name("q"), DequeueCall::Plain);
    let crowd = std::iter::repeat_n((0, Action::Enqueue(name("crowd"))), CROWD);
    vec![
        script_with_actions(
            "queue",
            Program::once(vec![take(), Step::Ask(ending(1, End::Sends)), take()]),
            vec![
                (0, Action::Start),
                (0, Action::Enqueue(queue())),
                (2_000, Action::EnqueueOtherwise(queue())),
            ],
            "read t1 read read",
        ),
        script_with_actions(
            "queue-carried-over",
            rounds(3, vec![take()]),
            vec![
                (0, Action::StartOnce(Some(queue()))),
                (0, Action::Enqueue(queue())),
                (0, Action::Enqueue(queue())),
            ],
            "read read read",
        ),
        script_with_actions(
            "signal-before-the-wait",
            Program::once(vec![Step::Timer(20_000), Step::Signal(name("e"), 1_000, WaitCall::Plain)]),
            vec![(0, Action::Start), (1_000, Action::Raise(name("e")))],
            "timer late",
        ),
        script_with_actions(
            "signal-after-the-wait",
            Program::once(vec![Step::Race3(slow(1, 2 * LONG_MS), 2 * LONG_MS, name("e"))]),
            vec![(0, Action::Start), (15_000, Action::Raise(name("e")))],
            "read",
        ),
        script_with_actions(
            "a-crowd-in-the-queue",
            Program::once(vec![Step::Drain(name("crowd"), CROWD as u64, 20_000)]),
            [(0, Action::Start)].into_iter().chain(crowd).collect(),
            &["read"; CROWD].join(" "),
        ),
    ]
}

/// More messages than the contract carries over, and more than it delivers in a turn.
const CROWD: usize = 120;
