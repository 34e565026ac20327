//! Notifications between processes, played by store objects on one schema.

use crate::factory::{fresh_config, fresh_name, raw};
use crate::line::{Flow, Flows, Line};
use crate::support::*;
use outlast_postgres::{ConnectionConfig, PostgresProvider, ProviderConfig};
use outlast_provider::{Interest, Provider};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::{JoinHandle, yield_now};

/// The configuration of a store that polls every ten minutes, so that only a notification can wake a fetch in time.
pub(crate) fn rarely_polling(name: &str) -> ProviderConfig {
    let mut config = fresh_config().application_name(name);
    config.idle_poll_interval = Duration::from_secs(600);
    config
}

pub(crate) async fn open(config: &ProviderConfig) -> Arc<PostgresProvider> {
    Arc::new(PostgresProvider::new_with_config(config.clone()).await.unwrap())
}

/// Waits until the number of polls stays the same for 0.3 s; returns the number.
pub(crate) async fn quiet(polls: impl Fn() -> u64) -> u64 {
    let client = raw().await;
    loop {
        let before = polls();
        until(&client, "SELECT pg_sleep(0.3) IS NOT NULL").await;
        if polls() == before {
            return before;
        }
    }
}

/// A parked fetch whose process is registered.
async fn parked(store: &Arc<PostgresProvider>, schema: &str, column: &str) -> JoinHandle<String> {
    let own = Arc::clone(store);
    let is_work = column == "activities";
    let fetch = tokio::spawn(async move {
        match is_work {
            true => work(&*own).await.1,
            false => turn(&*own).await.1,
        }
    });
    until(&raw().await, &format!("SELECT coalesce(bool_or({column}), false) FROM {schema}.listeners")).await;
    fetch
}

/// The fetch registers after the store has built the commit, and before the slow connection sends the commit.
#[tokio::test]
async fn commit_on_a_slow_new_connection_notifies_a_fetch_that_registers_meanwhile() {
    let line = Line::open().await;
    let config = rarely_polling("slow");
    let schema = config.schema_name.clone().unwrap();
    let there = open(&config).await;
    let mut through_the_line = config.clone().application_name("slow line");
    through_the_line.connection = ConnectionConfig::Url(line.url.clone());
    let here = open(&through_the_line).await;
    // A process notifies the others of every commit until its listener has read the registrations.
    let has_listener = "SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE application_name = 'slow line'
                        AND state = 'idle' AND query LIKE '%.listeners%')";
    until(&raw().await, has_listener).await;
    line.set_fresh(Some(Flows { up: Flow::Delay(Duration::from_millis(300)), down: Flow::Pass }));
    let ((), waiting) = tokio::join!(enqueue(&*here, "i"), parked(&there, &schema, "turns"));
    waiting.await.unwrap();
}

#[tokio::test]
async fn commit_notifies_a_fetch_of_another_process() {
    let config = rarely_polling("hears");
    let schema = config.schema_name.clone().unwrap();
    let [here, there] = [open(&config).await, open(&config).await];
    let waiting = parked(&there, &schema, "turns").await;
    enqueue(&*here, "i").await;
    let token = waiting.await.unwrap();
    ack(&*there, &token, "i").await.unwrap();
    let waiting = parked(&there, &schema, "activities").await;
    here.enqueue_for_worker(activity("i", 2)).await.unwrap();
    let token = waiting.await.unwrap();
    there.ack_work_item(&token, None).await.unwrap();
}

#[tokio::test]
async fn end_of_an_instance_notifies_watches_of_other_processes() {
    let config = rarely_polling("hears");
    let schema = config.schema_name.clone().unwrap();
    let [here, there] = [open(&config).await, open(&config).await];
    let watch = there.watch_instance("i", Interest::Ended).unwrap();
    until(&raw().await, &format!("SELECT coalesce(bool_or(watches), false) FROM {schema}.listeners")).await;
    run(&*here, "i").await;
    tokio::time::timeout(PATIENCE, watch).await.expect("the watch resolves");
}

#[tokio::test]
async fn no_process_is_notified_while_none_is_registered() {
    let config = rarely_polling("hears");
    let [here, there] = [open(&config).await, open(&config).await];
    for n in 0..20 {
        run(&*here, &format!("i{n}")).await;
    }
    assert_eq!(there.stats().notifications, 0);
    assert_eq!(there.stats().fetched, 0);
}

