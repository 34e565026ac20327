//! How long a fetch waits: at most as long as asked, not at all without patience, and not while there is work.

use crate::queues::{BOTH, Held, Queue};
use crate::support::*;
use futures::future::join;
use outlast_provider::Provider;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Tokio's timer and a store's clock both count in milliseconds.
const ROUNDING: Duration = Duration::from_millis(5);
/// What a fetch may take beyond its patience.
const OVERHEAD: Duration = Duration::from_millis(200);

/// What a fetch gets, and how long it takes.
async fn timed_fetch(
    queue: Queue,
    provider: &dyn Provider,
    lease: Duration,
    patience: Duration,
) -> (Option<Held>, Duration) {
    let begun = Instant::now();
    (queue.fetch(provider, lease, patience).await, begun.elapsed())
}

async fn finish(queue: Queue, provider: &dyn Provider, held: Option<Held>) {
    let held = held.unwrap_or_else(|| panic!("{queue:?}: what was enqueued is fetched"));
    queue.finish(provider, &held.token).await.expect("the lease is live");
}

/// How long a fetch takes that finds nothing, from a store that has just shown that it can deliver.
async fn idle_fetch(queue: Queue, provider: &dyn Provider, patience: Duration) -> Duration {
    queue.put(provider, 1).await;
    finish(queue, provider, queue.fetch(provider, LONG, NO_WAIT).await).await;
    let (held, took) = timed_fetch(queue, provider, LONG, patience).await;
    assert_eq!(held, None, "{queue:?}: nothing is left");
    took
}

async fn returns_immediately(queue: Queue, provider: &dyn Provider, threshold: Duration) {
    let took = idle_fetch(queue, provider, NO_WAIT).await;
    assert!(took < threshold, "{queue:?}: a fetch without patience took {took:?}");
}

async fn waits_for_timeout(queue: Queue, provider: &dyn Provider) {
    let patience = Duration::from_millis(500);
    let took = idle_fetch(queue, provider, patience).await;
    assert!(took + ROUNDING >= patience, "{queue:?}: an idle fetch returned after {took:?}");
    assert!(took <= patience + OVERHEAD, "{queue:?}: an idle fetch took {took:?}");

    queue.put(provider, 2).await;
    let (held, took) = timed_fetch(queue, provider, LONG, patience).await;
    finish(queue, provider, held).await;
    assert!(took <= OVERHEAD, "{queue:?}: a fetch of waiting work took {took:?}");

    let (lease, patience) = (Duration::from_millis(500), Duration::from_secs(5));
    let arrival = async {
        sleep(Duration::from_millis(400)).await;
        queue.put(provider, 3).await;
    };
    let ((held, took), ()) = join(timed_fetch(queue, provider, lease, patience), arrival).await;
    assert!(took < patience / 2, "{queue:?}: work that arrived after 400 ms was fetched after {took:?}");
    // The lease counts from the claim: from the call, it would be over by now.
    sleep(Duration::from_millis(250)).await;
    finish(queue, provider, held).await;
}

/// A fetch of a turn without patience returns at once when there is none.
pub async fn test_short_poll_returns_immediately(provider: &dyn Provider, threshold: Duration) {
    returns_immediately(Queue::Turns, provider, threshold).await;
}

/// A fetch of an activity without patience returns at once when there is none.
pub async fn test_short_poll_work_item_returns_immediately(provider: &dyn Provider, threshold: Duration) {
    returns_immediately(Queue::Work, provider, threshold).await;
}

/// A fetch never waits much longer than it was asked to, on either queue.
pub async fn test_fetch_respects_timeout_upper_bound(provider: &dyn Provider) {
    let patience = Duration::from_millis(300);
    for queue in BOTH {
        let took = idle_fetch(queue, provider, patience).await;
        assert!(took <= patience + OVERHEAD, "{queue:?}: an idle fetch took {took:?}");
    }
}

/// A store that waits holds an idle fetch of a turn for the whole time asked, and returns as soon as there is one.
pub async fn test_long_poll_waits_for_timeout(provider: &dyn Provider) {
    waits_for_timeout(Queue::Turns, provider).await;
}

/// A store that waits holds an idle fetch of an activity for the whole time asked, and returns as soon as there is one.
pub async fn test_long_poll_work_item_waits_for_timeout(provider: &dyn Provider) {
    waits_for_timeout(Queue::Work, provider).await;
}
