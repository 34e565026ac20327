//! The defects of [`Bug`](crate::Bug) that are not defects of the memory store. Each changes the calls between runtime
//! and store as a runtime or a store with that defect would.

use crate::bug::Bug;
use crate::shared::Shared;
use outlast_model::{ErrorDetails, Event, EventKind, ExecutionStatus, WorkItem};
use outlast_provider::{LoadedTurn, TurnCommit};
use std::time::Duration;

/// Changes the commit of a turn.
pub(super) fn commit(shared: &Shared, instance: &str, commit: &mut TurnCommit) {
    let Some(bug) = shared.bug else { return };
    let continues = commit.metadata.execution_status() == Some(ExecutionStatus::ContinuedAsNew);
    let messages = &mut commit.orchestrator_items;
    match bug {
        Bug::CommitForgetsWork if shared.rng().per_mille(100) => commit.worker_items.clear(),
        Bug::CommitForgetsMessages if shared.rng().per_mille(100) => messages.clear(),
        Bug::CompletionTwice => completion_twice(&mut commit.history_delta),
        Bug::DetachedLostOnContinue if continues => messages.retain(|item| !is_detached_start(item)),
        Bug::ParentNotToldOfFailure => {
            messages.retain(|item| !matches!(item, WorkItem::SubOrchFailed { .. }));
        }
        Bug::CarryForwardTruncated => messages.iter_mut().for_each(forget_carried),
        Bug::CancelsChildThatNeverStarted if commit.metadata.status.is_some() => {
            let instance = format!("{instance}::never-started");
            let reason = "its parent ended".to_string();
            messages.push(WorkItem::CancelInstance { instance, reason });
        }
        _ => {}
    }
}

/// Records the first completion a second time, under the next event id.
fn completion_twice(delta: &mut Vec<Event>) {
    let last_id = delta.last().map_or(0, |event| event.event_id);
    let completed = delta.iter().find(|event| matches!(event.kind, EventKind::ActivityCompleted { .. }));
    if let Some(event) = completed.cloned() {
        delta.push(Event { event_id: last_id + 1, ..event });
    }
}

fn is_detached_start(item: &WorkItem) -> bool {
    matches!(item, WorkItem::StartOrchestration { parent_instance: None, .. })
}

fn forget_carried(item: &mut WorkItem) {
    if let WorkItem::ContinueAsNew { carry_forward_events, .. } = item {
        carry_forward_events.pop();
    }
}

/// The commit of a runtime that fails the instance after a storage error.
pub(super) fn failed_by_outage(now_ms: u64, commit: &TurnCommit) -> Option<TurnCommit> {
    let first = commit.history_delta.first().filter(|first| first.event_id > 1)?;
    let details = ErrorDetails::Infrastructure {
        operation: "ack_orchestration_item".to_string(),
        message: "the store could not be reached".to_string(),
        retryable: false,
    };
    let kind = EventKind::OrchestrationFailed { details };
    let failed = Event::at(now_ms, first.event_id, &first.instance_id, commit.execution_id, None, kind);
    let mut outcome = commit.clone();
    outcome.worker_items.clear();
    outcome.orchestrator_items.clear();
    outcome.history_delta = vec![failed];
    outcome.metadata.status = Some(ExecutionStatus::Failed.to_string());
    Some(outcome)
}

/// Changes the load of a cold turn.
pub(super) fn load(shared: &Shared, loaded: &mut LoadedTurn) {
    match shared.bug {
        Some(Bug::StaleRead) if loaded.history.len() > 1 => drop(loaded.history.pop()),
        Some(Bug::KvReadEmpty) => loaded.kv_snapshot.clear(),
        _ => {}
    }
}

/// The duration of a lease.
pub(super) fn lease(shared: &Shared, asked: Duration) -> Duration {
    match shared.has(Bug::LeaseNeverEnds) {
        true => asked * 1_000,
        false => asked,
    }
}
