//! Generated orchestrations: a program is data, and one orchestration interprets it. Between them they use every durable
//! operation, and each says what it must print if nothing is lost, doubled or reordered.

mod expect;
pub(crate) mod generate;
mod interpret;

pub(crate) use interpret::{ACTIVITY, ORCHESTRATION, activities, orchestrations};

use serde::{Deserialize, Serialize};

/// An orchestration: its steps, as often as it continues as new.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Program {
    /// How many executions it takes.
    pub(crate) rounds: u32,
    pub(crate) steps: Vec<Step>,
    /// Whether it returns an error in the end.
    pub(crate) fails: bool,
}

/// An activity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Task {
    /// Unique in the world.
    pub(crate) id: u64,
    pub(crate) ms: u64,
    /// How often its body fails before it succeeds.
    pub(crate) failures: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Step {
    Call(Task),
    FanOut(Vec<Task>),
    Timer(u64),
    /// An activity against a timer; the loser is dropped.
    Race(Task, u64),
    /// On a session.
    Session(Task, String),
    Retry(Task),
    Child(Box<Program>),
    /// A child against a timer; the loser is dropped, which cancels the child.
    ChildRace(Box<Program>, u64),
    /// Under an id of its own.
    Detached(String, Box<Program>),
    Dequeue(String),
    /// A dequeue that is dropped when nothing comes in time.
    DequeueOrLeave(String, u64),
    /// A positional event, or a timeout.
    Signal(String, u64),
    /// Adds one to a key and prints it: keys survive continue-as-new.
    Count(String),
    Status(String),
    /// The time, which is recorded inline.
    Now,
}

impl Program {
    fn all_steps(&self) -> impl Iterator<Item = &Step> {
        (0..self.rounds).flat_map(|_| &self.steps)
    }

    /// The queue of each message that the program cannot end without, and some more.
    pub(crate) fn messages_needed(&self) -> Vec<String> {
        let needed = self.all_steps().filter_map(|step| match step {
            Step::Dequeue(queue) | Step::DequeueOrLeave(queue, _) => Some(queue.clone()),
            _ => None,
        });
        needed.collect()
    }

    /// The name of each event that the program waits for, for a while.
    pub(crate) fn signals_awaited(&self) -> Vec<String> {
        let awaited = self.all_steps().filter_map(|step| match step {
            Step::Signal(name, _) => Some(name.clone()),
            _ => None,
        });
        awaited.collect()
    }

    /// Programs that it starts under ids of their own, and those that they start.
    pub(crate) fn detached(&self) -> Vec<(&str, &Program)> {
        let mut found = Vec::new();
        for step in &self.steps {
            match step {
                Step::Detached(instance, program) => {
                    found.push((instance.as_str(), program.as_ref()));
                    found.extend(program.detached());
                }
                Step::Child(program) | Step::ChildRace(program, _) => found.extend(program.detached()),
                _ => {}
            }
        }
        found
    }
}
