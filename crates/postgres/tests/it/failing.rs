//! Servers that refuse connections, cannot be reached, or cut connections: the errors are clear and hold no secrets, and the
//! store recovers without a restart.

use crate::factory::{fresh_config, fresh_name, raw, server_url};
use crate::support::*;
use outlast_postgres::{PostgresError, PostgresProvider, ProviderConfig};
use outlast_provider::{Provider, ProviderAdmin};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

async fn refusal(url: &str) -> PostgresError {
    let mut config = ProviderConfig::url(url).schema(fresh_name("t"));
    config.acquire_timeout = Duration::from_secs(5);
    PostgresProvider::new_with_config(config).await.unwrap_err()
}

/// A secret that no error may show.
const SECRET: &str = "s3cret-of-nobody";

/// Asserts that the error holds the advice and no secret.
fn helps(error: &PostgresError, advice: &str) {
    assert!(error.to_string().contains(advice), "'{advice}' is not in: {error}");
    let shown = format!("{error} {error:?}");
    assert!(!shown.contains(SECRET), "{shown}");
}

#[tokio::test]
async fn refused_login_is_a_permanent_error() {
    let role = fresh_name("r");
    execute(&format!("CREATE ROLE {role} LOGIN PASSWORD 'right'")).await;
    let wrong_password = refusal(&url_as(&role, SECRET)).await;
    let unknown_user = refusal(&url_as("nobody_at_all", SECRET)).await;
    let (server, _) = server_url().rsplit_once('/').map(|(a, b)| (a.to_string(), b.to_string())).unwrap();
    let no_database = refusal(&format!("{server}/no_such_database")).await;
    for (error, code) in [(wrong_password, "28P01"), (unknown_user, "28P01"), (no_database, "3D000")] {
        assert!(matches!(&error, PostgresError::Login { code: found, .. } if found == code), "{error}");
        assert!(!error.is_retryable());
        helps(&error, "check user, password and database of the URL");
    }
}

#[tokio::test]
async fn unreachable_server_is_a_retryable_error() {
    for url in [
        format!("postgres://u:{SECRET}@127.0.0.1:1/d"),
        format!("postgres://u:{SECRET}@no-such-host.invalid/d"),
    ] {
        let error = refusal(&url).await;
        assert!(matches!(error, PostgresError::Disconnected { .. }) && error.is_retryable(), "{error}");
        helps(&error, "it may be away, or the URL names another host or port");
    }
}

/// A server that refuses TLS.
async fn without_tls() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut connection, _)) = listener.accept().await {
            let mut asked = [0; 8];
            if connection.read_exact(&mut asked).await.is_ok() {
                // The client may have closed the connection.
                let _ = connection.write_all(b"N").await;
            }
        }
    });
    port
}

#[tokio::test]
async fn required_tls_fails_on_a_server_without_tls() {
    let port = without_tls().await;
    for text in [
        format!("postgres://u:{SECRET}@127.0.0.1:{port}/d?sslmode=require"),
        format!("postgres://u:{SECRET}@127.0.0.1:{port}/d?sslmode=verify-full"),
        format!("postgres://u:{SECRET}?@127.0.0.1:{port}/d?sslmode=require"),
        format!("postgres://u:{SECRET}@127.0.0.1:{port}/d?ssl=true"),
        format!("host=127.0.0.1 port={port} user=u password={SECRET} sslmode = require"),
        format!("host=127.0.0.1 port={port} user=u password='{SECRET} sslmode=disable' sslmode='require'"),
    ] {
        let error = refusal(&text).await;
        assert!(
            matches!(error, PostgresError::Unsuited { .. }) && !error.is_retryable(),
            "{text}: {error:?}"
        );
        helps(&error, "does not support TLS; check sslmode");
    }
}

/// The server rejects connections of this role without TLS.
#[tokio::test]
async fn tls_is_used_if_the_server_requires_it() {
    let role = fresh_name("tls");
    execute(&format!("CREATE ROLE {role} LOGIN PASSWORD '{SECRET}'")).await;
    let rules = raw().await.query_one("SHOW hba_file", &[]).await.unwrap().get::<_, String>(0);
    let before = std::fs::read_to_string(&rules).unwrap();
    std::fs::write(&rules, format!("hostnossl all {role} all reject\n{before}")).unwrap();
    execute("SELECT pg_reload_conf()").await;
    let plain = url_as(&role, SECRET) + "?sslmode=disable";
    // The server reads its rules some time after the reload.
    let error = loop {
        let error = refusal(&plain).await;
        if matches!(error, PostgresError::Login { .. }) {
            break error;
        }
    };
    assert!(matches!(&error, PostgresError::Login { code, .. } if code == "28000"), "{error}");
    helps(&error, "if it asks for TLS, set sslmode=require");
    let encrypted = refusal(&(url_as(&role, SECRET) + "?sslmode=require")).await;
    assert!(
        matches!(encrypted, PostgresError::Denied { .. }),
        "the role can log in and may not create a schema: {encrypted}"
    );
}

