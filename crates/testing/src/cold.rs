//! Turns that run again on a fresh call of the code, compared with the turns that a runtime ran.

use crate::story;
use outlast_model::{Event, TurnCommit};
use std::fmt::Debug;

pub use outlast_runtime::check::{Build, Turn};

/// Compares the commit of a runtime with the commit of the same turn from a cold start.
///
/// # Errors
///
/// The first difference, with both sides.
pub fn compare(again: &TurnCommit, first: &TurnCommit) -> Result<(), String> {
    compare_events(&again.history_delta, &first.history_delta)?;
    same("activities", &again.worker_items, &first.worker_items)?;
    same("messages", &again.orchestrator_items, &first.orchestrator_items)?;
    same("cancelled activities", &again.cancelled_activities, &first.cancelled_activities)
}

fn compare_events(again: &[Event], first: &[Event]) -> Result<(), String> {
    let longest = again.len().max(first.len());
    let Some(at) = (0..longest).find(|at| again.get(*at) != first.get(*at)) else { return Ok(()) };
    let side = |events: &[Event]| match events.get(at) {
        Some(event) => format!("`{}`", story::words(event, events)),
        None => "no decision".to_string(),
    };
    let id = first.get(at).or(again.get(at)).map_or(0, |event| event.event_id);
    Err(format!("event {id}: the first run decided {}, the replay decided {}", side(first), side(again)))
}

fn same<T: PartialEq + Debug>(what: &str, again: &[T], first: &[T]) -> Result<(), String> {
    match again == first {
        true => Ok(()),
        false => Err(format!("{what}: first {first:?}, again {again:?}")),
    }
}
