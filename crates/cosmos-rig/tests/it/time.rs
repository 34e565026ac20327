//! The clock of the account, and time to live.

use std::time::Duration;

use azure_data_cosmos::models::{ContainerProperties, TimeToLive};
use azure_data_cosmos::options::ChangeFeedStartFrom;
use azure_data_cosmos::{FeedScope, TransactionalBatch};
use futures::StreamExt;
use outlast_cosmos_rig::RigOptions;
use serde_json::{Value, json};

use crate::kit::{Fixture, code, document, properties};

async fn fixture(default_ttl: TimeToLive) -> Fixture {
    let properties: ContainerProperties = properties().with_default_ttl(default_ttl);
    Fixture::with(RigOptions::default(), properties).await
}

/// The ids that a query finds.
async fn ids(fixture: &Fixture, partition: &str) -> Vec<String> {
    let scope = FeedScope::partition(partition.to_string());
    let items = fixture.container.query_items::<Value>("SELECT * FROM c", scope, None).await.unwrap();
    let mut ids: Vec<String> =
        items.map(|item| item.unwrap()["id"].as_str().unwrap().to_string()).collect().await;
    ids.sort();
    ids
}

#[tokio::test]
async fn a_set_clock_shows_in_every_answer() {
    let fixture = Fixture::new().await;
    fixture.create("p", "before", json!({})).await;
    let before = fixture.read("p", "before").await.unwrap()["_ts"].as_u64().unwrap();
    fixture.rig.stop_clock_at(5_000_999);
    fixture.create("p", "a", json!({})).await;
    assert_eq!(fixture.read("p", "a").await.unwrap()["_ts"], 5000, "binary JSON of the SDK");
    assert_eq!(fixture.rest().read("p", "a").await.body["_ts"], 5000, "text JSON");

    fixture.rig.advance_clock(Duration::from_secs(7));
    let batch = TransactionalBatch::new("p").create_item(document("p", "b")).unwrap().read_item("b", None);
    let response = fixture.container.execute_transactional_batch(batch, None).await.unwrap();
    let read: Value = response.into_model().unwrap().results()[1].into_model().unwrap().unwrap();
    assert_eq!(read["_ts"], 5007);
    let headers = [crate::kit::key("p")];
    let replaced =
        fixture.rest().send("PUT", "/dbs/d/colls/c/docs/a", &headers, Some(document("p", "a"))).await;
    assert_eq!(replaced.unwrap().body["_ts"], 5007);

    let stamps = |values: &[Value]| -> Vec<u64> {
        values.iter().map(|value| value["_ts"].as_u64().unwrap()).collect()
    };
    let items = fixture.container.query_items::<Value>(
        "SELECT * FROM c ORDER BY c.id",
        FeedScope::partition("p"),
        None,
    );
    let items: Vec<Value> = items.await.unwrap().map(Result::unwrap).collect().await;
    assert_eq!(stamps(&items), [5007, 5007, before]);
    let feed = fixture.container.query_change_feed::<Value>(
        FeedScope::partition("p"),
        ChangeFeedStartFrom::Beginning,
        None,
    );
    let page = feed.await.unwrap().next().await.unwrap().unwrap();
    let changed: Vec<Value> = page.items().iter().map(|item| item.current().unwrap().clone()).collect();
    assert_eq!(stamps(&changed), [before, 5007, 5007]);
}

#[tokio::test]
async fn clocks_of_two_machines_can_be_set_apart() {
    let fixture = Fixture::new().await;
    fixture.rig.shift_clock(-10_000);
    fixture.create("p", "a", json!({})).await;
    let behind = fixture.read("p", "a").await.unwrap()["_ts"].as_u64().unwrap();
    fixture.rig.shift_clock(0);
    fixture.create("p", "b", json!({})).await;
    let now = fixture.read("p", "b").await.unwrap()["_ts"].as_u64().unwrap();
    assert!((9..=40).contains(&(now - behind)), "{behind} {now}");
    assert_eq!(fixture.read("p", "a").await.unwrap()["_ts"], behind, "a stored document keeps its time");
}

#[tokio::test]
async fn queries_by_time_are_refused_while_the_clock_is_set() {
    let fixture = Fixture::new().await;
    let sql = "SELECT c.id FROM c WHERE c._ts > 0";
    assert_eq!(fixture.rest().query("p", sql, &[]).await.status, 200);
    fixture.rig.advance_clock(Duration::from_secs(1));
    let refused = fixture.rest().query("p", sql, &[]).await;
    assert_eq!(refused.status, 400);
    assert!(refused.body["message"].as_str().unwrap().contains("limit of the test rig"), "{}", refused.body);
    fixture.rig.stop_clock_at(7_000_000);
    fixture.create("p", "a", json!({})).await;
    let selected = fixture.rest().query("p", "SELECT c._etag, c._ts FROM c", &[]).await;
    assert_eq!(selected.body["Documents"][0]["_ts"], 7_000, "{}", selected.body);
}

