//! Calls that must succeed or fail, and waits for their effects.

use outlast_provider::{
    DispatcherCapabilityFilter, OrchestrationItem, Provider, ProviderError, SemverRange, SessionFetchConfig,
    TagFilter, WorkItem,
};
use semver::Version;
use std::future::Future;
use std::time::Duration;
use tokio::time::{Instant, sleep};

pub(crate) const NO_WAIT: Duration = Duration::ZERO;
/// A lease that no validation outlives.
pub(crate) const LONG: Duration = Duration::from_secs(600);
/// The interval at which a condition is checked.
const TICK: Duration = Duration::from_millis(10);
/// More items than any queue here holds: a store that returns the same item endlessly must fail, not hang.
const MANY: usize = 1_000;

pub(crate) async fn enqueue(provider: &dyn Provider, item: WorkItem) {
    provider.enqueue_for_orchestrator(item, None).await.expect("enqueue_for_orchestrator succeeds");
}

pub(crate) async fn enqueue_all(provider: &dyn Provider, items: &[WorkItem]) {
    for item in items {
        enqueue(provider, item.clone()).await;
    }
}

/// A message that causes a turn of the instance.
pub(crate) async fn poke(provider: &dyn Provider, instance: &str) {
    enqueue(provider, super::raised(instance, "poke", "")).await;
}

pub(crate) async fn enqueue_activity(provider: &dyn Provider, item: WorkItem) {
    provider.enqueue_for_worker(item).await.expect("enqueue_for_worker succeeds");
}

pub(crate) async fn enqueue_activities(provider: &dyn Provider, items: &[WorkItem]) {
    for item in items {
        enqueue_activity(provider, item.clone()).await;
    }
}

/// A fetch with a poll timeout of zero and without a filter.
pub(crate) async fn fetch(
    provider: &dyn Provider,
    lease: Duration,
) -> Option<(OrchestrationItem, String, u32)> {
    provider.fetch_orchestration_item(lease, NO_WAIT, None).await.expect("fetch_orchestration_item succeeds")
}

/// Fetches a turn, which must be ready.
pub(crate) async fn must_fetch(provider: &dyn Provider, lease: Duration) -> (OrchestrationItem, String, u32) {
    fetch(provider, lease).await.expect("a turn is ready")
}

/// A dispatcher that supports these ranges of versions, both ends included.
pub(crate) fn supporting(ranges: impl IntoIterator<Item = (Version, Version)>) -> DispatcherCapabilityFilter {
    let supported_duroxide_versions =
        ranges.into_iter().map(|(min, max)| SemverRange::new(min, max)).collect();
    DispatcherCapabilityFilter { supported_duroxide_versions }
}

/// A fetch of untagged activities with a poll timeout of zero and without sessions.
pub(crate) async fn fetch_activity(
    provider: &dyn Provider,
    lease: Duration,
) -> Option<(WorkItem, String, u32)> {
    fetch_activity_as(provider, lease, None, &TagFilter::default()).await
}

pub(crate) async fn fetch_activity_as(
    provider: &dyn Provider,
    lease: Duration,
    session: Option<&SessionFetchConfig>,
    tags: &TagFilter,
) -> Option<(WorkItem, String, u32)> {
    provider.fetch_work_item(lease, NO_WAIT, session, tags).await.expect("fetch_work_item succeeds")
}

/// Fetches an activity, which must be ready.
pub(crate) async fn must_fetch_activity(provider: &dyn Provider, lease: Duration) -> (WorkItem, String, u32) {
    fetch_activity(provider, lease).await.expect("an activity is ready")
}

/// A worker that takes sessions, with a session lease of this length.
pub(crate) fn session_owner(owner_id: &str, lock_timeout: Duration) -> SessionFetchConfig {
    SessionFetchConfig { owner_id: owner_id.to_string(), lock_timeout }
}

/// All activities that match the filter, each with its delivery count, in the order of fetching. They stay leased.
pub(crate) async fn drain_activities(provider: &dyn Provider, tags: &TagFilter) -> Vec<(WorkItem, u32)> {
    let mut drained = Vec::new();
    while let Some((item, _, attempt)) = fetch_activity_as(provider, LONG, None, tags).await {
        drained.push((item, attempt));
        assert!(drained.len() < MANY, "the queue does not end: {:?}", drained.last());
    }
    drained
}

/// The value that a repeated call returns within this time.
pub(crate) async fn within<T, F: Future<Output = Option<T>>>(time: Duration, look: impl Fn() -> F) -> T {
    let give_up = Instant::now() + time;
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(Instant::now() < give_up, "nothing became ready within {time:?}");
        sleep(TICK).await;
    }
}

/// Waits until a lease of this length, taken before the call, is over.
pub(crate) async fn outlive(lease: Duration) {
    sleep(lease + Duration::from_millis(50)).await;
}

/// The error of a call that must fail with a permanent error.
pub(crate) fn permanent<T>(result: Result<T, ProviderError>, what: &str) -> ProviderError {
    match result {
        Ok(_) => panic!("{what} must be refused"),
        Err(error) => {
            assert!(!error.is_retryable(), "{what} must be a permanent error, got: {error}");
            error
        }
    }
}
