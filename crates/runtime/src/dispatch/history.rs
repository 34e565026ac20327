//! What a turn needs to know of its instance: from memory, with the fetch, or from the store.

use super::warm::{Kept, Lookup, Position};
use crate::core::Core;
use outlast_engine::{Ended, Execution, KvValue, Opening, Past};
use outlast_model::{Event, INITIAL_EXECUTION_ID, WorkItem};
use outlast_provider::{
    BoundedTurn, FetchedTurn, HistoryBound, KvEntry, LoadedTurn, OversizedTurn, ProviderError,
};
use std::collections::{BTreeMap, HashMap};
use std::pin::pin;
use std::time::Duration;

/// An instance before its turn.
pub(super) struct Known {
    pub(super) past: Past,
    /// The suspended execution, if it is warm.
    pub(super) warm: Option<Box<Execution>>,
    /// Stored events, if it is not.
    pub(super) history: Vec<Event>,
    /// Keys that earlier executions left, for one that has to be built.
    pub(super) kv: BTreeMap<String, KvValue>,
    /// Set if `history` is only the outline of a longer one: why it was not read.
    pub(super) oversized: Option<String>,
}

/// Why an instance cannot be known.
pub(super) enum Unknown {
    /// Its history or its keys do not decode.
    Undecodable(String),
    /// The store has trouble.
    Store(ProviderError),
}

pub(super) async fn recall(core: &Core, fetched: &mut FetchedTurn) -> Result<Known, Unknown> {
    let is_over = fetched.has_ended == Some(true);
    let asked_by_parent = fetched.item.messages.iter().any(is_start_of_child);
    if is_over && !asked_by_parent {
        return Ok(warm(Kept::Ended));
    }
    match remember(core, fetched, asked_by_parent).await {
        Err(Unknown::Undecodable(_)) if is_over => Ok(warm(Kept::Ended)),
        known => known,
    }
}

fn is_start_of_child(message: &WorkItem) -> bool {
    matches!(message, WorkItem::StartOrchestration { parent_instance: Some(_), .. })
}

/// `asked_by_parent`: the answer depends on the instance's own parent, which memory forgets with the end of an execution.
async fn remember(core: &Core, fetched: &mut FetchedTurn, asked_by_parent: bool) -> Result<Known, Unknown> {
    if let Some(error) = fetched.item.history_error.take() {
        return Err(Unknown::Undecodable(error));
    }
    let position = fetched
        .last_event_id
        .map(|last_event_id| Position { execution_id: fetched.item.execution_id, last_event_id });
    if let Some(position) = position
        && let Some(kept) = look_up(core, fetched, position).await
        && (matches!(kept, Kept::Suspended(_)) || !asked_by_parent)
    {
        core.metrics.record_warm_hit();
        return Ok(warm(kept));
    }
    if !fetched.history_loaded && is_new(position) {
        return Ok(cold(Vec::new(), HashMap::new()));
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
            loaded.map_err(Unknown::Store)?
        }
    };
    match loaded {
        BoundedTurn::Whole(LoadedTurn { history_error: Some(error), .. }) => Err(Unknown::Undecodable(error)),
        BoundedTurn::Whole(loaded) => {
            match hole(&loaded.history, &item.instance, item.execution_id, fetched.last_event_id) {
                Some(hole) => Err(Unknown::Undecodable(hole)),
                None => Ok(cold(loaded.history, loaded.kv_snapshot)),
            }
        }
        BoundedTurn::Oversized(turn) => {
            let reason = oversized(&item.instance, &turn, bound);
            Ok(Known { oversized: Some(reason), ..cold(turn.outline, turn.kv_snapshot) })
        }
    }
}

