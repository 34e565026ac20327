//! The stories that are told again with a fault at every moment. Each has one ending, whatever goes wrong once: waits that
//! must not be won last much longer than any fault, and time costs nothing here.

mod activities;
mod instances;
mod messages;

use crate::program::act::{Act, Root};
use crate::program::{End, Program, Step, Task, Way};

/// A story.
pub(super) struct Script {
    pub(super) name: &'static str,
    pub(super) root: Root,
    /// How each instance ends that somebody outside can see: `=` and its output, or `!` and its failure.
    pub(super) endings: Vec<(String, String)>,
}

/// All of them.
pub(super) fn all() -> Vec<Script> {
    [activities::scripts(), instances::scripts(), messages::scripts()].into_iter().flatten().collect()
}

/// Longer than all delays that one fault can cause.
const LONG_MS: u64 = 40_000;

/// A script that is just started.
fn script(name: &'static str, steps: Vec<Step>, output: &str) -> Script {
    acted(name, Program::once(steps), vec![(0, Act::Start)], output)
}

fn acted(name: &'static str, program: Program, acts: Vec<(u64, Act)>, output: &str) -> Script {
    let root = Root { instance: name.to_string(), program, acts, late: Vec::new() };
    Script { name, root, endings: vec![(name.to_string(), format!("={output}"))] }
}

impl Script {
    fn failing(mut self, message: &str) -> Self {
        self.endings[0].1 = format!("!{message}");
        self
    }

    /// What comes after the end changes nothing.
    fn and_then_late(mut self) -> Self {
        let (event, queue) = (Act::Raise(name("e")), Act::Enqueue(name("q")));
        self.root.late = vec![event, queue, Act::Cancel, Act::Start];
        self
    }

    fn also(mut self, instance: &str, ending: &str) -> Self {
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
    Step::Call(task(id), Way::Plain)
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
    fn there_are_thirty_with_names_of_their_own() {
        let scripts = all();
        let names: BTreeSet<&str> = scripts.iter().map(|script| script.name).collect();
        assert_eq!((scripts.len(), names.len()), (30, 30));
    }

    #[test]
    fn programs_agree_with_the_endings() {
        for Script { name, root, endings } in all() {
            let (_, ending) = &endings[0];
            let told = match ending.strip_prefix('=') {
                // The data of messages is not part of an ending; here each must be another.
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
            assert_eq!(root.program.check(Ok(&told)), Ok(()), "{name}");
        }
    }
}
