//! Loads the state of an instance for its turn: from the warm cache, from the fetched turn, or from the store.

use super::warm::{Kept, Lookup, Position};
use crate::core::Core;
use outlast_engine::{Ended, Execution, KvValue, Opening, Past};
use outlast_model::defect::{self, Defect};
use outlast_model::{Event, INITIAL_EXECUTION_ID, WorkItem};
use outlast_provider::{
    BoundedTurn, FetchedTurn, HistoryBound, KvEntry, LoadedTurn, OversizedTurn, ProviderError,
};
use std::collections::{BTreeMap, HashMap};
use std::pin::pin;
use std::time::Duration;

/// The state of an instance before its turn.
pub(super) struct InstanceState {
    pub(super) past: Past,
    /// The suspended execution, if the warm cache had it.
    pub(super) warm: Option<Box<Execution>>,
    /// The stored events of the current execution, if the warm cache did not have it.
    pub(super) history: Vec<Event>,
    /// The keys that earlier executions wrote. Empty if `warm` is set: the execution holds them.
    pub(super) kv: BTreeMap<String, KvValue>,
    /// Set if the stored history exceeds the limits and `history` is only its outline: the message of the failure.
    pub(super) oversized: Option<String>,
}

/// The reason for which the state of an instance could not be loaded.
pub(super) enum LoadError {
    /// The history or the keys do not decode.
    Undecodable(String),
    /// The store returned an error.
    Store(ProviderError),
}

/// Loads the state of the instance. The history of an execution that has ended is read only if the batch holds the start of a
/// child: the reply to that start depends on the parent of the instance.
pub(super) async fn load_instance(
    core: &Core,
    fetched: &mut FetchedTurn,
) -> Result<InstanceState, LoadError> {
    let has_ended = fetched.has_ended == Some(true);
    let needs_parent = fetched.item.messages.iter().any(is_start_of_child);
    if has_ended && !needs_parent {
        return Ok(from_cache(Kept::Ended));
    }
    match load(core, fetched, needs_parent).await {
        Err(LoadError::Undecodable(_)) if has_ended => Ok(from_cache(Kept::Ended)),
        loaded => loaded,
    }
}

fn is_start_of_child(message: &WorkItem) -> bool {
    matches!(message, WorkItem::StartOrchestration { parent_instance: Some(_), .. })
}

/// Loads the state of the instance. `needs_parent`: the caller needs the parent of the instance, which the warm cache does not keep
/// for an ended execution.
async fn load(
    core: &Core,
    fetched: &mut FetchedTurn,
    needs_parent: bool,
) -> Result<InstanceState, LoadError> {
    if let Some(error) = fetched.item.history_error.take() {
        return Err(LoadError::Undecodable(error));
    }
    let position = fetched
        .last_event_id
        .map(|last_event_id| Position { execution_id: fetched.item.execution_id, last_event_id });
    if let Some(position) = position
        && let Some(kept) = take_from_cache(core, fetched, position).await
        && (matches!(kept, Kept::Suspended(_)) || !needs_parent)
    {
        core.metrics.record_warm_hit();
        return Ok(from_cache(kept));
    }
    if !fetched.history_loaded && is_new(position) {
        return Ok(new_instance());
    }
    core.metrics.record_warm_miss();
    let bound = bound(core);
    let item = &mut fetched.item;
    let loaded = match fetched.history_loaded {
        true => {
            let (history, kv_snapshot) =
                (std::mem::take(&mut item.history), std::mem::take(&mut item.kv_snapshot));
            BoundedTurn::of(LoadedTurn { history, kv_snapshot, history_error: None }, bound)
        }
        false => {
            let loaded = core.store.load_turn_within(&item.instance, item.execution_id, bound).await;
            loaded.map_err(LoadError::Store)?
        }
    };
    match loaded {
        BoundedTurn::Whole(LoadedTurn { history_error: Some(error), .. }) => {
            Err(LoadError::Undecodable(error))
        }
        BoundedTurn::Whole(mut loaded) => {
            if defect::is_on(Defect::ColdKeysForgotten) {
                loaded.kv_snapshot.clear();
            }
            match find_gap(&loaded.history, &item.instance, item.execution_id, fetched.last_event_id) {
                Some(gap) => Err(LoadError::Undecodable(gap)),
                None => Ok(from_events(loaded.history, loaded.kv_snapshot)),
            }
        }
        BoundedTurn::Oversized(turn) => {
            let message = oversized_message(&item.instance, &turn, bound);
            Ok(InstanceState { oversized: Some(message), ..from_events(turn.outline, turn.kv_snapshot) })
        }
    }
}

/// Checks that event ids run from 1 to `last` without a gap and that every event belongs to this execution. Returns a message about
/// the first violation. A history with a gap might replay without an error and decide differently.
fn find_gap(events: &[Event], instance: &str, execution_id: u64, last: Option<u64>) -> Option<String> {
    let mut expected = 0;
    for event in events {
        expected += 1;
        if (event.event_id, event.instance_id.as_str(), event.execution_id)
            != (expected, instance, execution_id)
        {
            return Some(format!(
                "history of instance '{instance}', execution {execution_id}: event {} of instance '{}', execution {} is \
                 where event {expected} belongs",
                event.event_id, event.instance_id, event.execution_id
            ));
        }
    }
    let last = last.filter(|last| *last != expected)?;
    Some(format!(
        "history of instance '{instance}', execution {execution_id}: it ends with event {expected}, not with {last}"
    ))
}

