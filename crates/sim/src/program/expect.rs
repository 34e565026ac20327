//! Checks the output of a program.

use super::{ChildCall, NEW, OLD, Program, Step, Task};
use std::collections::{BTreeMap, BTreeSet};

/// Reads the output of a program word by word.
struct Reader<'a> {
    words: std::iter::Peekable<std::str::SplitWhitespace<'a>>,
    /// Data of messages and events in the output. Each may occur once.
    read: BTreeSet<&'a str>,
}

/// The expected state of an instance.
#[derive(Default)]
struct Instance<'p> {
    keys: BTreeMap<&'p str, u64>,
    execution: u64,
    /// The version that the execution was started with, if any.
    version: Option<&'p str>,
}

impl Program {
    /// Checks the output or the failure of an instance that ran this program.
    pub(crate) fn check(&self, output: Result<&str, &str>) -> Result<(), String> {
        match (self.fails, output) {
            (true, Err("planned")) => Ok(()),
            (true, other) => Err(format!("the program must fail with 'planned', and returned {other:?}")),
            (false, Err(error)) => Err(format!("the program failed: {error}")),
            (false, Ok(output)) => self.check_output(&plain(output)),
        }
    }

    fn check_output(&self, output: &str) -> Result<(), String> {
        let mut reader = Reader { words: output.split_whitespace().peekable(), read: BTreeSet::new() };
        reader.program(self, None).map_err(|problem| format!("the output is '{output}': {problem}"))?;
        match reader.words.next() {
            Some(word) => Err(format!("the output '{output}' must end before '{word}'")),
            None => Ok(()),
        }
    }
}

/// The output without the quotes of a typed value. No program prints a quote.
pub(crate) fn plain(output: &str) -> String {
    match output.starts_with('"') {
        true => serde_json::from_str(output).unwrap_or_else(|_| output.to_string()),
        false => output.to_string(),
    }
}

/// The output of an attempt that timed out.
const TIMED_OUT: &str = "!timeout:_activity_timed_out";

impl<'a> Reader<'a> {
    fn program(&mut self, program: &Program, version: Option<&str>) -> Result<(), String> {
        let mut instance = Instance { version, ..Instance::default() };
        for execution in 1..=u64::from(program.rounds) {
            if execution > 1 {
                instance.version = program.next.as_deref();
            }
            instance.execution = execution;
            program.steps.iter().try_for_each(|step| self.step(step, &mut instance))?;
        }
        Ok(())
    }

