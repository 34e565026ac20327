//! Calls that wait inside the store: their number and their bytes are bounded, and further callers wait for room.

use crate::support::*;
use outlast_model::WorkItem;
use outlast_provider::{Provider, ProviderError};
use outlast_sqlite::{SqliteOptions, SqliteProvider, StatementFault, StatementFaults};
use std::sync::{Arc, Condvar, Mutex};
use tokio::task::JoinSet;

/// Statements wait at the gate while it is shut.
#[derive(Default)]
pub(crate) struct Gate {
    is_shut: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    fn set(&self, is_shut: bool) {
        *self.is_shut.lock().unwrap() = is_shut;
        self.opened.notify_all();
    }
}

/// Keeps a gate shut until the value is dropped, also by a failing test: a test cannot join a writer that waits at the gate.
pub(crate) struct Shut(Arc<Gate>);

impl Shut {
    pub(crate) fn new(gate: &Arc<Gate>) -> Self {
        gate.set(true);
        Self(Arc::clone(gate))
    }
}

impl Drop for Shut {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

impl StatementFaults for Gate {
    fn fault_of(&self, _sql: &str) -> Option<StatementFault> {
        drop(self.opened.wait_while(self.is_shut.lock().unwrap(), |is_shut| *is_shut).unwrap());
        None
    }
}

pub(crate) async fn gated() -> (tempfile::TempDir, Arc<SqliteProvider>, Arc<Gate>) {
    let (folder, path) = fresh();
    let gate = Arc::new(Gate::default());
    let options = SqliteOptions { faults: Some(Arc::clone(&gate) as _), ..SqliteOptions::default() };
    (folder, Arc::new(open_with(&path, options).await), gate)
}

/// Sends messages concurrently, each with this many bytes.
fn send(store: &Arc<SqliteProvider>, count: usize, bytes: usize) -> JoinSet<Result<(), ProviderError>> {
    let mut calls = JoinSet::new();
    for n in 0..count {
        let store = Arc::clone(store);
        let (instance, name) = (format!("i{n}"), "event".to_string());
        let message = WorkItem::ExternalRaised { instance, name, data: "x".repeat(bytes) };
        calls.spawn(async move { store.enqueue_for_orchestrator(message, None).await });
    }
    calls
}

/// Waits until all messages are stored.
async fn all_stored(calls: JoinSet<Result<(), ProviderError>>) {
    let answers = tokio::time::timeout(PATIENCE, calls.join_all()).await.expect("every call finds room");
    answers.into_iter().for_each(Result::unwrap);
}

/// Waits until no unit for small calls is free.
async fn until_full(store: &SqliteProvider) {
    let waiting = async {
        while store.free_room().is_some_and(|[small, _]| small > 0) {
            tokio::task::yield_now().await;
        }
    };
    let waited = tokio::time::timeout(PATIENCE, waiting).await;
    assert!(waited.is_ok(), "{:?} units are free", store.free_room());
}

async fn messages(store: &SqliteProvider) -> usize {
    store.as_management_capability().unwrap().get_queue_depths().await.unwrap().orchestrator_queue
}

/// Calls of one unit each, and calls of a third of the room each: the store takes as many as fit, the other callers wait, and all
/// messages are stored.
#[tokio::test]
async fn callers_wait_for_room_and_each_call_is_answered() {
    for (count, bytes, room, most_free) in [(5_000, 10, 0, 0), (8, 11 << 20, 1, 2_048 / 3)] {
        let (_folder, store, gate) = gated().await;
        let all = store.free_room().unwrap();
        let shut = Shut::new(&gate);
        let calls = send(&store, count, bytes);
        // No other task runs on this thread, so every call runs until it waits.
        for _ in 0..2 * count {
            tokio::task::yield_now().await;
        }
        let free = store.free_room().unwrap()[room];
        let all_units = all[room];
        assert_eq!(store.free_room().unwrap()[1 - room], all[1 - room], "the other room is untouched");
        assert!(free <= most_free, "{free} of {all_units} units are free while {count} calls wait");
        drop(shut);
        all_stored(calls).await;
        assert_eq!(store.free_room(), Some(all), "every call gives its units back");
        assert_eq!(messages(&store).await, count);
    }
}

/// A dropped call that waits for room leaves its place to the next call. A call that is larger than the whole room runs when no
/// other call holds room.
#[tokio::test]
async fn calls_that_are_dropped_before_they_have_room_are_not_stored() {
    let (_folder, store, gate) = gated().await;
    let shut = Shut::new(&gate);
    let first = send(&store, 2_048, 10);
    for _ in 0..4_096 {
        tokio::task::yield_now().await;
    }
    assert_eq!(store.free_room().map(|[small, _]| small), Some(0));
    let given_up = send(&store, 100, 10);
    tokio::task::yield_now().await;
    drop(given_up);
    drop(shut);
    all_stored(first).await;
    all_stored(send(&store, 1, 40 << 20)).await;
    assert_eq!(messages(&store).await, 2_048 + 1, "dropped calls are not stored");
}

/// The test closes a store while calls with dropped futures wait for the writer: the calls that have room are stored, and the
/// store closes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[allow(
    clippy::disallowed_methods,
    reason = "a runtime waits for its tasks, so a task could not fail to close the store"
)]
async fn a_full_store_can_be_closed() {
    let (folder, store, gate) = gated().await;
    let shut = Shut::new(&gate);
    let mut calls = send(&store, 3_000, 10);
    until_full(&store).await;
    calls.shutdown().await;
    let store = Arc::into_inner(store).expect("no caller is left");
    let (sender, closed) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        drop(store);
        sender.send(())
    });
    drop(shut);
    closed.recv_timeout(PATIENCE).expect("the store closes");
    let again = open(&folder.path().join("store.db")).await;
    assert_eq!(messages(&again).await, 2_048);
}
