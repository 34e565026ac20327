//! Turns of instances whose history does not decode. They are given back with a delay, because a node with a newer version may be
//! able to decode the history. After `max_attempts` deliveries the instance fails.

use super::history::ended_past;
use super::turn::{Keep, TurnDecision, only_messages};
use crate::core::Core;
use outlast_engine::{Admission, Ended, Ending};
use outlast_model::{
    ErrorDetails, Event, EventKind, ExecutionStatus, PoisonMessageType, WorkItem, build_child_instance_id,
};
use outlast_provider::FetchedTurn;
use std::time::Duration;

/// The event id of the failure that is appended to an undecodable history: above every id that the history can hold.
const SENTINEL_EVENT_ID: u64 = 99_999;

/// Decides the turn of an instance whose history does not decode: gives the turn back, or fails the instance after `max_attempts`
/// deliveries.
pub(super) async fn decide(core: &Core, fetched: &FetchedTurn, error: String, now_ms: u64) -> TurnDecision {
    let (attempt_count, max_attempts) = (fetched.attempt_count, core.options.max_attempts);
    let instance = &fetched.item.instance;
    // The error is not logged: it may quote a stored payload.
    tracing::warn!(target: "duroxide::runtime", instance_id = %instance, attempt_count, "history does not decode");
    if attempt_count <= max_attempts {
        return TurnDecision::GiveBack { delay: Duration::from_secs(1), ignore_attempt: false };
    }
    let execution_id = fetched.item.execution_id;
    let mut messages = replies_to_parents(fetched);
    if has_failed_already(core, instance).await {
        return TurnDecision::Commit {
            output: Box::new(only_messages(execution_id, messages)),
            keep: Keep::Nothing,
        };
    }
    let message_type = PoisonMessageType::FailedDeserialization {
        instance: instance.clone(),
        execution_id,
        error: error.clone(),
    };
    let details = ErrorDetails::Poison { attempt_count, max_attempts, message_type, message: error };
    let kind = EventKind::OrchestrationFailed { details: details.clone() };
    messages.extend(parent_notice(core, instance, &details).await);
    let mut output = only_messages(execution_id, messages);
    output.commit.history_delta =
        vec![Event::at(now_ms, SENTINEL_EVENT_ID, instance, execution_id, None, kind)];
    output.commit.metadata.status = Some(ExecutionStatus::Failed.to_string());
    output.commit.metadata.output = Some(details.display_message());
    output.report.name.clone_from(&fetched.item.orchestration_name);
    output.report.version.clone_from(&fetched.item.version);
    output.report.execution_id = execution_id;
    output.report.ended = Some(Ending::Failed(details));
    TurnDecision::Commit { output: Box::new(output), keep: Keep::Nothing }
}

/// The failures sent to each parent that starts this instance as a child in the batch: the engine rejects such a start for an
/// instance that has ended.
fn replies_to_parents(fetched: &FetchedTurn) -> Vec<WorkItem> {
    let item = &fetched.item;
    let past = ended_past(Ended::Finished);
    match outlast_engine::admit(&item.instance, item.execution_id, &past, item.messages.clone()) {
        Admission::Ended(notices) => notices,
        _ => Vec::new(),
    }
}

/// Whether an earlier turn has failed the instance, for stores that do not set `FetchedTurn::has_ended`.
async fn has_failed_already(core: &Core, instance: &str) -> bool {
    let Some(admin) = core.store.as_management_capability() else { return false };
    admin.get_instance_info(instance).await.is_ok_and(|info| info.status == ExecutionStatus::Failed.as_str())
}

/// The failure message for the parent of the instance. The undecodable history holds the id of the parent's scheduling event, so
/// this reads it from the history of the parent.
async fn parent_notice(core: &Core, instance: &str, details: &ErrorDetails) -> Option<WorkItem> {
    let parent = core.store.as_management_capability()?.get_parent_id(instance).await.ok()??;
    let history = core.store.read(&parent).await.ok()?;
    let scheduled = history.iter().rev().find(|event| match &event.kind {
        EventKind::SubOrchestrationScheduled { instance: child, .. } => {
            build_child_instance_id(&parent, child) == instance
        }
        _ => false,
    })?;
    Some(WorkItem::SubOrchFailed {
        parent_instance: parent.clone(),
        parent_execution_id: scheduled.execution_id,
        parent_id: scheduled.event_id,
        details: details.clone(),
    })
}
