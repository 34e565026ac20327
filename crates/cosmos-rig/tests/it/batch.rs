//! Batches: the emulator's, unchanged by the rig.

use azure_data_cosmos::TransactionalBatch;
use azure_data_cosmos::options::{BatchReadOptions, BatchReplaceOptions, Precondition};
use serde_json::{Value, json};

use outlast_cosmos_rig::RigOptions;

use crate::kit::{Fixture, code, document, properties};

/// The status of a batch, and of its operations.
async fn run(fixture: &Fixture, batch: TransactionalBatch) -> (u16, Vec<u16>) {
    let response = fixture.container.execute_transactional_batch(batch, None).await.unwrap();
    let status = u16::from(response.status().status_code());
    let model = response.into_model().unwrap();
    (status, model.results().iter().map(|result| result.status_code()).collect())
}

fn replace_if_match(etag: &str) -> Option<BatchReplaceOptions> {
    Some(BatchReplaceOptions::default().with_precondition(Precondition::IfMatch(etag.to_string().into())))
}

#[tokio::test]
async fn a_failed_batch_is_207_and_changes_nothing() {
    let fixture = Fixture::new().await;
    fixture.create("p", "i", json!({ "n": 1 })).await;
    let batch = TransactionalBatch::new("p")
        .create_item(document("p", "m"))
        .unwrap()
        .replace_item("i", json!({ "id": "i", "instanceId": "p", "n": 2 }), replace_if_match("\"stale\""))
        .unwrap()
        .create_item(document("p", "o"))
        .unwrap();
    assert_eq!(run(&fixture, batch).await, (207, vec![424, 412, 424]));
    assert_eq!(fixture.read("p", "m").await, Err(404));
    assert_eq!(fixture.read("p", "i").await.unwrap()["n"], 1);
}

#[tokio::test]
async fn a_batch_applies_all_operations() {
    let fixture = Fixture::new().await;
    fixture.create("p", "i", json!({ "n": 1 })).await;
    fixture.create("p", "old", json!({})).await;
    let etag = fixture.read("p", "i").await.unwrap()["_etag"].as_str().unwrap().to_string();
    let batch = TransactionalBatch::new("p")
        .create_item(document("p", "m"))
        .unwrap()
        .upsert_item(document("p", "g"), None)
        .unwrap()
        .replace_item("i", json!({ "id": "i", "instanceId": "p", "n": 2 }), replace_if_match(&etag))
        .unwrap()
        .read_item("i", None)
        .delete_item("old", None);
    assert_eq!(run(&fixture, batch).await, (200, vec![201, 201, 200, 200, 204]));
    assert_eq!(fixture.read("p", "i").await.unwrap()["n"], 2);
    assert_eq!(fixture.read("p", "old").await, Err(404));
}

/// A batch that creates a document if `i` has this version.
fn guarded(etag: &str, id: &str) -> TransactionalBatch {
    let guard = BatchReadOptions::default().with_precondition(Precondition::IfMatch(etag.to_string().into()));
    TransactionalBatch::new("p").read_item("i", Some(guard)).create_item(document("p", id)).unwrap()
}

#[tokio::test]
async fn a_rig_can_ignore_the_condition_of_a_read() {
    let options = RigOptions { guards_reads: false, ..RigOptions::default() };
    let fixture = Fixture::with(options, properties()).await;
    fixture.create("p", "i", json!({ "n": 1 })).await;
    assert_eq!(run(&fixture, guarded("\"stale\"", "a")).await, (200, vec![200, 201]));
    // Conditions of other operations count.
    let batch = TransactionalBatch::new("p").replace_item(
        "i",
        json!({ "id": "i", "instanceId": "p", "n": 2 }),
        replace_if_match("\"stale\""),
    );
    assert_eq!(run(&fixture, batch.unwrap()).await, (207, vec![412]));
}

