//! Requests that change instances, and their records in the audit.

use crate::kit::{PATIENCE, Server, operating, token, with_tokens};
use outlast_server::Scope;

#[tokio::test]
async fn changes_are_recorded_with_actor_reason_and_request() {
    let server = Server::on_sqlite(with_tokens(operating())).await;
    records_of_changes(&server).await;
    server.stop().await;
}

pub(crate) async fn records_of_changes(server: &Server) {
    server.waiting_order("a").await;
    let bearer = format!("Bearer {}", token(Scope::Operate));
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    let send = async |path: &str, body: &str| {
        server.send("POST", &format!("/api/v1/instances{path}"), &headers, body).await
    };
    let start = send("", r#"{"instance":"b","orchestration":"order","reason":"by hand"}"#).await;
    assert_eq!((start.status, &start.json()["audited"]), (201, &true.into()));
    assert_eq!(
        send("", r#"{"instance":"b","orchestration":"order","reason":"again"}"#).await.problem(),
        (409, "already_exists".to_string())
    );
    assert_eq!(send("/a/queues/q/messages", r#"{"data":"x","reason":"m"}"#).await.status, 202);
    assert_eq!(send("/a/pause", r#"{"reason":"look"}"#).await.json()["changed"], true);
    assert_eq!(send("/a/resume", r#"{"reason":"seen"}"#).await.json()["changed"], true);
    let event =
        send("/a/events", r#"{"name":"approval","data":"secret","reason":"the customer called"}"#).await;
    assert_eq!(event.status, 202);
    server.store.wait_for_orchestration("a", PATIENCE).await.unwrap();
    assert_eq!(send("/a/terminate", r#"{"reason":"late"}"#).await.problem(), (409, "ended".to_string()));

    let records = server.store.audit_page(None, 100).await.unwrap().unwrap();
    let recorded: Vec<_> = records
        .iter()
        .rev()
        .map(|record| (record.entry.action.as_str(), record.entry.result.as_str()))
        .collect();
    let expected = [
        ("instance.start", "done"),
        ("instance.start", "already_exists"),
        ("instance.message", "done"),
        ("instance.pause", "done"),
        ("instance.resume", "done"),
        ("instance.event", "done"),
    ];
    assert_eq!(recorded, expected);
    let last = &records[0].entry;
    assert_eq!(
        (last.actor.as_str(), last.target.as_str(), last.reason.as_str()),
        ("operate", "a", "the customer called")
    );
    let id = last.request.as_ref().unwrap();
    assert!(event.headers.contains(&format!("x-request-id: {id}")), "{event:?}");
    let audit = server.send("GET", "/api/v1/audit", &[("authorization", &bearer)], "").await;
    assert!(audit.body.contains("the customer called") && !audit.body.contains("secret"), "{audit:?}");
}

#[tokio::test]
async fn changes_without_a_reason_are_refused() {
    let server = Server::start(operating()).await;
    server.waiting_order("a").await;
    for (path, body) in [
        ("", r#"{"instance":"b","orchestration":"order"}"#),
        ("/a/events", r#"{"name":"approval"}"#),
        ("/a/queues/q/messages", "{}"),
        ("/a/cancel", r#"{"reason":"  "}"#),
        ("/a/terminate", "{}"),
        ("/a/pause", "{}"),
        ("/a/resume", "{}"),
        ("/a/prune", r#"{"keep_last":1}"#),
    ] {
        let answer = server.post(&format!("/api/v1/instances{path}"), body).await;
        assert_eq!(answer.problem(), (400, "reason_required".to_string()), "{path}");
    }
    let delete = server.send("DELETE", "/api/v1/instances/a?force=true", &[], "").await;
    assert_eq!(delete.problem(), (400, "reason_required".to_string()));
    let prune = server.post("/api/v1/instances/a/prune", r#"{"reason":"old"}"#).await;
    assert_eq!(prune.problem(), (400, "invalid_request".to_string()));
    assert_eq!(server.get("/api/v1/instances/a").await.json()["state"], "running");
    server.stop().await;
}

#[tokio::test]
async fn records_of_holds_resets_and_forks_have_the_id_of_their_request() {
    let server = Server::on_sqlite(operating()).await;
    server.waiting_order("a").await;
    for (path, body, action) in [
        ("/instances/a/pause", r#"{"reason":"r"}"#, "instance.pause"),
        ("/instances/a/resume", r#"{"reason":"r"}"#, "instance.resume"),
        ("/instances/a/reset", r#"{"to_event":2,"reason":"r"}"#, "instance.reset"),
        ("/instances/a/fork", r#"{"to_event":2,"new_id":"b","reason":"r"}"#, "instance.fork"),
        ("/orchestrations/order/pause", r#"{"reason":"r"}"#, "orchestration.pause"),
        ("/orchestrations/order/resume", r#"{"reason":"r"}"#, "orchestration.resume"),
    ] {
        let answer = server.post(&format!("/api/v1{path}"), body).await;
        assert!(answer.status < 300, "{path}: {answer:?}");
        let records = server.store.audit_page(None, 100).await.unwrap().unwrap();
        let record = records.iter().find(|record| record.entry.action == action).unwrap();
        let id = record.entry.request.as_deref().unwrap_or("no id");
        assert!(answer.headers.contains(&format!("x-request-id: {id}")), "{path}: {id} in {answer:?}");
    }
    server.stop().await;
}
