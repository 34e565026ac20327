//! Generated orchestrations: a program is data, and one orchestration interprets it. Between them they use every durable
//! operation (`coverage.rs` checks that), and each says what it must print if nothing is lost, doubled or reordered.

pub(crate) mod act;
#[cfg(test)]
mod coverage;
mod expect;
pub(crate) mod generate;
mod interpret;
mod step;
mod weights;
mod work;

pub(crate) use expect::plain;
pub(crate) use interpret::{ORCHESTRATION, TYPED_ORCHESTRATION, orchestrations};
pub(crate) use step::{Kin, Launch, Step, Take, Wait, Way};
pub(crate) use work::{activities, is_activity};

use outlast_model::codec::Codec;
use serde::{Deserialize, Serialize};

/// What activities may be tagged with. Some node must take each of them.
pub(crate) const TAGS: &[&str] = &["large", "small"];

/// The versions under which the orchestrations are registered. Nodes of an older deployment know the first only.
pub(crate) const OLD: &str = "1.0.0";
pub(crate) const NEW: &str = "2.0.0";

/// How the typed values of a world are written: runtimes and clients of one store must agree.
pub(crate) fn codec(seed: u64) -> Codec {
    if seed.is_multiple_of(3) { Codec::Json } else { Codec::Contract }
}

/// An orchestration: its steps, as often as it continues as new.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Program {
    /// How many executions it takes.
    pub(crate) rounds: u32,
    pub(crate) steps: Vec<Step>,
    /// Whether it returns an error in the end.
    pub(crate) fails: bool,
    /// The version that it asks for when it continues as new.
    pub(crate) next: Option<String>,
}

/// An activity.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Task {
    /// Unique in the world.
    pub(crate) id: u64,
    pub(crate) ms: u64,
    /// How often its body fails before it succeeds.
    pub(crate) failures: u32,
    pub(crate) end: End,
}

/// How an activity ends when it has failed as often as it should.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum End {
    #[default]
    Succeeds,
    /// However often it is tried.
    Fails,
    Panics,
    /// It puts a message into a queue of its own instance, see [`Task::queue`], and succeeds.
    Sends,
}

impl Task {
    /// Its outcome in the output of a program.
    pub(crate) fn word(&self) -> String {
        match self.end {
            End::Succeeds | End::Sends => format!("t{}", self.id),
            End::Fails => format!("!t{}-fails", self.id),
            End::Panics => format!("!t{}-panics", self.id),
        }
    }

    /// The queue that it sends to.
    pub(crate) fn queue(&self) -> String {
        format!("from-t{}", self.id)
    }
}

/// The id of a child that its parent names. Another one for each execution, or the id would be taken.
pub(crate) fn child_id(parent: &str, execution_id: u64, nth: u64) -> String {
    format!("{}-c{nth}-{execution_id}", parent.replace("::", "."))
}

impl Program {
    /// One that takes a single execution.
    pub(crate) fn once(steps: Vec<Step>) -> Self {
        Self { rounds: 1, steps, ..Self::default() }
    }

    fn all_steps(&self) -> impl Iterator<Item = &Step> {
        (0..self.rounds).flat_map(|_| &self.steps)
    }

    /// The queue of each message that the program cannot end without, and some more.
    pub(crate) fn messages_needed(&self) -> Vec<String> {
        let needed = self.all_steps().flat_map(|step| match step {
            Step::Dequeue(queue, _) | Step::DequeueOrLeave(queue, _) => vec![queue.clone()],
            Step::Drain(queue, count, _) => vec![queue.clone(); usize::try_from(*count).unwrap_or(0)],
            _ => Vec::new(),
        });
        needed.collect()
    }

    /// The name of each event that the program waits for, for a while.
    pub(crate) fn signals_awaited(&self) -> Vec<String> {
        let awaited = self.all_steps().filter_map(|step| match step {
            Step::Signal(name, ..) | Step::Race3(_, _, name) => Some(name.clone()),
            _ => None,
        });
        awaited.collect()
    }

    /// Children of this program that a client may cancel, by number.
    pub(crate) fn cancellable_children(&self) -> Vec<u64> {
        let named = self.steps.iter().filter_map(|step| match step {
            Step::Child(_, Kin { name, may_be_cancelled: true, .. }) => *name,
            _ => None,
        });
        named.collect()
    }

    /// Programs that it starts under ids of their own, and those that they start.
    pub(crate) fn detached(&self) -> Vec<(&str, &Program)> {
        let mut found = Vec::new();
        for step in &self.steps {
            match step {
                Step::Detached(instance, program, _) => {
                    found.push((instance.as_str(), program.as_ref()));
                    found.extend(program.detached());
                }
                Step::Child(program, _)
                | Step::ChildRace(program, _)
                | Step::Mixed(_, _, program)
                | Step::LeaveChild(program) => found.extend(program.detached()),
                _ => {}
            }
        }
        found
    }
}
