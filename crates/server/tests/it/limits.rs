//! Slow clients, many connections and many requests.

use crate::kit::{PATIENCE, Server, operating, token, with_tokens};
use outlast_server::{Options, Scope};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// A time that is over before any test ends.
const SHORT: Duration = Duration::from_millis(100);

/// Connects and sends a text. The server may have closed the connection already.
async fn connect(server: &Server, text: &str) -> TcpStream {
    let mut stream = TcpStream::connect(&server.address).await.unwrap();
    let _ = stream.write_all(text.as_bytes()).await;
    stream
}

/// The bytes until the server closes the connection.
async fn until_closed(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    // A connection that is reset is closed too.
    let _ =
        timeout(PATIENCE, stream.read_to_end(&mut bytes)).await.expect("the server closes the connection");
    String::from_utf8(bytes).unwrap()
}

/// Reads the answer `ok` of `/healthz`, and leaves the connection open.
async fn health(stream: &mut TcpStream) {
    let mut text = String::new();
    while !text.ends_with("\r\n\r\nok\n") {
        let mut bytes = [0; 1_024];
        let count = timeout(PATIENCE, stream.read(&mut bytes)).await.expect("the server answers").unwrap();
        assert!(count > 0, "the server closed the connection: {text}");
        text.push_str(&String::from_utf8_lossy(&bytes[..count]));
    }
}

const HEALTH: &str = "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";

#[tokio::test]
async fn slow_headers_and_idle_connections_are_closed() {
    let mut options = Options::default();
    options.header_timeout = SHORT;
    let server = Server::start(options).await;
    let mut silent = connect(&server, "").await;
    assert_eq!(until_closed(&mut silent).await, "");
    let mut slow = connect(&server, "GET /healthz HTTP/1.1\r\nhost: loc").await;
    assert_eq!(until_closed(&mut slow).await, "");
    // On a slow machine the time may be over before the request arrives.
    let answered = async {
        loop {
            let answer = until_closed(&mut connect(&server, HEALTH).await).await;
            if answer.ends_with("\r\n\r\nok\n") {
                return;
            }
        }
    };
    timeout(PATIENCE, answered).await.expect("the server answers, and closes the idle connection");
    server.stop().await;
}

#[tokio::test]
async fn headers_above_the_limit_are_refused() {
    let mut options = Options::default();
    options.header_timeout = Duration::from_secs(3_600);
    let server = Server::start(options).await;
    let large = format!("GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: {}", "x".repeat(100_000));
    let answer = until_closed(&mut connect(&server, &large).await).await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431 "), "{answer}");
    server.stop().await;
}

#[tokio::test]
async fn body_that_does_not_arrive_is_a_problem() {
    let mut options = operating();
    options.body_timeout = SHORT;
    let server = Server::start(options).await;
    let head = "POST /api/v1/instances HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{";
    let answer = until_closed(&mut connect(&server, head).await).await;
    assert!(answer.starts_with("HTTP/1.1 408 ") && answer.contains("request_timeout"), "{answer}");
    server.stop().await;
}

#[tokio::test]
async fn connection_beyond_the_bound_waits_for_a_place() {
    let mut options = Options::default();
    (options.connections, options.header_timeout) = (1, Duration::from_secs(3_600));
    let server = Server::start(options).await;
    let mut first = connect(&server, HEALTH).await;
    health(&mut first).await;
    let mut second = connect(&server, HEALTH).await;
    let answer = timeout(SHORT, second.read_u8()).await;
    assert!(answer.is_err(), "the first connection is open: {answer:?}");
    drop(first);
    health(&mut second).await;
    server.stop().await;
}

#[tokio::test]
async fn caller_above_the_rate_is_told_when_to_return() {
    let mut options = with_tokens(Options::default());
    // No token comes back within the test.
    (options.request_rate, options.request_burst) = (0.000_1, 3);
    let server = Server::start(options).await;
    let read = async |scope: Scope| {
        let bearer = format!("Bearer {}", token(scope));
        server.send("GET", "/api/v1/queues", &[("authorization", &bearer)], "").await
    };
    for _ in 0..3 {
        assert_eq!(read(Scope::Read).await.status, 200);
    }
    let refused = read(Scope::Read).await;
    assert_eq!(refused.problem(), (429, "rate_limited".to_string()));
    assert!(refused.headers.contains("retry-after: 3600"), "{refused:?}");
    assert_eq!(refused.json()["retryable"], true);
    assert_eq!(read(Scope::Admin).await.status, 200, "another token has its own count");
    for _ in 0..3 {
        assert_eq!(server.post("/login", "{\"token\":\"guess\"}").await.status, 401);
    }
    let guess = server.post("/login", "{\"token\":\"guess\"}").await;
    assert_eq!(guess.status, 429, "requests without a token are counted by their address");
    assert!(guess.body.contains("<html"), "a page answers with a page: {guess:?}");
    assert_eq!(server.get("/healthz").await.status, 200, "probes are not counted");
    server.stop().await;
}

#[tokio::test]
async fn stopped_server_ends_open_requests_and_streams() {
    use outlast::{Client, providers::memory::MemoryProvider};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let client = Client::new(std::sync::Arc::new(MemoryProvider::new()));
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let stopped = async { drop(stopped.await) };
    let serving = tokio::spawn(outlast_server::serve(listener, client, Options::default(), stopped));
    let mut idle = TcpStream::connect(address).await.unwrap();
    idle.write_all(HEALTH.as_bytes()).await.unwrap();
    health(&mut idle).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"GET /api/v1/stream HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    assert!(stream.read_u8().await.is_ok());
    drop(stop);
    timeout(PATIENCE, serving).await.expect("the server stops").unwrap().unwrap();
    assert_eq!(until_closed(&mut idle).await, "");
    drop(stream);
}