#[tokio::test]
async fn commit_notifies_one_of_many_idle_processes() {
    const WORKERS: usize = 16;
    let config = rarely_polling("herd").pool_size(2);
    let schema = config.schema_name.clone().unwrap();
    let here = open(&config).await;
    let mut herd = Vec::new();
    for _ in 0..WORKERS {
        let store = open(&config).await;
        let own = Arc::clone(&store);
        let fetch = tokio::spawn(async move { own.fetch_orchestration_item(LONG, LONG, None).await });
        herd.push((store, fetch));
    }
    let all = format!("SELECT count(*) FILTER (WHERE turns) = {WORKERS} FROM {schema}.listeners");
    until(&raw().await, &all).await;
    let polls = || herd.iter().map(|(store, _)| store.stats().polls).sum::<u64>();
    let notifications = || herd.iter().map(|(store, _)| store.stats().notifications).sum::<u64>();
    // The polls that follow the registrations are over.
    let before = quiet(polls).await;
    // Three commits with one message each, then five messages in few transactions, each of which notifies one process.
    for n in 0..3 {
        enqueue(&*here, &format!("i{n}")).await;
    }
    let ids = ["i3", "i4", "i5", "i6", "i7"];
    futures::future::join_all(ids.map(|id| enqueue(&*here, id))).await;
    let served = async {
        while herd.iter().map(|(store, _)| store.stats().fetched).sum::<u64>() < 8 {
            yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, served).await.expect("the processes fetch all turns");
    // A notified process forwards the notification after its fetch returned, also if the fetch returned before the notification
    // arrived.
    assert!(notifications() <= 40, "notified {} times of 8 messages", notifications());
    assert!(polls() - before <= 30, "{} polls for 8 messages by {WORKERS} workers", polls() - before);
    herd.iter().for_each(|(_, fetch)| fetch.abort());
}

#[tokio::test]
async fn without_a_listener_fetches_poll() {
    let mut config = fresh_config().listen(false);
    config.poll_interval = Duration::from_millis(20);
    let [here, there] = [open(&config).await, open(&config).await];
    let own = Arc::clone(&there);
    let waiting = tokio::spawn(async move { turn(&*own).await.1 });
    while there.stats().polls < 2 {
        yield_now().await;
    }
    enqueue(&*here, "i").await;
    ack(&*there, &waiting.await.unwrap(), "i").await.unwrap();
}

#[tokio::test]
async fn cut_listener_reconnects_and_registers_again() {
    let name = fresh_name("listener");
    let config = rarely_polling(&name);
    let schema = config.schema_name.clone().unwrap();
    let there = open(&config).await;
    let here = open(&config.clone().application_name("other")).await;
    let waiting = parked(&there, &schema, "turns").await;
    let meddler = raw().await;
    let cut = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = $1";
    meddler.query_one(cut, &[&name]).await.unwrap();
    meddler.execute(&format!("DELETE FROM {schema}.listeners"), &[]).await.unwrap();
    // The process polls meanwhile, and registers again.
    until(&meddler, &format!("SELECT coalesce(bool_or(turns), false) FROM {schema}.listeners")).await;
    enqueue(&*here, "i").await;
    ack(&*there, &waiting.await.unwrap(), "i").await.unwrap();
}

/// The channel of a schema: the hash FNV-1a of its name.
fn channel_of(schema: &str) -> String {
    let hash = schema.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("outlast_{:016x}", hash >> 2)
}

/// The server sends more notifications than the listener keeps: the listener reads the registrations and notifies all watches.
#[tokio::test]
async fn watch_resolves_after_the_listener_dropped_notifications() {
    let config = rarely_polling("flooded");
    let schema = config.schema_name.clone().unwrap();
    let store = open(&config).await;
    let watch = store.watch_instance("i", Interest::Ended).unwrap();
    let client = raw().await;
    until(&client, &format!("SELECT coalesce(bool_or(watches), false) FROM {schema}.listeners")).await;
    // One commit sends all notifications, and the last one names the watched instance.
    let flood = "SELECT count(pg_notify($1::text, CASE WHEN n < 20000 THEN '[\"x\", ' || n || ']'
                                                   ELSE '[\"x\", null, null, [\"i\"]]' END))
                 FROM generate_series(1, 20000) AS n";
    client.query_one(flood, &[&channel_of(&schema)]).await.unwrap();
    tokio::time::timeout(PATIENCE, watch).await.expect("the watch resolves");
}
