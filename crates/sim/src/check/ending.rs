//! I7 and O1: every instance ends, with the expected output.

use super::Snapshot;
use crate::plan::Root;
use crate::program::Program;
use crate::shared::Shared;
use outlast_model::{AppErrorKind, ErrorDetails, Event, EventKind};
use outlast_provider::Clock;
use outlast_runtime::OrchestrationStatus;

/// Instances that have not ended.
pub(crate) fn unfinished_ids(snapshot: &Snapshot) -> Vec<&str> {
    let all = snapshot.instances.keys().map(String::as_str);
    all.filter(|instance| !snapshot.has_ended(instance)).collect()
}

/// I7: describes the oldest instance that has not ended, and its open operations.
pub(crate) fn unfinished(shared: &Shared, snapshot: &Snapshot) -> String {
    let unfinished_ids = unfinished_ids(snapshot);
    let began =
        |instance: &&&str| snapshot.history(instance, 1).first().map_or(u64::MAX, |event| event.timestamp_ms);
    let Some(oldest) = unfinished_ids.iter().min_by_key(began) else {
        return "I7: every instance has ended, but a client still waits".to_string();
    };
    let current = snapshot.instances.get(*oldest).copied().unwrap_or(1);
    let history = snapshot.history(oldest, current);
    format!(
        "I7: {} instance(s) have not ended; the oldest is '{oldest}', execution {current}, {} events, {}",
        unfinished_ids.len(),
        history.len(),
        describe_waits(shared, snapshot, oldest, history)
    )
}

fn describe_waits(shared: &Shared, snapshot: &Snapshot, instance: &str, history: &[Event]) -> String {
    let now = shared.clock.now_ms();
    let mut reasons = Vec::new();
    for message in snapshot.messages.iter().filter(|message| message.item.target_instance() == instance) {
        let due = i128::from(message.visible_at) - i128::from(now);
        let (kind, attempts) = (message.item.kind_name(), message.attempts);
        reasons.push(format!("message {kind} due in {due} ms, delivered {attempts} times"));
    }
    for activity in snapshot.activities.iter().filter(|activity| activity.instance == instance) {
        let due = i128::from(activity.visible_at.max(activity.locked_until)) - i128::from(now);
        reasons.push(format!(
            "activity {} free in {due} ms, delivered {} times",
            activity.id, activity.attempts
        ));
    }
    if let Some(until) = snapshot.leases.get(instance) {
        reasons.push(format!("leased for another {} ms", i128::from(*until) - i128::from(now)));
    }
    let settled = |id: u64| history.iter().any(|event| event.source_event_id == Some(id));
    for event in history.iter().filter(|event| !settled(event.event_id)) {
        let waits = match &event.kind {
            EventKind::ActivityScheduled { .. } => "an activity".to_string(),
            EventKind::TimerCreated { fire_at_ms } => {
                format!("a timer that fires in {} ms", i128::from(*fire_at_ms) - i128::from(now))
            }
            EventKind::SubOrchestrationScheduled { instance, .. } => format!("child '{instance}'"),
            EventKind::QueueSubscribed { name } => format!("a message of '{name}'"),
            EventKind::ExternalSubscribed { name } => format!("event '{name}'"),
            _ => continue,
        };
        reasons.push(format!("event {} may wait for {waits}", event.event_id));
    }
    if reasons.is_empty() {
        "no message, activity or lease of it is stored".to_string()
    } else {
        reasons.join("; ")
    }
}

/// Checks the final status that a client received against the expected output of the program.
pub(crate) fn outcome(
    shared: &Shared,
    snapshot: &Snapshot,
    root: &Root,
    status: &OrchestrationStatus,
) -> Result<(), String> {
    let cancelled = shared.performed().cancelled.contains(&root.instance);
    let result = match status {
        OrchestrationStatus::Completed { output, .. } => Ok(output.as_str()),
        OrchestrationStatus::Failed { details, .. } => match failure(shared, details, cancelled) {
            Some(message) => Err(message),
            None => {
                shared.tally().outputs_not_judged += 1;
                return Ok(());
            }
        },
        other => {
            return Err(format!(
                "I11: the client of '{}' received {other:?} as the final status",
                root.instance
            ));
        }
    };
    check_output(shared, snapshot, &root.instance, &root.program, result)
}

