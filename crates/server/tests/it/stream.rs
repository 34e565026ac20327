//! Server-sent events.

use crate::kit::{PATIENCE, Server, operating};
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
    assert!(opened.contains("text/event-stream"), "{opened}");
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
