//! HTTP requests to the server: any bytes on a connection.

use crate::corruption::program;
use axum::serve::Listener;
use outlast_conformance::TokioClock;
use outlast_memory::MemoryProvider;
use outlast_provider::Clock;
use outlast_runtime::{Client, Runtime, RuntimeOptions};
use outlast_server::Options;
use outlast_testkit::{panics, virtual_time};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::time::{sleep, timeout};

/// The time at which the store is created.
const EPOCH_MS: u64 = 1_700_000_000_000;
/// The instances of the store that have run.
const INSTANCES: [&str; 3] = ["a", "order-1", "ö %/"];
/// After this time an exchange is over: a stream does not end. The clock is virtual.
const LONGEST: Duration = Duration::from_secs(120);
/// A stream that never ends is read up to this length.
const MOST_BYTES: usize = 1 << 20;

/// Sends the input to the server with a store in memory. No code panics, and no answer has a status of 500 or above except 503, by which the
/// server says that it is busy.
pub fn http_request(data: &[u8]) {
    let (answer, panics) = panics::collect(|| virtual_time::run(exchange(data)));
    assert_eq!(panics, [""; 0]);
    let answer = answer.unwrap_or_default();
    for status in statuses(&answer) {
        assert!(status < 500 || status == 503, "status {status}: {}", String::from_utf8_lossy(&answer));
    }
}

/// A client of a store with instances that wait for an event, and one that waits for its first turn.
async fn client() -> Client {
    let clock: Arc<dyn Clock> = Arc::new(TokioClock::start_at(EPOCH_MS));
    let store = Arc::new(MemoryProvider::with_clock(Arc::clone(&clock)));
    let client = Client::new(Arc::clone(&store) as Arc<_>);
    let options = RuntimeOptions { clock, ..RuntimeOptions::default() };
    let runtime =
        Runtime::start_with_options(store, program::activities(), program::orchestrations(), options).await;
    for instance in INSTANCES {
        client.start_orchestration(instance, "signal", "in").await.expect("a new id");
    }
    sleep(Duration::from_secs(1)).await;
    runtime.shutdown(Some(0)).await;
    client.start_orchestration("b", "signal", "in").await.expect("a new id");
    client
}

async fn exchange(data: &[u8]) -> Vec<u8> {
    let client = client().await;
    let mut options = Options::default();
    options.operate = true;
    let (mut ours, theirs) = duplex(MOST_BYTES);
    let serving = axum::serve(Once(Some(theirs)), outlast_server::router(client, options));
    let mut answer = Vec::new();
    let talk = async {
        // The server closes a connection whose request is no HTTP.
        let mut is_open = ours.write_all(data).await.is_ok();
        while is_open && answer.len() < MOST_BYTES {
            is_open = matches!(ours.read_buf(&mut answer).await, Ok(1..));
        }
    };
    tokio::select! {
        _ = serving.into_future() => {}
        _ = timeout(LONGEST, talk) => {}
    }
    answer
}

/// The statuses of the first response, and of those that follow a response whose body ends with a line or is empty.
fn statuses(answer: &[u8]) -> Vec<u16> {
    let text = String::from_utf8_lossy(answer);
    let lines = text.split("\r\n").filter_map(|line| line.strip_prefix("HTTP/1."));
    lines.filter_map(|line| line.split(' ').nth(1)?.parse().ok()).collect()
}

/// A listener with one connection.
struct Once(Option<DuplexStream>);

impl Listener for Once {
    type Io = DuplexStream;
    type Addr = ();

    async fn accept(&mut self) -> (DuplexStream, ()) {
        match self.0.take() {
            Some(connection) => (connection, ()),
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(request: &str) -> Vec<u16> {
        let request = request.replace('\n', "\r\n");
        statuses(&virtual_time::run(exchange(request.as_bytes())))
    }

    #[test]
    fn requests_reach_the_routes() {
        let head = "HTTP/1.1\nhost: localhost\n";
        assert_eq!(answer(&format!("GET /healthz {head}\n")), [200]);
        let events = "GET /api/v1/instances/order-1/executions/latest/events";
        assert_eq!(answer(&format!("{events} {head}\n")), [200]);
        assert_eq!(answer(&format!("GET /api/v1/instances/order-1 {head}\n")), [200]);
        assert_eq!(answer(&format!("GET /api/v1/instances/gone {head}\n")), [404]);
        assert_eq!(answer("no HTTP\n\n"), [400]);
    }
}