/// The text of a failure that the program must have planned; `None` if a cancellation or poison explains the failure.
fn failure<'a>(shared: &Shared, details: &'a ErrorDetails, cancelled: bool) -> Option<&'a str> {
    match details {
        ErrorDetails::Application { kind: AppErrorKind::Cancelled { .. }, .. } if cancelled => None,
        ErrorDetails::Poison { .. } if shared.plan.may_poison() => None,
        ErrorDetails::Application { message, .. } => Some(message),
        _ => Some("trouble"),
    }
}

fn check_output(
    shared: &Shared,
    snapshot: &Snapshot,
    instance: &str,
    program: &Program,
    result: Result<&str, &str>,
) -> Result<(), String> {
    if has_poison(snapshot, instance) {
        // A child or an activity that was poisoned changes the output.
        shared.tally().outputs_not_judged += 1;
        return Ok(());
    }
    shared.tally().outputs_judged += 1;
    program
        .check(result)
        .map_err(|problem| format!("O1: '{instance}' did not return its expected output: {problem}"))
}

/// Whether the instance, a child of it or an activity was poisoned. The ids of children begin with the id of their parent.
fn has_poison(snapshot: &Snapshot, instance: &str) -> bool {
    let is_poison = |event: &Event| {
        matches!(
            &event.kind,
            EventKind::OrchestrationFailed { details: ErrorDetails::Poison { .. } }
                | EventKind::ActivityFailed { details: ErrorDetails::Poison { .. } }
                | EventKind::SubOrchestrationFailed { details: ErrorDetails::Poison { .. } }
        )
    };
    let mut tree = snapshot.histories.iter().filter(|((id, _), _)| id.starts_with(instance));
    tree.any(|(_, history)| history.iter().any(is_poison))
}

/// Checks the outputs of detached instances in the store, because no client waits for them.
pub(crate) fn detached(shared: &Shared, snapshot: &Snapshot, root: &Root) -> Result<(), String> {
    let detached = root.program.detached();
    detached
        .into_iter()
        .try_for_each(|(instance, program)| stored_output(shared, snapshot, instance, program))
}

/// Checks the outputs of forks in the store, because no client waits for them. A fork has the output of its source.
pub(crate) fn forked(shared: &Shared, snapshot: &Snapshot, root: &Root) -> Result<(), String> {
    let mut branches = root.actions.iter().filter_map(|(_, action)| action.branches(root));
    branches.try_for_each(|(_, target)| stored_output(shared, snapshot, target, &root.program))
}

/// Checks the output of an instance in the store, if the instance exists.
fn stored_output(
    shared: &Shared,
    snapshot: &Snapshot,
    instance: &str,
    program: &Program,
) -> Result<(), String> {
    // The parent ended before it started the instance; `presence` checks that.
    let Some(current) = snapshot.instances.get(instance) else { return Ok(()) };
    let ended = snapshot.history(instance, *current).iter().find(|event| event.is_terminal());
    let result = match ended.map(|event| &event.kind) {
        Some(EventKind::OrchestrationCompleted { output }) => Ok(output.as_str()),
        Some(EventKind::OrchestrationFailed { details }) => match failure(shared, details, false) {
            Some(message) => Err(message),
            None => {
                shared.tally().outputs_not_judged += 1;
                return Ok(());
            }
        },
        _ => return Err(format!("I7: instance '{instance}', for which no client waits, has not ended")),
    };
    check_output(shared, snapshot, instance, program, result)
}