/// What is wrong with a history as a whole: events are counted from 1, without a gap, up to the one that the store knows
/// as the last. A history with a hole may well replay, to another end.
fn hole(events: &[Event], instance: &str, execution_id: u64, last: Option<u64>) -> Option<String> {
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

/// What no execution that runs can have stored, unless the limits were higher once or somebody else wrote it.
fn bound(core: &Core) -> HistoryBound {
    HistoryBound { events: core.limits.history_events, bytes: core.limits.history_bytes }
}

fn oversized(instance: &str, turn: &OversizedTurn, bound: HistoryBound) -> String {
    format!(
        "history of instance '{instance}' has {} events and {} stored bytes and was not read, the limits are {} and {}: \
         continue as new from time to time, or raise limits.history_events and limits.history_bytes",
        turn.events, turn.stored_bytes, bound.events, bound.bytes
    )
}

fn is_new(position: Option<Position>) -> bool {
    position == Some(Position { execution_id: INITIAL_EXECUTION_ID, last_event_id: 0 })
}

async fn look_up(core: &Core, fetched: &FetchedTurn, position: Position) -> Option<Kept> {
    // A commit that takes longer is as good as lost.
    const PATIENCE: Duration = Duration::from_secs(1);
    let take = || core.warm.take(&fetched.item.instance, position, fetched.created_at_ms);
    let mut lookup = take();
    while let Lookup::InFlight(done) = lookup {
        let mut answered = pin!(done.notified());
        answered.as_mut().enable();
        // It may have been answered before we began to listen.
        lookup = take();
        if matches!(lookup, Lookup::InFlight(_)) {
            tokio::time::timeout(PATIENCE, answered).await.ok()?;
            lookup = take();
        }
    }
    match lookup {
        Lookup::Found(kept) => Some(kept),
        _ => None,
    }
}

fn warm(kept: Kept) -> Known {
    let (past, warm, kv) = match kept {
        Kept::Suspended(execution) => (execution.past(), Some(execution), BTreeMap::new()),
        Kept::Continued(kv) => (ended(Ended::Continued { input: String::new() }), None, kv),
        Kept::Ended => (ended(Ended::Finished), None, BTreeMap::new()),
    };
    Known { past, warm, history: Vec::new(), kv, oversized: None }
}

/// Of an execution that is over nothing else matters.
pub(super) fn ended(how: Ended) -> Past {
    Past { opening: Some(nobody()), ended: Some(how) }
}

pub(super) fn nobody() -> Opening {
    Opening {
        name: String::new(),
        version: None,
        input: String::new(),
        parent: None,
        carried: Vec::new(),
        custom_status: None,
    }
}

fn cold(history: Vec<Event>, kv: HashMap<String, KvEntry>) -> Known {
    let entry = |entry: KvEntry| KvValue { value: entry.value, updated_at_ms: entry.last_updated_at_ms };
    let kv = kv.into_iter().map(|(key, value)| (key, entry(value))).collect();
    Known { past: Past::of_history(&history), warm: None, history, kv, oversized: None }
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
        hole(&events(ids), "i", 2, Some(last))
    }

    #[test]
    fn a_whole_history_has_no_hole() {
        assert_eq!(found(&[], 0), None);
        assert_eq!(found(&[1, 2, 3], 3), None);
        assert_eq!(hole(&events(&[1, 2]), "i", 2, None), None, "not every store knows the last event");
    }

    #[test]
    fn events_that_are_missing_doubled_or_moved_are_a_hole() {
        for (ids, last) in
            [(&[1, 3][..], 3), (&[2, 3], 3), (&[1, 2, 2], 3), (&[2, 1], 2), (&[1, 2], 3), (&[1, 2, 3], 2)]
        {
            let hole = found(ids, last).unwrap_or_else(|| panic!("{ids:?} up to {last}"));
            assert!(hole.contains("instance 'i', execution 2"), "{hole}");
        }
    }

    #[test]
    fn events_of_somebody_else_are_a_hole() {
        assert!(hole(&events(&[1]), "j", 2, Some(1)).is_some());
        assert!(hole(&events(&[1]), "i", 3, Some(1)).is_some());
    }
}
