//! Generated orchestrations. A program is data, and one orchestration interprets it. The programs together use every
//! durable operation (`coverage.rs` checks that), and each has an expected output.

pub(crate) mod action;
mod activities;
pub(crate) mod branch;
#[cfg(test)]
mod coverage;
mod expect;
pub(crate) mod generate;
mod interpret;
mod step;
mod weights;

pub(crate) use activities::{activities, is_activity};
pub(crate) use expect::plain;
pub(crate) use interpret::{ORCHESTRATION, TYPED_ORCHESTRATION, broken_orchestrations, orchestrations};
pub(crate) use step::{ActivityCall, ChildCall, DequeueCall, DetachedCall, Step, WaitCall};

use outlast_model::codec::Codec;
use serde::{Deserialize, Serialize};

/// Tags of activities. Every node fetches activities with these tags.
pub(crate) const TAGS: &[&str] = &["large", "small"];

/// The versions of the orchestrations. Nodes of an older build have only the first.
pub(crate) const OLD: &str = "1.0.0";
pub(crate) const NEW: &str = "2.0.0";

/// The names of both orchestrations.
pub(crate) const ORCHESTRATIONS: [&str; 2] = [ORCHESTRATION, TYPED_ORCHESTRATION];

/// The encoding of typed values. All runtimes and clients of one store must use the same.
pub(crate) fn codec(seed: u64) -> Codec {
    if seed.is_multiple_of(3) { Codec::Json } else { Codec::Contract }
}

/// An orchestration: its steps, repeated in each execution.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Program {
    /// Number of executions.
    pub(crate) rounds: u32,
    pub(crate) steps: Vec<Step>,
    /// Whether it fails at the end.
    pub(crate) fails: bool,
    /// The version of the next execution.
    pub(crate) next: Option<String>,
}

/// A call of an activity.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Task {
    /// Unique among all tasks of a root.
    pub(crate) id: u64,
    pub(crate) ms: u64,
    /// Number of tries that fail before one succeeds.
    pub(crate) failures: u32,
    pub(crate) end: End,
}

/// How an activity ends after these failures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum End {
    #[default]
    Succeeds,
    /// Every try fails.
    Fails,
    Panics,
    /// The activity sends a message to a queue of its own instance, see [`Task::queue`], and succeeds.
    Sends,
}

impl Task {
    /// The outcome in the output of a program.
    pub(crate) fn word(&self) -> String {
        match self.end {
            End::Succeeds | End::Sends => format!("t{}", self.id),
            End::Fails => format!("!t{}-fails", self.id),
            End::Panics => format!("!t{}-panics", self.id),
        }
    }

    /// The queue that [`End::Sends`] sends to.
    pub(crate) fn queue(&self) -> String {
        format!("from-t{}", self.id)
    }
}

/// The id of a child with an explicit id. It contains the execution, because a second execution cannot reuse an id.
pub(crate) fn child_id(parent: &str, execution_id: u64, nth: u64) -> String {
    format!("{}-c{nth}-{execution_id}", parent.replace("::", "."))
}

impl Program {
    /// A program with one execution.
    pub(crate) fn once(steps: Vec<Step>) -> Self {
        Self { rounds: 1, steps, ..Self::default() }
    }

    fn all_steps(&self) -> impl Iterator<Item = &Step> {
        (0..self.rounds).flat_map(|_| &self.steps)
    }

    /// The queue of each message that a client must send so that the program ends, and of optional messages.
    pub(crate) fn messages_needed(&self) -> Vec<String> {
        let needed = self.all_steps().flat_map(|step| match step {
            Step::Dequeue(queue, _) | Step::DequeueOrLeave(queue, _) => vec![queue.clone()],
            Step::Drain(queue, count, _) => vec![queue.clone(); usize::try_from(*count).unwrap_or(0)],
            _ => Vec::new(),
        });
        needed.collect()
    }

    /// The name of each event that the program waits for.
    pub(crate) fn signals_awaited(&self) -> Vec<String> {
        let awaited = self.all_steps().filter_map(|step| match step {
            Step::Signal(name, ..) | Step::Race3(_, _, name) => Some(name.clone()),
            _ => None,
        });
        awaited.collect()
    }

    /// Numbers of the children that a client may cancel.
    pub(crate) fn cancellable_children(&self) -> Vec<u64> {
        let named = self.steps.iter().filter_map(|step| match step {
            Step::Child(_, ChildCall { name, may_be_cancelled: true, .. }) => *name,
            _ => None,
        });
        named.collect()
    }

    /// All detached programs that this program and its children start.
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
