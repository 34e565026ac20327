//! What the defects of [`Bug`](crate::Bug) do, where they are not the store's own. Each is what a runtime or a store that has
//! the defect would do, seen from the border between them.

use crate::bug::Bug;
use crate::shared::Shared;
use outlast_model::{ErrorDetails, Event, EventKind, WorkItem};
use outlast_provider::{LoadedTurn, TurnCommit};
use std::time::Duration;

/// Spoils what a turn commits.
pub(super) fn commit(shared: &Shared, instance: &str, commit: &mut TurnCommit) {
    let Some(bug) = shared.bug else { return };
    let continues = commit.metadata.status.as_deref() == Some("ContinuedAsNew");
    let messages = &mut commit.orchestrator_items;
    match bug {
        Bug::CommitForgetsWork if shared.dice().per_mille(100) => commit.worker_items.clear(),
        Bug::CommitForgetsMessages if shared.dice().per_mille(100) => messages.clear(),
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

/// The first completion is recorded a second time, under the next id.
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

/// What a turn becomes after an outage, where storage trouble is taken for a failure of the instance.
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
    outcome.metadata.status = Some("Failed".to_string());
    Some(outcome)
}

/// Spoils what a cold turn reads.
pub(super) fn load(shared: &Shared, loaded: &mut LoadedTurn) {
    match shared.bug {
        Some(Bug::StaleRead) if loaded.history.len() > 1 => drop(loaded.history.pop()),
        Some(Bug::KvReadEmpty) => loaded.kv_snapshot.clear(),
        _ => {}
    }
}

/// How long a lease really lasts.
pub(super) fn lease(shared: &Shared, asked: Duration) -> Duration {
    match shared.has(Bug::LeaseNeverEnds) {
        true => asked * 1_000,
        false => asked,
    }
}
