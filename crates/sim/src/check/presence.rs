//! I1, I3, I5: every item of a performed call is in a history or in a queue, or its instance has ended.

use super::Snapshot;
use crate::performed::Performed;
use crate::shared::Shared;
use outlast_model::{Event, EventKind, WorkItem, build_child_instance_id};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn check(shared: &Shared, snapshot: &Snapshot) -> Result<(), String> {
    let performed = &*shared.performed();
    let waiting = Waiting::of(snapshot);
    starts(performed, snapshot, &waiting)?;
    messages(shared, performed, snapshot, &waiting)?;
    cancellations(performed, snapshot, &waiting)?;
    results(performed, snapshot, &waiting)?;
    detached(snapshot, &waiting)?;
    for (instance, current) in &snapshot.instances {
        let history = snapshot.history(instance, *current);
        if !history.iter().any(Event::is_terminal) {
            open_operations(instance, *current, history, snapshot, &waiting)?;
        } else if !snapshot.has_ended(instance) && !waiting.successors.contains(instance.as_str()) {
            return Err(format!("I5: '{instance}' continued as new, and its successor is not stored"));
        }
    }
    Ok(())
}

/// The message queue, grouped by the subject of its messages.
#[derive(Default)]
struct Waiting<'a> {
    starts: BTreeSet<&'a str>,
    successors: BTreeSet<&'a str>,
    cancellations: BTreeSet<&'a str>,
    /// Data of events and queue messages, with the number of rows.
    data: BTreeMap<(&'a str, &'a str), usize>,
    /// Instance, execution and scheduling event of outcomes of activities and children.
    outcomes: BTreeSet<(&'a str, u64, u64)>,
}

impl<'a> Waiting<'a> {
    fn of(snapshot: &'a Snapshot) -> Self {
        let mut waiting = Self::default();
        for message in &snapshot.messages {
            match &message.item {
                WorkItem::StartOrchestration { instance, .. } => drop(waiting.starts.insert(instance)),
                WorkItem::ContinueAsNew { instance, .. } => drop(waiting.successors.insert(instance)),
                WorkItem::CancelInstance { instance, .. } => drop(waiting.cancellations.insert(instance)),
                WorkItem::ExternalRaised { instance, data, .. }
                | WorkItem::QueueMessage { instance, data, .. } => {
                    *waiting.data.entry((instance, data)).or_default() += 1;
                }
                WorkItem::ActivityCompleted { instance, execution_id, id, .. }
                | WorkItem::ActivityFailed { instance, execution_id, id, .. } => {
                    waiting.outcomes.insert((instance, *execution_id, *id));
                }
                WorkItem::SubOrchCompleted { parent_instance, parent_execution_id, parent_id, .. }
                | WorkItem::SubOrchFailed { parent_instance, parent_execution_id, parent_id, .. } => {
                    waiting.outcomes.insert((parent_instance, *parent_execution_id, *parent_id));
                }
                _ => {}
            }
        }
        waiting
    }
}

/// I1: accepted starts.
fn starts(performed: &Performed, snapshot: &Snapshot, waiting: &Waiting<'_>) -> Result<(), String> {
    let lost = performed.starts.iter().find(|instance| {
        !snapshot.instances.contains_key(*instance) && !waiting.starts.contains(instance.as_str())
    });
    match lost {
        Some(instance) => Err(format!(
            "I1: the start of '{instance}' was accepted, and neither start nor instance is stored"
        )),
        None => Ok(()),
    }
}

/// I1 for detached instances: every start that a history records is stored or queued.
fn detached(snapshot: &Snapshot, waiting: &Waiting<'_>) -> Result<(), String> {
    for ((parent, _), history) in &snapshot.histories {
        for event in history.iter() {
            let EventKind::OrchestrationChained { instance, .. } = &event.kind else { continue };
            if !snapshot.instances.contains_key(instance) && !waiting.starts.contains(instance.as_str()) {
                return Err(format!(
                    "I1: '{parent}' started '{instance}', and neither start nor instance is stored"
                ));
            }
        }
    }
    Ok(())
}

