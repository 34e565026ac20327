//! The plan of a reset or a fork.

use super::{ChildState, Cut, CutError, operation_with_outcome};
use crate::op::kv::KvValue;
use crate::version;
use outlast_model::{
    AppErrorKind, AuditEntry, ErrorDetails, Event, EventKind, ExecutionMetadata, ResetPlan, TurnCommit,
    WorkItem,
};
use std::collections::BTreeMap;

/// The execution of a message that wakes an instance and belongs to none of its executions.
const NO_EXECUTION: u64 = 0;

/// The reason of the cancellation of a child.
const PARENT_RESET: &str = "parent was reset";

/// Where the new execution begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Branch<'a> {
    /// As the next execution of the same instance.
    Reset {
        /// Whether running children are cancelled.
        cancel_children: bool,
    },
    /// In a new instance with this id, which has no parent. Its execution has the number of the source's.
    Fork {
        /// The id.
        id: &'a str,
    },
}

/// The effect of a plan, for reports.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResetSummary {
    /// The execution that begins.
    pub execution_id: u64,
    /// The number of copied events.
    pub kept_events: usize,
    /// The number of events that are not copied.
    pub left_events: usize,
    /// Activities that are scheduled again.
    pub activities: usize,
    /// Activities that have completed and whose outcome is not copied: they run again if the code asks for them again.
    pub repeated_activities: usize,
    /// Timers that are set again.
    pub timers: usize,
    /// Queue messages that are sent again.
    pub messages: usize,
    /// Children that are answered with their stored outcome.
    pub answered_children: Vec<String>,
    /// Children that are cancelled.
    pub cancelled_children: Vec<String>,
}

fn is_completed_activity(event: &Event) -> bool {
    matches!(event.kind, EventKind::ActivityCompleted { .. })
}

