//! Point operations: the emulator's, unchanged by the rig.

use azure_core::http::Etag;
use azure_data_cosmos::options::{ItemWriteOptions, Precondition};
use serde_json::json;

use crate::kit::{Fixture, code, document};

fn if_match(etag: &Etag) -> Option<ItemWriteOptions> {
    Some(ItemWriteOptions::default().with_precondition(Precondition::IfMatch(etag.clone())))
}

#[tokio::test]
async fn if_match_fences_replace_and_delete() {
    let Fixture { container, .. } = &Fixture::new().await;
    let created = container.create_item("p", "a", document("p", "a"), None).await.unwrap();
    let first = created.headers().etag().cloned().unwrap();
    let replacement = json!({ "id": "a", "instanceId": "p", "n": 2 });
    let replaced = container.replace_item("p", "a", &replacement, if_match(&first)).await.unwrap();
    let second = replaced.headers().etag().cloned().unwrap();
    assert_ne!(first, second);
    let stale = container.replace_item("p", "a", document("p", "a"), if_match(&first)).await.unwrap_err();
    assert_eq!(code(&stale), 412);
    assert_eq!(code(&container.delete_item("p", "a", if_match(&first)).await.unwrap_err()), 412);
    container.delete_item("p", "a", if_match(&second)).await.unwrap();
    assert_eq!(code(&container.delete_item("p", "a", None).await.unwrap_err()), 404);
}

#[tokio::test]
async fn ids_are_unique_within_a_partition() {
    let fixture = Fixture::new().await;
    fixture.create("p", "a", json!({ "n": 1 })).await;
    fixture.create("q", "a", json!({ "n": 2 })).await;
    let twice = fixture.container.create_item("p", "a", document("p", "a"), None).await.unwrap_err();
    assert_eq!(code(&twice), 409);
    assert_eq!(fixture.read("p", "a").await.unwrap()["n"], 1);
    assert_eq!(fixture.read("q", "a").await.unwrap()["n"], 2);
    assert_eq!(fixture.read("p", "b").await, Err(404));
    assert_eq!(fixture.read("r", "a").await, Err(404));
}

#[tokio::test]
async fn one_of_sixteen_writers_with_one_etag_wins() {
    let Fixture { container, .. } = &Fixture::new().await;
    let created = container.create_item("p", "a", document("p", "a"), None).await.unwrap();
    let etag = created.headers().etag().cloned().unwrap();
    let write = |n: u32| {
        let etag = etag.clone();
        async move {
            let replacement = json!({ "id": "a", "instanceId": "p", "n": n });
            container
                .replace_item("p", "a", &replacement, if_match(&etag))
                .await
                .map_err(|error| code(&error))
        }
    };
    let results = futures::future::join_all((0..16).map(write)).await;
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
    assert_eq!(results.iter().filter(|result| matches!(result, Err(412))).count(), 15);
}

#[tokio::test]
async fn ids_and_keys_of_every_kind_round_trip() {
    let fixture = Fixture::new().await;
    let key = "inst \"q\" é ü/#?\\ 日本";
    for id in ["inst:history:1:2", "a b+c", "é日本", "x%y", "a%2Fb", "~a.b"] {
        fixture.create(key, id, json!({ "n": 9_007_199_254_740_991_u64, "f": 1.5 })).await;
        let read = fixture.read(key, id).await.unwrap();
        assert_eq!((&read["id"], &read["instanceId"]), (&json!(id), &json!(key)));
        assert_eq!((&read["n"], &read["f"]), (&json!(9_007_199_254_740_991_u64), &json!(1.5)));
    }
    let records = fixture.rig.recorded();
    assert!(
        records.iter().all(|record| record.partition.as_deref() == Some(key)),
        "the recorder decodes the key"
    );
}

#[tokio::test]
async fn upsert_creates_then_replaces() {
    let Fixture { container, .. } = &Fixture::new().await;
    let first = container.upsert_item("p", "a", document("p", "a"), None).await.unwrap();
    let second = container.upsert_item("p", "a", document("p", "a"), None).await.unwrap();
    assert_eq!(
        (u16::from(first.status().status_code()), u16::from(second.status().status_code())),
        (201, 200)
    );
    let etag = first.headers().etag().cloned().unwrap();
    let stale = container.upsert_item("p", "a", document("p", "a"), if_match(&etag)).await.unwrap_err();
    assert_eq!(code(&stale), 412);
}

#[tokio::test]
async fn a_document_over_two_megabytes_is_refused() {
    let Fixture { container, .. } = &Fixture::new().await;
    let sized = |id: &str, bytes: usize| json!({ "id": id, "instanceId": "p", "d": "x".repeat(bytes) });
    container.create_item("p", "fits", sized("fits", 1_990_000), None).await.unwrap();
    let refused = container.create_item("p", "large", sized("large", 2_100_000), None).await.unwrap_err();
    assert_eq!(code(&refused), 413);
}

#[tokio::test]
async fn requests_for_missing_containers_are_not_found() {
    let fixture = Fixture::new().await;
    let path = "/dbs/d/colls/none/docs/a";
    let answer = fixture.rest().send("GET", path, &[crate::kit::key("p")], None).await.unwrap();
    assert_eq!(answer.status, 404);
}
