//! Scripts of several instances: children, detached starts, continue-as-new and cancellation.

use super::*;
use crate::program::{ChildCall, DetachedCall, NEW, OLD, child_id};

pub(super) fn scripts() -> Vec<Script> {
    let child_call = ChildCall::default;
    let leaf = || child(vec![call(9)]);
    let detached =
        |form: DetachedCall, id: &str| Step::Detached(name(id), child(vec![call(8), Step::Version]), form);
    let cancelled = "canceled: no longer wanted";
    let cancel_at = |ms: u64| vec![(0, Action::Start), (ms, Action::Cancel)];
    let versioned = child_id("versioned-child", 1, 7);
    vec![
        script("child", vec![Step::Child(leaf(), child_call())], "( t9 )"),
        script(
            "child-race-cancelled",
            vec![
                Step::ChildRace(child(vec![Step::Call(slow(1, 2 * LONG_MS), ActivityCall::Plain)]), 2_000),
                call(2),
            ],
            "late t2",
        ),
        script(
            "grandchild",
            vec![Step::Child(
                child(vec![Step::Child(leaf(), ChildCall { is_typed: true, ..child_call() })]),
                child_call(),
            )],
            "( ( t9 ) )",
        ),
        script("mixed-join", vec![Step::Mixed(task(1), 1_000, leaf())], "t1 timer ( t9 )"),
        script(
            "failing-child",
            vec![Step::Child(Box::new(Program { fails: true, ..*leaf() }), child_call()), call(1)],
            "( !planned ) t1",
        ),
        script(
            "versioned-child",
            vec![Step::Child(
                child(vec![Step::Version, call(1)]),
                ChildCall { name: Some(7), version: Some(name(OLD)), ..child_call() },
            )],
            "( v:1.0.0 t1 )",
        )
        .with_ending_of(&versioned, "=v:1.0.0 t1"),
        script("read-child", vec![Step::ReadChild(3, true)], "( seen=1 ) its:1")
            .with_ending_of(&child_id("read-child", 1, 3), "=seen=1"),
        script("detached", vec![detached(DetachedCall::Versioned(name(OLD)), "far"), call(1)], "detached t1")
            .with_ending_of("far", "=t8 v:1.0.0"),
        script_with_actions(
            // Both happen in one turn. The second execution starts the same id again, which changes nothing.
            "detached-and-continued",
            Program {
                next: Some(name(NEW)),
                ..rounds(2, vec![detached(DetachedCall::Plain, "further"), Step::Version])
            },
            vec![(0, Action::StartVersioned(name(OLD)))],
            "detached v:1.0.0 detached v:2.0.0",
        )
        .with_ending_of("further", "=t8 v:2.0.0"),
        script_with_actions(
            "cancelled-while-working",
            Program::once(vec![Step::Call(slow(1, 2 * LONG_MS), ActivityCall::Plain)]),
            cancel_at(5_000),
            "",
        )
        .with_failure(cancelled),
        script_with_actions(
            "cancelled-with-children",
            Program::once(vec![
                Step::LeaveChild(child(vec![Step::Call(slow(1, 2 * LONG_MS), ActivityCall::Plain)])),
                Step::Child(
                    child(vec![Step::Child(child(vec![Step::Timer(2 * LONG_MS)]), child_call())]),
                    child_call(),
                ),
            ]),
            cancel_at(5_000),
            "",
        )
        .with_failure(cancelled),
        script(
            "parent-ends-first",
            vec![
                Step::LeaveChild(child(vec![Step::Call(slow(1, 6_000), ActivityCall::Plain)])),
                Step::LeaveActivity(slow(2, 6_000)),
            ],
            "left left",
        ),
        script_with_actions(
            "paused",
            Program::once(vec![call(1), Step::Timer(3_000), call(2)]),
            vec![(0, Action::Start), (1_000, Action::Pause), (15_000, Action::Resume)],
            "t1 timer t2",
        ),
        script_with_actions(
            "paused-and-cancelled",
            Program::once(vec![Step::Timer(LONG_MS), call(1)]),
            vec![(0, Action::Start), (5_000, Action::Pause), (15_000, Action::Cancel)],
            "",
        )
        .with_failure(cancelled),
    ]
}
