//! Key-value state belongs to the instance: clients read it live, replay gets it as finished executions left it.

mod deletion;
mod executions;
mod isolation;
mod live;
mod merge;
mod pruning;
mod snapshot;

pub use deletion::*;
pub use executions::*;
pub use isolation::*;
pub use live::*;
pub use merge::*;
pub use pruning::*;
pub use snapshot::*;

use crate::support::*;
use outlast_provider::model::EventKind;
use outlast_provider::{ExecutionMetadata, KvEntry, Provider};
use std::collections::HashMap;

fn set(key: &str, value: &str) -> EventKind {
    value_kind(key, value, written_at(key, value))
}

fn clear(key: &str) -> EventKind {
    EventKind::KeyValueCleared { key: key.to_string() }
}

fn clear_all() -> EventKind {
    EventKind::KeyValuesCleared
}

/// A time in the past that differs per write, so that a snapshot shows whether the store has kept the time of the event.
fn written_at(key: &str, value: &str) -> u64 {
    let bytes = key.bytes().chain(value.bytes()).take(64);
    bytes.zip(1..).fold(1_600_000_000_000, |sum, (byte, place)| sum + u64::from(byte) * place)
}

/// An instance whose turns write keys. It numbers its own events and executions.
struct Writer<'a> {
    provider: &'a dyn Provider,
    instance: &'a str,
    execution_id: u64,
    last_event_id: u64,
}

impl<'a> Writer<'a> {
    async fn create(provider: &'a dyn Provider, instance: &'a str) -> Self {
        create_instance(provider, instance).await;
        Self { provider, instance, execution_id: 1, last_event_id: 1 }
    }

    /// A turn that makes these changes and does not end the execution.
    async fn turn(&mut self, changes: &[EventKind]) {
        self.commit(changes, ExecutionMetadata::default()).await;
    }

    /// The last turn of the execution: these changes, and this status.
    async fn end(&mut self, as_status: &str, changes: &[EventKind]) {
        self.commit(changes, status(as_status, "{}")).await;
    }

    /// Ends the execution with these changes and begins the next one.
    async fn continue_as_new(&mut self, changes: &[EventKind]) {
        self.end("ContinuedAsNew", changes).await;
        self.begin_next().await;
    }

    async fn begin_next(&mut self) {
        self.execution_id += 1;
        self.last_event_id = 0;
        self.commit(&[started_kind()], named()).await;
    }

    async fn commit(&mut self, changes: &[EventKind], metadata: ExecutionMetadata) {
        let token = next_turn(self.provider, self.instance).await;
        let mut turn = Turn::new(&token).execution(self.execution_id).metadata(metadata);
        for kind in changes {
            self.last_event_id += 1;
            let (id, execution_id) = (self.last_event_id, self.execution_id);
            turn = turn.event(event_in(self.instance, execution_id, id, kind.clone()));
        }
        turn.commit(self.provider).await;
    }

    /// Checks the values that clients read; see [`assert_live`].
    async fn assert_live(&self, expected: &[(&str, Option<&str>)]) {
        assert_live(self.provider, self.instance, expected).await;
    }

    /// Checks the snapshot of the next turn, which it commits without changes: exactly these entries.
    async fn assert_snapshot(&self, expected: &[(&str, &str)]) {
        poke(self.provider, self.instance).await;
        let (item, token, _) = must_fetch(self.provider, LONG).await;
        assert_eq!((item.instance.as_str(), item.execution_id), (self.instance, self.execution_id));
        assert_eq!(item.kv_snapshot, entries(expected), "snapshot of '{}'", self.instance);
        Turn::new(&token).execution(self.execution_id).commit(self.provider).await;
    }
}

fn entries(pairs: &[(&str, &str)]) -> HashMap<String, KvEntry> {
    let entry =
        |key, value: &str| KvEntry { value: value.to_string(), last_updated_at_ms: written_at(key, value) };
    pairs.iter().map(|(key, value)| (key.to_string(), entry(*key, value))).collect()
}

/// Checks the values that clients read: each key by itself, `None` for a missing one, and all together.
async fn assert_live(provider: &dyn Provider, instance: &str, expected: &[(&str, Option<&str>)]) {
    for (key, value) in expected {
        let read = provider.get_kv_value(instance, key).await.expect("get_kv_value succeeds");
        assert_eq!(read.as_deref(), *value, "key {key:?} of '{instance}'");
    }
    let all = provider.get_kv_all_values(instance).await.expect("get_kv_all_values succeeds");
    let present = expected.iter().filter_map(|(key, value)| value.map(|v| (key.to_string(), v.to_string())));
    assert_eq!(all, present.collect(), "all keys of '{instance}'");
}
