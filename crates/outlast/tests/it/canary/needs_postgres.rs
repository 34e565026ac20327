//! The canary test on PostgreSQL. The password of the URL is a secret too, and the log of the driver is searched as well.

use super::{CANARY, assert_all_sites_logged, assert_no_canary, bad, child, good, secret};
use crate::support::{Kind, LONGEST_WAIT, postgres};
use outlast::providers::postgres::{PostgresProvider, ProviderConfig};
use outlast::providers::{Provider, ProviderError, TagFilter, WorkItem};
use std::sync::Arc;
use std::time::Duration;
use tokio_postgres::{Config, NoTls};

const TEST: &str = "canary::needs_postgres::no_password_is_logged";

/// Log calls that the test process does not reach: a column has another type than in the schema, or a task of the store panicked
/// with a text of the source.
const UNREACHED: &[&str] = &[
    "a turn cannot be read",
    "an activity cannot be read",
    "a lease cannot be read",
    "a task of the store panicked and continues",
];

#[test]
fn no_password_is_logged() {
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    if let Ok(mode) = std::env::var(super::MODE) {
        return tokio.block_on(everything(mode == "log_error_texts"));
    }
    let url = tokio.block_on(role());
    let written = |mode: &str| child(TEST, mode, &[(postgres::URL, &url)]);
    let text = written("quiet");
    assert_no_canary(&text);
    assert_all_sites_logged(&text, &["postgres"], UNREACHED);
    // The log of the driver was captured too.
    assert!(text.contains("tokio_postgres"), "the driver has not logged anything");
    assert!(written("log_error_texts").contains(CANARY));
}

/// The URL of a role whose password is the canary.
async fn role() -> String {
    let (url, name) = (postgres::server_url(), postgres::fresh_schema());
    let password = secret("password");
    let made = format!("CREATE ROLE {name} LOGIN SUPERUSER PASSWORD '{password}'");
    postgres::raw().await.batch_execute(&made).await.unwrap();
    let (scheme, rest) = url.split_once("://").unwrap();
    let (_, place) = rest.rsplit_once('@').unwrap();
    format!("{scheme}://{name}:{password}@{place}")
}

/// Captures the log of the driver.
struct Driver;

impl log::Log for Driver {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }
    fn log(&self, record: &log::Record<'_>) {
        println!("{} {}", record.target(), record.args());
    }
    fn flush(&self) {}
}

async fn everything(log_error_texts: bool) {
    super::install_log();
    log::set_logger(&Driver).unwrap();
    log::set_max_level(log::LevelFilter::Trace);
    good::run(Kind::Postgres, log_error_texts).await;
    bad::run(Kind::Postgres, log_error_texts).await;
    damaged().await;
    let _setting_aside = not_set_aside().await;
    cut_off().await;
    refused().await;
}

async fn open(name: &str) -> (ProviderConfig, Arc<PostgresProvider>) {
    let config =
        ProviderConfig::url(postgres::server_url()).schema(postgres::fresh_schema()).application_name(name);
    println!("{config:?}");
    (config.clone(), Arc::new(PostgresProvider::new_with_config(config).await.unwrap()))
}

/// Rows that do not decode, and messages for instances that do not exist. The driver logs statements, so the server concatenates
async fn damaged() {
    let (config, store) = open("damaged").await;
    let schema = config.schema_name.clone().unwrap();
    let damage = format!(
        "INSERT INTO {schema}.orchestrator_queue (instance_id, work_item, visible_at, available_at, begins)
         VALUES ('i', '{{\"7f3a' || 'canary\":1}}', 0, 0, false);
         INSERT INTO {schema}.worker_queue (work_item, visible_at, instance_id, execution_id, activity_id)
         VALUES ('{{\"7f3a' || 'canary\":1}}', 0, 'i', 1, 1)"
    );
    postgres::raw().await.batch_execute(&damage).await.unwrap();
    let message =
        WorkItem::QueueMessage { instance: "nobody".into(), name: "q".into(), data: secret("data") };
    store.enqueue_for_orchestrator(message, None).await.unwrap();
    let lease = Duration::from_secs(5);
    let turn = store.fetch_orchestration_item(lease, Duration::from_millis(300), None);
    assert!(turn.await.unwrap().is_none());
    let work = store.fetch_work_item(lease, Duration::from_millis(300), None, &TagFilter::DefaultOnly);
    assert!(work.await.unwrap().is_none());
    assert_eq!(store.stats().dead_letters, 2);
}

