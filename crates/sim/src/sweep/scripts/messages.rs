//! What clients send.

use super::*;
use crate::program::{Take, Wait};

pub(super) fn scripts() -> Vec<Script> {
    let queue = || name("q");
    let take = || Step::Dequeue(name("q"), Take::Plain);
    let crowd = std::iter::repeat_n((0, Act::Enqueue(name("crowd"))), CROWD);
    vec![
        acted(
            "queue",
            Program::once(vec![take(), Step::Ask(ending(1, End::Sends)), take()]),
            vec![(0, Act::Start), (0, Act::Enqueue(queue())), (2_000, Act::EnqueueOtherwise(queue()))],
            "read t1 read read",
        ),
        acted(
            "queue-carried-over",
            rounds(3, vec![take()]),
            vec![(0, Act::StartOnce(Some(queue()))), (0, Act::Enqueue(queue())), (0, Act::Enqueue(queue()))],
            "read read read",
        ),
        acted(
            "signal-before-the-wait",
            Program::once(vec![Step::Timer(20_000), Step::Signal(name("e"), 1_000, Wait::Plain)]),
            vec![(0, Act::Start), (1_000, Act::Raise(name("e")))],
            "timer late",
        ),
        acted(
            "signal-after-the-wait",
            Program::once(vec![Step::Race3(slow(1, 2 * LONG_MS), 2 * LONG_MS, name("e"))]),
            vec![(0, Act::Start), (15_000, Act::Raise(name("e")))],
            "read",
        ),
        acted(
            "a-crowd-in-the-queue",
            Program::once(vec![Step::Drain(name("crowd"), CROWD as u64, 20_000)]),
            [(0, Act::Start)].into_iter().chain(crowd).collect(),
            &["read"; CROWD].join(" "),
        ),
    ]
}

/// More than the contract carries over, and more than it delivers in a turn.
const CROWD: usize = 120;
