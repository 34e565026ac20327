//! What a program can do. Most steps come in several ways: the same operation under another name of the interface.

use super::{Program, Task};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Step {
    Call(Task, Way),
    /// An activity that sends a message to its own instance, and the message.
    Ask(Task),
    /// All at once, by `join` or by `join_all`.
    FanOut(Vec<Task>, bool),
    /// The first of several, by `select_all` or by `race`; the others are dropped.
    First(Vec<Task>, bool),
    Timer(u64),
    /// An activity against a timer; the loser is dropped.
    Race(Task, u64),
    /// An activity, a timer and a positional event; the losers are dropped.
    Race3(Task, u64, String),
    /// Two races at once: selects inside of a join.
    TwoRaces([(Task, u64); 2]),
    /// An activity, a timer and a child at once.
    Mixed(Task, u64, Box<Program>),
    /// Tried again until it succeeds, each time for so long at most.
    Retry(Task, Way, Option<u64>),
    Child(Box<Program>, Kin),
    /// A child against a timer; the loser is dropped, which cancels the child.
    ChildRace(Box<Program>, u64),
    /// A child that still runs when the execution ends.
    LeaveChild(Box<Program>),
    /// An activity that still runs when the execution ends.
    LeaveActivity(Task),
    /// A child of this number counts to one; then its key is read, perhaps as a typed value.
    ReadChild(u64, bool),
    /// Under an id of its own.
    Detached(String, Box<Program>, Launch),
    Dequeue(String, Take),
    /// A dequeue that is dropped when nothing comes in time.
    DequeueOrLeave(String, u64),
    /// So many messages, after a wait in which they pile up.
    Drain(String, u64, u64),
    /// A positional event, or a timeout.
    Signal(String, u64, Wait),
    /// Adds one to a key and prints it: keys survive continue-as-new. Perhaps as a typed value.
    Count(String, bool),
    /// All keys with their values.
    Keys,
    ClearKey(String),
    ClearKeys,
    /// Removes keys by age: first none of them, then all.
    Prune,
    Status(String),
    ResetStatus,
    /// The time, which is recorded inline.
    Now,
    /// A unique id, which is recorded inline.
    Guid,
    /// What the execution knows about itself.
    Look,
    /// The version that runs.
    Version,
}

/// How an activity is called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Way {
    Plain,
    Typed,
    Tagged(String),
    Session(String),
    SessionTyped(String),
}

/// How a child is called.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Kin {
    /// A number for an explicit id, see [`super::child_id`].
    pub(crate) name: Option<u64>,
    /// Not together with typed values: there is no such operation.
    pub(crate) version: Option<String>,
    pub(crate) is_typed: bool,
    /// Whether a client cancels it at some time.
    pub(crate) may_be_cancelled: bool,
}

/// How an orchestration is detached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Launch {
    Plain,
    Typed,
    Versioned(String),
    VersionedTyped(String),
    Try,
}

/// How a message is taken from a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Take {
    Plain,
    Typed,
    TryTyped,
    Persistent,
    PersistentTyped,
}

/// How a positional event is awaited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Wait {
    Plain,
    Typed,
    TryTyped,
}
