//! A dropped fetch leaves no lease and no counted delivery.

use crate::ProviderFactory;
use crate::queues::{BOTH, Held, Queue};
use crate::support::*;
use futures::future::poll_immediate;
use outlast_provider::Provider;
use std::future::Future;
use std::pin::pin;
use std::time::Duration;
use tokio::time::sleep;

const POLL_TIMEOUT: Duration = Duration::from_secs(30);
/// The time within which a store must give back the item of a dropped fetch.
const HANDED_BACK: Duration = Duration::from_millis(250);
const MOMENT: Duration = Duration::from_millis(20);

/// Polls a fetch this number of times, with pauses, and drops it. An item that it returns before is given back.
async fn poll_and_drop(
    queue: Queue,
    provider: &dyn Provider,
    fetch: impl Future<Output = Option<Held>>,
    polls: u32,
    apart: Duration,
) {
    let mut fetch = pin!(fetch);
    for poll in 1..=polls {
        if let Some(fetched) = poll_immediate(fetch.as_mut()).await {
            if let Some(held) = fetched {
                queue.abandon(provider, &held.token, None, true).await.expect("the lease is live");
            }
            return;
        }
        if poll < polls {
            sleep(apart).await;
        }
    }
}

async fn begin_and_drop(queue: Queue, provider: &dyn Provider, polls: u32, apart: Duration) {
    poll_and_drop(queue, provider, queue.fetch(provider, LONG, POLL_TIMEOUT), polls, apart).await;
}

/// The item is there for a real fetch, and this is its first delivery.
async fn assert_untouched(queue: Queue, provider: &dyn Provider, nth: u64) {
    let held = queue.take_within(provider, HANDED_BACK).await;
    assert_eq!((held.nth, held.attempt), (nth, 1), "{queue:?}: a dropped fetch is no delivery");
    queue.finish(provider, &held.token).await.expect("the lease is live");
    queue.finds_nothing(provider, "it was delivered once").await;
}

/// A parked fetch that was dropped does not take an item that arrives later.
pub async fn a_dropped_wait_takes_no_later_item(factory: &dyn ProviderFactory) {
    for queue in BOTH {
        let provider = &*factory.create_provider().await;
        for polls in 1..=4 {
            begin_and_drop(queue, provider, polls, MOMENT).await;
        }
        queue.put(provider, 1).await;
        sleep(MOMENT).await;
        assert_untouched(queue, provider, 1).await;
    }
}

/// An item that arrives for a parked fetch that is dropped before it returns is available to the next fetch.
pub async fn an_item_for_a_dropped_fetch_is_not_lost(factory: &dyn ProviderFactory) {
    for queue in BOTH {
        for (pause, polls_again) in [(NO_WAIT, 0), (MOMENT, 0), (3 * MOMENT, 0), (NO_WAIT, 1), (MOMENT, 2)] {
            let provider = &*factory.create_provider().await;
            let mut fetch = Box::pin(queue.fetch(provider, LONG, POLL_TIMEOUT));
            for _ in 0..2 {
                let fetched = poll_immediate(fetch.as_mut()).await;
                assert_eq!(fetched, None, "{queue:?}: there is nothing yet, so it waits");
                sleep(MOMENT).await;
            }
            queue.put(provider, 1).await;
            sleep(pause).await;
            poll_and_drop(queue, provider, fetch, polls_again, Duration::from_millis(1)).await;
            assert_untouched(queue, provider, 1).await;
        }
    }
}

/// A fetch of a ready item, dropped at any point before it returns, takes nothing.
pub async fn a_fetch_dropped_before_its_return_takes_no_item(factory: &dyn ProviderFactory) {
    for queue in BOTH {
        for (polls, apart) in
            [(1, NO_WAIT), (2, NO_WAIT), (2, MOMENT / 10), (3, MOMENT / 10), (4, MOMENT / 4)]
        {
            let provider = &*factory.create_provider().await;
            queue.put(provider, 1).await;
            begin_and_drop(queue, provider, polls, apart).await;
            assert_untouched(queue, provider, 1).await;
        }
    }
}

/// After many dropped fetches, before and after the item arrived, a fetch gets it as its first delivery.
pub async fn many_dropped_fetches_leave_no_lease(factory: &dyn ProviderFactory) {
    for queue in BOTH {
        let provider = &*factory.create_provider().await;
        queue.put(provider, 1).await;
        for n in 0..50 {
            begin_and_drop(queue, provider, n % 3 + 1, Duration::from_millis(1)).await;
        }
        assert_untouched(queue, provider, 1).await;
    }
}

/// Fifty parked fetches that are dropped as one item arrives leave it to the next fetch.
pub async fn many_dropped_waits_take_no_item(factory: &dyn ProviderFactory) {
    for queue in BOTH {
        let provider = &*factory.create_provider().await;
        let mut crowd: Vec<_> =
            (0..50).map(|_| Box::pin(queue.fetch(provider, LONG, POLL_TIMEOUT))).collect();
        for fetch in &mut crowd {
            assert_eq!(poll_immediate(fetch.as_mut()).await, None, "{queue:?}: there is nothing yet");
        }
        sleep(MOMENT).await;
        queue.put(provider, 1).await;
        sleep(MOMENT).await;
        drop(crowd);
        assert_untouched(queue, provider, 1).await;
    }
}
