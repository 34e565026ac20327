//! Fetches that wait, and calls that share a transaction.

mod batches;
mod dropped;
mod news;
mod others;
mod watches;

use crate::support::*;
use outlast_model::WorkItem;
use outlast_provider::{Provider, TagFilter};
use outlast_sqlite::{SqliteOptions, SqliteProvider};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::{JoinHandle, JoinSet, yield_now};
use tokio::time::timeout;

const ANY: TagFilter = TagFilter::DefaultOnly;

/// Far more than a fetch needs on a busy machine, far less than its patience.
const LATE_MS: u64 = 2_000;

/// No look at what other processes did: nothing but news from within wakes a fetch.
async fn open_alone(path: &Path) -> Arc<SqliteProvider> {
    let foreign_poll_interval = Duration::from_secs(300);
    Arc::new(open_with(path, SqliteOptions { foreign_poll_interval, ..SqliteOptions::default() }).await)
}

/// Starts a fetch; returns when the writer has looked once and found nothing.
async fn parked<T: Send + 'static>(
    provider: &Arc<SqliteProvider>,
    fetch: impl Future<Output = T> + Send + 'static,
) -> JoinHandle<T> {
    let before = provider.stats().statements;
    let fetch = tokio::spawn(fetch);
    let looked = async {
        while provider.stats().statements == before {
            yield_now().await;
        }
    };
    timeout(PATIENCE, looked).await.expect("the writer looks");
    fetch
}

async fn parked_turn(provider: &Arc<SqliteProvider>) -> JoinHandle<String> {
    let own = Arc::clone(provider);
    parked(provider, async move { turn(&*own).await.1 }).await
}

async fn parked_work(provider: &Arc<SqliteProvider>) -> JoinHandle<String> {
    let own = Arc::clone(provider);
    parked(provider, async move { work(&*own).await.1 }).await
}

/// How long fetches took to be answered.
#[derive(Default)]
struct Delays(Vec<u64>);

impl Delays {
    /// The fetch is answered; says with which token.
    async fn soon(&mut self, what: &str, fetch: JoinHandle<String>) -> String {
        let (token, took) = timed(fetch).await;
        assert!(took < LATE_MS, "{what}: it took {took} ms");
        self.0.push(took);
        token.unwrap()
    }
}

/// Keeps the writer busy until it is aborted.
fn load(provider: &Arc<SqliteProvider>, tasks: usize, item: fn(u64) -> WorkItem) -> JoinSet<()> {
    let mut load = JoinSet::new();
    for task in 0..tasks as u64 {
        let provider = Arc::clone(provider);
        load.spawn(async move {
            for n in 0.. {
                let item = item(task * 1_000_000 + n);
                match &item {
                    WorkItem::ActivityExecute { .. } => provider.enqueue_for_worker(item).await.unwrap(),
                    _ => provider.enqueue_for_orchestrator(item, Some(LONG)).await.unwrap(),
                }
            }
        });
    }
    load
}

/// Work that no fetch of these tests asks for.
fn tagged_work(id: u64) -> WorkItem {
    let WorkItem::ActivityExecute { instance, execution_id, name, input, .. } = activity("load", id) else {
        unreachable!()
    };
    let tag = Some("load".to_string());
    WorkItem::ActivityExecute { instance, execution_id, id, name, input, session_id: None, tag }
}

fn median(mut times: Vec<u64>) -> (u64, u64) {
    times.sort_unstable();
    (times[times.len() / 2], times[times.len() - 1])
}
