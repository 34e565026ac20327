//! Requests that wait inside the store: their number is bounded, and further callers wait for room.
#![cfg(feature = "test-hooks")]

use crate::factory::{fresh_config, raw};
use crate::support::*;
use outlast_postgres::PostgresProvider;
use outlast_provider::{Provider, ProviderAdmin};
use std::sync::Arc;
use tokio::task::JoinSet;

const CALLS: usize = 5_000;
const ROOM: usize = 4_096;

/// Lets every call run until it waits: no other task runs on this thread.
async fn let_calls_wait() {
    for _ in 0..2 * CALLS {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn callers_wait_for_room_and_each_call_is_answered() {
    let config = fresh_config().deadline(LONG).listen(false);
    let schema = config.schema_name.clone().unwrap();
    let store = Arc::new(PostgresProvider::new_with_config(config).await.unwrap());
    enqueue(&*store, "leased").await;
    let (_, token, _) = turn(&*store).await;
    let [client_requests, holders, questions] = store.free_room();
    assert_eq!([client_requests, holders, questions], [ROOM; 3]);

    let meddler = raw().await;
    let block = format!("BEGIN; LOCK TABLE {schema}.orchestrator_queue, {schema}.instances");
    meddler.batch_execute(&block).await.unwrap();
    let (mut sent, mut asked) = (JoinSet::new(), JoinSet::new());
    for n in 0..CALLS {
        let own = Arc::clone(&store);
        sent.spawn(async move { own.enqueue_for_orchestrator(completed(&format!("i{n}"), 2), None).await });
        let own = Arc::clone(&store);
        asked.spawn(async move { own.read_outcome("leased").await });
    }
    let own = Arc::clone(&store);
    let renewed = tokio::spawn(async move { own.renew_orchestration_item_lock(&token, LONG).await });
    let_calls_wait().await;
    assert_eq!(store.free_room(), [0, ROOM - 1, 0], "renewals have room of their own");

    meddler.batch_execute("ROLLBACK").await.unwrap();
    let all = async {
        sent.join_all().await.into_iter().for_each(Result::unwrap);
        asked.join_all().await.into_iter().for_each(|outcome| drop(outcome.unwrap()));
        renewed.await.unwrap().unwrap();
    };
    tokio::time::timeout(2 * PATIENCE, all).await.expect("every call finds room");
    assert_eq!(store.free_room(), [ROOM; 3], "every call gives its room back");
    let depths = store.get_queue_depths().await.unwrap();
    assert_eq!(depths.orchestrator_queue, CALLS);
}
