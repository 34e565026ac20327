//! The calls of clients and workers with their answers, to compare with the store.

use outlast_model::{Event, WorkItem};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The state of a call, as its caller knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallState {
    /// The call was made and has no answer.
    Unanswered,
    /// The call was acknowledged.
    Acknowledged,
}

/// The calls for one instance.
#[derive(Debug, Clone, Default)]
pub(crate) struct InstanceCalls {
    /// Its start and messages.
    pub(crate) sent: Vec<(WorkItem, CallState)>,
    /// Events of acknowledged turns.
    pub(crate) history: Vec<Event>,
    /// Length of the history after each acknowledged turn.
    pub(crate) turns: Vec<usize>,
    /// Events of turns without an answer, in order. There can be two, because a store may deliver the next turn before
    /// the commit of the last one is answered.
    pub(crate) unanswered_turns: Vec<Vec<Event>>,
    /// Activities whose completion was called, by id.
    pub(crate) activities: BTreeMap<u64, CallState>,
    /// The output that a client received.
    pub(crate) client_output: Option<String>,
    /// The deletion, if it was called.
    pub(crate) deletion: Option<CallState>,
}

/// The calls for all instances.
#[derive(Default)]
pub(crate) struct CallLog {
    instances: Mutex<BTreeMap<String, InstanceCalls>>,
    /// Number of acknowledged calls so far.
    acknowledged_count: AtomicU64,
}

impl CallLog {
    pub(crate) fn instances(&self) -> MutexGuard<'_, BTreeMap<String, InstanceCalls>> {
        self.instances.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn calls<T>(&self, instance: &str, change: impl FnOnce(&mut InstanceCalls) -> T) -> T {
        change(self.instances().entry(instance.to_string()).or_default())
    }

    /// Records that a message is being sent.
    pub(crate) fn sending(&self, item: &WorkItem) {
        self.calls(item.target_instance(), |calls| {
            if calls.state(item).is_none() {
                calls.sent.push((item.clone(), CallState::Unanswered));
            }
        });
    }

    /// Records that a message was acknowledged.
    pub(crate) fn sent(&self, item: &WorkItem) {
        self.calls(item.target_instance(), |calls| {
            if let Some(state) = calls.state(item) {
                *state = CallState::Acknowledged;
                self.count_acknowledged();
            }
        });
    }

    /// Records that a turn is being committed.
    pub(crate) fn committing(&self, delta: &[Event]) {
        if let Some(first) = delta.first() {
            self.calls(&first.instance_id, |calls| {
                // A repeated commit replaces its first try.
                calls.unanswered_turns.retain(|turn| first_id(turn) < first.event_id);
                calls.unanswered_turns.push(delta.to_vec());
            });
        }
    }

    /// Records that a turn was acknowledged.
    pub(crate) fn committed(&self, delta: &[Event]) {
        if let Some(first) = delta.first() {
            self.calls(&first.instance_id, |calls| {
                // The store also has all turns before this one.
                let known =
                    calls.unanswered_turns.iter().take_while(|turn| first_id(turn) <= first.event_id).count();
                for mut turn in calls.unanswered_turns.drain(..known) {
                    calls.history.append(&mut turn);
                    calls.turns.push(calls.history.len());
                    self.count_acknowledged();
                }
            });
        }
    }

    pub(crate) fn activity_state(&self, completion: Option<&WorkItem>, state: CallState) {
        if let Some(WorkItem::ActivityCompleted { instance, id, .. }) = completion {
            self.calls(instance, |calls| calls.activities.insert(*id, state));
            if state == CallState::Acknowledged {
                self.count_acknowledged();
            }
        }
    }

    pub(crate) fn client_output(&self, instance: &str, output: String) {
        self.calls(instance, |calls| calls.client_output = Some(output));
        self.count_acknowledged();
    }

    pub(crate) fn deletion_state(&self, instance: &str, state: CallState) {
        self.calls(instance, |calls| calls.deletion = Some(state));
        if state == CallState::Acknowledged {
            self.count_acknowledged();
        }
    }

    fn count_acknowledged(&self) {
        self.acknowledged_count.fetch_add(1, Ordering::Relaxed);
    }

    /// Number of acknowledged calls.
    pub(crate) fn acknowledged_count(&self) -> u64 {
        self.acknowledged_count.load(Ordering::Relaxed)
    }

    /// Number of acknowledged calls that must be stored now.
    pub(crate) fn must_be_stored(&self) -> u64 {
        self.instances().values().map(InstanceCalls::must_be_stored).sum()
    }
}

fn first_id(turn: &[Event]) -> u64 {
    turn.first().map_or(0, |event| event.event_id)
}

impl InstanceCalls {
    fn must_be_stored(&self) -> u64 {
        if self.deletion == Some(CallState::Acknowledged) {
            return 1;
        }
        let states = self.sent.iter().map(|(_, state)| state).chain(self.activities.values());
        let acknowledged = states.filter(|state| **state == CallState::Acknowledged).count();
        (acknowledged + self.turns.len() + usize::from(self.client_output.is_some())) as u64
    }

    fn state(&mut self, item: &WorkItem) -> Option<&mut CallState> {
        self.sent.iter_mut().find(|(sent, _)| sent == item).map(|(_, state)| state)
    }
}
