//! The messages, activities and events of sequences.

use super::ops::{INSTANCES, Id};
use std::fmt;

/// A message or activity. Its payload is made from its position in the sequence, so that no two are equal.
#[derive(Debug, Clone)]
pub(super) enum Message {
    Start(Id),
    StartVersion(Id),
    Continue(Id),
    Completed(Id, u64),
    Failed(Id, u64),
    /// Fires this number of milliseconds from now, or before now.
    Timer(Id, i64),
    External(Id),
    ChildCompleted(Id),
    ChildFailed(Id),
    Cancel(Id),
    Queue(Id),
    Activity {
        of: Id,
        execution: u64,
        id: u64,
        session: Option<&'static str>,
        tag: Option<&'static str>,
    },
}

impl Message {
    /// Whether its instance id is invalid.
    pub(super) fn has_invalid_instance(&self) -> bool {
        let (Self::Start(to)
        | Self::StartVersion(to)
        | Self::Continue(to)
        | Self::Completed(to, _)
        | Self::Failed(to, _)
        | Self::Timer(to, _)
        | Self::External(to)
        | Self::ChildCompleted(to)
        | Self::ChildFailed(to)
        | Self::Cancel(to)
        | Self::Queue(to)
        | Self::Activity { of: to, .. }) = self;
        !INSTANCES.contains(to)
    }
}

/// The commit of a turn.
#[derive(Clone, Default)]
pub(super) struct Turn {
    pub(super) events: Vec<(EventId, Happened)>,
    pub(super) work: Vec<Message>,
    pub(super) messages: Vec<Message>,
    pub(super) cancelled: Vec<(Id, u64, u64)>,
    pub(super) status: Option<&'static str>,
    pub(super) output: Option<&'static str>,
    pub(super) name: Option<&'static str>,
    pub(super) version: Option<&'static str>,
    pub(super) parent: Option<Id>,
    pub(super) pin: Option<&'static str>,
}

/// Omits empty fields.
impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields: [(&str, bool, &dyn fmt::Debug); 10] = [
            ("events", self.events.is_empty(), &self.events),
            ("work", self.work.is_empty(), &self.work),
            ("messages", self.messages.is_empty(), &self.messages),
            ("cancelled", self.cancelled.is_empty(), &self.cancelled),
            ("status", self.status.is_none(), &self.status),
            ("output", self.output.is_none(), &self.output),
            ("name", self.name.is_none(), &self.name),
            ("version", self.version.is_none(), &self.version),
            ("parent", self.parent.is_none(), &self.parent),
            ("pin", self.pin.is_none(), &self.pin),
        ];
        f.write_str("Turn { ")?;
        for (name, _, value) in fields.iter().filter(|(_, is_absent, _)| !is_absent) {
            write!(f, "{name}: {value:?}, ")?;
        }
        f.write_str("..Turn::default() }")
    }
}

/// Ids of events, relative to the events that the execution has.
#[derive(Debug, Clone, Copy)]
pub(super) enum EventId {
    Next,
    Skip,
    Repeat,
    Zero,
}

/// The kinds of events.
#[derive(Debug, Clone)]
pub(super) enum Happened {
    Scheduled,
    Started {
        carried: usize,
    },
    /// A history has at most one terminal event; a second one is replaced.
    Completed,
    Failed,
    ContinuedAsNew,
    Status(Option<&'static str>),
    Set(&'static str, &'static str),
    Clear(&'static str),
    ClearAll,
}

/// The outcome of an activity.
#[derive(Debug, Clone)]
pub(super) enum Completion {
    Done,
    Failed,
    /// A message of this kind instead of an outcome.
    Other(Message),
}
