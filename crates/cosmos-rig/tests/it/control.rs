//! Control from another process, and the program that serves a rig.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use outlast_cosmos_rig::{Fault, Kind, Record, Totals};
use serde_json::{Value, json};

use crate::kit::{Answer, Fixture, Rest, document};

async fn control(rest: Rest<'_>, method: &str, route: &str, body: Value) -> Answer {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    rest.send_raw(method, &format!("/__rig/{route}"), &[], body).await.unwrap()
}

#[tokio::test]
async fn faults_clock_and_records_are_controlled_by_http() {
    let fixture = Fixture::new().await;
    let rest = fixture.rest();
    let fault = json!(Fault::on(Kind::Create).nth(2).status(503));
    assert_eq!(control(rest, "POST", "faults", fault).await.status, 200);
    let mut statuses = Vec::new();
    for n in 0..3 {
        statuses.push(rest.create("p", document("p", &format!("{n}"))).await.status);
    }
    assert_eq!(statuses, [201, 503, 201]);

    let records = control(rest, "GET", "records", Value::Null).await.body;
    let records: Vec<Record> = serde_json::from_value(records).unwrap();
    assert_eq!(records.iter().map(|record| record.status).collect::<Vec<_>>(), [201, 503, 201]);
    let totals: Totals =
        serde_json::from_value(control(rest, "GET", "totals", Value::Null).await.body).unwrap();
    assert_eq!((totals.by_kind[&Kind::Create], totals.documents_written), (3, 2));
    control(rest, "DELETE", "records", Value::Null).await;
    assert_eq!(fixture.rig.totals().requests, 0, "control is not recorded");

    control(rest, "POST", "clock", json!({ "stop_at_ms": 7000 })).await;
    control(rest, "POST", "clock", json!({ "advance_ms": 1000 })).await;
    assert_eq!(rest.create("p", document("p", "timed")).await.body["_ts"], 8);
    control(rest, "POST", "clock", json!({ "shift_ms": 0 })).await;
    assert!(fixture.rig.now_ms() > 1_000_000_000_000);

    control(rest, "POST", "faults", json!(Fault::any().always().status(500))).await;
    assert_eq!(rest.read("p", "timed").await.status, 500);
    control(rest, "DELETE", "faults", Value::Null).await;
    assert_eq!(rest.read("p", "timed").await.status, 200);
    assert_eq!(control(rest, "POST", "faults", json!({ "kind": "no such kind" })).await.status, 400);
    assert_eq!(control(rest, "POST", "clock", json!({ "backwards": 1 })).await.status, 400);
    assert_eq!(control(rest, "GET", "nothing", Value::Null).await.status, 404);
}

#[tokio::test]
async fn partitions_are_copied_under_new_keys() {
    let fixture = Fixture::new().await;
    let rest = fixture.rest();
    for (partition, id) in [("case-1", "a"), ("case-1", "b"), ("other", "a")] {
        rest.create(partition, document(partition, id)).await;
    }
    fixture.rig.take_recorded();
    let asked =
        json!({ "database": "d", "container": "c", "key": "instanceId", "prefix": "case-", "copies": 3 });
    let copied = control(rest, "POST", "copies", asked).await;
    assert_eq!((copied.status, &copied.body["created"]), (200, &json!(6)));
    assert_eq!(fixture.rig.totals().requests, 0, "copies are not recorded");
    let found = rest.read("case-1-3", "b").await;
    assert_eq!((found.status, &found.body["instanceId"]), (200, &json!("case-1-3")));
    assert_eq!(rest.read("other-1", "a").await.status, 404);
    assert_eq!(control(rest, "POST", "copies", json!({})).await.status, 400);
}

/// Starts the program, and reads the variables that it prints.
fn serve(arguments: &[&str]) -> (Child, String, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_outlast-cosmos-rig"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut variable = |name: &str| {
        let line = lines.next().unwrap().unwrap();
        line.strip_prefix(name).unwrap_or_else(|| panic!("{line}")).to_string()
    };
    let (endpoint, key) = (variable("COSMOS_ENDPOINT="), variable("COSMOS_KEY="));
    (child, endpoint, key)
}

#[tokio::test]
async fn the_program_serves_until_its_input_ends() {
    let (mut child, endpoint, key) = serve(&["--totals-only"]);
    let rest = Rest { endpoint: &endpoint, key: &key };
    assert_eq!(rest.send("POST", "/dbs", &[], Some(json!({ "id": "d" }))).await.unwrap().status, 201);
    let totals: Totals =
        serde_json::from_value(control(rest, "GET", "totals", Value::Null).await.body).unwrap();
    assert_eq!(totals.by_kind[&Kind::Database], 1);
    assert_eq!(child.try_wait().unwrap(), None);
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    assert!(rest.send("GET", "/", &[], None).await.is_err());
}

#[test]
fn the_program_refuses_options_that_it_does_not_know() {
    let output = Command::new(env!("CARGO_BIN_EXE_outlast-cosmos-rig")).arg("--nonsense").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--nonsense"));
}
