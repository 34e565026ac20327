//! Lists, one instance, its history, and payloads, on two stores.

use crate::kit::{PATIENCE, Server, token, with_tokens};
use outlast::providers::Provider;
use outlast::providers::sqlite::SqliteProvider;
use outlast::{Event, EventKind};
use outlast_server::{Options, Scope};
use std::sync::Arc;

pub(crate) async fn answers_of_a_waiting_order(server: &Server) {
    server.waiting_order("order/1 ü").await;
    let id = "order%2F1%20%C3%BC";
    let list = server.get("/api/v1/instances?status=running&name=order&limit=10").await.json();
    assert_eq!((&list["items"][0]["id"], &list["complete"]), (&"order/1 ü".into(), &true.into()));
    let one = server.get(&format!("/api/v1/instances/{id}")).await.json();
    assert_eq!(
        (&one["state"], &one["kv"][0]["key"], &one["kv"][0]["value"]),
        (&"running".into(), &"paid".into(), &().into())
    );
    let why = server.get("/api/v1/instances/-/why?id=order%2F1%20%C3%BC").await.json();
    assert_eq!(why["rule"], "event_not_sent");
    let events = server.get(&format!("/api/v1/instances/{id}/executions/latest/events?limit=2")).await.json();
    assert_eq!((events["items"].as_array().unwrap().len(), &events["next"]), (2, &2.into()));
    let rest = server
        .get(&format!("/api/v1/instances/{id}/executions/1/events?after=2&kinds=ActivityCompleted"))
        .await
        .json();
    assert_eq!(
        (rest["items"].as_array().unwrap().len(), &rest["items"][0]["kind"]),
        (1, &"ActivityCompleted".into())
    );
    let timeline = server.get(&format!("/api/v1/instances/{id}/executions/1/timeline")).await.json();
    assert_eq!((&timeline["spans"][0]["name"], &timeline["is_running"]), (&"charge".into(), &true.into()));
    let first = server.get(&format!("/api/v1/instances/{id}/executions/1/state?at=1")).await.json();
    let last = server.get(&format!("/api/v1/instances/{id}/executions/1/state")).await.json();
    assert_eq!((first["kv"].as_array().unwrap().len(), last["kv"].as_array().unwrap().len()), (0, 1));
    assert_eq!(last["open"][0]["name"], "approval");
    assert_eq!(server.get(&format!("/api/v1/instances/{id}/pending")).await.json()["message_count"], 0);
    assert_eq!(server.get(&format!("/api/v1/instances/{id}/tree")).await.json()["items"][0]["depth"], 0);
    assert_eq!(
        server.get(&format!("/api/v1/instances/{id}/executions")).await.json()["items"][0]["execution"],
        1
    );
    let events = server.get(&format!("/api/v1/instances/{id}/executions/1/events")).await.json();
    let events = events["items"].as_array().unwrap();
    let asked = events.iter().find(|event| event["kind"] == "ExternalSubscribed").unwrap();
    let waits = server.get(&format!("/api/v1/instances/{id}")).await.json()["waits"].clone();
    let expected = serde_json::json!([{
        "kind": "event", "name": "approval", "instance": null,
        "event": asked["id"], "since": asked["at"], "since_ms": asked["at_ms"],
    }]);
    assert_eq!(waits, expected, "the activity has its outcome, the event has not");
    assert_eq!(server.get(&format!("/api/v1/instances/{id}/wait?timeout=0")).await.status, 202);
    for (key, status) in [("paid", 200), ("missing", 202)] {
        let path = format!("/api/v1/instances/{id}/wait?timeout=0&key={key}");
        assert_eq!(server.get(&path).await.status, status, "{key}");
    }
    assert_eq!(server.get("/api/v1/instances/count").await.json()["running"], 1);
    for path in ["queues", "system", "dead-letters", "audit"] {
        assert_eq!(server.get(&format!("/api/v1/{path}")).await.status, 200, "{path}");
    }
    server.store.raise_event("order/1 ü", "approval", "yes").await.unwrap();
    server.store.wait_for_orchestration("order/1 ü", PATIENCE).await.unwrap();
    let ended = server.get(&format!("/api/v1/instances/{id}/wait?payloads=true")).await;
    assert_eq!((ended.status, &ended.json()["state"]), (200, &"completed".into()));
    assert!(ended.body.contains("4711"), "{ended:?}");
    assert_eq!(ended.json()["waits"], serde_json::json!([]), "{ended:?}");
}

#[tokio::test]
async fn memory_store_is_shown() {
    let server = Server::start(Options::default()).await;
    answers_of_a_waiting_order(&server).await;
    server.stop().await;
}

#[tokio::test]
async fn sqlite_store_is_shown() {
    let server = Server::on_sqlite(Options::default()).await;
    answers_of_a_waiting_order(&server).await;
    server.stop().await;
}

