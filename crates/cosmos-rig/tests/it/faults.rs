//! Faults, addressed by operation and ordinal.

use std::time::Duration;

use azure_data_cosmos::TransactionalBatch;
use azure_data_cosmos::options::{BatchOptions, ItemWriteOptions};
use outlast_cosmos_rig::{Fault, Kind};
use serde_json::json;

use crate::kit::{Fixture, code, document, unrepeated};

fn once() -> Option<ItemWriteOptions> {
    Some(ItemWriteOptions::default().with_operation_options(unrepeated()))
}

#[tokio::test]
async fn a_fault_before_the_execution_applies_nothing_and_one_after_applies() {
    let fixture = Fixture::new().await;
    for status in [400, 403, 404, 408, 409, 410, 412, 429, 449, 500, 503] {
        for after in [false, true] {
            let fault = Fault::on(Kind::Create).status(status);
            let fault = fixture.rig.fault(if after { fault.after() } else { fault.before() });
            let id = format!("{status}-{after}");
            let answer = fixture.rest().create("p", document("p", &id)).await;
            assert_eq!((answer.status, fault.struck()), (status, 1));
            let stored = fixture.rest().read("p", &id).await.status;
            assert_eq!(stored, if after { 200 } else { 404 }, "{status} {after}");
            let record = &fixture.rig.take_recorded()[0];
            assert_eq!((record.status, record.faulted, record.executed), (status, true, after));
        }
    }
}

#[tokio::test]
async fn a_fault_strikes_the_ordinals_of_its_operation_only() {
    let fixture = Fixture::new().await;
    let fault = fixture.rig.fault(Fault::on(Kind::Create).partition("p").nth(2).times(2).status(503));
    let mut statuses = Vec::new();
    for n in 0..5 {
        fixture.rest().create("q", document("q", &format!("{n}"))).await;
        fixture.rest().read("p", "0").await;
        statuses.push(fixture.rest().create("p", document("p", &format!("{n}"))).await.status);
    }
    assert_eq!(statuses, [201, 503, 503, 201, 201]);
    assert_eq!((fault.counted(), fault.struck()), (5, 2));
}

#[tokio::test]
async fn a_fault_finds_documents_inside_batches() {
    let fixture = Fixture::new().await;
    let fault = fixture.rig.fault(Fault::on(Kind::Batch).id("i").always().status(503));
    let create = |id: &str| json!([{ "operationType": "Create", "resourceBody": document("p", id) }]);
    assert_eq!(fixture.rest().batch("p", create("m")).await.status, 200);
    assert_eq!(fixture.rest().batch("p", create("i")).await.status, 503);
    let delete = json!([{ "operationType": "Delete", "id": "m" }, { "operationType": "Delete", "id": "i" }]);
    assert_eq!(fixture.rest().batch("p", delete.clone()).await.status, 503);
    fault.remove();
    assert_eq!(fixture.rest().batch("p", delete).await.status, 207);
}

#[tokio::test]
async fn any_counts_operations_on_documents_and_no_metadata() {
    let fixture = Fixture::new().await;
    let fault = fixture.rig.fault(Fault::any().nth(u64::MAX).status(500));
    assert_eq!(fixture.rest().send("GET", "/dbs/d/colls/c", &[], None).await.unwrap().status, 200);
    assert_eq!(fixture.rest().send("GET", "/", &[], None).await.unwrap().status, 200);
    assert_eq!(fault.counted(), 0);
    fixture.rest().create("p", document("p", "a")).await;
    fixture.rest().read("p", "a").await;
    assert_eq!((fault.counted(), fault.struck()), (2, 0));
}

