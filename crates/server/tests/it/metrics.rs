//! `/metrics`, and the files that name its metrics.

use crate::kit::{Server, operating, token, with_tokens};
use outlast::providers::memory::MemoryProvider;
use outlast::providers::{Clock, Provider, WorkItem};
use outlast_server::{Options, Scope};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

fn document(path: &str) -> String {
    std::fs::read_to_string(format!("{}/../../docs/{path}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// The names in the first column of the tables of a part of a page.
fn table(text: &str) -> BTreeSet<String> {
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    rows.map(|(name, _)| name.replace('.', "_")).collect()
}

async fn emitted(server: &Server) -> BTreeSet<String> {
    let text = server.get("/metrics").await.body;
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    types.map(|(name, _)| name.to_string()).collect()
}

#[tokio::test]
async fn figures_of_the_store_are_shown() {
    let server = Server::on_sqlite(operating()).await;
    figures(&server).await;
    server.stop().await;
}

pub(crate) async fn figures(server: &Server) {
    server.waiting_order("a").await;
    server.waiting_order("b").await;
    server.store.pause_instance("b", "ada", "look").await.unwrap();
    let answer = server.get("/metrics").await;
    assert!(answer.headers.contains("content-type: text/plain; version=0.0.4"), "{answer:?}");
    for line in [
        "outlast_instances{status=\"running\"} 2",
        "outlast_instances{status=\"failed\"} 0",
        "outlast_queue_messages{queue=\"worker\",state=\"due\"} 0",
        "outlast_queue_oldest_seconds{queue=\"orchestrator\"} 0",
        "outlast_held_instances 1",
        "outlast_dead_letters 0",
        "outlast_store_up 1",
        "outlast_sse_clients 0",
    ] {
        assert!(answer.body.lines().any(|found| found == line), "{line} in {}", answer.body);
    }
    let again = server.get("/metrics").await.body;
    let requests = "outlast_http_request_duration_seconds_count{code=\"2xx\"} 1";
    assert!(again.lines().any(|found| found == requests), "{again}");
}

/// A clock that a test sets.
struct Hand(AtomicU64);

impl Clock for Hand {
    fn now_ms(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[tokio::test]
async fn longest_wait_of_an_activity_without_a_worker_is_shown() {
    let clock = Arc::new(Hand(AtomicU64::new(1_000_000)));
    let store = Arc::new(MemoryProvider::with_clock(clock.clone()));
    let server = Server::on(store.clone(), operating(), tempfile::tempdir().unwrap()).await;
    let item = WorkItem::ActivityExecute {
        instance: "a".to_string(),
        execution_id: 1,
        id: 2,
        name: "charge".to_string(),
        input: String::new(),
        session_id: None,
        tag: Some("no worker has this tag".to_string()),
    };
    store.enqueue_for_worker(item).await.unwrap();
    clock.0.fetch_add(90_500, Ordering::Relaxed);
    let text = server.get("/metrics").await.body;
    for line in ["{queue=\"orchestrator\"} 0", "{queue=\"worker\"} 90.5"] {
        assert!(text.contains(&format!("\noutlast_queue_oldest_seconds{line}\n")), "{line} in {text}");
    }
    server.stop().await;
}

#[tokio::test]
async fn metrics_need_the_scope_read() {
    let server = Server::start(with_tokens(Options::default())).await;
    assert_eq!(server.get("/metrics").await.problem(), (401, "unauthenticated".to_string()));
    let bearer = format!("Bearer {}", token(Scope::Read));
    assert_eq!(server.send("GET", "/metrics", &[("authorization", &bearer)], "").await.status, 200);
    server.stop().await;
}

#[tokio::test]
async fn page_lists_every_metric_of_the_server() {
    let server = Server::on_sqlite(Options::default()).await;
    let page = document("http-api.md");
    let part = page.split("\n## Metrics\n").nth(1).unwrap().split("\n## ").next().unwrap();
    assert_eq!(table(part), emitted(&server).await);
    server.stop().await;
}

#[tokio::test]
async fn dashboard_and_alerts_name_metrics_that_exist() {
    let server = Server::on_sqlite(Options::default()).await;
    let mut known = emitted(&server).await;
    // Tests of the facade compare this page with the metrics of runtimes.
    known.extend(table(&document("observability.md")));
    let dashboard: serde_json::Value = serde_json::from_str(&document("grafana/outlast.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().filter_map(|panel| panel["targets"].as_array()).flatten();
    let mut expressions: Vec<String> =
        targets.map(|target| target["expr"].as_str().unwrap().to_string()).collect();
    let alerts = document("grafana/alerts.yaml");
    expressions
        .extend(alerts.lines().filter_map(|line| line.trim().strip_prefix("expr: ").map(str::to_string)));
    assert!(expressions.len() > 25, "{}", expressions.len());
    let mut found = 0;
    for expression in &expressions {
        let words = expression.split(|char: char| !char.is_ascii_alphanumeric() && char != '_');
        for word in words.filter(|word| word.starts_with("outlast_") || word.starts_with("duroxide_")) {
            let name =
                ["_bucket", "_sum", "_count"].iter().find_map(|end| word.strip_suffix(end)).unwrap_or(word);
            assert!(known.contains(name) || known.contains(word), "{word} in {expression}");
            found += 1;
        }
    }
    assert!(found >= expressions.len(), "{found} names in {} expressions", expressions.len());
    server.stop().await;
}

#[test]
fn alerts_fire_although_the_series_of_a_metric_are_missing() {
    let alerts = document("grafana/alerts.yaml");
    let mut alert = "";
    for line in alerts.lines().map(str::trim) {
        alert = line.strip_prefix("- alert: ").unwrap_or(alert);
        let Some(expression) = line.strip_prefix("expr: ") else { continue };
        // A comparison with zero is empty without a series: the series is absent if the process that exports it is gone.
        assert!(
            !expression.contains(" == 0") || expression.contains(" or absent("),
            "{alert} does not fire if nothing exports its metric: {expression}"
        );
        // An operation on two results is empty if one of them is.
        let terms: Vec<&str> = expression.split(" + ").collect();
        assert!(
            terms.len() == 1 || terms.iter().all(|term| term.contains(" or vector(0))")),
            "{alert} does not fire before all its metrics exist: {expression}"
        );
        assert!(
            !expression.contains(" and ") || !expression.contains("rate("),
            "{alert} needs runtimes that export: write `unless` in place of `and`: {expression}"
        );
    }
    assert!(alerts.contains("expr: "), "{alerts}");
}