/// Messages that cannot be set aside, because the function is missing. The store logs the error in a task of its own, which ends
/// long before the process does.
async fn not_set_aside() -> Arc<PostgresProvider> {
    let (config, store) = open("not-set-aside").await;
    let schema = config.schema_name.clone().unwrap();
    let message = WorkItem::QueueMessage { instance: "crowd".into(), name: "q".into(), data: secret("data") };
    let lease = Duration::from_secs(60);
    store.enqueue_for_orchestrator(start("crowd"), None).await.unwrap();
    store.fetch_orchestration_item(lease, LONGEST_WAIT, None).await.unwrap().expect("the instance starts");
    postgres::raw().await.batch_execute(&format!("DROP FUNCTION {schema}.set_aside_1")).await.unwrap();
    for _ in 0..300 {
        store.enqueue_for_orchestrator(message.clone(), None).await.unwrap();
    }
    let turn = store.fetch_orchestration_item(lease, Duration::from_millis(300), None);
    assert!(turn.await.unwrap().is_none(), "the instance is leased");
    store
}

fn start(instance: &str) -> WorkItem {
    WorkItem::StartOrchestration {
        instance: instance.into(),
        orchestration: "O".into(),
        input: secret("input"),
        version: None,
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: 1,
    }
}

/// Connections that end during a transaction or a listen.
async fn cut_off() {
    let (_, store) = open("victim").await;
    let meddler = postgres::raw().await;
    let cut =
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'victim'";
    let until = tokio::time::Instant::now() + LONGEST_WAIT;
    while store.stats().lost == 0 {
        assert!(tokio::time::Instant::now() < until, "no transaction is lost");
        let start = |n: u32| WorkItem::QueueMessage {
            instance: format!("i{n}"),
            name: "q".into(),
            data: secret("data"),
        };
        let (cut, one, other) = tokio::join!(
            meddler.simple_query(cut),
            store.enqueue_for_orchestrator(start(1), None),
            store.enqueue_for_orchestrator(start(2), None),
        );
        cut.unwrap();
        for error in [one, other].into_iter().filter_map(Result::err) {
            println!("{error} {error:?}");
        }
    }
    // Without calls, only the listener connects again, and it first logs the end of its connection.
    for _ in 0..2 {
        // Before the cut: the listener may connect again before this task runs again.
        let cut_at: String = meddler.query_one("SELECT clock_timestamp()::text", &[]).await.unwrap().get(0);
        meddler.simple_query(cut).await.unwrap();
        let again = format!(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'victim' AND backend_start > '{cut_at}'"
        );
        while meddler.query_one(&again, &[]).await.unwrap().get::<_, i64>(0) == 0 {
            assert!(tokio::time::Instant::now() < until, "the listener does not connect again");
        }
    }
    println!("{:?}", store.stats());
}

/// Servers that are unreachable or reject the login, and invalid URLs.
async fn refused() {
    let url = postgres::server_url();
    let config: Config = url.parse().unwrap();
    let (host, port) = ("127.0.0.1", config.get_ports()[0]);
    let (user, secret) = (config.get_user().unwrap(), secret("password"));
    for url in [
        format!("postgres://{user}:wrong-{secret}@{host}:{port}/postgres"),
        format!("postgres://nobody:{secret}@{host}:{port}/postgres"),
        format!("postgres://{user}:{secret}@{host}:{port}/nowhere"),
        format!("postgres://{user}:{secret}@{host}:1/postgres"),
        format!("postgres://{user}:{secret}@nowhere.invalid/postgres"),
        format!("postgres://{user}:{secret}@{host}:{port}/postgres?sslmode=verify-full"),
        format!("postgres://{user}:{secret}@{host}:{port}/postgres?sslmode=verify-ca&sslrootcert=/none"),
        format!("postgres://{user}:{secret}@{host}:{port}/postgres?sslmode={secret}"),
        format!("postgres://{user}:{secret}@{host}:{port}/postgres?connect_timeout={secret}"),
        format!("postgres://{user}:a?{secret}@{host}:{port}/postgres"),
        format!("postgres://{user}:a/{secret}@{host}:{port}/postgres"),
        format!("postgres://{host}:{port}/nowhere?user={user}&password={secret}"),
        format!("host={host} port={port} user={user} password={secret} dbname=nowhere"),
        format!("host={host} port={secret} user={user} password={secret}"),
        format!("host={host} user={user} password=a {secret}"),
        format!("{user}:{secret}@{host}"),
        format!("mysql://{user}:{secret}@{host}:{port}/postgres"),
    ] {
        let mut config = ProviderConfig::url(&url);
        config.acquire_timeout = Duration::from_secs(5);
        println!("{config:?}");
        let error = PostgresProvider::new_with_config(config).await.err().unwrap();
        println!("{error} {error:?}");
        let error = ProviderError::from(error);
        println!("{error} {error:?}");
    }
    // A correct login succeeds, so the others failed because of their credentials.
    drop(tokio_postgres::connect(&url, NoTls).await.unwrap());
}
