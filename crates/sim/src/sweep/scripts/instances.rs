//! Several instances: children, detached ones, executions that follow each other, and cancellation.

use super::*;
use crate::program::{Kin, Launch, NEW, OLD, child_id};

pub(super) fn scripts() -> Vec<Script> {
    let kin = Kin::default;
    let leaf = || child(vec![call(9)]);
    let detached =
        |launch: Launch, id: &str| Step::Detached(name(id), child(vec![call(8), Step::Version]), launch);
    let cancelled = "canceled: no longer wanted";
    let cancel_at = |ms: u64| vec![(0, Act::Start), (ms, Act::Cancel)];
    let versioned = child_id("versioned-child", 1, 7);
    vec![
        script("child", vec![Step::Child(leaf(), kin())], "( t9 )"),
        script(
            "child-race-cancelled",
            vec![Step::ChildRace(child(vec![Step::Call(slow(1, 2 * LONG_MS), Way::Plain)]), 2_000), call(2)],
            "late t2",
        ),
        script(
            "grandchild",
            vec![Step::Child(child(vec![Step::Child(leaf(), Kin { is_typed: true, ..kin() })]), kin())],
            "( ( t9 ) )",
        ),
        script("mixed-join", vec![Step::Mixed(task(1), 1_000, leaf())], "t1 timer ( t9 )"),
        script(
            "failing-child",
            vec![Step::Child(Box::new(Program { fails: true, ..*leaf() }), kin()), call(1)],
            "( !planned ) t1",
        ),
        script(
            "versioned-child",
            vec![Step::Child(
                child(vec![Step::Version, call(1)]),
                Kin { name: Some(7), version: Some(name(OLD)), ..kin() },
            )],
            "( v:1.0.0 t1 )",
        )
        .also(&versioned, "=v:1.0.0 t1"),
        script("read-child", vec![Step::ReadChild(3, true)], "( seen=1 ) its:1")
            .also(&child_id("read-child", 1, 3), "=seen=1"),
        script("detached", vec![detached(Launch::Versioned(name(OLD)), "far"), call(1)], "detached t1")
            .also("far", "=t8 v:1.0.0"),
        acted(
            // Both in one turn, and the second execution starts the same id again, which changes nothing.
            "detached-and-continued",
            Program {
                next: Some(name(NEW)),
                ..rounds(2, vec![detached(Launch::Plain, "further"), Step::Version])
            },
            vec![(0, Act::StartVersioned(name(OLD)))],
            "detached v:1.0.0 detached v:2.0.0",
        )
        .also("further", "=t8 v:2.0.0"),
        acted(
            "cancelled-while-working",
            Program::once(vec![Step::Call(slow(1, 2 * LONG_MS), Way::Plain)]),
            cancel_at(5_000),
            "",
        )
        .failing(cancelled),
        acted(
            "cancelled-with-children",
            Program::once(vec![
                Step::LeaveChild(child(vec![Step::Call(slow(1, 2 * LONG_MS), Way::Plain)])),
                Step::Child(child(vec![Step::Child(child(vec![Step::Timer(2 * LONG_MS)]), kin())]), kin()),
            ]),
            cancel_at(5_000),
            "",
        )
        .failing(cancelled),
        script(
            "parent-ends-first",
            vec![
                Step::LeaveChild(child(vec![Step::Call(slow(1, 6_000), Way::Plain)])),
                Step::LeaveActivity(slow(2, 6_000)),
            ],
            "left left",
        ),
    ]
}
