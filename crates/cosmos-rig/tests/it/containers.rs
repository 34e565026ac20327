//! Databases, containers and sessions: the emulator's, unchanged by the rig.

use serde_json::{Value, json};

use crate::kit::{Answer, Fixture, document, key};

async fn send(fixture: &Fixture, method: &str, path: &str, body: Option<Value>) -> Answer {
    fixture.rest().send(method, path, &[], body).await.unwrap()
}

#[tokio::test]
async fn databases_and_containers_are_created_once_and_deleted() {
    let fixture = Fixture::new().await;
    assert_eq!(send(&fixture, "POST", "/dbs", Some(json!({ "id": "d" }))).await.status, 409);
    let policy = json!({
        "includedPaths": [{ "path": "/t/?" }, { "path": "/at/?" }],
        "excludedPaths": [{ "path": "/*" }],
        "compositeIndexes": [[{ "path": "/t", "order": "ascending" }, { "path": "/at", "order": "ascending" }]],
    });
    let container = json!({
        "id": "e",
        "partitionKey": { "paths": ["/instanceId"], "kind": "Hash", "version": 2 },
        "indexingPolicy": policy,
        "defaultTtl": -1,
    });
    assert_eq!(send(&fixture, "POST", "/dbs/d/colls", Some(container.clone())).await.status, 201);
    assert_eq!(send(&fixture, "POST", "/dbs/d/colls", Some(container)).await.status, 409);
    let read = send(&fixture, "GET", "/dbs/d/colls/e", None).await;
    assert_eq!((&read.body["indexingPolicy"], &read.body["defaultTtl"]), (&policy, &json!(-1)));
    assert_eq!(read.body["partitionKey"]["paths"], json!(["/instanceId"]));
    assert_eq!(send(&fixture, "DELETE", "/dbs/d/colls/e", None).await.status, 204);
    assert_eq!(send(&fixture, "GET", "/dbs/d/colls/e", None).await.status, 404);
    assert_eq!(send(&fixture, "DELETE", "/dbs/d", None).await.status, 204);
    assert_eq!(send(&fixture, "GET", "/dbs/d/colls/c", None).await.status, 404);
}

#[tokio::test]
async fn a_new_container_of_the_same_name_forgets_policy_and_expiry() {
    let fixture = Fixture::new().await;
    let container = |policy: Value, ttl: Value| {
        let key = json!({ "paths": ["/instanceId"], "kind": "Hash", "version": 2 });
        Some(json!({ "id": "c", "partitionKey": key, "indexingPolicy": policy, "defaultTtl": ttl }))
    };
    let narrow = json!({ "includedPaths": [{ "path": "/t/?" }], "excludedPaths": [{ "path": "/*" }] });
    send(&fixture, "DELETE", "/dbs/d/colls/c", None).await;
    assert_eq!(send(&fixture, "POST", "/dbs/d/colls", container(narrow, json!(10))).await.status, 201);
    assert_eq!(fixture.rest().query("p", "SELECT * FROM c ORDER BY c.n", &[]).await.status, 400);
    assert_eq!(fixture.rest().create("p", document("p", "a")).await.status, 201);

    send(&fixture, "DELETE", "/dbs/d/colls/c", None).await;
    let wide = json!({ "includedPaths": [{ "path": "/*" }] });
    assert_eq!(send(&fixture, "POST", "/dbs/d/colls", container(wide, json!(-1))).await.status, 201);
    assert_eq!(fixture.rest().create("p", document("p", "a")).await.status, 201);
    fixture.rig.advance_clock(std::time::Duration::from_secs(100));
    assert_eq!(fixture.rest().query("p", "SELECT * FROM c ORDER BY c.n", &[]).await.status, 200);
    assert_eq!(
        fixture.rest().read("p", "a").await.status,
        200,
        "the document of the old container would be gone"
    );
}

#[tokio::test]
async fn the_account_and_its_partitions_can_be_read() {
    let fixture = Fixture::new().await;
    let account = send(&fixture, "GET", "/", None).await;
    assert_eq!(account.body["writableLocations"][0]["databaseAccountEndpoint"], fixture.rig.endpoint());
    assert_eq!(account.body["userConsistencyPolicy"]["defaultConsistencyLevel"], "Session");
    assert_eq!(send(&fixture, "GET", "/dbs/d/colls/c/pkranges", None).await.body["_count"], 4);
}

#[tokio::test]
async fn answers_carry_etag_session_and_charge() {
    let fixture = Fixture::new().await;
    let created = fixture.rest().create("p", document("p", "a")).await;
    let etag = created.header("etag").unwrap();
    assert_eq!(created.body["_etag"], etag);
    for name in ["_ts", "_rid", "_self"] {
        assert!(created.body.get(name).is_some(), "{name}");
    }
    assert!(created.header("x-ms-request-charge").is_some());
    let path = "/dbs/d/colls/c/docs/a";
    let unchanged = [key("p"), ("if-none-match", etag.to_string())];
    assert_eq!(fixture.rest().send("GET", path, &unchanged, None).await.unwrap().status, 304);
    let session =
        [key("p"), ("x-ms-session-token", created.header("x-ms-session-token").unwrap().to_string())];
    assert_eq!(fixture.rest().send("GET", path, &session, None).await.unwrap().status, 200);
}

#[tokio::test]
async fn all_documents_of_a_partition_can_be_read_in_pages() {
    let fixture = Fixture::new().await;
    for n in 0..5 {
        fixture.rest().create("p", document("p", &format!("a{n}"))).await;
    }
    fixture.rest().create("q", document("q", "b")).await;
    let mut ids = Vec::new();
    let mut pages = 0;
    let mut continuation = String::new();
    loop {
        let headers = [key("p"), ("x-ms-max-item-count", "2".into()), ("x-ms-continuation", continuation)];
        let page = fixture.rest().send("GET", "/dbs/d/colls/c/docs", &headers, None).await.unwrap();
        ids.extend(page.ids());
        pages += 1;
        match page.header("x-ms-continuation") {
            Some(next) => continuation = next.to_string(),
            None => break,
        }
    }
    assert_eq!((ids, pages), ((0..5).map(|n| format!("a{n}")).collect(), 3));
    let garbage = [key("p"), ("x-ms-continuation", "garbage".to_string())];
    assert_eq!(fixture.rest().query_with(&garbage, "SELECT * FROM c", &[]).await.status, 400);
}

#[tokio::test]
async fn a_session_that_is_not_available_is_404_with_its_substatus() {
    let fixture = Fixture::new().await;
    let created = fixture.rest().create("p", document("p", "a")).await;
    fixture.rig.store().force_session_not_available("East US", "d", "c", "[\"p\"]").unwrap();
    let session =
        [key("p"), ("x-ms-session-token", created.header("x-ms-session-token").unwrap().to_string())];
    let refused = fixture.rest().send("GET", "/dbs/d/colls/c/docs/a", &session, None).await.unwrap();
    assert_eq!((refused.status, refused.substatus()), (404, Some("1002")));
}
