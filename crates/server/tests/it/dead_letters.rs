//! Dead letters: the page, requeue and drop.

use crate::kit::{PATIENCE, Server, operating, token, with_tokens};
use outlast::providers::memory::MemoryProvider;
use outlast::providers::{DeadLetter, DeadLetterQueue};
use outlast_server::Scope;
use std::sync::Arc;

fn letter(text: &str, reason: &str) -> DeadLetter {
    DeadLetter {
        queue: DeadLetterQueue::Orchestrator,
        instance_id: Some("a".to_string()),
        work_item: text.to_string(),
        reason: reason.to_string(),
        attempt_count: 3,
        dead_at: 1_000,
    }
}

/// A server on a store with an order that waits for its approval, which is dead letter 2 of 3.
async fn server_with_dead_letters() -> Server {
    let store = Arc::new(MemoryProvider::new());
    let approval = r#"{"ExternalRaised":{"instance":"a","name":"approval","data":"\"yes\""}}"#;
    for (text, reason) in [("secret", "does not decode"), (approval, "too early"), ("x", "does not decode")] {
        store.write_dead_letter(letter(text, reason));
    }
    let server = Server::on(store, with_tokens(operating()), tempfile::tempdir().unwrap()).await;
    server.waiting_order("a").await;
    server
}

#[tokio::test]
async fn a_requeued_event_ends_its_order_and_is_audited() {
    let server = server_with_dead_letters().await;
    let bearer = format!("Bearer {}", token(Scope::Operate));
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    let list = server.send("GET", "/api/v1/dead-letters?limit=2", &headers, "").await.json();
    let ids: Vec<u64> =
        list["items"].as_array().unwrap().iter().map(|item| item["id"].as_u64().unwrap()).collect();
    assert_eq!((ids, &list["next"]), (vec![3, 2], &2.into()));
    let rest = server.send("GET", "/api/v1/dead-letters?before=2", &headers, "").await.json();
    assert_eq!((&rest["items"][0]["id"], &rest["next"]), (&1.into(), &serde_json::Value::Null));
    let one = server.send("GET", "/api/v1/dead-letters/1", &headers, "").await;
    assert_eq!((one.status, &one.json()["item"]), (200, &serde_json::Value::Null), "payloads are hidden");

    let requeue = async |path: &str, body: &str| {
        server.send("POST", &format!("/api/v1/dead-letters/{path}/requeue"), &headers, body).await
    };
    assert_eq!(requeue("2", "{}").await.problem(), (400, "reason_required".to_string()));
    assert_eq!(requeue("x", r#"{"reason":"r"}"#).await.problem().0, 400);
    assert_eq!(requeue("9", r#"{"reason":"r"}"#).await.problem(), (404, "not_found".to_string()));
    let refused = requeue("1", r#"{"reason":"r"}"#).await;
    assert_eq!(refused.problem(), (409, "undeliverable".to_string()));
    assert!(!refused.body.contains("secret"), "{refused:?}");
    let done = requeue("2", r#"{"reason":"the order exists now"}"#).await;
    assert_eq!((done.status, &done.json()["id"]), (200, &2.into()));
    server.store.wait_for_orchestration("a", PATIENCE).await.unwrap();
    assert_eq!(requeue("2", r#"{"reason":"again"}"#).await.problem().0, 404);

    let dropped = server.send("DELETE", "/api/v1/dead-letters/3?reason=useless", &headers, "").await;
    assert_eq!(dropped.status, 200, "{dropped:?}");
    let without_reason = server.send("DELETE", "/api/v1/dead-letters/1", &headers, "").await;
    assert_eq!(without_reason.problem(), (400, "reason_required".to_string()));
    let left = server.store.dead_letter_page(None, 10).await.unwrap().unwrap();
    assert_eq!(left.iter().map(|record| record.id).collect::<Vec<_>>(), [1]);
    let audit = server.store.audit_page(None, 10).await.unwrap().unwrap();
    let records: Vec<_> = audit
        .iter()
        .map(|record| {
            let entry = &record.entry;
            assert_eq!((entry.actor.as_str(), entry.request.is_some()), ("operate", true));
            (entry.action.as_str(), entry.target.as_str(), entry.reason.as_str())
        })
        .collect();
    let expected = [
        ("dead-letter.drop", "dead letter 3 of 'a'", "useless"),
        ("dead-letter.requeue", "dead letter 2 of 'a'", "the order exists now"),
    ];
    assert_eq!(records, expected);
    server.stop().await;
}

#[tokio::test]
async fn dead_letters_have_dialogs_and_groups_of_reasons() {
    let server = server_with_dead_letters().await;
    let page = async |scope: Scope| {
        let cookie = format!("Bearer {}", token(scope));
        server.send("GET", "/dead-letters", &[("authorization", cookie.as_str())], "").await.body
    };
    let operator = page(Scope::Operate).await;
    for part in [
        "2 × does not decode",
        "data-open=\"requeue-2\"",
        "data-act=\"/api/v1/dead-letters/2/requeue\"",
        "data-act=\"/api/v1/dead-letters/3\" data-method=\"DELETE\"",
    ] {
        assert!(operator.contains(part), "{part} in {operator}");
    }
    let reader = page(Scope::Read).await;
    assert!(!reader.contains("requeue-2") && !reader.contains("secret"), "{reader}");
    server.stop().await;
}

#[tokio::test]
async fn http_client_requeues_and_drops_dead_letters() {
    let server = server_with_dead_letters().await;
    let client = server.client().with_token(token(Scope::Admin));
    let page = client.dead_letter_page(None, 10).await.unwrap();
    assert_eq!(page, server.store.dead_letter_page(None, 10).await.unwrap());
    client.requeue_dead_letter(2, "the order exists now").await.unwrap();
    client.drop_dead_letter(3, "useless").await.unwrap();
    let refused = client.requeue_dead_letter(1, "again").await.unwrap_err();
    assert!(matches!(refused, outlast::ClientError::InvalidInput { .. }), "{refused:?}");
    let left = client.dead_letter_page(Some(3), 10).await.unwrap().unwrap();
    assert_eq!(left.iter().map(|record| record.id).collect::<Vec<_>>(), [1]);
    server.stop().await;
}
