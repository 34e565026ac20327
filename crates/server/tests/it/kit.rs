//! A server on a free port, with a runtime on its store, and requests to it.

use outlast::RuntimeOptions;
use outlast::prelude::*;
use outlast::providers::memory::MemoryProvider;
use outlast::providers::postgres::PostgresProvider;
use outlast::providers::sqlite::SqliteProvider;
use outlast::providers::{Entropy, OsEntropy, Provider};
use outlast_client_http::HttpClient;
use outlast_server::{Options, Scope, Tokens};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

#[outlast::activity]
async fn charge(_ctx: ActivityContext, card: String) -> Result<String, String> {
    match card.as_str() {
        "stolen" => Err(format!("refused {card}")),
        card => Ok(format!("paid by {card}")),
    }
}

/// Charges a card, notes it, and waits for an approval.
#[outlast::orchestration]
async fn order(ctx: OrchestrationContext, card: String) -> Result<String, String> {
    let paid = charge::call(&ctx, card).await?;
    ctx.set_kv_value("paid", &paid);
    ctx.set_custom_status("waits for approval");
    let answer: String = ctx.schedule_wait("approval").await;
    Ok(format!("{paid}, {answer}"))
}

/// Sets a key to a number, and ends.
#[outlast::orchestration]
async fn counter(ctx: OrchestrationContext, count: u64) -> Result<u64, String> {
    ctx.set_kv_value_typed("count", &count);
    Ok(count)
}

pub(crate) struct Server {
    pub(crate) address: String,
    pub(crate) store: Client,
    pub(crate) provider: Arc<dyn Provider>,
    runtime: Arc<Runtime>,
    serving: tokio::task::JoinHandle<std::io::Result<()>>,
    folder: tempfile::TempDir,
}

/// The tokens of the tests: one per scope, named after it.
pub(crate) fn token(scope: Scope) -> String {
    format!("{scope:_>40}")
}

/// Options with a token per scope.
pub(crate) fn with_tokens(mut options: Options) -> Options {
    let tokens = Scope::ALL
        .into_iter()
        .fold(Tokens::default(), |tokens, scope| tokens.with(scope.as_str(), [scope], &token(scope)));
    options.tokens = Some(tokens);
    options
}

pub(crate) fn operating() -> Options {
    let mut options = Options::default();
    options.operate = true;
    options
}

impl Server {
    /// A server on a memory store.
    pub(crate) async fn start(options: Options) -> Self {
        Self::on(Arc::new(MemoryProvider::new()), options, tempfile::tempdir().unwrap()).await
    }

