//! The steps of programs. Most steps have several forms: the same operation under another method of the context.

use super::{Program, Task};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Step {
    Call(Task, ActivityCall),
    /// An activity that sends a message to its own instance, and the dequeue of that message.
    Ask(Task),
    /// Several activities at once, by `join` or by `join_all`.
    FanOut(Vec<Task>, bool),
    /// The first of several activities, by `select_all` or by `race`; the others are dropped.
    First(Vec<Task>, bool),
    Timer(u64),
    /// An activity against a timer; the loser is dropped.
    Race(Task, u64),
    /// An activity, a timer and a positional event; the losers are dropped.
    Race3(Task, u64, String),
    /// Two races at once: selects inside a join.
    TwoRaces([(Task, u64); 2]),
    /// An activity, a timer and a child at once.
    Mixed(Task, u64, Box<Program>),
    /// An activity with retries; the number is the timeout of each try.
    Retry(Task, ActivityCall, Option<u64>),
    Child(Box<Program>, ChildCall),
    /// A child against a timer; the loser is dropped, which cancels the child.
    ChildRace(Box<Program>, u64),
    /// A child that still runs when the execution ends.
    LeaveChild(Box<Program>),
    /// An activity that still runs when the execution ends.
    LeaveActivity(Task),
    /// A child with this number counts a key to one; then the parent reads the key, perhaps as a typed value.
    ReadChild(u64, bool),
    /// Starts a detached instance with this id.
    Detached(String, Box<Program>, DetachedCall),
    Dequeue(String, DequeueCall),
    /// A dequeue that is dropped after this time.
    DequeueOrLeave(String, u64),
    /// Dequeues this number of messages after waiting this long.
    Drain(String, u64, u64),
    /// A positional event, or a timeout.
    Signal(String, u64, WaitCall),
    /// Adds one to a key, perhaps as a typed value, and prints it. Keys survive continue-as-new.
    Count(String, bool),
    /// All keys with their values.
    Keys,
    ClearKey(String),
    ClearKeys,
    /// Removes keys by age: first no key, then all keys.
    Prune,
    Status(String),
    ResetStatus,
    /// The time, which is recorded inline.
    Now,
    /// A unique id, which is recorded inline.
    Guid,
    /// Reads the name, ids and logging state of the execution.
    Look,
    /// The version of the running orchestration.
    Version,
}

/// How an activity is called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ActivityCall {
    Plain,
    Typed,
    Tagged(String),
    Session(String),
    SessionTyped(String),
    /// The worker retries the failures.
    Noted,
}

/// How a child is called.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ChildCall {
    /// A number for an explicit id, see [`super::child_id`].
    pub(crate) name: Option<u64>,
    /// There is no operation with both a version and typed values.
    pub(crate) version: Option<String>,
    pub(crate) is_typed: bool,
    /// Whether a client cancels it at some time.
    pub(crate) may_be_cancelled: bool,
}

/// How an orchestration is detached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum DetachedCall {
    Plain,
    Typed,
    Versioned(String),
    VersionedTyped(String),
    Try,
}

/// How a message is taken from a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum DequeueCall {
    Plain,
    Typed,
    TryTyped,
    Persistent,
    PersistentTyped,
}

/// How a positional event is awaited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum WaitCall {
    Plain,
    Typed,
    TryTyped,
}
