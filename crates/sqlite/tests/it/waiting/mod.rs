//! Parked fetches, and calls that share a transaction.

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

/// Far more than a fetch needs on a busy machine, and far less than its timeout.
const LATE_MS: u64 = 2_000;

/// A store that does not notice commits of other processes: only its own commits wake a parked fetch.
async fn open_alone(path: &Path) -> Arc<SqliteProvider> {
    let foreign_poll_interval = Duration::from_secs(300);
    Arc::new(open_with(path, SqliteOptions { foreign_poll_interval, ..SqliteOptions::default() }).await)
}

/// Starts a fetch; returns when the writer has searched once and found no item.
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
    timeout(PATIENCE, looked).await.expect("the writer runs a statement");
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

/// The times from an event to the answer of a parked fetch.
#[derive(Default)]
struct Delays(Vec<u64>);

impl Delays {
    /// Asserts that the fetch is answered in time; returns its token.
    async fn soon(&mut self, what: &str, fetch: JoinHandle<String>) -> String {
        let (token, took) = timed(fetch).await;
        assert!(took < LATE_MS, "{what}: it took {took} ms");
        self.0.push(took);
        token.unwrap()
    }
}

/// Keeps the writer busy until the returned tasks are dropped.
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

/// An activity that no fetch of these tests asks for.
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
