//! The result of a turn while the turn runs.

use crate::context::Identity;
use crate::op::Op;
use crate::replay_error::MismatchPlace;
use crate::state::TraceLine;
use outlast_model::{Action, ErrorDetails, Event, EventKind, ScheduledActivityIdentifier, TurnCommit};

/// The report of a turn, for logs and metrics.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Report {
    /// Name of the orchestration.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its execution.
    pub execution_id: u64,
    /// Trace lines of the orchestration code.
    pub traces: Vec<TraceLine>,
    /// Warnings for the operator.
    pub warnings: Vec<String>,
    /// The execution began with this turn: `client` or `continueAsNew`.
    pub started: Option<&'static str>,
    /// The ending, if the execution ended in this turn.
    pub ended: Option<Ending>,
    /// The execution failed at a limit: the engine wrote the failure text, not the orchestration code.
    pub broke_limit: bool,
    /// The execution failed because its code does not repeat its history.
    pub mismatch: Option<MismatchPlace>,
    /// The patch that the history takes before this mismatch, and that the code did not ask for: the code may be older than the
    /// patch.
    pub missing_patch: Option<String>,
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
    /// The code awaits no durable future: only cancellation can end the instance.
    pub awaits_nothing: bool,
}

/// The end of a call of a child orchestration, seen from its parent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChildEnded {
    /// Name of the child's orchestration.
    pub name: String,
    /// `completed`, `failed` or `cancelled` by the child's message; `abandoned` if the parent ended before the child.
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

/// The ending of an execution, for logs and metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// The orchestration returned.
    Completed,
    /// The orchestration failed or was cancelled.
    Failed(ErrorDetails),
    /// The orchestration continued as new.
    ContinuedAsNew,
}

/// A decision that became an event in this turn.
pub(crate) struct Recorded {
    pub(crate) op: Op,
    pub(crate) event_id: u64,
    pub(crate) token: Option<u64>,
    pub(crate) action: Action,
    /// The attempt of the retry policy; 1 for a decision without a policy.
    pub(crate) attempt: u32,
}

/// The result of a turn, and the data that its steps share.
pub(crate) struct Draft {
    pub(crate) commit: TurnCommit,
    pub(crate) report: Report,
    pub(crate) now_ms: u64,
    /// Decisions of this turn, in order.
    pub(crate) recorded: Vec<Recorded>,
    /// Decisions whose future the code dropped in this turn, in the order of their notes.
    pub(crate) dropped: Vec<(Op, u64)>,
}

impl Draft {
    pub(crate) fn new(identity: &Identity, now_ms: u64) -> Self {
        let commit = TurnCommit { execution_id: identity.execution_id, ..TurnCommit::default() };
        let report = Report {
            name: identity.name.clone(),
            version: identity.version.clone(),
            execution_id: identity.execution_id,
            ..Report::default()
        };
        Self { commit, report, now_ms, recorded: Vec::new(), dropped: Vec::new() }
    }

    /// Whether this turn wrote the event. A decision of this turn is not sent yet, so it needs no cancellation.
    pub(crate) fn is_new(&self, event_id: u64) -> bool {
        self.commit.history_delta.first().is_some_and(|first| event_id >= first.event_id)
    }

    /// Cancels an activity that an earlier turn sent.
    pub(crate) fn cancel_activity(&mut self, identity: &Identity, activity_id: u64) {
        self.commit.cancelled_activities.push(ScheduledActivityIdentifier {
            instance: identity.instance.clone(),
            execution_id: identity.execution_id,
            activity_id,
        });
    }

    pub(crate) fn event(
        &self,
        identity: &Identity,
        event_id: u64,
        source: Option<u64>,
        kind: EventKind,
    ) -> Event {
        Event::at(self.now_ms, event_id, &identity.instance, identity.execution_id, source, kind)
    }
}
