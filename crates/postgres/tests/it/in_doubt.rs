//! Leases in doubt: the server commits a transaction after its connection was cut, so that no fetch receives the leases, and the
//! store gives them back.

use crate::factory::fresh_config;
use crate::line::Line;
use crate::listening::quiet;
use crate::support::*;
use outlast_postgres::{ConnectionConfig, PostgresProvider};
use outlast_provider::{Provider, TagFilter};
use std::sync::Arc;

/// A store without periodic polls behind a line, and its schema.
async fn open(line: &Line) -> (Arc<PostgresProvider>, String) {
    let mut config = fresh_config();
    config.connection = ConnectionConfig::Url(line.url.clone());
    config.idle_poll_interval = LONG;
    let schema = config.schema_name.clone().unwrap();
    (Arc::new(PostgresProvider::new_with_config(config).await.unwrap()), schema)
}

/// Cuts the line while a transaction is in COMMIT; the server then completes the commit.
async fn lose(line: &Line, stop: Stop) {
    stop.reached().await;
    line.cut();
    stop.end().await;
}

#[tokio::test]
async fn handed_off_turn_in_doubt_is_given_back() {
    let line = Line::open().await;
    let (store, schema) = open(&line).await;
    let own = Arc::clone(&store);
    let waiting = tokio::spawn(async move { turn(&*own).await });
    quiet(|| store.stats().polls).await;
    let stop = Stop::in_commit(&schema, "orchestrator_queue").await;
    let (started, ()) = tokio::join!(store.enqueue_for_orchestrator(start("i"), None), lose(&line, stop));
    assert!(started.unwrap_err().is_retryable(), "the start is in doubt");
    let (item, _, attempts) = waiting.await.unwrap();
    assert_eq!((item.instance.as_str(), attempts), ("i", 1), "no delivery is counted");
}

#[tokio::test]
async fn fetched_turn_in_doubt_is_given_back() {
    let line = Line::open().await;
    let (store, schema) = open(&line).await;
    enqueue(&*store, "i").await;
    let stop = Stop::in_commit(&schema, "instance_locks").await;
    let (fetched, ()) = tokio::join!(store.fetch_orchestration_item(LONG, PATIENCE, None), lose(&line, stop));
    let (item, _, attempts) = match fetched {
        Ok(turn) => turn.expect("a turn is ready"),
        Err(error) => {
            assert!(error.is_retryable(), "{error}");
            turn(&*store).await
        }
    };
    assert_eq!((item.instance.as_str(), attempts), ("i", 1));
}

#[tokio::test]
async fn activities_in_doubt_are_given_back() {
    let line = Line::open().await;
    let (store, schema) = open(&line).await;
    enqueue(&*store, "i").await;
    let (_, token, _) = turn(&*store).await;
    let own = Arc::clone(&store);
    let waiting = tokio::spawn(async move {
        loop {
            let fetched = own.fetch_work_item(LONG, PATIENCE, None, &TagFilter::DefaultOnly).await;
            match fetched {
                Ok(work) => return work.expect("an activity is ready"),
                Err(error) => assert!(error.is_retryable(), "{error}"),
            }
        }
    });
    quiet(|| store.stats().polls).await;
    let stop = Stop::in_commit(&schema, "worker_queue").await;
    let commit = store.commit_turn(&token, begin("i", vec![activity("i", 2)]));
    let (committed, ()) = tokio::join!(commit, lose(&line, stop));
    committed.expect("the store resends the commit and recognises it as stored");
    let (_, token, attempts) = waiting.await.unwrap();
    assert_eq!(attempts, 1);
    store.ack_work_item(&token, None).await.unwrap();
}