    fn step<'p>(&mut self, step: &'p Step, instance: &mut Instance<'p>) -> Result<(), String> {
        match step {
            Step::Call(task, _) => self.word(&[&task.word()])?,
            Step::Ask(task) => {
                self.word(&[&task.word()])?;
                self.message(false)?;
            }
            Step::FanOut(tasks, _) => tasks.iter().try_for_each(|task| self.word(&[&task.word()]))?,
            Step::First(tasks, _) => self.one_of(tasks.iter())?,
            Step::Timer(_) => self.word(&["timer"])?,
            Step::Race(task, _) => self.word(&[&task.word(), "late"])?,
            Step::Race3(task, ..) => match self.is_next("read:") {
                true => self.message(false)?,
                false => self.word(&[&task.word(), "late"])?,
            },
            Step::TwoRaces(races) => {
                races.iter().try_for_each(|(task, _)| self.word(&[&task.word(), "late"]))?;
            }
            Step::Mixed(task, _, program) => {
                self.word(&[&task.word()])?;
                self.word(&["timer"])?;
                self.child(program, &ChildCall::default())?;
            }
            Step::Retry(task, _, None) => self.word(&[&task.word()])?,
            Step::Retry(task, _, Some(_)) => self.word(&[&task.word(), TIMED_OUT])?,
            Step::Child(program, child_call) => self.child(program, child_call)?,
            Step::ChildRace(program, _) => match self.is_next("late") {
                true => self.word(&["late"])?,
                false => self.child(program, &ChildCall::default())?,
            },
            Step::LeaveChild(_) | Step::LeaveActivity(_) => self.word(&["left"])?,
            Step::ReadChild(..) => {
                ["(", "seen=1", ")", "its:1"].iter().try_for_each(|word| self.word(&[word]))?;
            }
            Step::Detached(..) => self.word(&["detached"])?,
            Step::Dequeue(..) => self.message(false)?,
            Step::Drain(_, count, _) => (0..*count).try_for_each(|_| self.message(false))?,
            Step::DequeueOrLeave(..) | Step::Signal(..) => self.message(true)?,
            Step::Count(..) | Step::Keys | Step::ClearKey(_) | Step::ClearKeys | Step::Prune => {
                self.keys(step, &mut instance.keys)?;
            }
            Step::Status(status) => self.word(&[&format!("status:{status}")])?,
            Step::ResetStatus => self.word(&["status:"])?,
            Step::Now => self.word(&["now"])?,
            Step::Guid => self.word(&["guid"])?,
            Step::Look => self.word(&[&format!("look:{}", instance.execution)])?,
            Step::Version => match instance.version {
                Some(version) => self.word(&[&format!("v:{version}")])?,
                // The newest version of the node that began the execution.
                None => self.word(&[&format!("v:{OLD}"), &format!("v:{NEW}")])?,
            },
        }
        Ok(())
    }

    fn keys<'p>(&mut self, step: &'p Step, keys: &mut BTreeMap<&'p str, u64>) -> Result<(), String> {
        match step {
            Step::Count(key, _) => {
                let count = keys.entry(key).or_default();
                *count += 1;
                self.word(&[&format!("{key}={count}")])
            }
            Step::ClearKey(key) => {
                keys.remove(key.as_str());
                self.word(&["cleared:"])
            }
            Step::ClearKeys => {
                keys.clear();
                self.word(&["cleared:0"])
            }
            Step::Prune => self.word(&[&format!("pruned:0,{}", std::mem::take(keys).len())]),
            _ => {
                let all: Vec<String> = keys.iter().map(|(key, count)| format!("{key}={count}")).collect();
                self.word(&[&format!("keys:{}", all.join(","))])
            }
        }
    }

    fn one_of<'p>(&mut self, tasks: impl Iterator<Item = &'p Task>) -> Result<(), String> {
        let words: Vec<String> = tasks.map(Task::word).collect();
        self.word(&words.iter().map(String::as_str).collect::<Vec<&str>>())
    }

    fn child(&mut self, program: &Program, child_call: &ChildCall) -> Result<(), String> {
        self.word(&["("])?;
        match program.fails {
            _ if child_call.may_be_cancelled && self.is_next("!canceled") => drop(self.words.next()),
            true => self.word(&["!planned"])?,
            false => self.program(program, child_call.version.as_deref())?,
        }
        self.word(&[")"])
    }

    fn is_next(&mut self, start: &str) -> bool {
        self.words.peek().is_some_and(|word| word.starts_with(start))
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
    use crate::program::{ActivityCall, DequeueCall, End};

    fn task(id: u64) -> Task {
        Task { id, ..Task::default() }
    }

    fn check(steps: Vec<Step>, output: &str) -> Result<(), String> {
        Program { rounds: 2, steps, ..Program::default() }.check(Ok(output))
    }

    #[test]
    fn only_the_expected_output_passes() {
        let child = Program::once(vec![Step::Call(task(2), ActivityCall::Plain)]);
        let steps = vec![
            Step::Race(task(1), 5),
            Step::Child(Box::new(child), ChildCall::default()),
            Step::Count("k".to_string(), false),
            Step::Dequeue("q".to_string(), DequeueCall::Plain),
        ];
        let program = Program { rounds: 2, steps, ..Program::default() };
        let good = "t1 ( t2 ) k=1 read:a late ( t2 ) k=2 read:b";
        assert_eq!(program.check(Ok(good)), Ok(()));
        assert_eq!(program.check(Ok(&format!("{good:?}"))), Ok(()), "typed");
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

    #[test]
    fn keys_and_versions_are_checked_across_executions() {
        let count = |key: &str| Step::Count(key.to_string(), false);
        let steps = vec![count("a"), count("b"), Step::Keys, Step::ClearKey("b".to_string())];
        assert_eq!(
            check(steps.clone(), "a=1 b=1 keys:a=1,b=1 cleared: a=2 b=1 keys:a=2,b=1 cleared:"),
            Ok(())
        );
        assert!(check(steps, "a=1 b=1 keys:a=1,b=1 cleared: a=2 b=2 keys:a=2,b=2 cleared:").is_err());
        assert_eq!(check(vec![count("a"), Step::Prune], "a=1 pruned:0,1 a=1 pruned:0,1"), Ok(()));
        assert!(check(vec![count("a"), Step::ClearKeys], "a=1 cleared:0 a=2 cleared:0").is_err());
        let child = Program::once(vec![Step::Version]);
        let child_call =
            ChildCall { version: Some(OLD.to_string()), may_be_cancelled: true, ..ChildCall::default() };
        let steps = vec![Step::Child(Box::new(child), child_call), Step::Look];
        assert_eq!(check(steps.clone(), "( v:1.0.0 ) look:1 ( !canceled:_why ) look:2"), Ok(()));
        assert!(check(steps.clone(), "( v:2.0.0 ) look:1 ( v:1.0.0 ) look:2").is_err());
        assert!(check(steps, "( v:1.0.0 ) look:1 ( v:1.0.0 ) look:1").is_err());
    }

    #[test]
    fn failing_tasks_must_fail_and_others_must_not() {
        let fails = Task { end: End::Fails, ..task(1) };
        let steps = vec![Step::Retry(fails, ActivityCall::Plain, None)];
        assert_eq!(check(steps.clone(), "!t1-fails !t1-fails"), Ok(()));
        assert!(check(steps, "t1 !t1-fails").is_err());
        assert!(check(vec![Step::Call(task(1), ActivityCall::Plain)], "t1 !t1-fails").is_err());
        let limited = vec![Step::Retry(task(1), ActivityCall::Typed, Some(5))];
        assert_eq!(check(limited, "t1 !timeout:_activity_timed_out"), Ok(()));
    }
}
