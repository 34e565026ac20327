//! `outlast serve`: addresses, tokens, requests, and the stop by a signal.

use crate::program::Program;
use crate::support::{outlast, run};
use outlast::providers::sqlite::SqliteProvider;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

/// A store with one instance that waits.
async fn parked(path: &Path) {
    let url = format!("sqlite:{}", path.display());
    let program = Program::on(Arc::new(SqliteProvider::new(&url, None).await.unwrap())).await;
    program.park("one", "1.0.0").await;
    program.runtime.shutdown(None).await;
}

/// Starts the server on a free port; returns it with its address and the rest of its first lines.
fn serve(store: &Path, more: &[&str]) -> (Child, String, String) {
    let args = ["serve", "--store", store.to_str().unwrap(), "--listen", "127.0.0.1:0"];
    let mut child = outlast(args.iter().chain(more)).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    let address = first.split("http://").nth(1).unwrap().trim_end_matches('/').to_string();
    let rest: Vec<String> = lines.by_ref().take(2).map(Result::unwrap).collect();
    (child, address, rest.join("\n"))
}

fn get(address: &str, path: &str, header: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n{header}\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

fn stop(mut child: Child) -> Option<i32> {
    assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
    child.wait().unwrap().code()
}

#[tokio::test(flavor = "multi_thread")]
async fn store_is_served_read_only_until_a_signal() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("jobs.db");
    parked(&store).await;
    let (child, address, said) = serve(&store, &[]);
    assert!(said.contains("Read-only") && said.contains("No token is needed"), "{said}");
    assert!(get(&address, "/api/v1/instances", "").contains("\"id\":\"one\""));
    assert!(get(&address, "/instances/one", "").starts_with("HTTP/1.1 200"));
    assert!(get(&address, "/readyz", "").contains("ready"));
    assert_eq!(stop(child), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn token_file_is_created_for_its_owner_alone_and_required() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let (store, tokens) = (dir.path().join("jobs.db"), dir.path().join("tokens"));
    parked(&store).await;
    let (child, address, said) = serve(&store, &["--token-file", tokens.to_str().unwrap()]);
    let token = said.split("#token=").nth(1).unwrap().trim().to_string();
    assert_eq!(std::fs::metadata(&tokens).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(get(&address, "/api/v1/instances", "").starts_with("HTTP/1.1 401"));
    let header = format!("authorization: Bearer {token}\r\n");
    assert!(get(&address, "/api/v1/instances", &header).starts_with("HTTP/1.1 200"));
    assert_eq!(stop(child), Some(0));
    let (child, _, said) = serve(&store, &["--token-file", tokens.to_str().unwrap()]);
    assert!(!said.contains(&token), "the token is printed once");
    stop(child);
}

#[test]
fn address_of_other_machines_needs_a_token_file() {
    let said = run(["serve", "--store", "missing.db", "--listen", "0.0.0.0:0"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.err.contains("--token-file"), "{said:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn busy_port_is_an_error_that_names_a_free_one() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("jobs.db");
    parked(&store).await;
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let said = run(["serve", "--store", store.to_str().unwrap(), "--listen", &address]).failed();
    assert!(said.contains("is in use") && said.contains("--listen 127.0.0.1:0"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn certificate_and_key_make_the_server_speak_tls() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("jobs.db");
    parked(&store).await;
    let file = |name: &str| format!("{}/../server/tests/it/certificates/{name}", env!("CARGO_MANIFEST_DIR"));
    let serve = |more: &[&str]| {
        let args = ["serve", "--store", store.to_str().unwrap(), "--listen", "127.0.0.1:0"];
        outlast(args.iter().chain(more))
    };
    let [certificate, key, other] = ["server.crt", "server.key", "other.key"].map(file);
    let wrong =
        crate::support::said(serve(&["--tls-cert", &certificate, "--tls-key", &other]).output().unwrap());
    assert!(wrong.failed().contains("cannot be used together"));
    let half = crate::support::said(serve(&["--tls-cert", &certificate]).output().unwrap());
    assert!(half.code == Some(2) && half.err.contains("--tls-key"), "{half:?}");
    let mut command = serve(&["--tls-cert", &certificate, "--tls-key", &key]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    let address =
        first.split("https://").nth(1).expect("an address with TLS").trim_end_matches('/').to_string();
    // The answer to plain HTTP is an alert of TLS, or none. `tls.rs` of the server connects with TLS.
    let mut stream = TcpStream::connect(&address).unwrap();
    write!(stream, "GET /healthz HTTP/1.1\r\nhost: {address}\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
    assert_eq!(stop(child), Some(0));
}

/// Reads from a stream until it has this text.
fn read_until(stream: &mut TcpStream, text: &str) -> String {
    let mut read = Vec::new();
    let mut byte = [0];
    while !String::from_utf8_lossy(&read).contains(text) {
        assert_eq!(
            stream.read(&mut byte).unwrap(),
            1,
            "the stream ended: {}",
            String::from_utf8_lossy(&read)
        );
        read.push(byte[0]);
    }
    String::from_utf8(read).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn signal_closes_streams_and_waits_within_the_grace_period() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("jobs.db");
    parked(&store).await;
    let (child, address, _) = serve(&store, &[]);
    let open = |path: &str| {
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.set_read_timeout(Some(std::time::Duration::from_secs(20))).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: {address}\r\n\r\n").unwrap();
        stream
    };
    let mut events = open("/api/v1/stream");
    assert!(read_until(&mut events, "\r\n\r\n").contains("text/event-stream"));
    // A request that waits for an instance which does not end, and an idle connection.
    let mut wait = open("/api/v1/instances/one/wait?timeout=30");
    let mut idle = open("/healthz");
    assert!(read_until(&mut idle, "ok\n").starts_with("HTTP/1.1 200"));
    let begun = tokio::time::Instant::now();
    assert_eq!(stop(child), Some(0));
    let took = begun.elapsed();
    assert!(took < std::time::Duration::from_secs(8), "{took:?}");
    for stream in [&mut events, &mut wait, &mut idle] {
        // The end of the stream, or an error of a connection that was cut.
        let _ = stream.read_to_end(&mut Vec::new());
    }
    assert!(TcpStream::connect(&address).is_err(), "no server listens");
}

#[tokio::test(flavor = "multi_thread")]
async fn probe_says_whether_a_server_is_ready() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("jobs.db");
    parked(&store).await;
    let (child, address, _) = serve(&store, &[]);
    assert_eq!(run(["serve", "--probe", "--listen", &address]).fine(), "ready\n");
    assert!(run(["serve", "--probe", "--listen", &address, "--base-path", "/x"]).failed().contains("404"));
    stop(child);
    assert!(run(["serve", "--probe", "--listen", &address]).failed().contains("does not answer"));
}
