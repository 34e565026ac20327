//! The result of a turn, which a store writes in one transaction.

use crate::{Event, ExecutionStatus, WorkItem};

/// The result of one turn. The engine returns it, `Provider::commit_turn` takes it, and the store writes all of it or
/// nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TurnCommit {
    /// The execution that the turn belongs to.
    pub execution_id: u64,
    /// Events to append.
    pub history_delta: Vec<Event>,
    /// Activities to enqueue.
    pub worker_items: Vec<WorkItem>,
    /// Messages to enqueue.
    pub orchestrator_items: Vec<WorkItem>,
    /// The columns of the execution's row.
    pub metadata: ExecutionMetadata,
    /// Activities to cancel.
    pub cancelled_activities: Vec<ScheduledActivityIdentifier>,
}

/// The state of an execution after a turn, so that the store need not read events.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExecutionMetadata {
    /// New status of the execution: `Running`, `Completed`, `Failed` or `ContinuedAsNew`.
    pub status: Option<String>,
    /// Result, error text or next input; stored together with `status`.
    pub output: Option<String>,
    /// Written to the instance only together with `orchestration_version`.
    pub orchestration_name: Option<String>,
    /// Written to the instance only together with `orchestration_name`.
    pub orchestration_version: Option<String>,
    /// Stored when the instance is created.
    pub parent_instance_id: Option<String>,
    /// Overwrites the execution's pinned version when given.
    pub pinned_duroxide_version: Option<semver::Version>,
}

impl ExecutionMetadata {
    /// The status that the turn gives the execution; `None` if it gives none, or a text that the contract does not name.
    pub fn execution_status(&self) -> Option<ExecutionStatus> {
        ExecutionStatus::from_text(self.status.as_deref()?)
    }
}

/// An activity that a turn no longer wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduledActivityIdentifier {
    /// The instance that scheduled it.
    pub instance: String,
    /// The execution that scheduled it.
    pub execution_id: u64,
    /// The id of its scheduling event.
    pub activity_id: u64,
}
