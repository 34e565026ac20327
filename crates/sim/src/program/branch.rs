//! Roots that an operator resets or forks while they run.
//!
//! A reset or fork must not change the output of a program. So these programs have no step whose outcome depends on the number of the
//! execution, and a forked program needs no message: no client sends to the copy.

use super::action::{Action, Root};
use super::step::{ActivityCall, ChildCall, DequeueCall, Step};
use super::{Program, Task};
use outlast_testkit::rng::Rng;

/// The instance that is reset, and the instance that is forked.
const RESET: &str = "reset";
const FORKED: &str = "forked";

/// The roots of a world with an operator.
pub(crate) fn roots(rng: &mut Rng, safety_ms: u64) -> Vec<Root> {
    vec![reset_root(rng, safety_ms), forked_root(rng, safety_ms)]
}

fn call(rng: &mut Rng, id: u64) -> Step {
    Step::Call(Task { id, ms: rng.below(600), ..Task::default() }, ActivityCall::Plain)
}

fn child(rng: &mut Rng, id: u64) -> Step {
    Step::Child(Box::new(Program::once(vec![call(rng, id)])), ChildCall::default())
}

fn count() -> Step {
    Step::Count("k0".to_string(), false)
}

fn reset_root(rng: &mut Rng, safety_ms: u64) -> Root {
    let dequeue = |queue: &str| Step::Dequeue(queue.to_string(), DequeueCall::Plain);
    let steps = vec![
        count(),
        call(rng, 1),
        dequeue("q0"),
        child(rng, 2),
        Step::Timer(rng.below(500)),
        Step::Status("half".to_string()),
        call(rng, 3),
        dequeue("q1"),
        count(),
        Step::Keys,
    ];
    let began = rng.below(safety_ms / 2);
    let mut actions = vec![(began, Action::Start)];
    for queue in ["q0", "q1"] {
        actions.push((began + rng.below(2_000), Action::Enqueue(queue.to_string())));
    }
    for _ in 0..rng.between(1, 3) {
        actions.push((began + rng.below(5_000), Action::Reset(rng.below(1_000))));
    }
    root(RESET, steps, actions)
}

fn forked_root(rng: &mut Rng, safety_ms: u64) -> Root {
    let steps = vec![
        count(),
        call(rng, 1),
        child(rng, 2),
        Step::Timer(rng.below(500)),
        call(rng, 3),
        count(),
        Step::Keys,
    ];
    let began = rng.below(safety_ms / 2);
    let fork = Action::Fork(format!("{FORKED}-copy"), rng.below(1_000));
    let actions = vec![(began, Action::Start), (began + rng.below(3_000), fork)];
    root(FORKED, steps, actions)
}

fn root(instance: &str, steps: Vec<Step>, mut actions: Vec<(u64, Action)>) -> Root {
    actions.sort_by_key(|(at, _)| *at);
    Root {
        instance: instance.to_string(),
        program: Program::once(steps),
        actions,
        actions_after_end: Vec::new(),
    }
}