#[tokio::test]
async fn the_sdk_repeats_a_create_that_was_applied_and_reports_409() {
    let fixture = Fixture::new().await;
    for status in [408, 500, 503] {
        let fault = fixture.rig.fault(Fault::on(Kind::Create).after().status(status));
        let id = format!("a{status}");
        let result = fixture.container.create_item("p", &id, document("p", &id), None).await;
        assert_eq!((result.map_err(|error| code(&error)).err(), fault.struck()), (Some(409), 1), "{status}");
        let records = fixture.rig.take_recorded();
        let seen: Vec<u16> =
            records.iter().filter(|record| record.kind == Kind::Create).map(|r| r.status).collect();
        assert_eq!(seen, [status, 409]);
        assert!(fixture.read("p", &id).await.is_ok(), "applied by the first attempt");
        fixture.rig.take_recorded();
    }
}

#[tokio::test]
async fn the_sdk_repeats_a_batch_that_was_applied_and_reports_207() {
    let fixture = Fixture::new().await;
    for status in [408, 449, 500, 503] {
        let fault = fixture.rig.fault(Fault::on(Kind::Batch).after().status(status));
        let id = format!("a{status}");
        let batch = TransactionalBatch::new("p").create_item(document("p", &id)).unwrap();
        let batch = batch.create_item(document("p", &format!("b{status}"))).unwrap();
        let response = fixture.container.execute_transactional_batch(batch, None).await.unwrap();
        assert_eq!(response.diagnostics().requests().len(), 2, "{status}");
        let statuses: Vec<u16> = {
            let model = response.into_model().unwrap();
            model.results().iter().map(|result| result.status_code()).collect()
        };
        assert_eq!((statuses, fault.struck()), (vec![409, 424], 1), "{status}");
        assert!(fixture.read("p", &id).await.is_ok());
    }
}

#[tokio::test]
async fn without_failover_retries_the_sdk_reports_the_fault_itself() {
    let fixture = Fixture::new().await;
    fixture.rig.fault(Fault::on(Kind::Batch).after().status(503));
    let batch = TransactionalBatch::new("p").create_item(document("p", "a")).unwrap();
    let options = BatchOptions::default().with_operation_options(unrepeated());
    let error = fixture.container.execute_transactional_batch(batch, Some(options)).await.unwrap_err();
    assert_eq!(code(&error), 503);
    assert!(fixture.read("p", "a").await.is_ok());
    // 449 is repeated all the same.
    let retry_with = fixture.rig.fault(Fault::on(Kind::Create).before().status(449));
    fixture.container.create_item("p", "b", document("p", "b"), once()).await.unwrap();
    assert_eq!((retry_with.counted(), retry_with.struck()), (2, 1));
}

#[tokio::test]
async fn a_throttled_request_is_repeated_by_the_sdk() {
    let fixture = Fixture::new().await;
    let fault =
        fixture.rig.fault(Fault::on(Kind::Create).times(2).status(429).retry_after(Duration::from_millis(1)));
    fixture.container.create_item("p", "a", document("p", "a"), None).await.unwrap();
    assert_eq!((fault.counted(), fault.struck()), (3, 2));
}

#[tokio::test]
async fn a_database_that_throttles_everything_ends_in_429() {
    let fixture = Fixture::new().await;
    let fault = fixture.rig.fault(Fault::any().always().status(429).retry_after(Duration::from_millis(1)));
    let result = fixture.container.create_item("p", "a", document("p", "a"), None).await;
    assert_eq!(code(&result.unwrap_err()), 429);
    assert!(fault.struck() > 1);
    fixture.rig.clear_faults();
    assert_eq!(fixture.read("p", "a").await, Err(404));
}

#[tokio::test]
async fn a_dropped_connection_ends_without_an_answer_on_http_1() {
    let fixture = Fixture::new().await;
    for (after, stored) in [(false, 404), (true, 200)] {
        for whole in [false, true] {
            let fault = Fault::on(Kind::Create);
            let fault = if after { fault.after() } else { fault };
            let fault = fixture.rig.fault(if whole { fault.drop_connection() } else { fault.reset() });
            let id = format!("{after}-{whole}");
            let path = "/dbs/d/colls/c/docs";
            let sent =
                fixture.rest().send("POST", path, &[crate::kit::key("p")], Some(document("p", &id))).await;
            assert!(sent.is_err(), "{id}: {:?}", sent.map(|answer| answer.status));
            assert_eq!((fault.struck(), fixture.rest().read("p", &id).await.status), (1, stored), "{id}");
        }
    }
}

