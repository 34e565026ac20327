//! The scripts of a sweep. Each script has one possible result, whichever single fault happens: a timer that must not win lasts
//! much longer than any fault. Long timers do not slow a sweep, because time is virtual.

mod activities;
mod instances;
mod messages;
mod operator;

use crate::program::action::{Action, Root};
use crate::program::{ActivityCall, End, Program, Step, Task};

/// A script.
pub(super) struct Script {
    pub(super) name: &'static str,
    pub(super) root: Root,
    /// The expected ending of each instance that is visible to clients: `=` and its output, or `!` and its failure.
    pub(super) endings: Vec<(String, String)>,
    /// When an operator pauses all orchestrations, and for how long.
    pub(super) pause: Option<(u64, u64)>,
}

/// All scripts.
pub(super) fn all() -> Vec<Script> {
    [activities::scripts(), instances::scripts(), messages::scripts(), operator::scripts()]
        .into_iter()
        .flatten()
        .collect()
}

/// Longer than all delays that one fault can cause.
const LONG_MS: u64 = 40_000;

/// A script whose client only starts it.
fn script(name: &'static str, steps: Vec<Step>, output: &str) -> Script {
    script_with_actions(name, Program::once(steps), vec![(0, Action::Start)], output)
}

fn script_with_actions(
    name: &'static str,
    program: Program,
    actions: Vec<(u64, Action)>,
    output: &str,
) -> Script {
    let root = Root { instance: name.to_string(), program, actions, actions_after_end: Vec::new() };
    Script { name, root, endings: vec![(name.to_string(), format!("={output}"))], pause: None }
}

impl Script {
    fn with_failure(mut self, message: &str) -> Self {
        self.endings[0].1 = format!("!{message}");
        self
    }

    /// The client sends messages, cancels and starts after the end. They must change nothing.
    fn with_actions_after_end(mut self) -> Self {
        let (event, queue) = (Action::Raise(name("e")), Action::Enqueue(name("q")));
        self.root.actions_after_end = vec![event, queue, Action::Cancel, Action::Start];
        self
    }

    fn with_pause_of_orchestrations(self, at_ms: u64, ms: u64) -> Self {
        Self { pause: Some((at_ms, ms)), ..self }
    }

    fn with_ending_of(mut self, instance: &str, ending: &str) -> Self {
        self.endings.push((instance.to_string(), ending.to_string()));
        self
    }
}

fn task(id: u64) -> Task {
    Task { id, ..Task::default() }
}

fn slow(id: u64, ms: u64) -> Task {
    Task { id, ms, ..Task::default() }
}

fn ending(id: u64, end: End) -> Task {
    Task { id, end, ..Task::default() }
}

fn call(id: u64) -> Step {
    Step::Call(task(id), ActivityCall::Plain)
}

fn child(steps: Vec<Step>) -> Box<Program> {
    Box::new(Program::once(steps))
}

fn rounds(rounds: u32, steps: Vec<Step>) -> Program {
    Program { rounds, steps, ..Program::default() }
}

fn name(text: &str) -> String {
    text.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn scripts_have_distinct_names() {
        let scripts = all();
        let names: BTreeSet<&str> = scripts.iter().map(|script| script.name).collect();
        assert_eq!((scripts.len(), names.len()), (37, 37));
    }

    #[test]
    fn endings_match_the_expected_output_of_programs() {
        for Script { name, root, endings, .. } in all() {
            let (_, ending) = &endings[0];
            let words_of_output = match ending.strip_prefix('=') {
                // The data of messages is not part of an ending; here each message has its own.
                Some(output) => {
                    let mut nth = 0;
                    let mut words = |word: &str| {
                        nth += 1;
                        if word == "read" { format!("read:{nth}") } else { word.to_string() }
                    };
                    output.split(' ').map(&mut words).collect::<Vec<_>>().join(" ")
                }
                None => continue,
            };
            assert_eq!(root.program.check(Ok(&words_of_output)), Ok(()), "{name}");
        }
    }
}
