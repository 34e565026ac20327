//! Server-sent events.

use crate::kit::{PATIENCE, Server, operating, token, with_tokens};
use outlast_server::Scope;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

/// Reads until the stream has sent a text.
async fn read_until(stream: &mut TcpStream, wanted: &str) -> String {
    let mut text = String::new();
    let read = async {
        let mut bytes = [0; 4_096];
        while !text.contains(wanted) {
            let count = stream.read(&mut bytes).await.unwrap();
            assert!(count > 0, "the stream ended: {text}");
            text.push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
    };
    tokio::time::timeout(PATIENCE, read).await.unwrap_or_else(|_| panic!("no {wanted}"));
    text
}

#[tokio::test]
async fn commit_of_a_watched_instance_sends_a_hint_without_data() {
    let server = Server::start(operating()).await;
    server.waiting_order("a").await;
    let mut stream = server.open("GET", "/api/v1/stream?instance=a", &[], "").await;
    let opened = read_until(&mut stream, "event: resync").await;
    assert!(opened.contains("text/event-stream") && opened.contains("x-accel-buffering: no"), "{opened}");
    server.store.raise_event("a", "approval", "secret").await.unwrap();
    let hint = read_until(&mut stream, "event: instance").await;
    assert!(!hint.contains("secret"), "{hint}");
    server.stop().await;
}

#[tokio::test]
async fn new_instance_sends_a_hint_and_streams_are_limited() {
    let mut options = operating();
    options.streams = 1;
    let server = Server::on_sqlite(options).await;
    let mut stream = server.open("GET", "/api/v1/stream", &[], "").await;
    read_until(&mut stream, "event: resync").await;
    assert_eq!(server.get("/api/v1/stream").await.problem(), (503, "busy".to_string()));
    server.waiting_order("a").await;
    read_until(&mut stream, "event: instances").await;
    server.stop().await;
}

#[tokio::test]
async fn caller_with_all_its_streams_leaves_places_for_other_callers() {
    let mut options = with_tokens(operating());
    (options.streams, options.streams_per_caller) = (3, 2);
    let server = Server::start(options).await;
    let open = async |scope: Scope| {
        let bearer = format!("Bearer {}", token(scope));
        server.open("GET", "/api/v1/stream", &[("authorization", &bearer)], "").await
    };
    let ask = async |scope: Scope, path: &str| {
        let bearer = format!("Bearer {}", token(scope));
        let headers = [("authorization", bearer.as_str())];
        let answer = server.send("GET", path, &headers, "");
        // A stream that is admitted has no end.
        tokio::time::timeout(PATIENCE, answer).await.expect("the answer ends")
    };
    let mut own = [open(Scope::Read).await, open(Scope::Read).await];
    for stream in &mut own {
        read_until(stream, "event: resync").await;
    }
    for path in ["/api/v1/stream", "/api/v1/instances/a/wait?timeout=60"] {
        let refused = ask(Scope::Read, path).await;
        assert_eq!(refused.problem(), (429, "rate_limited".to_string()), "{path}");
        assert!(refused.headers.contains("retry-after: 1"), "{refused:?}");
    }
    let metrics = ask(Scope::Read, "/metrics").await;
    assert!(metrics.status == 200 && metrics.body.contains("outlast_sse_clients 2\n"), "{metrics:?}");
    let mut other = open(Scope::Admin).await;
    read_until(&mut other, "event: resync").await;
    assert_eq!(ask(Scope::Operate, "/api/v1/stream").await.problem(), (503, "busy".to_string()));
    server.stop().await;
}

#[tokio::test]
async fn one_stream_reports_several_instances_and_the_store() {
    let server = Server::on_sqlite(operating()).await;
    hints_of_several_instances(&server).await;
    server.stop().await;
}

pub(crate) async fn hints_of_several_instances(server: &Server) {
    for id in ["a/1", "b", "c"] {
        server.waiting_order(id).await;
    }
    let path = "/api/v1/stream?store=true&instance=a%2F1&instance=b";
    let mut stream = server.open("GET", path, &[], "").await;
    read_until(&mut stream, "event: resync").await;
    server.store.raise_event("a/1", "approval", "yes").await.unwrap();
    let text = read_until(&mut stream, "data: {\"instance\":\"a/1\"}").await;
    assert!(!text.contains("\"b\""), "{text}");
    server.store.raise_event("b", "approval", "yes").await.unwrap();
    read_until(&mut stream, "data: {\"instance\":\"b\"}").await;
    server.waiting_order("d").await;
    read_until(&mut stream, "event: instances").await;
}

#[tokio::test]
async fn change_of_an_old_instance_sends_a_hint_of_the_list() {
    let server = Server::start(operating()).await;
    server.waiting_order("old").await;
    server.waiting_order("new").await;
    let mut stream = server.open("GET", "/api/v1/stream", &[], "").await;
    read_until(&mut stream, "event: resync").await;
    server.store.raise_event("old", "approval", "yes").await.unwrap();
    read_until(&mut stream, "event: instances").await;
    server.stop().await;
}

#[tokio::test]
async fn too_many_instances_of_a_stream_are_refused() {
    let server = Server::start(operating()).await;
    let ids: Vec<String> = (0..17).map(|id| format!("instance={id}")).collect();
    let answer = server.get(&format!("/api/v1/stream?{}", ids.join("&"))).await;
    assert_eq!(answer.problem(), (400, "invalid_request".to_string()));
    server.stop().await;
}

#[tokio::test]
async fn pages_name_the_hints_that_they_listen_to() {
    let server = Server::on_sqlite(operating()).await;
    server.waiting_order("a<b").await;
    for (path, part) in [
        ("/instances", " data-live=\"instances\">"),
        ("/queues", " data-live=\"system\">"),
        ("/dead-letters", " data-live=\"system\">"),
        ("/system", " data-live=\"system\">"),
        ("/instances/a%3Cb", " data-live=\"instance\" data-instance=\"a&#60;b\">"),
    ] {
        let page = server.get(path).await;
        assert!(page.body.contains(part), "{part} at {path}: {}", page.body);
    }
    assert!(!server.get("/audit").await.body.contains("data-live"));
    assert!(!server.get("/instances/a%3Cb?tab=state&at=1").await.body.contains("data-live"));
    server.stop().await;
}
