//! Requests that Azure refuses and the emulator accepts.

use azure_data_cosmos::TransactionalBatch;
use azure_data_cosmos::models::{
    CompositeIndex, CompositeIndexOrder, CompositeIndexProperty, ContainerProperties, IndexingPolicy,
};
use outlast_cosmos_rig::RigOptions;
use serde_json::{Value, json};

use crate::kit::{Fixture, code, document, key, properties};

const CROSS: (&str, &str) = ("x-ms-documentdb-query-enablecrosspartition", "true");

#[tokio::test]
async fn ids_with_forbidden_characters_are_refused_in_binary_bodies_and_in_batches() {
    let fixture = Fixture::new().await;
    let long = "x".repeat(1024);
    for id in ["a/b", "a\\b", "a?b", "a#b", "", &long] {
        // The SDK sends this body as binary JSON.
        let refused = fixture.container.create_item("p", id, document("p", id), None).await;
        assert_eq!(refused.map_err(|error| code(&error)).err(), Some(400), "{id}");
        let refused = fixture.rest().create("p", document("p", id)).await;
        assert_eq!(refused.status, 400, "{id}");
        let batch = TransactionalBatch::new("p").create_item(document("p", "fine")).unwrap();
        let batch = batch.create_item(document("p", id)).unwrap();
        let refused = fixture.container.execute_transactional_batch(batch, None).await;
        assert_eq!(refused.map_err(|error| code(&error)).err(), Some(400), "{id}");
    }
    assert_eq!(fixture.read("p", "fine").await, Err(404));
    fixture.create("p", &"x".repeat(1023), json!({})).await;
}

#[tokio::test]
async fn a_partition_key_is_required_and_limited() {
    let fixture = Fixture::new().await;
    let path = "/dbs/d/colls/c/docs";
    let missing = fixture.rest().send("POST", path, &[], Some(document("p", "a"))).await.unwrap();
    assert_eq!((missing.status, missing.substatus()), (400, Some("1001")));
    let missing = fixture.rest().send("GET", &format!("{path}/a"), &[], None).await.unwrap();
    assert_eq!(missing.status, 400);
    let raw = [("x-ms-documentdb-partitionkey", "[\"é\"]".to_string())];
    let raw = fixture.rest().send("POST", path, &raw, Some(document("é", "a"))).await.unwrap();
    assert_eq!(raw.status, 400, "the header is not ASCII");
    let other = fixture.rest().create("q", document("p", "a")).await;
    assert_eq!(other.status, 400, "the header differs from the document");
    let long = "k".repeat(2049);
    assert_eq!(fixture.rest().create(&long, document(&long, "a")).await.status, 400);
    let fits = "k".repeat(2048);
    assert_eq!(fixture.rest().create(&fits, document(&fits, "a")).await.status, 201);
}

#[tokio::test]
async fn documents_are_checked() {
    let fixture = Fixture::new().await;
    let rest = fixture.rest();
    let nested = |levels: usize| (1..levels).fold(json!([]), |inner, _| json!([inner]));
    let mut deep = document("p", "deep");
    deep["d"] = nested(128);
    assert_eq!(rest.create("p", deep.clone()).await.status, 400, "with the document itself, 129 levels");
    let refused = fixture.container.create_item("p", "deep", &deep, None).await;
    assert_eq!(refused.map_err(|error| code(&error)).err(), Some(400));
    deep["d"] = nested(120);
    assert_eq!(rest.create("p", deep).await.status, 201);
    for (ttl, status) in
        [(json!(0), 400), (json!(-2), 400), (json!("10"), 400), (json!(1.5), 400), (json!(1), 201)]
    {
        let mut timed = document("p", &format!("ttl {ttl}").replace('"', ""));
        timed["ttl"] = ttl.clone();
        assert_eq!(rest.create("p", timed).await.status, status, "{ttl}");
    }
    assert_eq!(rest.create("p", json!({ "instanceId": "p" })).await.status, 400, "without an id");
    let other = rest
        .send("PUT", "/dbs/d/colls/c/docs/deep", &[key("p")], Some(document("p", "other")))
        .await
        .unwrap();
    assert_eq!(other.status, 400, "a replace does not change the id");
}

#[tokio::test]
async fn queries_over_partitions_must_be_asked_for_and_are_not_merged_by_the_gateway() {
    let fixture = Fixture::new().await;
    for partition in 0..5 {
        fixture.create(&format!("P{partition}"), "a", json!({ "n": partition })).await;
    }
    let rest = fixture.rest();
    assert_eq!(rest.query_with(&[], "SELECT * FROM c", &[]).await.status, 400);
    let cross = [(CROSS.0, CROSS.1.to_string())];
    assert_eq!(rest.query_with(&cross, "SELECT * FROM c WHERE c.n >= 0", &[]).await.ids().len(), 5);
    let merged = [
        "SELECT * FROM c ORDER BY c.n",
        "SELECT VALUE COUNT(1) FROM c",
        "SELECT TOP 1 * FROM c",
        "SELECT DISTINCT VALUE c.n FROM c",
        "SELECT c.n, COUNT(1) AS k FROM c GROUP BY c.n",
        "SELECT * FROM c OFFSET 1 LIMIT 1",
    ];
    for sql in merged {
        let refused = rest.query_with(&cross, sql, &[]).await;
        assert_eq!((refused.status, refused.substatus()), (400, Some("1004")), "{sql}");
        let plan: Value =
            serde_json::from_str(refused.body["additionalErrorInfo"].as_str().unwrap()).unwrap();
        assert!(plan.get("queryInfo").is_some(), "SDKs read the plan from the refusal");
    }
}

