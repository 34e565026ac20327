//! How it all ends: I7 while something still runs, and what everybody must have printed.

use super::Snapshot;
use crate::plan::Root;
use crate::program::Program;
use crate::shared::Shared;
use outlast_model::{AppErrorKind, ErrorDetails, Event, EventKind};
use outlast_provider::Clock;
use outlast_runtime::OrchestrationStatus;

/// Instances that have not ended.
pub(crate) fn running(snapshot: &Snapshot) -> Vec<&str> {
    let all = snapshot.instances.keys().map(String::as_str);
    all.filter(|instance| !snapshot.has_ended(instance)).collect()
}

/// I7: the oldest of those that should have ended, and why it has not.
pub(crate) fn stuck(shared: &Shared, snapshot: &Snapshot) -> String {
    let running = running(snapshot);
    let began =
        |instance: &&&str| snapshot.history(instance, 1).first().map_or(u64::MAX, |event| event.timestamp_ms);
    let Some(oldest) = running.iter().min_by_key(began) else {
        return "I7: every instance has ended, and a client still waits".to_string();
    };
    let current = snapshot.instances.get(*oldest).copied().unwrap_or(1);
    let history = snapshot.history(oldest, current);
    format!(
        "I7: {} instance(s) have not ended; the oldest is '{oldest}', execution {current}, {} events, {}",
        running.len(),
        history.len(),
        why(shared, snapshot, oldest, history)
    )
}

fn why(shared: &Shared, snapshot: &Snapshot, instance: &str, history: &[Event]) -> String {
    let now = shared.clock.now_ms();
    let mut reasons = Vec::new();
    for message in snapshot.messages.iter().filter(|message| message.item.target_instance() == instance) {
        let due = i128::from(message.visible_at) - i128::from(now);
        let (kind, attempts) = (message.item.kind_name(), message.attempts);
        reasons.push(format!("message {kind} due in {due} ms, delivered {attempts} times"));
    }
    for work in snapshot.work.iter().filter(|work| work.instance == instance) {
        let due = i128::from(work.visible_at.max(work.locked_until)) - i128::from(now);
        reasons.push(format!("activity {} free in {due} ms, delivered {} times", work.id, work.attempts));
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
    if reasons.is_empty() { "and nothing waits for it".to_string() } else { reasons.join("; ") }
}

/// What clients were told, against what their programs must print.
pub(crate) fn outcome(shared: &Shared, root: &Root, told: &OrchestrationStatus) -> Result<(), String> {
    let cancelled = shared.witness().cancelled.contains(&root.instance);
    let result = match told {
        OrchestrationStatus::Completed { output, .. } => Ok(output.as_str()),
        OrchestrationStatus::Failed { details, .. } => match failure(shared, details, cancelled) {
            Some(message) => Err(message),
            None => return Ok(()),
        },
        other => return Err(format!("I11: the client of '{}' was told {other:?}", root.instance)),
    };
    judge(shared, &root.instance, &root.program, result)
}

/// The text of a failure that the program must explain; `None` for one that the world explains.
fn failure<'a>(shared: &Shared, details: &'a ErrorDetails, cancelled: bool) -> Option<&'a str> {
    match details {
        ErrorDetails::Application { kind: AppErrorKind::Cancelled { .. }, .. } if cancelled => None,
        ErrorDetails::Poison { .. } if shared.plan.may_poison() => None,
        ErrorDetails::Application { message, .. } => Some(message),
        _ => Some("trouble"),
    }
}

fn judge(
    shared: &Shared,
    instance: &str,
    program: &Program,
    result: Result<&str, &str>,
) -> Result<(), String> {
    if shared.plan.may_poison() {
        // A child or an activity may have been poisoned on the way, and says so in the output.
        return Ok(());
    }
    program.check(result).map_err(|problem| format!("O1: '{instance}' did not end as it must: {problem}"))
}

/// Detached instances have no client: the store must know them, if their parents got to start them.
pub(crate) fn detached(shared: &Shared, snapshot: &Snapshot, root: &Root) -> Result<(), String> {
    for (instance, program) in root.program.detached() {
        // Its parent did not come to it; `presence` knows.
        let Some(current) = snapshot.instances.get(instance) else { continue };
        let ended = snapshot.history(instance, *current).iter().find(|event| event.is_terminal());
        let result = match ended.map(|event| &event.kind) {
            Some(EventKind::OrchestrationCompleted { output }) => Ok(output.as_str()),
            Some(EventKind::OrchestrationFailed { details }) => match failure(shared, details, false) {
                Some(message) => Err(message),
                None => continue,
            },
            _ => return Err(format!("I7: detached instance '{instance}' has not ended")),
        };
        judge(shared, instance, program, result)?;
    }
    Ok(())
}
