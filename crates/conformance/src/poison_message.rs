//! Every delivery is counted per message, so that a message that can never be processed is poisoned.

use crate::ProviderFactory;
use crate::support::*;
use outlast_provider::{Provider, WorkItem};
use std::time::Duration;

const NOW: Option<Duration> = None;
const COUNTED: bool = false;
const IGNORED: bool = true;

/// Fetches the turn that holds exactly these messages; returns its token and attempt.
async fn fetch_turn(provider: &dyn Provider, messages: &[WorkItem]) -> (String, u32) {
    let (item, token, attempt) = must_fetch(provider, LONG).await;
    assert_eq!(item.messages, messages);
    (token, attempt)
}

/// Fetches this activity; returns its token and attempt.
async fn fetch_activity(provider: &dyn Provider, expected: &WorkItem) -> (String, u32) {
    let (item, token, attempt) = must_fetch_activity(provider, LONG).await;
    assert_eq!(&item, expected);
    (token, attempt)
}

async fn abandon_turn(provider: &dyn Provider, token: &str, delay: Option<Duration>, ignore_attempt: bool) {
    provider
        .abandon_orchestration_item(token, delay, ignore_attempt)
        .await
        .expect("a held turn can be abandoned");
}

async fn abandon_activity(provider: &dyn Provider, token: &str, ignore_attempt: bool) {
    provider.abandon_work_item(token, NOW, ignore_attempt).await.expect("a held activity can be abandoned");
}

/// A message's first delivery is number 1, and so is the next message's.
pub async fn orchestration_attempt_count_starts_at_one(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    enqueue(provider, start_item("fresh")).await;
    let (token, attempt) = fetch_turn(provider, &[start_item("fresh")]).await;
    assert_eq!(attempt, 1);
    Turn::new(&token).event(started("fresh")).metadata(named()).commit(provider).await;
    enqueue(provider, cancel("fresh")).await;
    assert_eq!(fetch_turn(provider, &[cancel("fresh")]).await.1, 1, "an instance has no count of its own");
}

/// An activity's first delivery is number 1, whether it was enqueued alone or by a turn.
pub async fn worker_attempt_count_starts_at_one(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "fresh").await;
    let token = next_turn(provider, "fresh").await;
    Turn::new(&token).activity(activity("fresh", 2)).commit(provider).await;
    enqueue_activity(provider, activity("fresh", 3)).await;
    for id in [2, 3] {
        assert_eq!(fetch_activity(provider, &activity("fresh", id)).await.1, 1, "activity {id}");
    }
}

/// Every delivery of an abandoned message counts one more.
pub async fn orchestration_attempt_count_increments_on_refetch(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    enqueue(provider, start_item("again")).await;
    for expected in [1, 2, 3] {
        let (token, attempt) = fetch_turn(provider, &[start_item("again")]).await;
        assert_eq!(attempt, expected);
        abandon_turn(provider, &token, NOW, COUNTED).await;
    }
}

/// An activity whose lease ran out is delivered again, and both deliveries count.
pub async fn worker_attempt_count_increments_on_lock_expiry(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    enqueue_activity(provider, activity("slow", 2)).await;
    for expected in [1, 2, 3] {
        let (item, _, attempt) = must_fetch_activity(provider, factory.lock_timeout()).await;
        assert_eq!((item, attempt), (activity("slow", 2), expected));
        outlive(factory.lock_timeout()).await;
    }
}

/// A redelivery does not change the counts of other items, in either queue.
pub async fn attempt_count_is_per_message(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let (a, b) = (activity("busy", 2), activity("busy", 3));
    enqueue_activity(provider, a.clone()).await;
    enqueue_activity(provider, b.clone()).await;
    let (mut token, _) = fetch_activity(provider, &a).await;
    let (held, attempt) = fetch_activity(provider, &b).await;
    assert_eq!(attempt, 1);
    for expected in [2, 3] {
        abandon_activity(provider, &token, COUNTED).await;
        let (next, attempt) = fetch_activity(provider, &a).await;
        assert_eq!(attempt, expected);
        token = next;
    }
    abandon_activity(provider, &held, COUNTED).await;
    assert_eq!(fetch_activity(provider, &b).await.1, 2);

    let (a, b) = (start_item("a"), start_item("b"));
    enqueue(provider, a.clone()).await;
    let (token, _) = fetch_turn(provider, std::slice::from_ref(&a)).await;
    abandon_turn(provider, &token, NOW, COUNTED).await;
    assert_eq!(fetch_turn(provider, &[a]).await.1, 2);
    enqueue(provider, b.clone()).await;
    assert_eq!(fetch_turn(provider, &[b]).await.1, 1);
}

/// Deliveries of one message: how each is given back, and the count that it reports. The next one reports 4.
const GIVEN_BACK: [(bool, u32); 6] =
    [(IGNORED, 1), (COUNTED, 1), (COUNTED, 2), (IGNORED, 3), (IGNORED, 3), (COUNTED, 3)];

