//! Scripts of an operator that resets and forks instances, and pauses orchestrations.

use super::*;
use crate::program::{ChildCall, DequeueCall};

/// At this time an instance waits in its long timer, whichever single fault happened before.
const SAFE_MS: u64 = LONG_MS / 2;

pub(super) fn scripts() -> Vec<Script> {
    let at = |action: Action| vec![(0, Action::Start), (SAFE_MS, action)];
    let in_a_timer = || vec![call(1), Step::Timer(3_000), call(2), Step::Timer(LONG_MS), call(3)];
    let read = Step::Dequeue(name("q"), DequeueCall::Plain);
    vec![
        script("orchestration-paused", vec![call(1), Step::Timer(3_000), call(2)], "t1 timer t2")
            .with_pause_of_orchestrations(1_000, 14_000),
        script_with_actions(
            // The message is read again, the key is set again, and the running activity runs again.
            "reset",
            Program::once(vec![
                call(1),
                read,
                Step::Count(name("k"), false),
                Step::Call(slow(2, LONG_MS), ActivityCall::Plain),
                Step::Keys,
            ]),
            vec![(0, Action::Start), (1_000, Action::Enqueue(name("q"))), (SAFE_MS, Action::Reset(200))],
            "t1 read k=1 t2 keys:k=1",
        ),
        script_with_actions(
            // The child is cancelled, and another one takes its place.
            "reset-with-child",
            Program::once(vec![
                call(1),
                Step::Child(child(vec![Step::Timer(LONG_MS), call(9)]), ChildCall::default()),
                call(2),
            ]),
            at(Action::ResetTree(600)),
            "t1 ( timer t9 ) t2",
        ),
        script_with_actions(
            "fork",
            Program::once(in_a_timer()),
            at(Action::Fork(name("fork-copy"), 600)),
            "t1 timer t2 timer t3",
        )
        .with_ending_of("fork-copy", "=t1 timer t2 timer t3"),
    ]
}
