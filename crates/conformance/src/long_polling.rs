//! The wait of a fetch: at most its poll timeout, none with a timeout of zero, and none if an item is ready.

use crate::queues::{BOTH, Held, Queue};
use crate::support::*;
use futures::future::join;
use outlast_provider::Provider;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Tokio's timer and a store's clock both count in milliseconds.
const ROUNDING: Duration = Duration::from_millis(5);
/// The time by which a fetch may exceed its poll timeout.
const OVERHEAD: Duration = Duration::from_millis(200);

/// The result of a fetch, and its duration.
async fn timed_fetch(
    queue: Queue,
    provider: &dyn Provider,
    lease: Duration,
    poll_timeout: Duration,
) -> (Option<Held>, Duration) {
    let begun = Instant::now();
    (queue.fetch(provider, lease, poll_timeout).await, begun.elapsed())
}

async fn finish(queue: Queue, provider: &dyn Provider, held: Option<Held>) {
    let held = held.unwrap_or_else(|| panic!("{queue:?}: what was enqueued is fetched"));
    queue.finish(provider, &held.token).await.expect("the lease is live");
}

/// The duration of a fetch that finds nothing, on a store that has delivered an item before.
async fn idle_fetch(queue: Queue, provider: &dyn Provider, poll_timeout: Duration) -> Duration {
    queue.put(provider, 1).await;
    finish(queue, provider, queue.fetch(provider, LONG, NO_WAIT).await).await;
    let (held, took) = timed_fetch(queue, provider, LONG, poll_timeout).await;
    assert_eq!(held, None, "{queue:?}: nothing is left");
    took
}

async fn returns_immediately(queue: Queue, provider: &dyn Provider, threshold: Duration) {
    let took = idle_fetch(queue, provider, NO_WAIT).await;
    assert!(took < threshold, "{queue:?}: a fetch without patience took {took:?}");
}

async fn waits_for_timeout(queue: Queue, provider: &dyn Provider) {
    let poll_timeout = Duration::from_millis(500);
    let took = idle_fetch(queue, provider, poll_timeout).await;
    assert!(took + ROUNDING >= poll_timeout, "{queue:?}: an idle fetch returned after {took:?}");
    assert!(took <= poll_timeout + OVERHEAD, "{queue:?}: an idle fetch took {took:?}");

    queue.put(provider, 2).await;
    let (held, took) = timed_fetch(queue, provider, LONG, poll_timeout).await;
    finish(queue, provider, held).await;
    assert!(took <= OVERHEAD, "{queue:?}: a fetch of a waiting item took {took:?}");

    let (lease, poll_timeout) = (Duration::from_millis(500), Duration::from_secs(5));
    let arrival = async {
        sleep(Duration::from_millis(400)).await;
        queue.put(provider, 3).await;
    };
    let ((held, took), ()) = join(timed_fetch(queue, provider, lease, poll_timeout), arrival).await;
    assert!(
        took < poll_timeout / 2,
        "{queue:?}: an item that arrived after 400 ms was fetched after {took:?}"
    );
    // The lease starts at the claim: from the call, it would have expired by now.
    sleep(Duration::from_millis(250)).await;
    finish(queue, provider, held).await;
}

/// A fetch of a turn with a poll timeout of zero returns at once if there is none.
pub async fn test_short_poll_returns_immediately(provider: &dyn Provider, threshold: Duration) {
    returns_immediately(Queue::Turns, provider, threshold).await;
}

/// A fetch of an activity with a poll timeout of zero returns at once if there is none.
pub async fn test_short_poll_work_item_returns_immediately(provider: &dyn Provider, threshold: Duration) {
    returns_immediately(Queue::Work, provider, threshold).await;
}

/// A fetch never waits much longer than its poll timeout, on either queue.
pub async fn test_fetch_respects_timeout_upper_bound(provider: &dyn Provider) {
    let poll_timeout = Duration::from_millis(300);
    for queue in BOTH {
        let took = idle_fetch(queue, provider, poll_timeout).await;
        assert!(took <= poll_timeout + OVERHEAD, "{queue:?}: an idle fetch took {took:?}");
    }
}

/// A store that supports waiting parks a fetch of a turn for its poll timeout, and returns as soon as a turn is ready.
pub async fn test_long_poll_waits_for_timeout(provider: &dyn Provider) {
    waits_for_timeout(Queue::Turns, provider).await;
}

/// A store that supports waiting parks a fetch of an activity for its poll timeout, and returns as soon as one is ready.
pub async fn test_long_poll_work_item_waits_for_timeout(provider: &dyn Provider) {
    waits_for_timeout(Queue::Work, provider).await;
}
