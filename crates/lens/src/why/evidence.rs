//! The data that a diagnosis is made from.

use outlast_model::{DeadLetter, ErrorDetails, Event, EventKind, HeldInstance, NodeRecord, PendingWork};

/// The data of one instance at one time. Fields that a store does not report stay as [`Evidence::new`] sets them; the sentences then
/// say less.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Evidence<'a> {
    /// The id of the instance.
    pub instance: &'a str,
    /// The events of its current execution; empty before the first turn.
    pub history: &'a [Event],
    /// The time, by the store's clock if it reports one.
    pub now_ms: u64,
    /// Whether the store has a row of the instance. A row without events is damage.
    pub is_recorded: bool,
    /// The state of the instance if its history does not decode; `history` is empty then.
    pub undecodable: Option<Undecodable<'a>>,
    /// Its queue rows and leases.
    pub pending: Option<&'a PendingWork>,
    /// Its dead letters.
    pub dead_letters: &'a [DeadLetter],
    /// The hold of the instance, if it is paused or parked.
    pub held: Option<&'a HeldInstance>,
    /// The most deliveries of a message, which is an option of the runtimes.
    pub max_attempts: Option<u32>,
    /// The reports of all nodes, live and lost; `None` if no node reports to the store.
    pub nodes: Option<&'a [NodeRecord]>,
}

/// The state of an instance whose history does not decode.
#[derive(Debug, Clone, Copy)]
pub enum Undecodable<'a> {
    /// It has not ended.
    Running,
    /// It completed.
    Completed,
    /// It failed, or was cancelled.
    Failed(&'a ErrorDetails),
}

impl<'a> Evidence<'a> {
    /// Evidence without queues, dead letters, holds and nodes.
    pub fn new(instance: &'a str, history: &'a [Event], now_ms: u64) -> Self {
        Self {
            instance,
            history,
            now_ms,
            is_recorded: !history.is_empty(),
            undecodable: None,
            pending: None,
            dead_letters: &[],
            held: None,
            max_attempts: None,
            nodes: None,
        }
    }

    /// The orchestration, from the first event or from the waiting start.
    pub(super) fn orchestration(&self) -> Option<&'a str> {
        let of_start = || {
            let is_start = |kind: &Option<String>| kind.as_deref() == Some("StartOrchestration");
            let start = self.pending?.messages.iter().find(|message| is_start(&message.kind))?;
            start.name.as_deref()
        };
        self.code().map(|code| code.name).or_else(of_start)
    }

    /// The orchestration and its version, from the first event.
    pub(super) fn code(&self) -> Option<Code<'a>> {
        match &self.history.first()?.kind {
            EventKind::OrchestrationStarted { name, version, .. } => {
                Some(Code { name, version: Some(version) })
            }
            _ => None,
        }
    }
}

/// An orchestration; without a version, the version that a node chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Code<'a> {
    pub(super) name: &'a str,
    pub(super) version: Option<&'a str>,
}
