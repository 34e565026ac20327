//! The items of the queues and the activities by tag: the API, the screen and the client.

use crate::kit::Server;
use outlast::providers::memory::MemoryProvider;
use outlast::providers::{DeadLetterQueue, NodeReport, NodeTags, Provider, WorkItem};
use outlast::{Client, ProviderAdmin};
use outlast_server::Options;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);

fn activity(instance: &str, id: u64, tag: Option<&str>) -> WorkItem {
    WorkItem::ActivityExecute {
        instance: instance.to_string(),
        execution_id: 1,
        id,
        name: "Render".to_string(),
        input: "card 4711".to_string(),
        session_id: None,
        tag: tag.map(ToString::to_string),
    }
}

/// Puts activities into the queue that no runtime of the tests takes: it takes activities without a tag only.
pub(crate) async fn queue_activities(store: &dyn Provider) {
    for (id, tag) in [(2, "gpu"), (3, "gpu"), (4, "<b>eu</b>")] {
        store.enqueue_for_worker(activity("render-7", id, Some(tag))).await.unwrap();
    }
}

/// A server on a store with activities of two tags, and a node that takes one of them.
async fn server_with_tags() -> Server {
    let store = Arc::new(MemoryProvider::new());
    queue_activities(&*store).await;
    let mut node = NodeReport::new("a1");
    node.running_activities.limit = 4;
    node.tags = NodeTags { untagged: true, any: false, named: vec!["<b>eu</b>".to_string()] };
    store.announce_node(&node, MINUTE, MINUTE).await.unwrap();
    Server::on(store, Options::default(), tempfile::tempdir().unwrap()).await
}

#[tokio::test]
async fn items_of_a_queue_are_listed_in_pages_without_payloads() {
    let server = server_with_tags().await;
    let first = server.get("/api/v1/queues/activities/messages?limit=2").await;
    assert!(!first.body.contains("4711"), "{first:?}");
    let first = first.json();
    let shown = |page: &Value| -> Vec<Value> {
        page["items"].as_array().unwrap().iter().map(|found| found["item"]["of_event"].clone()).collect()
    };
    assert_eq!((shown(&first), &first["queue"]), (vec![2.into(), 3.into()], &"activities".into()));
    let item = &first["items"][0];
    assert_eq!(
        (&item["instance"], &item["item"]["name"], &item["item"]["tag"]),
        (&"render-7".into(), &"Render".into(), &"gpu".into())
    );
    let next = first["next"].as_str().unwrap();
    let second = server.get(&format!("/api/v1/queues/activities/messages?limit=2&after={next}")).await.json();
    assert_eq!((shown(&second), &second["next"]), (vec![4.into()], &Value::Null));
    let turns = server.get("/api/v1/queues/turns/messages").await.json();
    assert_eq!((shown(&turns), &turns["next"]), (vec![], &Value::Null));
    for (path, status, code) in [
        ("/api/v1/queues/other/messages", 404, "not_found"),
        ("/api/v1/queues/turns/messages?limit=501", 400, "invalid_request"),
        ("/api/v1/queues/turns/messages?after=x", 400, "invalid_request"),
    ] {
        assert_eq!(server.get(path).await.problem(), (status, code.to_string()), "{path}");
    }
    server.stop().await;
}

#[tokio::test]
async fn activities_are_counted_by_tag_with_the_nodes_that_take_them() {
    let server = server_with_tags().await;
    let tags = server.get("/api/v1/queues").await.json()["tags"].clone();
    let counts: Vec<Value> = tags
        .as_array()
        .unwrap()
        .iter()
        .map(|tag| serde_json::json!([tag["tag"], tag["due"], tag["delayed"], tag["leased"], tag["nodes"]]))
        .collect();
    assert_eq!(Value::from(counts), serde_json::json!([["<b>eu</b>", 1, 0, 0, 1], ["gpu", 2, 0, 0, 0]]));
    assert!(tags[1]["oldest_ms"].is_u64(), "{tags}");
    let page = server.get("/queues").await.body;
    for part in ["&#60;b&#62;eu&#60;/b&#62;", "1 live node<", "no live node</span>"] {
        assert!(page.contains(part), "{part} in {page}");
    }
    server.stop().await;
}

#[tokio::test]
async fn screen_lists_the_items_of_the_queue_that_its_address_names() {
    let server = server_with_tags().await;
    assert!(!server.get("/queues").await.body.contains("Render"), "no list without a request for it");
    let page = server.get("/queues?items=activities").await.body;
    for part in ["href=\"/instances/render-7?tab=pending\"", ">Render</td>", ">due</td>"] {
        assert!(page.contains(part), "{part} in {page}");
    }
    assert!(!page.contains("4711"), "{page}");
    assert!(server.get("/queues?items=turns").await.body.contains("The queue has no items here"));
    assert_eq!(server.get("/queues?items=other").await.status, 404);
    server.stop().await;
}

/// The store itself and the client of the server return the same items and counts.
pub(crate) async fn client_reads_what_the_store_has(server: &Server, store: &Client) {
    let client = server.client();
    let mut after: Option<String> = None;
    for count in [2, 1] {
        let expected = store.queue_page(DeadLetterQueue::Worker, after.as_deref(), 2).await.unwrap().unwrap();
        let found = client.queue_page(DeadLetterQueue::Worker, after.as_deref(), 2).await.unwrap().unwrap();
        assert_eq!((&found.items, &found.next), (&expected.items, &expected.next));
        assert_eq!(found.items.len(), count);
        after = found.next;
    }
    assert_eq!(after, None);
    let bad = client.queue_page(DeadLetterQueue::Worker, Some("x"), 2).await;
    assert!(matches!(bad, Err(outlast::ClientError::InvalidInput { .. })), "{bad:?}");
    let untimed = |tags: Option<Vec<outlast::providers::TagDepth>>| -> Vec<_> {
        tags.unwrap().into_iter().map(|tag| (tag.tag, tag.due, tag.delayed, tag.leased)).collect()
    };
    let found = untimed(client.tag_depths(10).await.unwrap());
    assert_eq!(found, untimed(store.tag_depths(10).await.unwrap()));
    assert_eq!(found.len(), 2);
}

#[tokio::test]
async fn http_client_reads_the_items_and_tags_of_the_store() {
    let server = server_with_tags().await;
    client_reads_what_the_store_has(&server, &server.store).await;
    server.stop().await;
}

#[tokio::test]
async fn items_and_tags_of_a_sqlite_store_are_read() {
    let server = Server::on_sqlite(Options::default()).await;
    let store = server.provider.clone();
    queue_activities(&*store).await;
    client_reads_what_the_store_has(&server, &server.store).await;
    server.stop().await;
}