impl Cut<'_> {
    /// Plans the new execution. `keys` are the stored keys of earlier executions, `states` the states of [`Cut::children`] that are
    /// open, by event.
    pub fn plan(
        &self,
        branch: Branch<'_>,
        keys: &BTreeMap<String, KvValue>,
        states: &BTreeMap<u64, ChildState>,
        audit: AuditEntry,
        now_ms: u64,
    ) -> Result<(ResetPlan, ResetSummary), CutError> {
        let (Some(first), Some(last)) = (self.kept.first(), self.left.last().or(self.kept.last())) else {
            return Err(CutError::OutOfRange { event: 0, last: 0 });
        };
        let (target, execution_id) = match branch {
            Branch::Reset { .. } => (first.instance_id.as_str(), first.execution_id + 1),
            Branch::Fork { id } => (id, first.execution_id),
        };
        let mut summary = ResetSummary {
            execution_id,
            kept_events: self.kept.len(),
            left_events: self.left.len(),
            repeated_activities: self.left.iter().filter(|event| is_completed_activity(event)).count(),
            ..ResetSummary::default()
        };
        let keys = self.first_keys(keys)?;
        let mut begin = TurnCommit { execution_id, ..TurnCommit::default() };
        begin.history_delta = self.copied_events(branch, target, execution_id);
        begin.metadata = metadata(&begin.history_delta);
        // The message is dropped, and the turn that it leads to makes the decisions that follow the copied events.
        begin.orchestrator_items.push(WorkItem::TimerFired {
            instance: target.to_string(),
            execution_id: NO_EXECUTION,
            id: 0,
            fire_at_ms: 0,
        });
        self.schedule_again(&mut begin, &mut summary, target);
        self.settle_children(branch, states, &mut begin, &mut summary, target)?;
        if let Branch::Reset { .. } = branch {
            begin.cancelled_activities = self.running_activities();
        }
        let first_messages = self.messages_after(target);
        summary.messages = first_messages.len();
        let plan = ResetPlan {
            source: first.instance_id.clone(),
            execution_id: first.execution_id,
            last_event_id: last.event_id,
            target: target.to_string(),
            end: self.end(branch, last, now_ms),
            begin,
            first_messages,
            first_available_ms: first.timestamp_ms,
            keys,
            custom_status: self.custom_status(),
            audit,
        };
        Ok((plan, summary))
    }

    /// The kept events as events of the new execution. A fork has no parent.
    fn copied_events(&self, branch: Branch<'_>, target: &str, execution_id: u64) -> Vec<Event> {
        let copy = |event: &Event| {
            let mut event = Event { instance_id: target.to_string(), execution_id, ..event.clone() };
            if let (
                Branch::Fork { .. },
                EventKind::OrchestrationStarted { parent_instance, parent_id, parent_execution_id, .. },
            ) = (branch, &mut event.kind)
            {
                (*parent_instance, *parent_id, *parent_execution_id) = (None, None, None);
            }
            event
        };
        self.kept.iter().map(copy).collect()
    }

    /// Sends the work items of open decisions again.
    fn schedule_again(&self, begin: &mut TurnCommit, summary: &mut ResetSummary, target: &str) {
        for decision in self.open.values() {
            let operation = operation_with_outcome(decision);
            let item = operation.and_then(|op| op.send_again(target, begin.execution_id, decision));
            match item {
                Some(activity @ WorkItem::ActivityExecute { .. }) => {
                    summary.activities += 1;
                    begin.worker_items.push(activity);
                }
                Some(message) => {
                    summary.timers += usize::from(matches!(message, WorkItem::TimerFired { .. }));
                    begin.orchestrator_items.push(message);
                }
                None => {}
            }
        }
    }

    /// Answers the children that the new execution waits for, and cancels those that run.
    fn settle_children(
        &self,
        branch: Branch<'_>,
        states: &BTreeMap<u64, ChildState>,
        begin: &mut TurnCommit,
        summary: &mut ResetSummary,
        target: &str,
    ) -> Result<(), CutError> {
        let is_reset = matches!(branch, Branch::Reset { .. });
        let cancels = branch == Branch::Reset { cancel_children: true };
        let mut running = Vec::new();
        for child in self.children() {
            if !child.is_kept && child.has_own_id {
                let child_id = child.instance.clone();
                return Err(CutError::TakenChild { child: child_id, event: child.event_id });
            }
            let state = match &child.outcome {
                Some(EventKind::SubOrchestrationCompleted { result }) => {
                    ChildState::Completed(result.clone())
                }
                Some(EventKind::SubOrchestrationFailed { details }) => ChildState::Failed(details.clone()),
                _ => states.get(&child.event_id).cloned().unwrap_or(ChildState::Running),
            };
            let matters = child.is_kept || is_reset;
            if state == ChildState::Running && matters {
                running.push(child);
                continue;
            }
            if child.is_kept {
                summary.answered_children.push(child.instance.clone());
                let answer = answer(target, begin.execution_id, child.event_id, state);
                begin.orchestrator_items.push(answer);
            }
        }
        if let Some(first) = running.first().filter(|_| !cancels) {
            let children = running.iter().map(|child| child.instance.clone()).collect();
            return Err(CutError::RunningChildren { children, event: first.event_id, can_cancel: is_reset });
        }
        for child in running {
            summary.cancelled_children.push(child.instance.clone());
            begin.orchestrator_items.push(WorkItem::CancelInstance {
                instance: child.instance.clone(),
                reason: PARENT_RESET.to_string(),
            });
            if child.is_kept {
                let answer = answer(target, begin.execution_id, child.event_id, ChildState::Running);
                begin.orchestrator_items.push(answer);
            }
        }
        Ok(())
    }

    /// The queue messages that arrived after the kept events.
    fn messages_after(&self, target: &str) -> Vec<WorkItem> {
        let message = |event: &Event| match &event.kind {
            EventKind::QueueEventDelivered { name, data } => Some(WorkItem::QueueMessage {
                instance: target.to_string(),
                name: name.clone(),
                data: data.clone(),
            }),
            _ => None,
        };
        self.left.iter().filter_map(message).collect()
    }

    /// The event that ends the execution of the source.
    fn end(&self, branch: Branch<'_>, last: &Event, now_ms: u64) -> Option<Event> {
        if self.has_ended || matches!(branch, Branch::Fork { .. }) {
            return None;
        }
        let input = match self.kept.first().map(|event| &event.kind) {
            Some(EventKind::OrchestrationStarted { input, .. }) => input.clone(),
            _ => String::new(),
        };
        let kind = EventKind::OrchestrationContinuedAsNew { input };
        let id = last.event_id + 1;
        Some(Event::at(now_ms, id, &last.instance_id, last.execution_id, None, kind))
    }

    /// The custom status after the kept events.
    fn custom_status(&self) -> Option<String> {
        self.kept
            .iter()
            .rev()
            .find_map(|event| match &event.kind {
                EventKind::CustomStatusUpdated { status } => Some(status.clone()),
                EventKind::OrchestrationStarted { initial_custom_status, .. } => {
                    Some(initial_custom_status.clone())
                }
                _ => None,
            })
            .flatten()
    }
}

/// The columns of the new execution.
fn metadata(history: &[Event]) -> ExecutionMetadata {
    let mut metadata = ExecutionMetadata::default();
    if let Some(first) = history.first()
        && let EventKind::OrchestrationStarted { name, version, parent_instance, .. } = &first.kind
    {
        metadata.orchestration_name = Some(name.clone());
        metadata.orchestration_version = Some(version.clone());
        metadata.parent_instance_id.clone_from(parent_instance);
        metadata.pinned_duroxide_version = version::pin(&first.duroxide_version);
    }
    metadata
}

/// The outcome of a child, for the execution that waits for it. A child that runs is cancelled.
fn answer(target: &str, execution_id: u64, event_id: u64, state: ChildState) -> WorkItem {
    let (parent_instance, parent_execution_id, parent_id) = (target.to_string(), execution_id, event_id);
    match state {
        ChildState::Completed(result) => {
            WorkItem::SubOrchCompleted { parent_instance, parent_execution_id, parent_id, result }
        }
        ChildState::Failed(details) => {
            WorkItem::SubOrchFailed { parent_instance, parent_execution_id, parent_id, details }
        }
        ChildState::Running => WorkItem::SubOrchFailed {
            parent_instance,
            parent_execution_id,
            parent_id,
            details: ErrorDetails::Application {
                kind: AppErrorKind::Cancelled { reason: PARENT_RESET.to_string() },
                message: String::new(),
                retryable: false,
            },
        },
    }
}