/// I3, second half: accepted messages. An execution records again the messages that its predecessor carried over, and the newest
/// execution of an instance that is reset has every message, in its copied events or sent again.
fn messages(
    shared: &Shared,
    performed: &Performed,
    snapshot: &Snapshot,
    waiting: &Waiting<'_>,
) -> Result<(), String> {
    let mut recorded: BTreeMap<(&str, &str), isize> = BTreeMap::new();
    for ((instance, execution_id), history) in &snapshot.histories {
        if shared.plan.source_of(instance).is_some() && snapshot.instances.get(instance) != Some(execution_id)
        {
            continue;
        }
        for event in history.iter() {
            match &event.kind {
                EventKind::ExternalEvent { data, .. } | EventKind::QueueEventDelivered { data, .. } => {
                    *recorded.entry((instance, data)).or_default() += 1;
                }
                EventKind::OrchestrationStarted { carry_forward_events: Some(carried), .. } => {
                    for (_, data) in carried {
                        *recorded.entry((instance, data)).or_default() -= 1;
                    }
                }
                _ => {}
            }
        }
    }
    for (instance, data) in &performed.messages {
        let key = (instance.as_str(), data.as_str());
        let rows = waiting.data.get(&key).copied().unwrap_or(0);
        let events = recorded.get(&key).copied().unwrap_or(0);
        let count = events + isize::try_from(rows).unwrap_or(isize::MAX);
        if count > 1 || (count < 1 && !snapshot.has_ended(instance)) {
            return Err(format!(
                "I3: message '{data}' for '{instance}' was accepted once and is stored {count} times ({rows} queued)"
            ));
        }
    }
    Ok(())
}

/// I3 for cancellations: an accepted cancellation is queued or recorded, or the instance has ended.
fn cancellations(performed: &Performed, snapshot: &Snapshot, waiting: &Waiting<'_>) -> Result<(), String> {
    for instance in &performed.cancelled {
        let mut histories = snapshot.histories.iter().filter(|((id, _), _)| id == instance);
        let is_it = |event: &Event| matches!(event.kind, EventKind::OrchestrationCancelRequested { .. });
        let recorded = histories.any(|(_, history)| history.iter().any(is_it));
        if !recorded && !waiting.cancellations.contains(instance.as_str()) && !snapshot.has_ended(instance) {
            return Err(format!("I3: the cancellation of '{instance}' was accepted and is not stored"));
        }
    }
    Ok(())
}

/// I5: accepted outcomes of activities.
fn results(performed: &Performed, snapshot: &Snapshot, waiting: &Waiting<'_>) -> Result<(), String> {
    for (instance, execution_id, id) in performed.results.keys() {
        let history = snapshot.history(instance, *execution_id);
        let recorded = history.iter().any(|event| {
            event.source_event_id == Some(*id)
                && matches!(
                    event.kind,
                    EventKind::ActivityCompleted { .. } | EventKind::ActivityFailed { .. }
                )
        });
        let has_ended = history.iter().any(Event::is_terminal);
        if !recorded && !has_ended && !waiting.outcomes.contains(&(instance, *execution_id, *id)) {
            return Err(format!(
                "I5: the outcome of activity {id} of '{instance}', execution {execution_id}, was accepted and is not stored"
            ));
        }
    }
    Ok(())
}

/// I5 for open operations: the activity, child or outcome that a history waits for is stored.
fn open_operations(
    instance: &str,
    execution_id: u64,
    history: &[Event],
    snapshot: &Snapshot,
    waiting: &Waiting<'_>,
) -> Result<(), String> {
    let settled: BTreeSet<u64> = history.iter().filter_map(|event| event.source_event_id).collect();
    for event in history.iter().filter(|event| !settled.contains(&event.event_id)) {
        let id = event.event_id;
        let answered = waiting.outcomes.contains(&(instance, execution_id, id));
        let (what, on_its_way) = match &event.kind {
            EventKind::ActivityScheduled { .. } => {
                let is_it = |row: &super::snapshot::ActivityRow| {
                    row.instance == instance && row.execution_id == execution_id && row.id == id
                };
                ("activity", snapshot.activities.iter().any(is_it))
            }
            EventKind::SubOrchestrationScheduled { instance: child, .. } => {
                let child = build_child_instance_id(instance, child);
                let there = snapshot.instances.contains_key(&child) && !snapshot.has_ended(&child);
                ("child", there || waiting.starts.contains(child.as_str()))
            }
            _ => continue,
        };
        if !answered && !on_its_way {
            return Err(format!(
                "I5: '{instance}', execution {execution_id}, waits for {what} {id}, which is not stored"
            ));
        }
    }
    Ok(())
}