/// The bound for a history that is loaded: the limits that the engine enforces while an execution runs. A stored history exceeds
/// it only if it was written under higher limits.
fn bound(core: &Core) -> HistoryBound {
    HistoryBound { events: core.limits.history_events, bytes: core.limits.history_bytes }
}

fn oversized_message(instance: &str, turn: &OversizedTurn, bound: HistoryBound) -> String {
    format!(
        "history of instance '{instance}' has {} events and {} stored bytes and was not read, the limits are {} and {}: \
         continue as new from time to time, or raise limits.history_events and limits.history_bytes",
        turn.events, turn.stored_bytes, bound.events, bound.bytes
    )
}

fn is_new(position: Option<Position>) -> bool {
    position == Some(Position { execution_id: INITIAL_EXECUTION_ID, last_event_id: 0 })
}

/// Takes the instance out of the warm cache if its entry is at this position. Waits for a commit in progress.
async fn take_from_cache(core: &Core, fetched: &FetchedTurn, position: Position) -> Option<Kept> {
    // After this time the turn replays instead.
    const LONGEST_WAIT: Duration = Duration::from_secs(1);
    let take = || core.warm.take(&fetched.item.instance, position, fetched.created_at_ms);
    let mut lookup = take();
    while let Lookup::InFlight(done) = lookup {
        let mut answered = pin!(done.notified());
        answered.as_mut().enable();
        // The commit may have ended before `answered` was enabled.
        lookup = take();
        if matches!(lookup, Lookup::InFlight(_)) {
            tokio::time::timeout(LONGEST_WAIT, answered).await.ok()?;
            lookup = take();
        }
    }
    match lookup {
        Lookup::Found(kept) => Some(kept),
        _ => None,
    }
}

fn from_cache(kept: Kept) -> InstanceState {
    let (past, warm, kv) = match kept {
        Kept::Suspended(execution) => (execution.past(), Some(execution), BTreeMap::new()),
        Kept::Continued(kv) => (ended_past(Ended::Continued { input: String::new() }), None, kv),
        Kept::Ended => (ended_past(Ended::Finished), None, BTreeMap::new()),
    };
    InstanceState { past, warm, history: Vec::new(), kv, oversized: None }
}

/// The past of an execution that has ended and whose opening is not read: only its parent would matter, see `load_instance`.
pub(super) fn ended_past(ended: Ended) -> Past {
    Past { opening: Some(empty_opening()), ended: Some(ended) }
}

pub(super) fn empty_opening() -> Opening {
    Opening {
        name: String::new(),
        version: None,
        input: String::new(),
        parent: None,
        carried: Vec::new(),
        custom_status: None,
    }
}

/// The state of an instance that has no event.
pub(super) fn new_instance() -> InstanceState {
    from_events(Vec::new(), HashMap::new())
}

fn from_events(history: Vec<Event>, kv: HashMap<String, KvEntry>) -> InstanceState {
    let entry = |entry: KvEntry| KvValue { value: entry.value, updated_at_ms: entry.last_updated_at_ms };
    let kv = kv.into_iter().map(|(key, value)| (key, entry(value))).collect();
    InstanceState { past: Past::of_history(&history), warm: None, history, kv, oversized: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_model::EventKind;

    fn events(ids: &[u64]) -> Vec<Event> {
        let kind = EventKind::TimerCreated { fire_at_ms: 0 };
        ids.iter().map(|id| Event::at(0, *id, "i", 2, None, kind.clone())).collect()
    }

    fn found(ids: &[u64], last: u64) -> Option<String> {
        find_gap(&events(ids), "i", 2, Some(last))
    }

    #[test]
    fn a_complete_history_has_no_gap() {
        assert_eq!(found(&[], 0), None);
        assert_eq!(found(&[1, 2, 3], 3), None);
        assert_eq!(find_gap(&events(&[1, 2]), "i", 2, None), None, "the last event id is optional");
    }

    #[test]
    fn missing_repeated_or_moved_events_are_reported() {
        for (ids, last) in
            [(&[1, 3][..], 3), (&[2, 3], 3), (&[1, 2, 2], 3), (&[2, 1], 2), (&[1, 2], 3), (&[1, 2, 3], 2)]
        {
            let gap = found(ids, last).unwrap_or_else(|| panic!("{ids:?} up to {last}"));
            assert!(gap.contains("instance 'i', execution 2"), "{gap}");
        }
    }

    #[test]
    fn events_of_another_instance_or_execution_are_reported() {
        assert!(find_gap(&events(&[1]), "j", 2, Some(1)).is_some());
        assert!(find_gap(&events(&[1]), "i", 3, Some(1)).is_some());
    }
}
