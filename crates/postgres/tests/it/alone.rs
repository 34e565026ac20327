//! Lone commits, which are transactions of their own: no `BEGIN` sets their isolation and their limits.

use crate::factory::{fresh_config, raw};
use crate::support::*;
use outlast_postgres::{ConnectionConfig, PostgresProvider, ProviderConfig};
use outlast_provider::Provider;
use std::time::Duration;

/// Commits a turn, and returns the statement in which the server is while the commit is stopped.
async fn statement_in_commit(config: ProviderConfig) -> String {
    let schema = config.schema_name.clone().unwrap();
    let store = PostgresProvider::new_with_config(config).await.unwrap();
    enqueue(&store, "i").await;
    let (_, token, _) = turn(&store).await;
    let stop = Stop::in_commit(&schema, "history").await;
    let seen = async {
        stop.reached().await;
        let waiting = format!(
            "SELECT a.query FROM pg_stat_activity AS a JOIN pg_locks AS l ON l.pid = a.pid
             WHERE l.locktype = 'advisory' AND NOT l.granted AND l.objid = (hashtext('{schema}')::bigint & 4294967295)::oid"
        );
        let statement: String = raw().await.query_one(&waiting, &[]).await.unwrap().get(0);
        stop.end().await;
        statement
    };
    let (committed, statement) = tokio::join!(store.commit_turn(&token, begin("i", Vec::new())), seen);
    committed.unwrap();
    assert_eq!(store.read("i").await.unwrap().len(), 1);
    statement
}

#[tokio::test]
async fn lone_commit_has_neither_begin_nor_commit() {
    let statement = statement_in_commit(fresh_config()).await;
    assert!(statement.contains("commit_alone_1"), "{statement}");
}

/// The first lone commit is refused, and is sent again between `BEGIN` and `COMMIT`.
#[tokio::test]
async fn lone_commit_of_a_session_with_another_isolation_has_begin_and_commit() {
    let mut config = fresh_config();
    let options = "sslmode=disable&options=-cdefault_transaction_isolation%3Dserializable";
    config.connection = ConnectionConfig::Url(url_with(options));
    assert_eq!(statement_in_commit(config).await, "COMMIT");
}

#[tokio::test]
async fn lone_commit_that_takes_longer_than_its_limit_is_undone() {
    let config = fresh_config().deadline(Duration::from_secs(2));
    let schema = config.schema_name.clone().unwrap();
    let store = PostgresProvider::new_with_config(config).await.unwrap();
    enqueue(&store, "i").await;
    let (_, token, _) = turn(&store).await;
    execute(&format!(
        "CREATE FUNCTION {schema}.slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(1.6); RETURN NULL; END $$;
         CREATE TRIGGER slow AFTER INSERT ON {schema}.history FOR EACH ROW EXECUTE FUNCTION {schema}.slow()"
    ))
    .await;
    let error = ack(&store, &token, "i").await.unwrap_err();
    assert!(error.is_retryable() && error.message.contains("57014"), "{error}");
    assert!(store.read("i").await.unwrap().is_empty(), "the undone commit stores no event");
    execute(&format!("DROP TRIGGER slow ON {schema}.history")).await;
    ack(&store, &token, "i").await.unwrap();
}