    /// A server on a SQLite store.
    pub(crate) async fn on_sqlite(options: Options) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}?mode=rwc", folder.path().join("a.db").display());
        Self::on(Arc::new(SqliteProvider::new(&url, None).await.unwrap()), options, folder).await
    }

    /// A server on a new schema of the PostgreSQL server that `cargo xtask` starts.
    pub(crate) async fn on_postgres(options: Options) -> Self {
        let url = std::env::var("OUTLAST_TEST_POSTGRES_URL").expect(
            "OUTLAST_TEST_POSTGRES_URL names no server: `cargo xtask postgres -- cargo test -p outlast-server` has one",
        );
        let schema = format!("server_{:032x}", OsEntropy.next_u128());
        let store = PostgresProvider::new_with_schema(&url, Some(&schema)).await.unwrap();
        Self::on(Arc::new(store), options, tempfile::tempdir().unwrap()).await
    }

    pub(crate) async fn on(store: Arc<dyn Provider>, options: Options, folder: tempfile::TempDir) -> Self {
        let module = outlast::module![charge, order, counter];
        // Tests store the reports of nodes that they need.
        let quiet = RuntimeOptions { node_heartbeat: None, ..RuntimeOptions::default() };
        let runtime = Runtime::builder().store(store.clone()).register(module).options(quiet).start().await;
        let runtime = runtime.unwrap();
        let client = Client::new(store.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let base = options.base_path.clone();
        let serving =
            tokio::spawn(outlast_server::serve(listener, client.clone(), options, std::future::pending()));
        let address = if base.is_empty() { address } else { format!("{address}{base}") };
        Self { address, store: client, provider: store, runtime, serving, folder }
    }

    /// The file of a SQLite store.
    pub(crate) fn file(&self) -> PathBuf {
        self.folder.path().join("a.db")
    }

    /// Starts an order and waits until it waits for its approval.
    pub(crate) async fn waiting_order(&self, id: &str) {
        self.start_order(id, "card 4711").await;
        self.store.wait_for_kv_value(id, "paid", PATIENCE).await.unwrap();
    }

    pub(crate) async fn start_order(&self, id: &str, card: &str) {
        order::start(&self.store, card.to_string()).id(id).await.unwrap();
    }

    pub(crate) fn client(&self) -> HttpClient {
        HttpClient::new(&format!("http://{}", self.address)).unwrap()
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], "").await
    }

    pub(crate) async fn post(&self, path: &str, body: &str) -> Answer {
        self.send("POST", path, &[("content-type", "application/json")], body).await
    }

    /// A request, byte for byte: the tests need headers that clients do not send.
    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let mut stream = self.open(method, path, headers, body).await;
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).await.unwrap();
        Answer::of(&String::from_utf8(bytes).unwrap())
    }

    /// A request of a client that would send more requests on the connection.
    pub(crate) async fn keep_alive(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let mut headers = headers.to_vec();
        headers.push(("connection", "keep-alive"));
        self.send(method, path, &headers, body).await
    }

    pub(crate) async fn open(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> TcpStream {
        let (host, base) = self
            .address
            .split_once('/')
            .map_or((self.address.as_str(), String::new()), |(host, base)| (host, format!("/{base}")));
        let mut stream = TcpStream::connect(host).await.unwrap();
        let mut text = format!("{method} {base}{path} HTTP/1.1\r\ncontent-length: {}\r\n", body.len());
        if !headers.iter().any(|(name, _)| *name == "connection") {
            text.push_str("connection: close\r\n");
        }
        if !headers.iter().any(|(name, _)| *name == "host") {
            text.push_str(&format!("host: {host}\r\n"));
        }
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        stream.write_all(format!("{text}\r\n{body}").as_bytes()).await.unwrap();
        stream
    }

    pub(crate) async fn stop(self) {
        self.runtime.shutdown(None).await;
        self.serving.abort();
    }
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: String,
    pub(crate) body: String,
}

impl Answer {
    fn of(text: &str) -> Self {
        let (headers, body) = text.split_once("\r\n\r\n").unwrap();
        let status = headers.split(' ').nth(1).unwrap().parse().unwrap();
        Self { status, headers: headers.to_lowercase(), body: body.to_string() }
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }

    /// Status and code of a problem.
    pub(crate) fn problem(&self) -> (u16, String) {
        assert!(self.headers.contains("application/problem+json"), "{self:?}");
        let body = self.json();
        assert_eq!((&body["status"], body["request_id"].as_str().unwrap().len()), (&self.status.into(), 32));
        (self.status, body["code"].as_str().unwrap().to_string())
    }
}

/// Adds finished instances to the file of a SQLite store, in the places before `end` of the order of creation.
pub(crate) fn fill(file: &Path, end: u64, count: u64) {
    let file = rusqlite::Connection::open(file).unwrap();
    file.busy_timeout(PATIENCE).unwrap();
    let numbers = format!(
        "WITH RECURSIVE numbers(n, place) AS \
         (SELECT 1, {end} - 1 UNION ALL SELECT n + 1, place - 1 FROM numbers WHERE n < {count})"
    );
    for statement in [
        "INSERT INTO instances (rowid, instance_id, orchestration_name, orchestration_version, current_execution_id, created_at, updated_at) \
         SELECT place, 'old-' || n, 'Order', '1.0.0', 1, 1000 + n, 2000 + n FROM numbers",
        "INSERT INTO executions (instance_id, execution_id, status, output, started_at, completed_at, updated_at) \
         SELECT 'old-' || n, 1, 'Completed', 'done', 1000 + n, 2000 + n, 2000 + n FROM numbers",
    ] {
        file.execute(&format!("{numbers} {statement}"), ()).unwrap();
    }
}
