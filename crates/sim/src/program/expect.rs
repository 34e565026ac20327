//! What a program must print.

use super::{Program, Step};
use std::collections::{BTreeMap, BTreeSet};

/// The output of a program, word by word.
struct Reader<'a> {
    words: std::str::SplitWhitespace<'a>,
    /// Messages and events that were read: each can be read once.
    read: BTreeSet<&'a str>,
}

impl Program {
    /// Whether an instance that ran this program may have returned this.
    pub(crate) fn check(&self, output: Result<&str, &str>) -> Result<(), String> {
        match (self.fails, output) {
            (true, Err("planned")) => Ok(()),
            (true, other) => Err(format!("it must fail as planned, not return {other:?}")),
            (false, Err(error)) => Err(format!("it failed: {error}")),
            (false, Ok(output)) => {
                let mut reader = Reader { words: output.split_whitespace(), read: BTreeSet::new() };
                reader.program(self).map_err(|problem| format!("it printed '{output}': {problem}"))?;
                match reader.words.next() {
                    Some(word) => Err(format!("it printed '{output}': nothing may follow before '{word}'")),
                    None => Ok(()),
                }
            }
        }
    }
}

impl<'a> Reader<'a> {
    fn program(&mut self, program: &Program) -> Result<(), String> {
        let mut counts = BTreeMap::new();
        for step in program.all_steps() {
            self.step(step, &mut counts)?;
        }
        Ok(())
    }

    fn step<'p>(&mut self, step: &'p Step, counts: &mut BTreeMap<&'p str, u64>) -> Result<(), String> {
        match step {
            Step::Call(task) | Step::Session(task, _) | Step::Retry(task) => {
                self.word(&[&format!("t{}", task.id)])
            }
            Step::FanOut(tasks) => tasks.iter().try_for_each(|task| self.word(&[&format!("t{}", task.id)])),
            Step::Timer(_) => self.word(&["timer"]),
            Step::Race(task, _) => self.word(&[&format!("t{}", task.id), "late"]),
            Step::Child(program) => {
                self.word(&["("])?;
                self.child(program)
            }
            Step::ChildRace(program, _) => match self.words.next() {
                Some("late") => Ok(()),
                Some("(") => self.child(program),
                other => Err(format!("expected a child or 'late', not {other:?}")),
            },
            Step::Detached(..) => self.word(&["detached"]),
            Step::Dequeue(_) => self.message(false),
            Step::DequeueOrLeave(..) | Step::Signal(..) => self.message(true),
            Step::Count(key) => {
                let count = counts.entry(key).or_default();
                *count += 1;
                self.word(&[&format!("{key}={count}")])
            }
            Step::Status(_) => Ok(()),
            Step::Now => self.word(&["now"]),
        }
    }

    fn child(&mut self, program: &Program) -> Result<(), String> {
        match program.fails {
            true => self.word(&["!planned"])?,
            false => self.program(program)?,
        }
        self.word(&[")"])
    }

    fn word(&mut self, allowed: &[&str]) -> Result<(), String> {
        let word = self.words.next();
        match word.is_some_and(|word| allowed.contains(&word)) {
            true => Ok(()),
            false => Err(format!("expected one of {allowed:?}, not {word:?}")),
        }
    }

    fn message(&mut self, may_be_late: bool) -> Result<(), String> {
        match self.words.next() {
            Some("late") if may_be_late => Ok(()),
            Some(word) if word.starts_with("read:") => match self.read.insert(word) {
                true => Ok(()),
                false => Err(format!("'{word}' was read twice")),
            },
            other => Err(format!("expected a message, not {other:?}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::Task;

    #[test]
    fn programs_know_what_they_print() {
        let task = |id| Task { id, ms: 0, failures: 0 };
        let child = Program { rounds: 1, steps: vec![Step::Call(task(2))], fails: false };
        let steps = vec![
            Step::Race(task(1), 5),
            Step::Child(Box::new(child)),
            Step::Count("k".to_string()),
            Step::Dequeue("q".to_string()),
        ];
        let program = Program { rounds: 2, steps, fails: false };
        let good = "t1 ( t2 ) k=1 read:a late ( t2 ) k=2 read:b";
        assert_eq!(program.check(Ok(good)), Ok(()));
        for bad in [
            "t1 ( t2 ) k=1 read:a late ( t2 ) k=1 read:b",
            "t1 ( t2 ) k=1 read:a late ( t2 ) k=2 read:a",
            "t1 ( t2 ) k=1 read:a late ( t2 ) k=2",
            "t1 ( t2 ) k=1 read:a late ( t2 ) k=2 read:b t1",
            "t1 t2 k=1 read:a late ( t2 ) k=2 read:b",
        ] {
            assert!(program.check(Ok(bad)).is_err(), "{bad}");
        }
        assert!(program.check(Err("no")).is_err());
        assert_eq!(Program { fails: true, ..program }.check(Err("planned")), Ok(()));
    }
}