#[tokio::test]
async fn strings_in_double_quotes_are_refused_instead_of_finding_nothing() {
    let fixture = Fixture::new().await;
    fixture.create("p", "a", json!({})).await;
    let refused = fixture.rest().query("p", "SELECT * FROM c WHERE c.id = \"a\"", &[]).await;
    assert_eq!(refused.status, 400);
    assert_eq!(fixture.rest().query("p", "SELECT * FROM c WHERE c.id = 'a'", &[]).await.ids(), ["a"]);
    let brackets = fixture.rest().query("p", "SELECT * FROM c WHERE c[\"id\"] = 'a'", &[]).await;
    assert_eq!(brackets.status, 400);
    let long = format!("SELECT * FROM c WHERE c.id = '{}'", "x".repeat(512 * 1024));
    assert_eq!(fixture.rest().query("p", &long, &[]).await.status, 400);
}

fn indexed() -> ContainerProperties {
    let composite = CompositeIndex::default()
        .with_property(CompositeIndexProperty::new("/t", CompositeIndexOrder::Ascending))
        .with_property(CompositeIndexProperty::new("/at", CompositeIndexOrder::Ascending));
    let policy = IndexingPolicy::default()
        .with_included_path("/t/?")
        .with_included_path("/at/?")
        .with_excluded_path("/*")
        .with_composite_index(composite);
    properties().with_indexing_policy(policy)
}

#[tokio::test]
async fn orders_need_an_index() {
    let fixture = Fixture::with(RigOptions::default(), indexed()).await;
    fixture.create("p", "a", json!({ "t": "i", "at": 1, "d": 2 })).await;
    let cases = [
        ("SELECT * FROM c ORDER BY c.at", 200),
        ("SELECT * FROM c ORDER BY c.t, c.at", 200),
        ("SELECT * FROM c ORDER BY c.t DESC, c.at DESC", 200),
        ("SELECT * FROM c ORDER BY c.t DESC, c.at", 400),
        ("SELECT * FROM c ORDER BY c.at, c.t", 400),
        ("SELECT * FROM c ORDER BY c.d", 400),
    ];
    for (sql, status) in cases {
        assert_eq!(fixture.rest().query("p", sql, &[]).await.status, status, "{sql}");
    }
    fixture.rig.take_recorded();
    fixture.rest().query("p", "SELECT * FROM c WHERE c.t = 'i' AND c.d > 1 ORDER BY c.at", &[]).await;
    assert_eq!(fixture.rig.recorded()[0].unindexed, ["/d"]);
}

#[tokio::test]
async fn invalid_indexing_policies_are_refused() {
    let fixture = Fixture::new().await;
    let create = async |id: &str, policy: Value| {
        let key = json!({ "paths": ["/p"], "kind": "Hash", "version": 2 });
        let body = json!({ "id": id, "partitionKey": key, "indexingPolicy": policy });
        fixture.rest().send("POST", "/dbs/d/colls", &[], Some(body)).await.unwrap().status
    };
    assert_eq!(create("a", json!({ "includedPaths": [{ "path": "nope" }], "excludedPaths": [] })).await, 400);
    assert_eq!(create("b", json!({ "includedPaths": [{ "path": "/t/?" }], "excludedPaths": [] })).await, 400);
    assert_eq!(create("c2", json!({ "includedPaths": [{ "path": "/*" }] })).await, 201);
}

#[tokio::test]
async fn a_rig_that_is_not_strict_answers_as_the_emulator_does() {
    let options = RigOptions { strict: false, ..RigOptions::default() };
    let fixture = Fixture::with(options, indexed()).await;
    assert_eq!(fixture.rest().create("p", document("p", "a?b")).await.status, 201);
    assert_eq!(fixture.rest().query("p", "SELECT * FROM c ORDER BY c.d", &[]).await.status, 200);
    assert_eq!(fixture.rest().query("p", "SELECT * FROM c WHERE c.id = \"a?b\"", &[]).await.ids(), [""; 0]);
}

#[tokio::test]
async fn a_slash_at_the_end_of_a_path_is_accepted() {
    let fixture = Fixture::new().await;
    let answer = fixture.rest().send("GET", "/dbs/d/colls/c/", &[], None).await.unwrap();
    assert_eq!(answer.status, 200);
}
