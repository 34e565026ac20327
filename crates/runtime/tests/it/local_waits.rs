//! Waits of a client for an instance that a runtime on the same store object holds suspended: when the client reads the store.

use async_trait::async_trait;
use outlast_engine::OrchestrationContext;
use outlast_memory::MemoryProvider;
use outlast_provider::{InstanceOutcome, InstanceWatch, Interest, Provider, ProviderError, forward_provider};
use outlast_runtime::registry::{ActivityRegistry, OrchestrationRegistry};
use outlast_runtime::{ActivityContext, Client, OrchestrationStatus, Runtime, RuntimeOptions};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;

const LONG: Duration = Duration::from_secs(600);

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A store that notes when outcomes are read.
struct Noting {
    inner: MemoryProvider,
    reads: Mutex<Vec<Instant>>,
    /// Whether watches resolve. They do not resolve at a commit of another process.
    is_watched: bool,
}

#[async_trait]
impl Provider for Noting {
    forward_provider!(Provider, |this| this.inner, except(read_outcome, watch_instance));

    async fn read_outcome(&self, instance: &str) -> Result<Option<InstanceOutcome>, ProviderError> {
        self.reads.lock().unwrap().push(Instant::now());
        self.inner.read_outcome(instance).await
    }

    fn watch_instance(&self, instance: &str, interest: Interest) -> Option<InstanceWatch> {
        match self.is_watched {
            true => self.inner.watch_instance(instance, interest),
            false => Some(Box::pin(std::future::pending())),
        }
    }
}

/// Starts an instance with one activity that takes this time, and waits for the instance 1 ms later. Returns the times of reads, in
/// milliseconds after the start of the wait, and the time of the wait.
async fn reads_of_wait(is_watched: bool, activity: Duration, timeout: Duration) -> (Vec<u128>, u128) {
    let store = Arc::new(Noting { inner: MemoryProvider::new(), reads: Mutex::default(), is_watched });
    let works = move |_: ActivityContext, _: String| async move {
        tokio::time::sleep_until(Instant::now() + activity).await;
        Ok("done".to_string())
    };
    let orders =
        |ctx: OrchestrationContext, _: String| async move { ctx.schedule_activity("Works", "").await };
    let runtime = Runtime::start_with_options(
        store.clone(),
        ActivityRegistry::builder().register("Works", works).build(),
        OrchestrationRegistry::builder().register("Orders", orders).build(),
        RuntimeOptions::default(),
    )
    .await;
    let client = Client::new(store.clone() as Arc<dyn Provider>);
    client.start_orchestration("i", "Orders", "").await.unwrap();
    tokio::time::sleep_until(Instant::now() + ms(1)).await;
    store.reads.lock().unwrap().clear();
    let since = Instant::now();
    let status = client.wait_for_orchestration("i", timeout).await;
    let took = since.elapsed().as_millis();
    let is_completed = matches!(status, Ok(OrchestrationStatus::Completed { .. }));
    assert_eq!(is_completed, timeout == LONG, "{status:?}");
    let reads = store.reads.lock().unwrap().iter().map(|at| (*at - since).as_millis()).collect();
    runtime.shutdown(None).await;
    (reads, took)
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_ends_soon_is_read_once_at_its_end() {
    assert_eq!(reads_of_wait(true, ms(4), LONG).await, (vec![3], 3));
}

#[tokio::test(start_paused = true)]
async fn wait_for_a_longer_instance_reads_after_five_milliseconds_and_at_its_end() {
    assert_eq!(reads_of_wait(true, ms(101), LONG).await, (vec![5, 100], 100));
}

#[tokio::test(start_paused = true)]
async fn without_a_resolved_watch_the_end_is_noticed_by_the_next_read() {
    assert_eq!(reads_of_wait(false, ms(3), LONG).await, (vec![5], 5));
    assert_eq!(reads_of_wait(false, ms(101), LONG).await, (vec![5, 255], 255));
}

#[tokio::test(start_paused = true)]
async fn a_short_timeout_reads_once_at_the_deadline() {
    assert_eq!(reads_of_wait(true, ms(101), ms(2)).await, (vec![2], 2));
}

/// The status of an instance that this process does not hold is not known here, so the client reads it at once.
#[tokio::test(start_paused = true)]
async fn an_instance_that_the_process_does_not_hold_is_read_at_once() {
    let store = Arc::new(Noting { inner: MemoryProvider::new(), reads: Mutex::default(), is_watched: true });
    let client = Client::new(store.clone() as Arc<dyn Provider>);
    let since = Instant::now();
    assert!(client.wait_for_orchestration("i", ms(1)).await.is_err());
    assert_eq!(store.reads.lock().unwrap().first(), Some(&since));
}