/// A delivery of an activity that is given back with `ignore_attempt` is not counted.
pub async fn abandon_work_item_ignore_attempt_decrements(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    enqueue_activity(provider, activity("busy", 2)).await;
    for (ignore_attempt, expected) in GIVEN_BACK {
        let (token, attempt) = fetch_activity(provider, &activity("busy", 2)).await;
        assert_eq!(attempt, expected);
        abandon_activity(provider, &token, ignore_attempt).await;
    }
    assert_eq!(fetch_activity(provider, &activity("busy", 2)).await.1, 4);
}

/// A delivery of a turn that is given back with `ignore_attempt` is not counted for its messages.
pub async fn abandon_orchestration_item_ignore_attempt_decrements(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    enqueue(provider, start_item("busy")).await;
    for (ignore_attempt, expected) in GIVEN_BACK {
        let (token, attempt) = fetch_turn(provider, &[start_item("busy")]).await;
        assert_eq!(attempt, expected);
        abandon_turn(provider, &token, NOW, ignore_attempt).await;
    }
    assert_eq!(fetch_turn(provider, &[start_item("busy")]).await.1, 4);
}

/// After any number of uncounted deliveries, also with a token that was used before, the next delivery is number 1.
pub async fn ignore_attempt_never_goes_negative(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    enqueue(provider, start_item("zero")).await;
    enqueue_activity(provider, activity("zero", 2)).await;
    for _ in 0..3 {
        let (token, attempt) = fetch_turn(provider, &[start_item("zero")]).await;
        assert_eq!(attempt, 1);
        abandon_turn(provider, &token, NOW, IGNORED).await;
        permanent(provider.abandon_orchestration_item(&token, NOW, IGNORED).await, "abandoning a turn twice");

        let (token, attempt) = fetch_activity(provider, &activity("zero", 2)).await;
        assert_eq!(attempt, 1);
        abandon_activity(provider, &token, IGNORED).await;
        permanent(provider.abandon_work_item(&token, NOW, IGNORED).await, "abandoning an activity twice");
    }
}

/// A turn reports the highest count among its messages, at any place in the batch.
pub async fn max_attempt_count_across_message_batch(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "batch").await;
    let [hidden, tried, new] = ["hidden", "tried", "new"].map(|name| raised("batch", name, ""));
    let delay = factory.lock_timeout();
    provider.enqueue_for_orchestrator(hidden.clone(), Some(delay)).await.unwrap();
    enqueue(provider, tried.clone()).await;
    for expected in [1, 2] {
        let (token, attempt) = fetch_turn(provider, std::slice::from_ref(&tried)).await;
        assert_eq!(attempt, expected);
        abandon_turn(provider, &token, NOW, COUNTED).await;
    }
    outlive(delay).await;
    enqueue(provider, new.clone()).await;

    let (item, _, attempt) = must_fetch(provider, LONG).await;
    assert_eq!(item.messages.len(), 3);
    assert!([hidden, tried, new].iter().all(|message| item.messages.contains(message)));
    assert_eq!(attempt, 3, "two were delivered once, one three times");
}

/// Taking a delivery off the count touches only the messages that were delivered, not one that is hidden meanwhile.
pub async fn orchestration_ignore_attempt_preserves_hidden_start(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "split").await;
    let (start, poke) = (start_item("split"), raised("split", "poke", ""));
    let delay = factory.lock_timeout();
    enqueue(provider, start.clone()).await;
    for (expected, hide) in [(1, NOW), (2, Some(delay))] {
        let (token, attempt) = fetch_turn(provider, std::slice::from_ref(&start)).await;
        assert_eq!(attempt, expected);
        abandon_turn(provider, &token, hide, COUNTED).await;
    }
    enqueue(provider, poke.clone()).await;
    let (token, attempt) = fetch_turn(provider, std::slice::from_ref(&poke)).await;
    assert_eq!(attempt, 1, "the hidden start does not count here");
    abandon_turn(provider, &token, NOW, IGNORED).await;

    outlive(delay).await;
    let (_, attempt) = fetch_turn(provider, &[start, poke]).await;
    assert_eq!(attempt, 3, "the start kept the two deliveries it had");
}

/// A delay hides only the messages that were delivered, not one that arrived meanwhile.
pub async fn orchestration_delayed_abandon_preserves_unlocked_rows(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "split").await;
    let (first, late) = (raised("split", "first", ""), raised("split", "late", ""));
    let delay = factory.lock_timeout();
    enqueue(provider, first.clone()).await;
    let (token, _) = fetch_turn(provider, std::slice::from_ref(&first)).await;
    enqueue(provider, late.clone()).await;
    abandon_turn(provider, &token, Some(delay), COUNTED).await;

    let (token, attempt) = fetch_turn(provider, &[late]).await;
    assert_eq!(attempt, 1);
    Turn::new(&token).commit(provider).await;
    assert!(fetch(provider, LONG).await.is_none(), "the first message is still hidden");
    outlive(delay).await;
    assert_eq!(fetch_turn(provider, &[first]).await.1, 2);
}
