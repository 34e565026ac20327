//! A turn's commit while it is being written.

use crate::context::Identity;
use crate::state::TraceLine;
use outlast_model::{Action, ErrorDetails, Event, EventKind, ScheduledActivityIdentifier, TurnCommit};

/// What happened in a turn, for logs and metrics.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Report {
    /// Name of the orchestration.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its execution.
    pub execution_id: u64,
    /// Trace lines of the author's.
    pub traces: Vec<TraceLine>,
    /// Things that somebody should know.
    pub warnings: Vec<String>,
    /// The execution began with this turn: `client` or `continueAsNew`.
    pub started: Option<&'static str>,
    /// How it ended.
    pub ended: Option<Ending>,
    /// It failed because it broke a limit: the words of the failure are the engine's, not the author's.
    pub broke_limit: bool,
    /// Age of the execution when it ended.
    pub age_ms: u64,
    /// Events in its history.
    pub events: usize,
    /// Turns since it was loaded.
    pub turns: u64,
    /// Child orchestrations that were started, by name.
    pub children_started: Vec<String>,
    /// Child orchestrations whose call ended.
    pub children_ended: Vec<ChildEnded>,
    /// Activities that a retry policy scheduled once more.
    pub retries: Vec<Retry>,
    /// The code waits for nothing that can happen, except cancellation.
    pub is_parked: bool,
}

/// How the call of a child orchestration ended, seen from its parent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChildEnded {
    /// Name of the child's orchestration.
    pub name: String,
    /// `completed`, `failed` or `cancelled` as the child's message says; `abandoned` if the parent ended before the child.
    pub outcome: &'static str,
    /// From the turn that scheduled the child to the turn in which the call ended.
    pub took_ms: u64,
}

/// An activity that a retry policy scheduled once more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retry {
    /// Its scheduling event.
    pub activity_id: u64,
    /// Name of the activity.
    pub name: String,
    /// Its tag.
    pub tag: Option<String>,
    /// Which attempt of the policy it is; the first retry is attempt 2.
    pub attempt: u32,
}

/// How an execution ended, for logs and metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// It returned.
    Completed,
    /// It failed.
    Failed(ErrorDetails),
    /// It continued as new.
    ContinuedAsNew,
}

/// A decision that became an event in this turn.
pub(crate) struct Recorded {
    pub(crate) event_id: u64,
    pub(crate) token: Option<u64>,
    pub(crate) action: Action,
    /// Which attempt of its retry policy it is; 1 for everything else.
    pub(crate) attempt: u32,
}

/// The commit, and what is needed to write it.
pub(crate) struct Draft {
    pub(crate) commit: TurnCommit,
    pub(crate) report: Report,
    pub(crate) now_ms: u64,
    /// Decisions of this turn, in order.
    pub(crate) recorded: Vec<Recorded>,
}

impl Draft {
    pub(crate) fn new(who: &Identity, now_ms: u64) -> Self {
        let commit = TurnCommit { execution_id: who.execution_id, ..TurnCommit::default() };
        let report = Report {
            name: who.name.clone(),
            version: who.version.clone(),
            execution_id: who.execution_id,
            ..Report::default()
        };
        Self { commit, report, now_ms, recorded: Vec::new() }
    }

    /// Whether an event was written by this turn: what it asks for was never sent, so there is nothing to call off.
    pub(crate) fn is_new(&self, event_id: u64) -> bool {
        self.commit.history_delta.first().is_some_and(|first| event_id >= first.event_id)
    }

    /// Cancels an activity that an earlier turn sent.
    pub(crate) fn cancel_activity(&mut self, who: &Identity, activity_id: u64) {
        self.commit.cancelled_activities.push(ScheduledActivityIdentifier {
            instance: who.instance.clone(),
            execution_id: who.execution_id,
            activity_id,
        });
    }

    pub(crate) fn event(&self, who: &Identity, event_id: u64, source: Option<u64>, kind: EventKind) -> Event {
        Event::at(self.now_ms, event_id, &who.instance, who.execution_id, source, kind)
    }
}