#[tokio::test]
async fn a_dropped_connection_is_repeated_by_the_sdk_on_http_2() {
    let fixture = Fixture::new().await;
    for (after, whole) in [(false, false), (false, true), (true, false), (true, true)] {
        let fault = Fault::on(Kind::Create);
        let fault = if after { fault.after() } else { fault };
        let fault = fixture.rig.fault(if whole { fault.drop_connection() } else { fault.reset() });
        let id = format!("{after}-{whole}");
        fixture.rig.take_recorded();
        let result = fixture.container.create_item("p", &id, document("p", &id), None).await;
        let result = result.map(|_| ()).map_err(|error| code(&error));
        assert_eq!((result, fault.struck()), (if after { Err(409) } else { Ok(()) }, 1), "{id}");
        let records = fixture.rig.recorded();
        let creates: Vec<_> = records.iter().filter(|record| record.kind == Kind::Create).collect();
        assert!(creates.iter().all(|record| record.http == 2));
        assert_eq!((creates[0].status, creates[0].executed, creates.len()), (0, after, 2), "{id}");
    }
}

#[tokio::test]
async fn a_reset_request_leaves_the_others_on_its_connection() {
    let fixture = Fixture::new().await;
    let held = fixture.rig.fault(Fault::on(Kind::Create).id("held").hold());
    let create = fixture.container.create_item("p", "held", document("p", "held"), once());
    let meanwhile = async {
        held.wait_struck(1).await;
        let reset = fixture.rig.fault(Fault::on(Kind::Create).id("reset").reset());
        fixture.container.create_item("p", "reset", document("p", "reset"), None).await.unwrap();
        assert_eq!((reset.struck(), reset.counted()), (1, 2), "the SDK repeats it");
        held.release();
    };
    let (created, ()) = futures::join!(create, meanwhile);
    created.unwrap();
    assert_eq!(held.counted(), 1, "the SDK did not have to repeat the held request");
}

#[tokio::test]
async fn a_request_is_held_until_it_is_released() {
    let fixture = Fixture::new().await;
    for after in [false, true] {
        let id = format!("a{after}");
        let fault = Fault::on(Kind::Create).id(&id).hold();
        let fault = fixture.rig.fault(if after { fault.after() } else { fault });
        let create = fixture.container.create_item("p", &id, document("p", &id), None);
        let look = async {
            fault.wait_struck(1).await;
            let stored = fixture.read("p", &id).await.is_ok();
            fault.release();
            stored
        };
        let (created, stored_meanwhile) = futures::join!(create, look);
        created.unwrap();
        assert_eq!(stored_meanwhile, after);
    }
}

#[tokio::test]
async fn cleared_faults_release_held_requests() {
    let fixture = Fixture::new().await;
    let fault = fixture.rig.fault(Fault::on(Kind::Create).hold().status(503));
    let path = "/dbs/d/colls/c/docs";
    let rest = fixture.rest();
    let create = rest.create("p", document("p", "a"));
    let clear = async {
        fault.wait_struck(1).await;
        fixture.rig.clear_faults();
    };
    let (answer, ()) = futures::join!(create, clear);
    assert_eq!(answer.status, 503);
    assert_eq!(fixture.rest().send("GET", path, &[crate::kit::key("p")], None).await.unwrap().ids(), [""; 0]);
}

#[tokio::test]
async fn a_delayed_request_is_answered_late() {
    let fixture = Fixture::new().await;
    let delay = Duration::from_millis(80);
    let fault = fixture.rig.fault(Fault::on(Kind::Read).delay(delay));
    let start = tokio::time::Instant::now();
    assert_eq!(fixture.rest().read("p", "a").await.status, 404);
    assert!(start.elapsed() >= delay && fault.struck() == 1);
}