#[tokio::test]
async fn if_match_on_a_read_guards_the_batch() {
    let fixture = Fixture::new().await;
    fixture.create("p", "i", json!({})).await;
    let etag = fixture.read("p", "i").await.unwrap()["_etag"].as_str().unwrap().to_string();
    assert_eq!(run(&fixture, guarded(&etag, "a")).await, (200, vec![200, 201]));
    assert_eq!(run(&fixture, guarded("\"stale\"", "b")).await, (207, vec![412, 424]));
    assert_eq!(fixture.read("p", "b").await, Err(404));
}

#[tokio::test]
async fn conflicts_within_and_before_a_batch_undo_it() {
    let fixture = Fixture::new().await;
    fixture.create("p", "i", json!({ "n": 1 })).await;
    let before = fixture.read("p", "i").await.unwrap();
    let twice = TransactionalBatch::new("p").create_item(document("p", "a")).unwrap();
    let twice = twice.create_item(document("p", "a")).unwrap();
    assert_eq!(run(&fixture, twice).await, (207, vec![424, 409]));
    let missing =
        TransactionalBatch::new("p").upsert_item(json!({ "id": "i", "instanceId": "p", "n": 9 }), None);
    let missing = missing.unwrap().delete_item("none", None);
    assert_eq!(run(&fixture, missing).await, (207, vec![424, 404]));
    assert_eq!(fixture.read("p", "i").await.unwrap(), before, "the ETag is the old one too");
    assert_eq!(fixture.read("p", "a").await, Err(404));
}

#[tokio::test]
async fn a_batch_has_at_most_100_operations_and_2_megabytes() {
    let fixture = Fixture::new().await;
    let creates = |prefix: &str, count: usize, bytes: usize| {
        (0..count).fold(TransactionalBatch::new("p"), |batch, n| {
            let id = format!("{prefix}{n}");
            batch.create_item(json!({ "id": id, "instanceId": "p", "d": "x".repeat(bytes) })).unwrap()
        })
    };
    let (status, results) = run(&fixture, creates("a", 100, 1)).await;
    assert_eq!((status, results.len()), (200, 100));
    let too_many =
        fixture.container.execute_transactional_batch(creates("b", 101, 1), None).await.unwrap_err();
    assert_eq!(code(&too_many), 400);
    let too_large =
        fixture.container.execute_transactional_batch(creates("c", 8, 300_000), None).await.unwrap_err();
    assert_eq!(code(&too_large), 413);
    assert_eq!((fixture.read("p", "b0").await, fixture.read("p", "c0").await), (Err(404), Err(404)));
}

#[tokio::test]
async fn a_batch_stays_in_its_partition() {
    let fixture = Fixture::new().await;
    let operations = json!([
        { "operationType": "Create", "resourceBody": document("p", "a") },
        { "operationType": "Create", "resourceBody": document("q", "b") },
    ]);
    assert_eq!(fixture.rest().batch("p", operations).await.status, 400);
    assert_eq!(fixture.rest().read("p", "a").await.status, 404);
}

#[tokio::test]
async fn concurrent_batches_lose_no_update() {
    let fixture = Fixture::new().await;
    fixture.create("p", "i", json!({ "n": 0 })).await;
    let fixture = &fixture;
    let writer = |writer: usize| async move {
        let mut won = 0_u64;
        for attempt in 0..20 {
            let read = fixture.read("p", "i").await.unwrap();
            let next = json!({ "id": "i", "instanceId": "p", "n": read["n"].as_u64().unwrap() + 1 });
            let batch = TransactionalBatch::new("p")
                .replace_item("i", next, replace_if_match(read["_etag"].as_str().unwrap()))
                .unwrap()
                .create_item(document("p", &format!("{writer}-{attempt}")))
                .unwrap();
            match run(fixture, batch).await {
                (200, _) => won += 1,
                (207, results) => assert_eq!(results, [412, 424]),
                other => panic!("{other:?}"),
            }
        }
        won
    };
    let won: u64 = futures::future::join_all((0..6).map(writer)).await.into_iter().sum();
    let stored: Value = fixture.read("p", "i").await.unwrap();
    assert_eq!(stored["n"], json!(won));
    let counted = fixture.rest().query("p", "SELECT VALUE COUNT(1) FROM c", &[]).await;
    assert_eq!(counted.body["Documents"], json!([won + 1]), "one document per commit, and the counter");
}
