//! Messages with large texts: fetches deliver them whole, and they do not delay small requests.

use crate::factory::fresh_config;
use crate::support::*;
use outlast_model::WorkItem;
use outlast_postgres::PostgresProvider;
use outlast_provider::Provider;
use std::sync::Arc;
use tokio::task::JoinSet;
use tokio::time::timeout;

const MIB: usize = 1 << 20;

fn message(instance: &str, bytes: usize) -> WorkItem {
    let (instance, name) = (instance.to_string(), "queue".to_string());
    WorkItem::QueueMessage { instance, name, data: "x".repeat(bytes) }
}

async fn send(store: &PostgresProvider, instance: &str, bytes: usize) {
    store.enqueue_for_orchestrator(message(instance, bytes), None).await.unwrap();
}

#[tokio::test]
async fn large_turn_is_delivered_whole_in_its_order_after_an_abandoned_lease_too() {
    let store = PostgresProvider::new_with_config(fresh_config()).await.unwrap();
    let rows: [&[usize]; 4] = [&[2 * MIB], &[MIB, 10, 2 * MIB, 20], &[4 << 10; 300], &[MIB / 2]];
    for (n, sizes) in rows.into_iter().enumerate() {
        let instance = format!("i{n}");
        enqueue(&store, &instance).await;
        for bytes in sizes {
            send(&store, &instance, *bytes).await;
        }
        let sent = sizes.iter().map(|bytes| message(&instance, *bytes));
        let expected: Vec<WorkItem> = std::iter::once(start(&instance)).chain(sent).collect();
        for attempt in 1..3 {
            let (item, token, count) = turn(&store).await;
            assert_eq!((item.instance.as_str(), count), (instance.as_str(), attempt));
            assert!(item.messages == expected, "{} messages of {sizes:?}", item.messages.len());
            match attempt {
                1 => store.abandon_orchestration_item(&token, None, false).await.unwrap(),
                _ => ack(&store, &token, &instance).await.unwrap(),
            }
        }
    }
    assert_eq!(store.stats().dead_letters, 0);
}

#[tokio::test]
async fn large_turn_keeps_its_place_before_younger_small_ones() {
    let store = PostgresProvider::new_with_config(fresh_config()).await.unwrap();
    for instance in ["old", "large", "young"] {
        enqueue(&store, instance).await;
        send(&store, instance, if instance == "large" { 2 * MIB } else { 10 }).await;
    }
    for expected in ["old", "large", "young"] {
        assert_eq!(turn(&store).await.0.instance, expected);
    }
}

/// The lease ends between the transaction that took it and the read of the texts.
#[tokio::test]
async fn turn_whose_lease_ends_before_its_texts_are_read_is_fetched_again() {
    let config = fresh_config();
    let schema = config.schema_name.clone().unwrap();
    let store = PostgresProvider::new_with_config(config).await.unwrap();
    enqueue(&store, "i").await;
    send(&store, "i", 2 * MIB).await;
    execute(&format!(
        "CREATE TABLE {schema}.ended (n integer);
         CREATE FUNCTION {schema}.end_lease() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN
             IF NOT EXISTS (SELECT 1 FROM {schema}.ended) THEN
                 INSERT INTO {schema}.ended VALUES (1);
                 DELETE FROM {schema}.instance_locks;
                 UPDATE {schema}.orchestrator_queue SET lock_token = NULL;
             END IF;
             RETURN NULL;
         END $$;
         CREATE CONSTRAINT TRIGGER end_lease AFTER UPDATE ON {schema}.orchestrator_queue DEFERRABLE INITIALLY DEFERRED
         FOR EACH ROW EXECUTE FUNCTION {schema}.end_lease()"
    ))
    .await;
    let (item, token, count) = turn(&store).await;
    assert!(item.messages == [start("i"), message("i", 2 * MIB)]);
    assert_eq!((count, store.stats().dead_letters), (2, 0));
    ack(&store, &token, "i").await.unwrap();
}

#[tokio::test]
async fn large_messages_leave_one_lane_for_a_renewal() {
    let rows = [
        // Lanes, connections, and the large messages that are sent at the same time. The store needs one connection more than the
        // client lanes, and one for reads.
        (2, 3, 1),
        (2, 10, 2),
        (3, 4, 2),
    ];
    for (lanes, connections, expected) in rows {
        let config = fresh_config().deadline(LONG).lanes(lanes).pool_size(connections).listen(false);
        let schema = config.schema_name.clone().unwrap();
        let store = Arc::new(PostgresProvider::new_with_config(config).await.unwrap());
        enqueue(&*store, "leased").await;
        let (_, token, _) = turn(&*store).await;
        let stop = Stop::after_insert(&schema, "orchestrator_queue").await;
        let mut sent = JoinSet::new();
        for n in 0..6 {
            let store = Arc::clone(&store);
            sent.spawn(async move { send(&store, &format!("busy-{n}"), 2 * MIB).await });
        }
        stop.reached_by(expected).await;
        for _ in 0..3 {
            let renewed = timeout(PATIENCE, store.renew_orchestration_item_lock(&token, LONG)).await;
            renewed.unwrap_or_else(|_| panic!("{lanes} lanes: no lane is free for a renewal")).unwrap();
        }
        stop.reached_by(expected).await;
        stop.end().await;
        timeout(PATIENCE, sent.join_all()).await.expect("every message is stored");
    }
}
