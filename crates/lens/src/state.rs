//! The state of an execution after one of its events.

use crate::open::{OpenOperation, open_operations};
use outlast_model::{Event, EventKind};
use serde::Serialize;
use std::collections::BTreeMap;

/// Keys, custom status and open operations after an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct State {
    /// The last event that the state includes; 0 before the first event.
    pub event_id: u64,
    /// The time of that event.
    pub at_ms: u64,
    /// The keys and values.
    pub kv: BTreeMap<String, String>,
    /// The custom status.
    pub custom_status: Option<String>,
    /// The operations without an outcome.
    pub open: Vec<OpenOperation>,
}

/// The state after the event with this id. An id after the last event selects the last event.
///
/// Keys belong to the instance, and a history holds one execution: `kv_before` has the keys at the start of the execution, which are
/// the keys at the end of its predecessor. It is empty for the first execution.
pub fn state_at(history: &[Event], event_id: u64, kv_before: &BTreeMap<String, String>) -> State {
    let until = history.partition_point(|event| event.event_id <= event_id);
    let prefix = &history[..until];
    let mut state = State {
        event_id: prefix.last().map_or(0, |last| last.event_id),
        at_ms: prefix.last().map_or(0, |last| last.timestamp_ms),
        kv: kv_before.clone(),
        custom_status: None,
        open: open_operations(prefix),
    };
    for event in prefix {
        state.apply(&event.kind);
    }
    state
}

impl State {
    fn apply(&mut self, kind: &EventKind) {
        match kind {
            EventKind::OrchestrationStarted { initial_custom_status: status, .. }
            | EventKind::CustomStatusUpdated { status } => self.custom_status.clone_from(status),
            EventKind::KeyValueSet { key, value, .. } => {
                self.kv.insert(key.clone(), value.clone());
            }
            EventKind::KeyValueCleared { key } => {
                self.kv.remove(key);
            }
            EventKind::KeyValuesCleared => self.kv.clear(),
            _ => {}
        }
    }
}
