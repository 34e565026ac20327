//! Eager starts beside other transactions: the store refuses to start an instance to which another transaction writes, and the start
//! waits for no lock.

use crate::factory::{fresh_config, meddle};
use crate::line::Line;
use crate::support::*;
use outlast_model::WorkItem;
use outlast_postgres::{ConnectionConfig, PostgresProvider, ProviderConfig};
use outlast_provider::{
    Clock, EagerStart, Provider, ProviderError, StartOutcome, StartPolicy, StartRequest, SystemClock,
    TurnAhead,
};
use std::sync::Arc;
use tokio::task::JoinHandle;

/// The first turn of an instance, which schedules an activity.
fn first_turn(instance: &str) -> TurnAhead {
    let ran_at_ms = SystemClock.now_ms().saturating_sub(1_000);
    TurnAhead { after_event_id: 0, ran_at_ms, commit: begin(instance, vec![activity(instance, 2)]) }
}

async fn start_eagerly(store: &PostgresProvider) -> Result<EagerStart, ProviderError> {
    tokio::time::timeout(PATIENCE, store.start_with_turn(start("i"), first_turn("i")))
        .await
        .expect("the start waits for no lock")
}

fn starting(store: &Arc<PostgresProvider>) -> JoinHandle<Result<EagerStart, ProviderError>> {
    let store = Arc::clone(store);
    tokio::spawn(async move { start_eagerly(&store).await })
}

/// Two processes on one schema. With `batches_only`, a lone commit calls the function for batches too.
async fn pair(batches_only: bool) -> (Arc<PostgresProvider>, Arc<PostgresProvider>, String) {
    let mut config = fresh_config();
    config.batches_only = batches_only;
    let schema = config.schema_name.clone().unwrap();
    let open =
        async |config: ProviderConfig| Arc::new(PostgresProvider::new_with_config(config).await.unwrap());
    (open(config.clone()).await, open(config).await, schema)
}

async fn count(schema: &str, table: &str) -> i64 {
    let sql = format!("SELECT count(*) FROM {{schema}}.{table} WHERE instance_id = $1");
    meddle(schema, &sql, "i").await[0].get(0)
}

#[tokio::test]
async fn one_of_two_concurrent_eager_starts_commits_its_turn() {
    for batches_only in [false, true] {
        let (one, other, schema) = pair(batches_only).await;
        let stop = Stop::in_commit(&schema, "history").await;
        let first = starting(&one);
        stop.reached().await;
        assert_eq!(start_eagerly(&other).await, Ok(EagerStart::Unchanged), "{batches_only}");
        stop.end().await;
        assert!(matches!(first.await.unwrap(), Ok(EagerStart::WithTurn { .. })), "{batches_only}");
        let rows = [count(&schema, "history").await, count(&schema, "worker_queue").await];
        assert_eq!((rows, count(&schema, "orchestrator_queue").await), ([1, 1], 0), "{batches_only}");
    }
}

#[tokio::test]
async fn an_eager_start_beside_a_start_that_is_not_committed_is_refused() {
    for batches_only in [false, true] {
        let (one, other, schema) = pair(batches_only).await;
        let stop = Stop::in_commit(&schema, "orchestrator_queue").await;
        let first = tokio::spawn(async move {
            let policy = StartPolicy::FailIfExists;
            one.start_orchestration(StartRequest { start: start("i"), delay: None, policy, messages: vec![] })
                .await
        });
        stop.reached().await;
        assert_eq!(start_eagerly(&other).await, Ok(EagerStart::Unchanged), "{batches_only}");
        stop.end().await;
        assert_eq!(first.await.unwrap(), Ok(StartOutcome::Started));
        assert_eq!((count(&schema, "history").await, count(&schema, "orchestrator_queue").await), (0, 1));
    }
}

#[tokio::test]
async fn no_fetch_leases_an_instance_whose_eager_start_is_not_committed() {
    for batches_only in [false, true] {
        let (one, other, schema) = pair(batches_only).await;
        let stop = Stop::in_commit(&schema, "history").await;
        let first = starting(&one);
        stop.reached().await;
        let raised = WorkItem::ExternalRaised { instance: "i".into(), name: "e".into(), data: String::new() };
        other.enqueue_for_orchestrator(raised.clone(), None).await.unwrap();
        let fetched = other.fetch_orchestration_item(LONG, NO_WAIT, None).await.unwrap();
        assert!(fetched.is_none(), "the eager start is not committed");
        stop.end().await;
        assert!(matches!(first.await.unwrap(), Ok(EagerStart::WithTurn { .. })));
        let (item, _, attempts) = turn(&*other).await;
        assert_eq!((item.history.len(), item.messages, attempts), (1, vec![raised], 1), "{batches_only}");
    }
}

/// The store does not resend an eager start: a resent start could find its own instance and be refused.
#[tokio::test]
async fn an_eager_start_whose_answer_is_lost_fails_and_is_stored_once() {
    let line = Line::open().await;
    let mut config = fresh_config();
    config.connection = ConnectionConfig::Url(line.url.clone());
    let schema = config.schema_name.clone().unwrap();
    let store = PostgresProvider::new_with_config(config).await.unwrap();
    let stop = Stop::in_commit(&schema, "history").await;
    let lose = async {
        stop.reached().await;
        line.cut();
        stop.end().await;
    };
    let (started, ()) = tokio::join!(start_eagerly(&store), lose);
    assert!(started.unwrap_err().is_retryable(), "the outcome of the start is in doubt");
    until(&crate::factory::raw().await, &format!("SELECT count(*) = 1 FROM {schema}.history")).await;
    assert_eq!(count(&schema, "orchestrator_queue").await, 0);
}
