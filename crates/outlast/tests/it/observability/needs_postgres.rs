//! The classes of errors of a PostgreSQL server, and the retries of the store.

use super::{Row, recorded_in_real_time};
use crate::support::postgres;
use outlast::providers::instrumented::InstrumentedProvider;
use outlast::providers::postgres::PostgresProvider;
use outlast::providers::{Provider, TurnCommit, TurnRequest, WorkItem};
use outlast::{Event, EventKind};
use std::sync::Arc;
use std::time::Duration;

/// Commits a turn on a server that fails the first `failures` transactions of commits with this code. Returns whether the turn
/// was committed, and the number of retries that the store has counted.
async fn commit(code: &str, failures: u32) -> (bool, u64) {
    let schema = postgres::fresh_schema();
    let store = PostgresProvider::new_with_schema(&postgres::server_url(), Some(&schema)).await.unwrap();
    let store = Arc::new(store);
    let meddle = format!(
        "CREATE SEQUENCE {schema}.failures;
         CREATE FUNCTION {schema}.fail() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN
             IF nextval('{schema}.failures') <= {failures} THEN
                 RAISE EXCEPTION 'connection timeout' USING ERRCODE = '{code}';
             END IF;
             RETURN NULL;
         END $$;
         CREATE TRIGGER fail BEFORE INSERT ON {schema}.history
             FOR EACH STATEMENT EXECUTE FUNCTION {schema}.fail();"
    );
    postgres::raw().await.batch_execute(&meddle).await.unwrap();
    let measured = InstrumentedProvider::new(store.clone(), Some(Arc::default()));
    let start = WorkItem::StartOrchestration {
        instance: "i".into(),
        orchestration: "O".into(),
        input: String::new(),
        version: None,
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: 1,
    };
    measured.enqueue_for_orchestrator(start, None).await.unwrap();
    let request = TurnRequest {
        lock_timeout: Duration::from_secs(60),
        poll_timeout: Duration::ZERO,
        filter: None,
        with_history: true,
    };
    let turn = measured.fetch_turn(request).await.unwrap().unwrap();
    let kind = EventKind::OrchestrationCompleted { output: String::new() };
    let history_delta = vec![Event::with_event_id(1, "i", 1, None, kind)];
    let commit = TurnCommit { execution_id: 1, history_delta, ..TurnCommit::default() };
    let committed = measured.commit_turn(&turn.lock_token, commit).await.is_ok();
    let retries = store.stats().retries;
    store.cleanup_schema().await.unwrap();
    (committed, retries)
}

fn value(rows: &[Row], name: &str, labels: &[(&str, &str)]) -> Option<f64> {
    rows.iter().find(|row| row.is(name, labels)).map(|row| row.values[0])
}

#[test]
fn commits_that_the_store_retries_are_counted_and_succeed() {
    let rows = recorded_in_real_time(async {
        assert_eq!(commit("40001", 2).await, (true, 2));
    });
    assert_eq!(value(&rows, "provider.ack_orchestration_retries", &[]), Some(2.0));
    let operation = [("operation", "ack_orchestration_item")];
    assert_eq!(value(&rows, "outlast_store_retries_total", &operation), Some(2.0));
    assert_eq!(value(&rows, "duroxide_provider_errors_total", &[]), None);
    assert_eq!(value(&rows, "provider.infrastructure_errors", &[]), None);
}

#[test]
fn the_class_of_a_server_error_follows_from_its_code() {
    let cases = [
        ("40001", 4.0, "serialization", "serialization_error"),
        ("40P01", 4.0, "deadlock", "deadlock"),
        ("55P03", 4.0, "timeout", "lock_timeout"),
        ("XX000", 0.0, "internal", "transaction_failed"),
    ];
    for (code, retries, contract, seed) in cases {
        let rows = recorded_in_real_time(async {
            assert_eq!(commit(code, u32::MAX >> 1).await, (false, retries as u64), "{code}");
        });
        let retried = value(&rows, "provider.ack_orchestration_retries", &[]).unwrap_or(0.0);
        assert_eq!(retried, retries, "{code}: a commit is tried five times if a retry may help");
        let labels = [("operation", "ack_orchestration_item"), ("error_type", contract)];
        assert_eq!(value(&rows, "duroxide_provider_errors_total", &labels), Some(1.0), "{code}: {rows:?}");
        let labels = [("operation", "ack_orch"), ("error_type", seed)];
        assert_eq!(value(&rows, "provider.infrastructure_errors", &labels), Some(1.0), "{code}: {rows:?}");
    }
}
