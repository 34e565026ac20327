//! The two queues behind one interface, for rules that hold for both alike.

use crate::support::*;
use outlast_provider::{Provider, ProviderError, TagFilter};
use std::time::Duration;

pub(crate) const BOTH: [Queue; 2] = [Queue::Turns, Queue::Work];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Queue {
    Turns,
    Work,
}

/// A fetched item: its number, token and delivery count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) nth: u64,
    pub(crate) token: String,
    pub(crate) attempt: u32,
}

impl Queue {
    /// Enqueues the `nth` item: the start of another instance, or an activity.
    pub(crate) async fn put(self, provider: &dyn Provider, nth: u64) {
        match self {
            Queue::Turns => enqueue(provider, start_item(&format!("item-{nth}"))).await,
            Queue::Work => enqueue_activity(provider, activity("items", nth)).await,
        }
    }

    pub(crate) async fn fetch(
        self,
        provider: &dyn Provider,
        lease: Duration,
        poll_timeout: Duration,
    ) -> Option<Held> {
        match self {
            Queue::Turns => {
                let fetched = provider.fetch_orchestration_item(lease, poll_timeout, None).await;
                let (item, token, attempt) = fetched.expect("fetch_orchestration_item succeeds")?;
                assert_eq!(item.messages, [start_item(&item.instance)]);
                let nth = item.instance.strip_prefix("item-").and_then(|nth| nth.parse().ok());
                Some(Held { nth: nth.expect("an instance that was put"), token, attempt })
            }
            Queue::Work => {
                let fetched =
                    provider.fetch_work_item(lease, poll_timeout, None, &TagFilter::default()).await;
                let (item, token, attempt) = fetched.expect("fetch_work_item succeeds")?;
                let nth = (1..=1_000).find(|nth| item == activity("items", *nth));
                Some(Held { nth: nth.expect("an activity that was put"), token, attempt })
            }
        }
    }

    /// Fetches an item, which must be available now.
    pub(crate) async fn take(self, provider: &dyn Provider, lease: Duration) -> Held {
        let held = self.fetch(provider, lease, NO_WAIT).await;
        held.unwrap_or_else(|| panic!("{self:?}: something is ready"))
    }

    /// Fetches an item, which must become available within this time, by repeated fetches.
    pub(crate) async fn take_within(self, provider: &dyn Provider, time: Duration) -> Held {
        within(time, || self.fetch(provider, LONG, NO_WAIT)).await
    }

    pub(crate) async fn finds_nothing(self, provider: &dyn Provider, why: &str) {
        assert_eq!(self.fetch(provider, LONG, NO_WAIT).await, None, "{self:?}: {why}");
    }

    /// Checks that this number of items waits in this queue and none in the other, if the store has management.
    pub(crate) async fn holds(self, provider: &dyn Provider, items: usize, why: &str) {
        match self {
            Queue::Turns => operator(provider).sees_waiting(items, 0, why).await,
            Queue::Work => operator(provider).sees_waiting(0, items, why).await,
        }
    }

    pub(crate) async fn finish(self, provider: &dyn Provider, token: &str) -> Result<(), ProviderError> {
        match self {
            Queue::Turns => Turn::new(token).metadata(named()).try_commit(provider).await,
            Queue::Work => provider.ack_work_item(token, None).await,
        }
    }

    pub(crate) async fn abandon(
        self,
        provider: &dyn Provider,
        token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        match self {
            Queue::Turns => provider.abandon_orchestration_item(token, delay, ignore_attempt).await,
            Queue::Work => provider.abandon_work_item(token, delay, ignore_attempt).await,
        }
    }

    pub(crate) async fn renew(
        self,
        provider: &dyn Provider,
        token: &str,
        extend_for: Duration,
    ) -> Result<(), ProviderError> {
        match self {
            Queue::Turns => provider.renew_orchestration_item_lock(token, extend_for).await,
            Queue::Work => provider.renew_work_item_lock(token, extend_for).await,
        }
    }
}
