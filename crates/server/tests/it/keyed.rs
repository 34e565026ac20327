//! Events that an instance takes once: the header Idempotency-Key, and CloudEvents.

use crate::kit::{PATIENCE, Server, operating};
use outlast::OrchestrationStatus;

#[tokio::test]
async fn repeated_deliveries_of_an_event_end_the_order_once() {
    let server = Server::on_sqlite(operating()).await;
    repeated_deliveries(&server).await;
    server.stop().await;
}

pub(crate) async fn repeated_deliveries(server: &Server) {
    server.waiting_order("a").await;
    server.waiting_order("b").await;
    let send = async |path: &str, key: &str, body: &str| {
        let headers = [("content-type", "application/json"), ("idempotency-key", key)];
        server.send("POST", &format!("/api/v1/instances{path}"), &headers, body).await
    };
    let yes = r#"{"name":"approval","data":"\"yes\"","reason":"webhook"}"#;
    let queued = r#"{"data":"x","reason":"webhook"}"#;
    for changed in [true, false] {
        let message = send("/a/queues/q/messages", "delivery-0", queued).await;
        assert_eq!((message.status, &message.json()["changed"]), (202, &changed.into()));
    }
    let first = send("/a/events", "delivery-1", yes).await;
    assert_eq!((first.status, &first.json()["changed"]), (202, &true.into()));
    let no = r#"{"name":"approval","data":"\"no\"","reason":"webhook"}"#;
    let second = send("/a/events", "delivery-1", no).await;
    assert_eq!((second.status, &second.json()["changed"]), (202, &false.into()));
    let status = server.store.wait_for_orchestration("a", PATIENCE).await.unwrap();
    assert!(
        matches!(&status, OrchestrationStatus::Completed { output, .. } if output.contains("yes")),
        "{status:?}"
    );
    let late = send("/a/events", "delivery-1", yes).await;
    assert_eq!(
        (late.status, &late.json()["changed"]),
        (202, &false.into()),
        "a repeated delivery is no error"
    );
    assert_eq!(send("/a/events", "delivery-2", yes).await.problem(), (409, "ended".to_string()));
    assert_eq!(send("/missing/events", "delivery-1", yes).await.problem(), (404, "not_found".to_string()));
    let long = "k".repeat(1_025);
    assert_eq!(send("/b/events", &long, yes).await.problem(), (400, "invalid_request".to_string()));
    let other = send("/b/events", "delivery-1", yes).await;
    assert_eq!((other.status, &other.json()["changed"]), (202, &true.into()), "keys belong to an instance");
    server.store.wait_for_orchestration("b", PATIENCE).await.unwrap();

    let audit = server.store.audit_page(None, 10).await.unwrap().unwrap();
    let records: Vec<_> = audit
        .iter()
        .rev()
        .map(|record| {
            (record.entry.target.as_str(), record.entry.action.as_str(), record.entry.result.as_str())
        })
        .collect();
    let expected = [
        ("a", "instance.message", "done"),
        ("a", "instance.event", "done"),
        ("a", "instance.event", "ended"),
        ("missing", "instance.event", "not_found"),
        ("b", "instance.event", "done"),
    ];
    assert_eq!(records, expected, "a repeated delivery has no record");

    // A new order under the same id takes the event again.
    server.store.delete_instance("a", false).await.unwrap();
    server.waiting_order("a").await;
    assert_eq!(send("/a/events", "delivery-1", yes).await.json()["changed"], true);
    server.store.wait_for_orchestration("a", PATIENCE).await.unwrap();
}

#[tokio::test]
async fn cloud_events_are_taken_once_in_both_modes() {
    let server = Server::on_sqlite(operating()).await;
    cloud_events(&server).await;
    server.stop().await;
}

pub(crate) async fn cloud_events(server: &Server) {
    server.waiting_order("order 1").await;
    server.waiting_order("order-2").await;
    let body = r#"{"specversion":"1.0","id":"e1","source":"/shop","type":"approval","subject":"order 1","data":"yes"}"#;
    let structured = [("content-type", "application/cloudevents+json")];
    let binary = [
        ("content-type", "application/json"),
        ("ce-specversion", "1.0"),
        ("ce-id", "e1"),
        ("ce-source", "/shop"),
        ("ce-type", "approval"),
        ("ce-subject", "order%201"),
    ];
    let first = server.send("POST", "/api/v1/cloudevents", &structured, body).await;
    assert_eq!((first.status, &first.json()["changed"]), (202, &true.into()), "{first:?}");
    let again = server.send("POST", "/api/v1/cloudevents", &binary, "\"no\"").await;
    assert_eq!((again.status, &again.json()["changed"]), (202, &false.into()), "{again:?}");
    let status = server.store.wait_for_orchestration("order 1", PATIENCE).await.unwrap();
    assert!(
        matches!(&status, OrchestrationStatus::Completed { output, .. } if output.contains("yes")),
        "{status:?}"
    );
    // Another event of the same source, and the same event for another order.
    let other = body.replace("e1", "e2");
    assert_eq!(
        server.send("POST", "/api/v1/cloudevents", &structured, &other).await.problem(),
        (409, "ended".to_string())
    );
    let other = body.replace("order 1", "order-2");
    assert_eq!(server.send("POST", "/api/v1/cloudevents", &structured, &other).await.json()["changed"], true);
    server.store.wait_for_orchestration("order-2", PATIENCE).await.unwrap();
    let plain = server.send("POST", "/api/v1/cloudevents", &[("content-type", "text/plain")], body).await;
    assert_eq!(plain.problem(), (415, "media_type".to_string()));
    let missing = body.replace("order 1", "nobody");
    let missing = server.send("POST", "/api/v1/cloudevents", &structured, &missing).await;
    assert_eq!(missing.problem(), (404, "not_found".to_string()));
    let audit = server.store.audit_page(None, 1).await.unwrap().unwrap();
    assert_eq!(audit[0].entry.reason, "CloudEvent e1 of /shop");
}

#[tokio::test]
async fn http_client_sends_events_once() {
    let server = Server::start(operating()).await;
    server.waiting_order("a").await;
    let client = server.client();
    assert!(client.enqueue_event_once("a", "q", "x", "k0").await.unwrap());
    assert!(!client.enqueue_event_once("a", "q", "x", "k0").await.unwrap());
    assert!(client.raise_event_once("a", "approval", "\"yes\"", "k1").await.unwrap());
    server.store.wait_for_orchestration("a", PATIENCE).await.unwrap();
    assert!(!client.raise_event_once("a", "approval", "\"yes\"", "k1").await.unwrap());
    let ended = client.raise_event_once("a", "approval", "\"yes\"", "k2").await.unwrap_err();
    assert!(matches!(ended, outlast::ClientError::InvalidInput { .. }), "{ended:?}");
    server.stop().await;
}
