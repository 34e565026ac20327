//! Scripts of activities, timers, keys and status.

use super::*;

pub(super) fn scripts() -> Vec<Script> {
    let count = |key: &str| Step::Count(name(key), false);
    vec![
        script("hello", vec![call(1)], "t1").with_actions_after_end(),
        script(
            "chain",
            vec![
                call(1),
                Step::Call(task(2), ActivityCall::Tagged(name(crate::program::TAGS[0]))),
                Step::Call(task(3), ActivityCall::Typed),
            ],
            "t1 t2 t3",
        ),
        script(
            "fan-out",
            vec![Step::FanOut(vec![task(1), slow(2, 300), task(3), task(4)], true)],
            "t1 t2 t3 t4",
        ),
        script("race-won", vec![Step::Race(task(1), LONG_MS)], "t1"),
        script("race-lost", vec![Step::Race(slow(1, 2 * LONG_MS), 1_000), call(2)], "late t2"),
        script(
            "races-in-a-join",
            vec![Step::TwoRaces([(task(1), LONG_MS), (slow(2, 2 * LONG_MS), 1_000)])],
            "t1 late",
        ),
        script("timer", vec![Step::Timer(3_000), call(1)], "timer t1"),
        script(
            "session",
            vec![
                Step::Call(task(1), ActivityCall::Session(name("s"))),
                Step::Call(task(2), ActivityCall::SessionTyped(name("s"))),
            ],
            "t1 t2",
        ),
        script("noted", vec![Step::Call(Task { failures: 2, ..task(1) }, ActivityCall::Noted)], "t1"),
        script("retry", vec![Step::Retry(Task { failures: 2, ..task(1) }, ActivityCall::Plain, None)], "t1"),
        script(
            "retry-with-timeout",
            vec![
                Step::Retry(slow(1, 2 * LONG_MS), ActivityCall::Plain, Some(1_000)),
                Step::Retry(task(2), ActivityCall::Session(name("s")), Some(LONG_MS)),
            ],
            "!timeout:_activity_timed_out t2",
        ),
        script(
            "failing-activity",
            vec![
                Step::Call(ending(1, End::Fails), ActivityCall::Plain),
                Step::Call(ending(2, End::Panics), ActivityCall::Plain),
            ],
            "!t1-fails !t2-panics",
        ),
        script_with_actions(
            "keys",
            rounds(2, vec![count("a"), count("b"), call(1), Step::Keys, Step::ClearKey(name("b"))]),
            vec![(0, Action::Start)],
            "a=1 b=1 t1 keys:a=1,b=1 cleared: a=2 b=1 t1 keys:a=2,b=1 cleared:",
        ),
        script(
            "status",
            vec![Step::Status(name("half")), call(1), Step::ResetStatus, Step::Guid, Step::Now, Step::Look],
            "status:half t1 status: guid now look:1",
        ),
    ]
}