#[tokio::test]
async fn missing_instances_and_wrong_parameters_are_problems() {
    let server = Server::on_sqlite(Options::default()).await;
    for rest in
        ["", "/why", "/executions", "/pending", "/tree", "/executions/1/events", "/executions/latest/state"]
    {
        let answer = server.get(&format!("/api/v1/instances/missing{rest}")).await;
        assert_eq!(answer.problem(), (404, "not_found".to_string()), "{rest}");
    }
    for path in [
        "/instances?limit=0",
        "/instances?limit=501",
        "/instances?limit=x",
        "/instances?status=asleep",
        "/instances?after=nowhere",
        "/instances/a/wait?timeout=61",
        "/audit?limit=0",
        "/dead-letters?limit=501",
        "/instances/a/executions/x/events",
    ] {
        assert_eq!(server.get(&format!("/api/v1{path}")).await.problem().0, 400, "{path}");
    }
    for path in ["/api/v1/nothing", "/api/v1/instances/%00", "/api/v1/instances/%FF"] {
        assert!((400..500).contains(&server.get(path).await.problem().0), "{path}");
    }
    assert_eq!(server.send("PUT", "/api/v1/instances", &[], "").await.problem().0, 405);
    server.stop().await;
}

#[tokio::test]
async fn payloads_need_the_scope_and_the_parameter() {
    let server = Server::start(with_tokens(Options::default())).await;
    server.waiting_order("a").await;
    server.start_order("b", "stolen").await;
    server.store.wait_for_orchestration("b", PATIENCE).await.unwrap();
    let paths = [
        "/instances/a",
        "/instances/b",
        "/instances/a/executions/1/events",
        "/instances/b/executions/1/state",
        "/dead-letters",
    ];
    for path in paths {
        for (scope, asks) in [(Scope::Read, false), (Scope::Payloads, false), (Scope::Payloads, true)] {
            let bearer = format!("Bearer {}", token(scope));
            let path = format!("/api/v1{path}{}", if asks { "?payloads=true" } else { "" });
            let answer = server.send("GET", &path, &[("authorization", &bearer)], "").await;
            let is_shown = answer.body.contains("4711") || answer.body.contains("stolen");
            assert_eq!(
                is_shown,
                asks && !path.contains("dead-letters") && !path.contains("/b/executions"),
                "{path} with {scope}: {answer:?}"
            );
        }
        let bearer = format!("Bearer {}", token(Scope::Read));
        let asked = server
            .send("GET", &format!("/api/v1{path}?payloads=true"), &[("authorization", &bearer)], "")
            .await;
        assert_eq!(asked.problem(), (403, "scope_missing".to_string()), "{path}");
        let page = server.send("GET", "/instances/a?payloads=true", &[("authorization", &bearer)], "").await;
        assert_eq!(page.status, 403);
    }
    server.stop().await;
}

#[tokio::test]
async fn pages_of_a_long_history_read_their_events_only() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}?mode=rwc", folder.path().join("a.db").display());
    let store = Arc::new(SqliteProvider::new(&url, None).await.unwrap());
    let server = Server::on(store.clone(), Options::default(), folder).await;
    server.waiting_order("long").await;
    let first = store.read("long").await.unwrap().len() as u64 + 1;
    let noted = |id| {
        let kind = match id % 1_000 {
            0 => EventKind::ActivityScheduled {
                name: "m".into(),
                input: "4711".into(),
                session_id: None,
                tag: None,
            },
            _ => EventKind::ExternalEvent { name: "n".into(), data: "4711".into() },
        };
        Event::with_event_id(id, "long", 1, None, kind)
    };
    store.append_with_execution("long", 1, (first..=20_000).map(noted).collect()).await.unwrap();
    let rows_of = async |path: &str| {
        let before = store.stats().history_rows_read;
        let answer = server.get(&format!("/api/v1/instances/long/executions/1{path}")).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        (answer.json(), store.stats().history_rows_read - before)
    };
    let (page, rows) = rows_of("/events?after=19000&limit=10").await;
    assert_eq!(
        (&page["items"][0]["id"], &page["next"], &page["total"]),
        (&19_001.into(), &19_010.into(), &20_000.into())
    );
    assert_eq!(rows, 11, "the page, and one event that says whether it is the last one");
    let (event, rows) = rows_of("/payloads/19500").await;
    assert_eq!((&event["event_id"], rows), (&19_500.into(), 1));
    let (last, _) = rows_of("/events?after=19500&limit=500").await;
    assert_eq!((last["items"].as_array().unwrap().len(), &last["next"]), (500, &().into()));
    let (kinds, rows) = rows_of("/events?after=1000&kinds=ActivityScheduled&limit=3").await;
    let ids: Vec<u64> =
        kinds["items"].as_array().unwrap().iter().map(|item| item["id"].as_u64().unwrap()).collect();
    assert_eq!((ids, &kinds["next"]), (vec![2_000, 3_000, 4_000], &4_000.into()));
    assert!(rows <= 5_000, "{rows} rows for four events of the kind");
    assert!(server.get("/instances/long?tab=tree").await.body.contains("Events 20000"));
    server.stop().await;
}
