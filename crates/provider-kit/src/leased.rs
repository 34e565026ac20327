//! Leases on their way from the store to the caller of a fetch.

use outlast_model::WorkItem;
use outlast_provider::{FetchedTurn, LoadedTurn, OrchestrationItem};
use std::collections::HashMap;
use std::sync::Arc;

/// The owner of leases: the part of a store that takes leases back from a caller that has gone away.
pub trait TakesBack<L> {
    /// Makes the leased items fetchable again, without counting their delivery.
    fn take_back(&self, leases: L);
}

impl<L, O: TakesBack<L>> TakesBack<L> for Arc<O> {
    fn take_back(&self, leases: L) {
        O::take_back(self, leases);
    }
}

/// Leases on their way to a caller. If the caller is dropped before it takes the leases, their owner takes them back.
pub struct Guarded<L, O: TakesBack<L>> {
    leases: Option<L>,
    owner: O,
}

impl<L, O: TakesBack<L>> Guarded<L, O> {
    /// Guards leases until a caller takes them.
    pub fn new(leases: L, owner: O) -> Self {
        Self { leases: Some(leases), owner }
    }

    /// The leases, which stay guarded.
    pub fn peek(&self) -> Option<&L> {
        self.leases.as_ref()
    }

    /// The leases, which stay guarded.
    pub fn peek_mut(&mut self) -> Option<&mut L> {
        self.leases.as_mut()
    }

    /// Hands the leases to the caller, which gives them back itself from now on.
    pub fn take(mut self) -> Option<L> {
        self.leases.take()
    }
}

impl<L, O: TakesBack<L>> Drop for Guarded<L, O> {
    fn drop(&mut self) {
        if let Some(leases) = self.leases.take() {
            self.owner.take_back(leases);
        }
    }
}

/// The execution that a turn belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedTurn {
    /// The orchestration.
    pub orchestration_name: String,
    /// The version of the orchestration.
    pub version: String,
    /// The execution.
    pub execution_id: u64,
    /// The last stored event of the execution; `None` if the execution has no stored history.
    pub last_event_id: Option<u64>,
}

/// A leased turn whose messages are decoded, without its history.
#[derive(Debug)]
pub struct LeasedTurn {
    /// The instance.
    pub instance: String,
    /// The execution of the turn.
    pub resolved: ResolvedTurn,
    /// The messages of the turn.
    pub messages: Vec<WorkItem>,
    /// The token of the lease.
    pub lock_token: String,
    /// The highest count of deliveries among the messages.
    pub attempt_count: u32,
    /// The time at which the instance was created, if it has a row.
    pub created_at_ms: Option<u64>,
    /// Whether the execution has ended.
    pub has_ended: bool,
    /// The store's time at the fetch.
    pub now_ms: u64,
}

impl LeasedTurn {
    /// The turn as a fetch returns it. `loaded` is the history, if the fetch asked for it; `damage` is the reason why another row
    /// that the turn needs cannot be read.
    pub fn into_fetched(self, loaded: Option<LoadedTurn>, damage: Option<String>) -> FetchedTurn {
        let history_loaded = loaded.is_some();
        let (history, kv_snapshot, history_error) = match loaded {
            Some(loaded) => (loaded.history, loaded.kv_snapshot, loaded.history_error.or(damage)),
            None => (Vec::new(), HashMap::new(), damage),
        };
        let ResolvedTurn { orchestration_name, version, execution_id, last_event_id } = self.resolved;
        FetchedTurn {
            item: OrchestrationItem {
                instance: self.instance,
                orchestration_name,
                execution_id,
                version,
                history,
                messages: self.messages,
                history_error,
                kv_snapshot,
            },
            lock_token: self.lock_token,
            attempt_count: self.attempt_count,
            last_event_id: Some(last_event_id.unwrap_or(0)),
            history_loaded,
            has_ended: Some(self.has_ended),
            created_at_ms: self.created_at_ms,
            now_ms: Some(self.now_ms),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[derive(Default)]
    struct Owner(Mutex<Vec<&'static str>>);

    impl TakesBack<&'static str> for Owner {
        fn take_back(&self, leases: &'static str) {
            self.0.lock().unwrap().push(leases);
        }
    }

    #[test]
    fn leases_are_taken_back_if_they_are_dropped_before_a_caller_takes_them() {
        let owner = Arc::new(Owner::default());
        let guarded = Guarded::new("taken", Arc::clone(&owner));
        assert_eq!(guarded.peek(), Some(&"taken"));
        assert_eq!(guarded.take(), Some("taken"));
        assert!(owner.0.lock().unwrap().is_empty(), "the caller has the leases");
        drop(Guarded::new("dropped", Arc::clone(&owner)));
        assert_eq!(*owner.0.lock().unwrap(), ["dropped"]);
    }
    #[test]
    fn fetched_turn_reports_the_history_error_before_other_damage() {
        let text = |text: &str| Some(text.to_string());
        let loaded =
            |history_error| LoadedTurn { history: Vec::new(), kv_snapshot: HashMap::new(), history_error };
        let cases = [
            (None, None, (false, None)),
            (None, text("row"), (false, text("row"))),
            (Some(loaded(None)), None, (true, None)),
            (Some(loaded(None)), text("row"), (true, text("row"))),
            (Some(loaded(text("event"))), text("row"), (true, text("event"))),
        ];
        for (loaded, damage, expected) in cases {
            let resolved = ResolvedTurn {
                orchestration_name: "O".to_string(),
                version: "1".to_string(),
                execution_id: 2,
                last_event_id: None,
            };
            let turn = LeasedTurn {
                instance: "i".to_string(),
                resolved,
                messages: Vec::new(),
                lock_token: "lock".to_string(),
                attempt_count: 3,
                created_at_ms: Some(4),
                has_ended: true,
                now_ms: 5,
            };
            let fetched = turn.into_fetched(loaded, damage);
            assert_eq!((fetched.history_loaded, fetched.item.history_error), expected);
            assert_eq!(fetched.last_event_id, Some(0), "no stored history");
            assert_eq!((fetched.item.execution_id, fetched.attempt_count), (2, 3));
            assert_eq!(
                (fetched.created_at_ms, fetched.has_ended, fetched.now_ms),
                (Some(4), Some(true), Some(5))
            );
        }
    }
}