#[tokio::test]
async fn a_document_expires_for_reads_queries_and_writes() {
    let fixture = fixture(TimeToLive::NoDefault).await;
    fixture.create("p", "short", json!({ "ttl": 10 })).await;
    fixture.create("p", "long", json!({ "ttl": 1000 })).await;
    fixture.create("p", "for ever", json!({})).await;
    fixture.rig.advance_clock(Duration::from_secs(8));
    assert_eq!(ids(&fixture, "p").await, ["for ever", "long", "short"]);
    fixture.rig.advance_clock(Duration::from_secs(3));
    assert_eq!(ids(&fixture, "p").await, ["for ever", "long"]);
    assert_eq!(fixture.read("p", "short").await, Err(404));
    fixture.create("p", "short", json!({ "again": true })).await;
    fixture.rig.advance_clock(Duration::from_secs(10_000));
    assert_eq!(ids(&fixture, "p").await, ["for ever", "short"], "the new document has no time to live");
}

#[tokio::test]
async fn every_write_starts_the_time_to_live_again() {
    let fixture = fixture(TimeToLive::NoDefault).await;
    let with_ttl = |id: &str| json!({ "id": id, "instanceId": "p", "ttl": 10 });
    for id in ["replaced", "kept for ever", "in a batch", "left alone"] {
        fixture.create("p", id, json!({ "ttl": 10 })).await;
    }
    fixture.rig.advance_clock(Duration::from_secs(8));
    fixture.container.replace_item("p", "replaced", with_ttl("replaced"), None).await.unwrap();
    fixture.container.upsert_item("p", "kept for ever", document("p", "kept for ever"), None).await.unwrap();
    let batch = TransactionalBatch::new("p").upsert_item(with_ttl("in a batch"), None).unwrap();
    fixture.container.execute_transactional_batch(batch, None).await.unwrap();
    fixture.rig.advance_clock(Duration::from_secs(8));
    assert_eq!(ids(&fixture, "p").await, ["in a batch", "kept for ever", "replaced"]);
    fixture.rig.advance_clock(Duration::from_secs(8));
    assert_eq!(ids(&fixture, "p").await, ["kept for ever"]);
}

#[tokio::test]
async fn a_failed_batch_prolongs_nothing() {
    let fixture = fixture(TimeToLive::NoDefault).await;
    fixture.create("p", "a", json!({ "ttl": 10 })).await;
    fixture.rig.advance_clock(Duration::from_secs(8));
    let batch =
        TransactionalBatch::new("p").upsert_item(json!({ "id": "a", "instanceId": "p", "ttl": 1000 }), None);
    let batch = batch.unwrap().delete_item("none", None);
    fixture.container.execute_transactional_batch(batch, None).await.unwrap();
    fixture.rig.advance_clock(Duration::from_secs(8));
    assert_eq!(fixture.read("p", "a").await, Err(404));
}

#[tokio::test]
async fn the_default_of_the_container_holds_for_documents_without_their_own() {
    let fixture = fixture(TimeToLive::Seconds(60)).await;
    fixture.create("p", "default", json!({})).await;
    fixture.create("p", "for ever", json!({ "ttl": -1 })).await;
    fixture.create("p", "longer", json!({ "ttl": 100 })).await;
    fixture.rig.advance_clock(Duration::from_secs(61));
    assert_eq!(ids(&fixture, "p").await, ["for ever", "longer"]);
}

#[tokio::test]
async fn a_container_without_a_default_ignores_the_time_to_live_of_documents() {
    let fixture = fixture(TimeToLive::Forever).await;
    fixture.create("p", "a", json!({ "ttl": 1 })).await;
    fixture.rig.advance_clock(Duration::from_secs(100));
    assert_eq!(ids(&fixture, "p").await, ["a"]);
}

#[tokio::test]
async fn an_expired_document_does_not_answer_if_match() {
    let fixture = fixture(TimeToLive::NoDefault).await;
    fixture.create("p", "a", json!({ "ttl": 10 })).await;
    fixture.rig.advance_clock(Duration::from_secs(11));
    let refused = fixture.container.replace_item("p", "a", document("p", "a"), None).await.unwrap_err();
    assert_eq!(code(&refused), 404);
}