#[tokio::test]
async fn each_sslmode_checks_the_certificate_as_strictly_as_documented() {
    let ca =
        std::env::var("OUTLAST_TEST_POSTGRES_CA").expect("`cargo xtask test` sets the path of the authority");
    let other = std::env::var("OUTLAST_TEST_POSTGRES_OTHER_CA")
        .expect("`cargo xtask test` sets the path of another authority");
    let opened = async |option: &str| {
        let config = ProviderConfig::url(url_with(option)).schema(fresh_name("t"));
        let store = PostgresProvider::new_with_config(config).await?;
        run(&store, "i").await;
        Ok::<(), PostgresError>(())
    };
    for option in [
        "sslmode=disable".to_string(),
        "sslmode=prefer".to_string(),
        "sslmode=require".to_string(),
        format!("sslmode=verify-ca&sslrootcert={ca}"),
        format!("sslmode=verify-full&sslrootcert={ca}"),
    ] {
        opened(&option).await.unwrap_or_else(|error| panic!("{option}: {error}"));
    }
    for option in [
        format!("sslmode=verify-ca&sslrootcert={other}"),
        format!("sslmode=verify-full&sslrootcert={other}"),
        "sslmode=verify-full&sslrootcert=/no/such/file".to_string(),
    ] {
        let error = opened(&option).await.unwrap_err();
        assert!(matches!(error, PostgresError::Tls { .. }), "{option}: {error}");
        assert!(!error.is_retryable());
        helps(&error, "check sslmode and sslrootcert of the URL");
    }
}

#[tokio::test]
async fn cut_connections_are_replaced() {
    let name = fresh_name("victim");
    let config = fresh_config().application_name(&name);
    let store = Arc::new(PostgresProvider::new_with_config(config).await.unwrap());
    for n in 0..5 {
        run(&*store, &format!("before-{n}")).await;
        let waiting = {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                loop {
                    match store.fetch_orchestration_item(LONG, PATIENCE, None).await {
                        Ok(fetched) => return fetched.expect("a turn is ready"),
                        Err(error) => assert!(error.is_retryable(), "{error}"),
                    }
                }
            })
        };
        let cut = "SELECT array_agg(pid), count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = $1";
        let meddler = raw().await;
        let cut: Vec<i32> = meddler.query_one(cut, &[&name]).await.unwrap().get(0);
        // A call during the cut may fail; the test repeats it.
        let instance = format!("after-{n}");
        while let Err(error) = store.enqueue_for_orchestrator(start(&instance), None).await {
            assert!(error.is_retryable(), "{error}");
        }
        let (item, token, _) = waiting.await.unwrap();
        assert_eq!(item.instance, instance);
        while let Err(error) = ack(&*store, &token, &instance).await {
            assert!(error.is_retryable(), "{error}");
        }
        // The server may end an idle connection later than a busy one.
        let ended = format!("SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = ANY (ARRAY{cut:?})");
        until(&meddler, &ended).await;
    }
    assert_eq!(store.list_instances().await.unwrap().len(), 10);
}

/// The runtime takes a failed renewal for a lost lease, so the store resends a renewal until the server answers.
#[tokio::test]
async fn renewal_is_resent_after_a_cut() {
    let name = fresh_name("victim");
    let config = fresh_config().application_name(&name).lanes(1);
    let store = PostgresProvider::new_with_config(config).await.unwrap();
    enqueue(&store, "i").await;
    let (_, token, _) = turn(&store).await;
    let meddler = raw().await;
    for _ in 0..20 {
        let cut = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = $1";
        let (_, renewed) = futures::future::join(
            meddler.query_one(cut, &[&name]),
            store.renew_orchestration_item_lock(&token, LONG),
        )
        .await;
        renewed.unwrap();
    }
    // The last cut may hit this commit instead of the renewal; the test repeats it.
    while let Err(error) = ack(&store, &token, "i").await {
        assert!(error.is_retryable(), "{error}");
    }
}

/// The runtime would take an error of the second renewal for a lost lease.
#[tokio::test]
async fn two_renewals_of_one_lease_in_one_transaction_succeed() {
    let store = PostgresProvider::new_with_config(fresh_config().lanes(1)).await.unwrap();
    enqueue(&store, "i").await;
    let (_, turn, _) = turn(&store).await;
    store.enqueue_for_worker(activity("i", 2)).await.unwrap();
    let (_, work, _) = work(&store).await;
    let before = store.stats().transactions;
    let renewed = futures::join!(
        store.renew_orchestration_item_lock(&turn, LONG),
        store.renew_orchestration_item_lock(&turn, LONG),
        store.renew_work_item_lock(&work, LONG),
        store.renew_work_item_lock(&work, LONG),
    );
    assert_eq!(renewed, (Ok(()), Ok(()), Ok(()), Ok(())));
    assert_eq!(store.stats().transactions, before + 1);
}

#[tokio::test]
async fn failing_member_does_not_fail_its_batch() {
    let store = Arc::new(PostgresProvider::new_with_config(fresh_config().lanes(1)).await.unwrap());
    let mut turns = Vec::new();
    for n in 0..8 {
        enqueue(&*store, &format!("i{n}")).await;
        turns.push(turn(&*store).await);
    }
    // Event 1 of instance `i3` exists already, so its commit fails.
    store.append_with_execution("i3", 1, vec![started("i3")]).await.unwrap();
    let commits = turns.iter().map(|(item, token, _)| ack(&*store, token, &item.instance));
    let answers = futures::future::join_all(commits).await;
    for ((item, token, _), answer) in turns.iter().zip(answers) {
        match item.instance.as_str() {
            "i3" => {
                let error = answer.unwrap_err();
                assert!(error.message.contains("event id 1 exists") && !error.is_retryable(), "{error}");
                // The failed commit keeps its lease.
                store.renew_orchestration_item_lock(token, LONG).await.unwrap();
            }
            _ => answer.unwrap(),
        }
    }
    assert_eq!(store.list_instances().await.unwrap().len(), 7);
}
