//! Physical partitions, throughput and regions: hooks of the emulator that the rig passes on.

use azure_data_cosmos::models::ThroughputProperties;
use azure_data_cosmos::options::CreateContainerOptions;
use azure_data_cosmos::{FeedScope, Query};
use futures::StreamExt;
use outlast_cosmos_rig::{Kind, Rig, RigOptions};
use serde_json::{Value, json};

use crate::kit::{Fixture, Rest, connect, document, properties};

async fn numbers(fixture: &Fixture) -> Vec<u64> {
    let query = Query::from("SELECT * FROM c ORDER BY c.n");
    let items =
        fixture.container.query_items::<Value>(query, FeedScope::full_container(), None).await.unwrap();
    items.map(|item| item.unwrap()["n"].as_u64().unwrap()).collect().await
}

#[tokio::test]
async fn documents_are_found_after_a_split() {
    let fixture = Fixture::new().await;
    for n in 0..20 {
        fixture.create(&format!("P{n}"), "a", json!({ "n": n })).await;
    }
    assert_eq!(numbers(&fixture).await.len(), 20);
    let ranges = async || {
        let answer = fixture.rest().send("GET", "/dbs/d/colls/c/pkranges", &[], None).await.unwrap();
        answer.body["PartitionKeyRanges"].as_array().map_or(0, Vec::len)
    };
    assert_eq!(ranges().await, 4);
    for partition in 0..4 {
        assert_eq!(fixture.rig.split("d", "c", partition).await.unwrap().len(), 2);
    }
    assert_eq!(ranges().await, 8);
    assert_eq!(numbers(&fixture).await, (0..20).collect::<Vec<_>>());
    for n in 0..20 {
        assert_eq!(fixture.read(&format!("P{n}"), "a").await.unwrap()["n"], n);
    }
    assert!(fixture.rig.split("d", "c", 0).await.is_err(), "the parent is gone");
}

#[tokio::test]
async fn a_partition_refuses_requests_while_it_is_split() {
    let fixture = Fixture::new().await;
    let splits: Vec<_> = (0..4).map(|partition| fixture.rig.begin_split("d", "c", partition)).collect();
    let mut begun: Vec<_> = splits.into_iter().filter_map(Result::ok).collect();
    assert!(!begun.is_empty());
    let mut refused = 0;
    for n in 0..20 {
        let answer = fixture.rest().create(&format!("P{n}"), document(&format!("P{n}"), "a")).await;
        refused += usize::from((answer.status, answer.substatus()) == (410, Some("1007")));
    }
    assert!(refused > 0);
    for split in begun.drain(..) {
        split.complete().await.unwrap();
    }
    for n in 0..20 {
        let status = fixture.rest().create(&format!("P{n}"), document(&format!("P{n}"), "b")).await.status;
        assert_eq!(status, 201);
    }
}

#[tokio::test]
async fn a_container_with_a_throughput_is_throttled() {
    let rig = Rig::start_with(RigOptions { throttles: true, ..RigOptions::default() }).await.unwrap();
    let client = connect(&rig, rig.key()).await.unwrap();
    client.create_database("d", None).await.unwrap();
    let throughput = CreateContainerOptions::default().with_throughput(ThroughputProperties::manual(400));
    client.database_client("d").create_container(properties(), Some(throughput)).await.unwrap();
    let rest = Rest { endpoint: rig.endpoint(), key: rig.key() };
    let mut throttled = 0;
    for n in 0..100 {
        let answer = rest.create("p", document("p", &format!("{n}"))).await;
        if answer.status == 429 {
            assert!(answer.header("x-ms-retry-after-ms").is_some());
            throttled += 1;
        }
    }
    assert!(throttled > 0);
    let records = rig.recorded();
    let free = records.iter().filter(|record| record.kind == Kind::Create && record.charge == 0.0).count();
    assert_eq!(free, throttled, "the model does not charge throttled requests");
}

async fn account(rig: &Rig, region: usize) -> Value {
    let rest = Rest { endpoint: &rig.endpoints()[region], key: rig.key() };
    rest.send("GET", "/", &[], None).await.unwrap().body
}

#[tokio::test]
async fn an_account_can_have_several_regions_and_write_to_all() {
    let two = || vec!["East US".to_string(), "West US".to_string()];
    let rig = Rig::start_with(RigOptions { regions: two(), ..RigOptions::default() }).await.unwrap();
    let properties = account(&rig, 0).await;
    assert_eq!(properties["readableLocations"].as_array().map(Vec::len), Some(2));
    assert_eq!(properties["writableLocations"].as_array().map(Vec::len), Some(1));
    let writes = RigOptions { regions: two(), multi_region_writes: true, ..RigOptions::default() };
    let rig = Rig::start_with(writes).await.unwrap();
    for region in 0..2 {
        assert_eq!(account(&rig, region).await["enableMultipleWriteLocations"], true);
    }
}

#[tokio::test]
async fn a_region_that_is_offline_ends_the_connection() {
    let regions = vec!["East US".to_string(), "West US".to_string()];
    let rig = Rig::start_with(RigOptions { regions, ..RigOptions::default() }).await.unwrap();
    rig.store().set_region_offline("West US").unwrap();
    let rest = Rest { endpoint: &rig.endpoints()[1], key: rig.key() };
    assert!(rest.send("GET", "/", &[], None).await.is_err());
    let properties = account(&rig, 0).await;
    assert_eq!(properties["readableLocations"].as_array().map(Vec::len), Some(1));
}
