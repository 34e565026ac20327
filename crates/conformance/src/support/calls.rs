//! Calls that must succeed or must fail, and waiting for what they bring about.

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
/// How often a condition that may take a moment is looked at.
const TICK: Duration = Duration::from_millis(10);
/// More than any queue here holds: a store that hands the same work out for ever must fail, not hang.
const MANY: usize = 1_000;

pub(crate) async fn enqueue(provider: &dyn Provider, item: WorkItem) {
    provider.enqueue_for_orchestrator(item, None).await.expect("enqueue_for_orchestrator succeeds");
}

pub(crate) async fn enqueue_all(provider: &dyn Provider, items: &[WorkItem]) {
    for item in items {
        enqueue(provider, item.clone()).await;
    }
}

/// A message that gives the instance something to do.
pub(crate) async fn poke(provider: &dyn Provider, instance: &str) {
    enqueue(provider, super::raised(instance, "poke", "")).await;
}

pub(crate) async fn enqueue_work(provider: &dyn Provider, item: WorkItem) {
    provider.enqueue_for_worker(item).await.expect("enqueue_for_worker succeeds");
}

pub(crate) async fn enqueue_all_work(provider: &dyn Provider, items: &[WorkItem]) {
    for item in items {
        enqueue_work(provider, item.clone()).await;
    }
}

/// A fetch without patience and without a filter.
pub(crate) async fn fetch(
    provider: &dyn Provider,
    lease: Duration,
) -> Option<(OrchestrationItem, String, u32)> {
    provider.fetch_orchestration_item(lease, NO_WAIT, None).await.expect("fetch_orchestration_item succeeds")
}

/// The turn that must be there.
pub(crate) async fn must_fetch(provider: &dyn Provider, lease: Duration) -> (OrchestrationItem, String, u32) {
    fetch(provider, lease).await.expect("a turn is ready")
}

/// A dispatcher that supports these ranges of versions, both ends included.
pub(crate) fn supporting(ranges: impl IntoIterator<Item = (Version, Version)>) -> DispatcherCapabilityFilter {
    let supported_duroxide_versions =
        ranges.into_iter().map(|(min, max)| SemverRange::new(min, max)).collect();
    DispatcherCapabilityFilter { supported_duroxide_versions }
}

/// A fetch of untagged work without patience and without a session.
pub(crate) async fn fetch_work(provider: &dyn Provider, lease: Duration) -> Option<(WorkItem, String, u32)> {
    fetch_work_as(provider, lease, None, &TagFilter::default()).await
}

pub(crate) async fn fetch_work_as(
    provider: &dyn Provider,
    lease: Duration,
    session: Option<&SessionFetchConfig>,
    tags: &TagFilter,
) -> Option<(WorkItem, String, u32)> {
    provider.fetch_work_item(lease, NO_WAIT, session, tags).await.expect("fetch_work_item succeeds")
}

/// The activity that must be there.
pub(crate) async fn must_fetch_work(provider: &dyn Provider, lease: Duration) -> (WorkItem, String, u32) {
    fetch_work(provider, lease).await.expect("an activity is ready")
}

/// A worker that takes sessions, each for this long.
pub(crate) fn session_owner(owner_id: &str, lock_timeout: Duration) -> SessionFetchConfig {
    SessionFetchConfig { owner_id: owner_id.to_string(), lock_timeout }
}

/// All activities that the filter admits, each with its delivery count, in the order of fetching. They stay leased.
pub(crate) async fn drain_work(provider: &dyn Provider, tags: &TagFilter) -> Vec<(WorkItem, u32)> {
    let mut drained = Vec::new();
    while let Some((item, _, attempt)) = fetch_work_as(provider, LONG, None, tags).await {
        drained.push((item, attempt));
        assert!(drained.len() < MANY, "the queue does not end: {:?}", drained.last());
    }
    drained
}

/// What there is within this time, by looking again and again.
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

/// The error of a call that must fail and cannot be helped by trying again.
pub(crate) fn permanent<T>(result: Result<T, ProviderError>, what: &str) -> ProviderError {
    match result {
        Ok(_) => panic!("{what} must be refused"),
        Err(error) => {
            assert!(!error.is_retryable(), "{what} must be a permanent error, got: {error}");
            error
        }
    }
}
