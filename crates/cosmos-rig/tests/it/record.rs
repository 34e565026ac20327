//! The recorder and the model of charges.

use azure_data_cosmos::options::ChangeFeedStartFrom;
use azure_data_cosmos::{FeedScope, TransactionalBatch};
use futures::StreamExt;
use outlast_cosmos_rig::{ChargeModel, Kind, Record, RigOptions, Totals};
use serde_json::{Value, json};

use crate::kit::{Fixture, document, properties};

fn of_kind(records: &[Record], kind: Kind) -> &Record {
    records.iter().find(|record| record.kind == kind).unwrap_or_else(|| panic!("no {kind:?}"))
}

/// One operation of each kind, through the SDK.
async fn run(fixture: &Fixture) {
    fixture.create("p", "a", json!({})).await;
    fixture.container.upsert_item("p", "a", document("p", "a"), None).await.unwrap();
    fixture.container.replace_item("p", "a", document("p", "a"), None).await.unwrap();
    fixture.read("p", "a").await.unwrap();
    let batch = TransactionalBatch::new("p").create_item(document("p", "b")).unwrap().read_item("a", None);
    fixture.container.execute_transactional_batch(batch, None).await.unwrap();
    let scope = || FeedScope::partition("p");
    let items = fixture.container.query_items::<Value>("SELECT * FROM c", scope(), None).await.unwrap();
    assert_eq!(items.count().await, 2);
    let start = ChangeFeedStartFrom::Beginning;
    let mut feed = fixture.container.query_change_feed::<Value>(scope(), start, None).await.unwrap();
    assert_eq!(feed.next().await.unwrap().unwrap().items().len(), 2);
    fixture.container.delete_item("p", "a", None).await.unwrap();
    assert_eq!(fixture.read("p", "a").await, Err(404));
}

#[tokio::test]
async fn every_operation_is_recorded_with_its_documents_and_charges() {
    let fixture = Fixture::new().await;
    run(&fixture).await;
    let records = fixture.rig.recorded();
    assert!(
        records.iter().all(|record| record.http == 2 && record.executed && !record.faulted),
        "{records:#?}"
    );
    let model = ChargeModel::default();
    let expected = [
        (Kind::Create, 201, 0, 1, model.create),
        (Kind::Upsert, 200, 0, 1, model.replace),
        (Kind::Replace, 200, 0, 1, model.replace),
        (Kind::Read, 200, 1, 0, model.read),
        (Kind::Batch, 200, 1, 1, model.create + model.read),
        (Kind::Query, 200, 2, 0, model.query + 2.0 * model.row),
        (Kind::ChangeFeed, 200, 2, 0, model.feed + 2.0 * model.row),
        (Kind::Delete, 204, 0, 1, model.delete),
    ];
    for (kind, status, read, written, charge) in expected {
        let record = of_kind(&records, kind);
        assert_eq!(
            (record.status, record.documents_read, record.documents_written),
            (status, read, written),
            "{kind:?}"
        );
        assert!((record.charge - charge).abs() < 1e-9, "{kind:?} {}", record.charge);
        assert!(record.emulator_charge > 0.0, "{kind:?}");
        assert_eq!((record.partition.as_deref(), record.container.as_deref()), (Some("p"), Some("c")));
    }
    let batch = of_kind(&records, Kind::Batch);
    let operations: Vec<_> =
        batch.operations.iter().map(|one| (one.kind, one.id.as_deref(), one.status)).collect();
    assert_eq!(operations, [(Kind::Create, Some("b"), Some(201)), (Kind::Read, Some("a"), Some(200))]);
    assert_eq!(of_kind(&records, Kind::Query).query.as_deref(), Some("SELECT * FROM c"));
    assert_eq!(of_kind(&records, Kind::Replace).id.as_deref(), Some("a"));
    let missing = records.iter().rfind(|record| record.kind == Kind::Read).unwrap();
    assert_eq!((missing.status, missing.documents_read, missing.charge), (404, 0, model.refused));
}

#[tokio::test]
async fn totals_count_requests_and_operations() {
    let fixture = Fixture::new().await;
    run(&fixture).await;
    let totals = fixture.rig.totals();
    assert_eq!(totals.data_requests(), 9);
    assert_eq!(
        (totals.operations[&Kind::Create], totals.by_kind[&Kind::Create]),
        (2, 1),
        "one of them in the batch"
    );
    assert_eq!((totals.operations[&Kind::Read], totals.by_kind[&Kind::Batch]), (3, 1));
    assert_eq!((totals.documents_read, totals.documents_written), (6, 5));
    let summed = Totals::of(&fixture.rig.recorded());
    assert_eq!((summed.requests, summed.request_bytes), (totals.requests, totals.request_bytes));
    assert!(totals.request_bytes > 0 && totals.response_bytes > 0 && totals.charge > 40.0);
    fixture.rig.take_recorded();
    assert_eq!((fixture.rig.totals().requests, fixture.rig.recorded().len()), (0, 0));
}

#[tokio::test]
async fn long_runs_keep_totals_only() {
    let options = RigOptions { keeps_records: false, ..RigOptions::default() };
    let fixture = Fixture::with(options, properties()).await;
    fixture.create("p", "a", json!({})).await;
    assert_eq!(fixture.rig.recorded().len(), 0);
    assert_eq!(fixture.rig.totals().by_kind[&Kind::Create], 1);
}

#[tokio::test]
async fn http_1_and_http_2_are_served_on_one_port() {
    let fixture = Fixture::new().await;
    fixture.create("p", "a", json!({})).await;
    assert_eq!(fixture.rest().read("p", "a").await.status, 200);
    let versions: Vec<u8> =
        fixture.rig.recorded().iter().filter(|r| r.kind.is_data()).map(|r| r.http).collect();
    assert_eq!(versions, [2, 1]);
}

#[tokio::test]
async fn a_larger_document_costs_more() {
    let fixture = Fixture::new().await;
    fixture.rest().create("p", json!({ "id": "a", "instanceId": "p", "d": "x".repeat(10 * 1024) })).await;
    let charge = fixture.rig.recorded()[0].charge;
    let model = ChargeModel::default();
    assert!((charge - (model.create + 10.0 * model.write_kb)).abs() < 1e-9, "{charge}");
}
