//! Instances whose history does not decode. They rest, in case a newer node can read them, and are failed in the end.

use super::history::ended;
use super::turn::{Keep, Verdict, only_messages};
use crate::core::Core;
use outlast_engine::{Admission, Ended, Ending};
use outlast_model::{
    ErrorDetails, Event, EventKind, ExecutionStatus, PoisonMessageType, WorkItem, build_child_instance_id,
};
use outlast_provider::FetchedTurn;
use std::time::Duration;

/// Event id of a failure that is appended to a history which nobody can read: far behind every id in it.
const SENTINEL_EVENT_ID: u64 = 99_999;

pub(super) async fn decide(core: &Core, fetched: &FetchedTurn, error: String, now_ms: u64) -> Verdict {
    let (attempt_count, max_attempts) = (fetched.attempt_count, core.options.max_attempts);
    let instance = &fetched.item.instance;
    // Without the reason, which may quote what is stored.
    tracing::warn!(target: "duroxide::runtime", instance_id = %instance, attempt_count, "history does not decode");
    if attempt_count <= max_attempts {
        return Verdict::GiveBack { delay: Duration::from_secs(1), ignore_attempt: false };
    }
    let execution_id = fetched.item.execution_id;
    let mut messages = answers(fetched);
    if has_failed_already(core, instance).await {
        return Verdict::Commit {
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
    Verdict::Commit { output: Box::new(output), keep: Keep::Nothing }
}

/// What is sent to parents that wanted to start an instance of this id, which are in the batch that is dropped.
fn answers(fetched: &FetchedTurn) -> Vec<WorkItem> {
    let item = &fetched.item;
    let over = ended(Ended::Finished);
    match outlast_engine::admit(&item.instance, item.execution_id, &over, item.messages.clone()) {
        Admission::Ended(notices) => notices,
        _ => Vec::new(),
    }
}

/// For stores that do not say with the turn whether its execution has ended.
async fn has_failed_already(core: &Core, instance: &str) -> bool {
    let Some(admin) = core.store.as_management_capability() else { return false };
    admin.get_instance_info(instance).await.is_ok_and(|info| info.status == ExecutionStatus::Failed.as_str())
}

/// The link to the parent is in the history that does not decode, but the parent's history names its children.
async fn parent_notice(core: &Core, instance: &str, details: &ErrorDetails) -> Option<WorkItem> {
    let parent = core.store.as_management_capability()?.get_parent_id(instance).await.ok()??;
    let history = core.store.read(&parent).await.ok()?;
    let asked = history.iter().rev().find(|event| match &event.kind {
        EventKind::SubOrchestrationScheduled { instance: child, .. } => {
            build_child_instance_id(&parent, child) == instance
        }
        _ => false,
    })?;
    Some(WorkItem::SubOrchFailed {
        parent_instance: parent.clone(),
        parent_execution_id: asked.execution_id,
        parent_id: asked.event_id,
        details: details.clone(),
    })
}
