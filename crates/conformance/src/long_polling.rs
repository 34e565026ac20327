//! How long a fetch waits: at most as long as asked, not at all without patience, and not while there is work.

use crate::support::*;
use futures::future::join;
use outlast_provider::{Provider, TagFilter};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Tokio's timer and a store's clock both count in milliseconds.
const ROUNDING: Duration = Duration::from_millis(5);
/// What a fetch may take beyond its patience.
const OVERHEAD: Duration = Duration::from_millis(200);

/// What the rules hold for alike.
#[derive(Debug, Clone, Copy)]
enum Queue {
    Turns,
    Work,
}

impl Queue {
    async fn put(self, provider: &dyn Provider) {
        match self {
            Queue::Turns => enqueue(provider, start_item("polled")).await,
            Queue::Work => enqueue_work(provider, activity("polled", 1)).await,
        }
    }

    /// Fetches what was put; returns the token and how long it took.
    async fn take(
        self,
        provider: &dyn Provider,
        lease: Duration,
        patience: Duration,
    ) -> (Option<String>, Duration) {
        let begun = Instant::now();
        let token = match self {
            Queue::Turns => {
                let fetched = provider.fetch_orchestration_item(lease, patience, None).await.unwrap();
                fetched.map(|(item, token, _)| {
                    assert_eq!(item.messages, [start_item("polled")]);
                    token
                })
            }
            Queue::Work => {
                let fetched = provider.fetch_work_item(lease, patience, None, &TagFilter::DefaultOnly).await;
                fetched.unwrap().map(|(item, token, _)| {
                    assert_eq!(item, activity("polled", 1));
                    token
                })
            }
        };
        (token, begun.elapsed())
    }

    /// Fetches what must be there, commits it, and returns how long the fetch took.
    async fn take_and_commit(self, provider: &dyn Provider, patience: Duration) -> Duration {
        let (token, took) = self.take(provider, LONG, patience).await;
        self.commit(provider, token).await;
        took
    }

    async fn commit(self, provider: &dyn Provider, token: Option<String>) {
        let token = token.unwrap_or_else(|| panic!("{self:?}: what was enqueued is fetched"));
        match self {
            Queue::Turns => Turn::new(&token).commit(provider).await,
            Queue::Work => provider.ack_work_item(&token, None).await.unwrap(),
        }
    }

    /// How long a fetch takes that finds nothing, from a store that has just shown that it can deliver.
    async fn idle_fetch(self, provider: &dyn Provider, patience: Duration) -> Duration {
        self.put(provider).await;
        self.take_and_commit(provider, NO_WAIT).await;
        let (token, took) = self.take(provider, LONG, patience).await;
        assert_eq!(token, None, "{self:?}: nothing is left");
        took
    }

    async fn returns_immediately(self, provider: &dyn Provider, threshold: Duration) {
        let took = self.idle_fetch(provider, NO_WAIT).await;
        assert!(took < threshold, "{self:?}: a fetch without patience took {took:?}");
    }

    async fn waits_for_timeout(self, provider: &dyn Provider) {
        let patience = Duration::from_millis(500);
        let took = self.idle_fetch(provider, patience).await;
        assert!(took + ROUNDING >= patience, "{self:?}: an idle fetch returned after {took:?}");
        assert!(took <= patience + OVERHEAD, "{self:?}: an idle fetch took {took:?}");

        self.put(provider).await;
        let took = self.take_and_commit(provider, patience).await;
        assert!(took <= OVERHEAD, "{self:?}: a fetch of waiting work took {took:?}");

        let (lease, patience) = (Duration::from_millis(500), Duration::from_secs(5));
        let arrival = async {
            sleep(Duration::from_millis(400)).await;
            self.put(provider).await;
        };
        let ((token, took), ()) = join(self.take(provider, lease, patience), arrival).await;
        assert!(took < patience / 2, "{self:?}: work that arrived after 400 ms was fetched after {took:?}");
        // The lease counts from the claim: from the call, it would be over by now.
        sleep(Duration::from_millis(250)).await;
        self.commit(provider, token).await;
    }
}

/// A fetch of a turn without patience returns at once when there is none.
pub async fn test_short_poll_returns_immediately(provider: &dyn Provider, threshold: Duration) {
    Queue::Turns.returns_immediately(provider, threshold).await;
}

/// A fetch of an activity without patience returns at once when there is none.
pub async fn test_short_poll_work_item_returns_immediately(provider: &dyn Provider, threshold: Duration) {
    Queue::Work.returns_immediately(provider, threshold).await;
}

/// A fetch never waits much longer than it was asked to, on either queue.
pub async fn test_fetch_respects_timeout_upper_bound(provider: &dyn Provider) {
    let patience = Duration::from_millis(300);
    for queue in [Queue::Turns, Queue::Work] {
        let took = queue.idle_fetch(provider, patience).await;
        assert!(took <= patience + OVERHEAD, "{queue:?}: an idle fetch took {took:?}");
    }
}

/// A store that waits holds an idle fetch of a turn for the whole time asked, and returns as soon as there is one.
pub async fn test_long_poll_waits_for_timeout(provider: &dyn Provider) {
    Queue::Turns.waits_for_timeout(provider).await;
}

/// A store that waits holds an idle fetch of an activity for the whole time asked, and returns as soon as there is one.
pub async fn test_long_poll_work_item_waits_for_timeout(provider: &dyn Provider) {
    Queue::Work.waits_for_timeout(provider).await;
}
