//! Changes of the host, the primary or the password: the next connections of the store use the new one.

use crate::factory::{fresh_config, fresh_name, raw, server_url};
use crate::line::{Flows, Line, Whose};
use crate::support::*;
use outlast_postgres::{ConnectionConfig, PostgresError, PostgresProvider, ProviderConfig};
use outlast_provider::{Provider, ProviderAdmin, StartPolicy, StartRequest};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The URL of the server with the ports of these lines as its hosts.
fn url_of(lines: &[&Line]) -> String {
    let (before, database) = server_url()
        .rsplit_once('@')
        .map(|(before, place)| (before.to_string(), place.split_once('/').unwrap().1.to_string()))
        .unwrap();
    let hosts: Vec<String> = lines.iter().map(|line| format!("127.0.0.1:{}", line.port)).collect();
    format!("{before}@{}/{database}?sslmode=disable", hosts.join(","))
}

fn config_of(lines: &[&Line]) -> ProviderConfig {
    let mut config = fresh_config().deadline(Duration::from_secs(2));
    config.connection = ConnectionConfig::Url(url_of(lines));
    config.acquire_timeout = Duration::from_secs(2);
    config
}

#[tokio::test]
async fn next_host_is_tried_if_one_refuses_or_is_silent() {
    let [first, second] = [Line::open().await, Line::open().await];
    for flows in [None, Some(Flows::SWALLOW)] {
        first.set_fresh(flows);
        let opened = PostgresProvider::new_with_config(config_of(&[&first, &second]));
        let store = tokio::time::timeout(PATIENCE, opened).await.expect("opening ends").unwrap();
        run(&store, "i").await;
    }
}

#[tokio::test]
async fn calls_continue_at_the_second_host_after_the_first_falls_silent() {
    let [first, second] = [Line::open().await, Line::open().await];
    second.set_fresh(None);
    let store = PostgresProvider::new_with_config(config_of(&[&first, &second])).await.unwrap();
    run(&store, "before").await;
    // The first host stops answering, and the second host accepts connections.
    first.set(Whose::All, Flows::SWALLOW);
    first.set_fresh(None);
    second.set_fresh(Some(Flows::PASS));
    let work = async {
        loop {
            let start = start("after");
            let policy = StartPolicy::FailIfExists;
            let request = StartRequest { start, delay: None, policy, messages: vec![] };
            match store.start_orchestration(request).await {
                Ok(_) => break,
                // The start may be stored: the next attempt then returns that the instance exists.
                Err(error) => assert!(error.is_retryable(), "{error}"),
            }
        }
        let (item, token, _) = turn(&store).await;
        ack(&store, &token, &item.instance).await.unwrap();
    };
    tokio::time::timeout(PATIENCE, work).await.expect("the second host serves the calls");
    assert_eq!(store.list_instances().await.unwrap(), ["after", "before"]);
    assert!(second.set(Whose::All, Flows::PASS) > 0, "connections go to the second host");
}

/// The primary becomes a standby without closing its connections: it refuses writes, and the store searches for the new primary.
#[tokio::test]
async fn read_only_primary_is_replaced_by_the_new_primary() {
    let [first, second] = [Line::open().await, Line::open().await];
    second.set_fresh(None);
    let name = fresh_name("primary");
    let config = config_of(&[&first, &second]).application_name(&name);
    let schema = config.schema_name.clone().unwrap();
    let store = PostgresProvider::new_with_config(config).await.unwrap();
    run(&store, "before").await;
    // Open sessions can only read from now on.
    let demote = format!(
        "CREATE TABLE {schema}.standby AS SELECT pid FROM pg_stat_activity WHERE application_name = '{name}';
         CREATE FUNCTION {schema}.demoted() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN
             IF EXISTS (SELECT 1 FROM {schema}.standby WHERE pid = pg_backend_pid()) THEN
                 RAISE EXCEPTION 'cannot execute INSERT in a read-only transaction' USING ERRCODE = '25006';
             END IF;
             RETURN NULL;
         END $$;
         CREATE TRIGGER demoted BEFORE INSERT ON {schema}.orchestrator_queue EXECUTE FUNCTION {schema}.demoted()"
    );
    execute(&demote).await;
    first.set_fresh(None);
    second.set_fresh(Some(Flows::PASS));
    let error = store.enqueue_for_orchestrator(start("after"), None).await.unwrap_err();
    assert!(error.is_retryable() && error.message.contains("read-only"), "{error}");
    let mut tries = 0;
    while let Err(error) = store.enqueue_for_orchestrator(start("after"), None).await {
        tries += 1;
        assert!(error.is_retryable() && tries < 3, "each connection is refused once at most: {error}");
    }
    assert_eq!(turn(&store).await.0.instance, "after");
}

/// The password of the role changes, and the callback returns the current one.
#[tokio::test]
async fn each_new_connection_asks_for_the_password() {
    let role = fresh_name("rotates");
    execute(&format!("CREATE ROLE {role} LOGIN SUPERUSER PASSWORD 'first-s3cret'")).await;
    let current = Arc::new(Mutex::new("first-s3cret".to_string()));
    let asked = Arc::new(AtomicU32::new(0));
    let (source, count) = (Arc::clone(&current), Arc::clone(&asked));
    let mut config = fresh_config().application_name(&role).password_with(move || {
        count.fetch_add(1, Ordering::SeqCst);
        let password = source.lock().unwrap().clone();
        async move { Ok(password) }
    });
    config.connection = ConnectionConfig::Url(url_as(&role, "stale") + "?sslmode=disable");
    let shown = format!("{config:?}");
    assert!(!shown.contains("s3cret") && shown.contains("PasswordSource(..)"), "{shown}");
    let schema = config.schema_name.clone().unwrap();
    let store = PostgresProvider::new_with_config(config).await.unwrap();
    run(&store, "before").await;
    let client = raw().await;
    // The listener has logged in too.
    let watch = store.watch_instance("before", outlast_provider::Interest::Ended);
    until(&client, &format!("SELECT count(*) > 0 FROM {schema}.listeners")).await;
    drop(watch);
    let before = asked.load(Ordering::SeqCst);
    execute(&format!("ALTER ROLE {role} PASSWORD 'second-s3cret'")).await;
    *current.lock().unwrap() = "second-s3cret".to_string();
    let cut = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = $1";
    client.query_one(cut, &[&role]).await.unwrap();
    while let Err(error) = store.enqueue_for_orchestrator(start("after"), None).await {
        assert!(error.is_retryable(), "{error}");
    }
    assert_eq!(turn(&store).await.0.instance, "after");
    assert!(asked.load(Ordering::SeqCst) > before);
}

#[tokio::test]
async fn failing_password_callback_is_a_retryable_error() {
    for kind in ["fails", "panics", "hangs"] {
        let mut config = fresh_config().password_with(move || async move {
            match kind {
                "fails" => Err("the vault is sealed".into()),
                "panics" => panic!("the vault broke"),
                _ => std::future::pending().await,
            }
        });
        config.acquire_timeout = Duration::from_millis(300);
        let error = PostgresProvider::new_with_config(config).await.unwrap_err();
        assert!(
            matches!(error, PostgresError::Password { .. } | PostgresError::Disconnected { .. }),
            "{error:?}"
        );
        assert!(error.is_retryable(), "{error}");
    }
}
