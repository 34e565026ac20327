//! Checks that must hold in every history.

use super::Snapshot;
use crate::shared::Shared;
use outlast_model::{ErrorDetails, Event, EventKind};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn check(shared: &Shared, snapshot: &Snapshot) -> Result<(), String> {
    for ((instance, execution_id), history) in &snapshot.histories {
        let problem =
            |text: String| format!("{text} in the history of '{instance}', execution {execution_id}");
        outcomes(shared, history).map_err(problem)?;
        ids(history).map_err(problem)?;
        end(history).map_err(problem)?;
        failures(shared, history).map_err(problem)?;
        queue_order(shared, instance, history).map_err(problem)?;
        effects(shared, instance, *execution_id, history).map_err(problem)?;
    }
    copies(shared, snapshot)
}

/// R1: the execution that a reset or fork begins has the first events of the source.
fn copies(shared: &Shared, snapshot: &Snapshot) -> Result<(), String> {
    for copied in &shared.performed().copied {
        let events = |(instance, execution_id): &(String, u64)| {
            let history = snapshot.history(instance, *execution_id).iter().take(copied.events);
            history
                .map(|event| (event.event_id, event.source_event_id, event.timestamp_ms, event.kind.clone()))
                .collect::<Vec<_>>()
        };
        let (source, target) = (events(&copied.source), events(&copied.target));
        if source.len() != copied.events || source != target {
            return Err(format!("R1: {copied:?}: the events that were copied differ"));
        }
    }
    Ok(())
}

fn is_outcome(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::ActivityCompleted { .. }
            | EventKind::ActivityFailed { .. }
            | EventKind::TimerFired { .. }
            | EventKind::SubOrchestrationCompleted { .. }
            | EventKind::SubOrchestrationFailed { .. }
    )
}

/// I3, T1, and the first half of I4.
fn outcomes(shared: &Shared, history: &[Event]) -> Result<(), String> {
    // A timer message that is due stays due when the clock is set back before the turn that receives it.
    let set_back_ms = shared.clock.set_back_ms();
    let scheduled: BTreeMap<u64, &EventKind> = history.iter().map(|e| (e.event_id, &e.kind)).collect();
    let mut answered = BTreeSet::new();
    for event in history.iter().filter(|event| is_outcome(&event.kind)) {
        let source = event.source_event_id.unwrap_or(0);
        if !answered.insert(source) {
            return Err(format!("I3: event {source} has two outcomes"));
        }
        let fits = match scheduled.get(&source) {
            Some(EventKind::ActivityScheduled { .. }) => event.kind.type_name().starts_with("Activity"),
            Some(EventKind::TimerCreated { .. }) => matches!(event.kind, EventKind::TimerFired { .. }),
            Some(EventKind::SubOrchestrationScheduled { .. }) => event.kind.type_name().starts_with("Sub"),
            _ => false,
        };
        if !fits || source >= event.event_id {
            return Err(format!("I4: event {} is the outcome of no scheduled operation", event.event_id));
        }
        if matches!(event.kind, EventKind::TimerFired { fire_at_ms } if event.timestamp_ms + set_back_ms < fire_at_ms)
        {
            return Err(format!("T1: timer {source} fired before its time"));
        }
    }
    Ok(())
}

/// I2, second half: event ids have no gaps.
fn ids(history: &[Event]) -> Result<(), String> {
    match history.iter().zip(1..).find(|(event, id)| event.event_id != *id) {
        Some((event, id)) => Err(format!("I2: event {} is at position {id}", event.event_id)),
        None => Ok(()),
    }
}

/// I15: a queue delivers the messages of a client in the order in which the client sent them. A client numbers its messages and sends
/// the next one after the answer to the last one. The order of two messages is not defined with a clock that was set back, for the
/// message of a delayed start, and after a turn was given back with a delay: messages that arrive meanwhile overtake its messages.
fn queue_order(shared: &Shared, instance: &str, history: &[Event]) -> Result<(), String> {
    let is_delayed = shared.plan.starts_with_delay(instance) || shared.performed().delayed.contains(instance);
    if shared.clock.set_back_ms() > 0 || is_delayed {
        return Ok(());
    }
    let mut last: BTreeMap<&str, u64> = BTreeMap::new();
    for event in history {
        let EventKind::QueueEventDelivered { name, data, .. } = &event.kind else { continue };
        // Messages that an activity sends have another form.
        let number = data.trim_matches('"').strip_prefix(instance).and_then(|rest| rest.strip_prefix('.'));
        let Some(number) = number.and_then(|number| number.parse().ok()) else { continue };
        match last.insert(name, number) {
            Some(before) if before > number => {
                return Err(format!("I15: queue '{name}' delivers message {number} after message {before}"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// I8: only cancellations of activities follow the terminal event.
fn end(history: &[Event]) -> Result<(), String> {
    let Some(at) = history.iter().position(Event::is_terminal) else { return Ok(()) };
    let allowed = |event: &Event| matches!(event.kind, EventKind::ActivityCancelRequested { .. });
    match history[at + 1..].iter().find(|event| !allowed(event)) {
        Some(event) => {
            let (kind, id) = (event.kind.type_name(), event.event_id);
            Err(format!("I8: {kind} (event {id}) follows the terminal event {}", history[at].event_id))
        }
        None => Ok(()),
    }
}

/// I9: neither a storage error nor a replay error may fail an instance.
fn failures(shared: &Shared, history: &[Event]) -> Result<(), String> {
    for event in history {
        let (EventKind::OrchestrationFailed { details }
        | EventKind::ActivityFailed { details }
        | EventKind::SubOrchestrationFailed { details }) = &event.kind
        else {
            continue;
        };
        match details {
            ErrorDetails::Application { .. } => {}
            // Crashes count as deliveries, so a low limit poisons instances.
            ErrorDetails::Poison { .. } if shared.plan.may_poison() => {}
            other => return Err(format!("I9: {}", other.display_message())),
        }
    }
    Ok(())
}

/// I4, second half: an activity that completed must have run.
fn effects(shared: &Shared, instance: &str, execution_id: u64, history: &[Event]) -> Result<(), String> {
    let ours = history.iter().filter_map(|event| match &event.kind {
        EventKind::ActivityScheduled { name, .. } if crate::program::is_activity(name) => {
            Some(event.event_id)
        }
        _ => None,
    });
    let ours: BTreeSet<u64> = ours.collect();
    let effects = shared.effects();
    for event in history.iter().filter(|e| matches!(e.kind, EventKind::ActivityCompleted { .. })) {
        let source = event.source_event_id.unwrap_or(0);
        // The copy of a completion is in an execution in which the activity did not run.
        let has_begun = |number| {
            let source_instance = shared.plan.source_of(instance);
            effects.has_begun(instance, number, source)
                || source_instance.is_some_and(|copied| effects.has_begun(copied, number, source))
        };
        let is_copy = shared.plan.source_of(instance).is_some() && (1..execution_id).any(has_begun);
        if ours.contains(&source) && !has_begun(execution_id) && !is_copy {
            return Err(format!("I4: activity {source} completed without having run"));
        }
    }
    Ok(())
}
