//! Both queues: order, visibility, and that only a commit removes an item.

use crate::ProviderFactory;
use crate::support::*;
use std::time::Duration;

/// Activities are fetched in the order in which they were enqueued, independent of their ids.
pub async fn test_worker_queue_fifo_ordering<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let items: Vec<_> = (0..12).map(|n| activity(&format!("instance-{}", 20 - n), n * 5 % 12 + 1)).collect();
    enqueue_activities(provider, &items).await;
    for item in items {
        assert_eq!(must_fetch_activity(provider, LONG).await.0, item);
    }
    assert!(fetch_activity(provider, LONG).await.is_none());
}

/// A fetched activity is invisible but still stored; only finishing it removes it.
pub async fn test_worker_peek_lock_semantics<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let lease = factory.lock_timeout();
    enqueue_activity(provider, activity("peeked", 1)).await;
    let (_, token, _) = must_fetch_activity(provider, LONG).await;
    assert!(fetch_activity(provider, LONG).await.is_none(), "a fetched activity is invisible");
    provider.abandon_work_item(&token, None, false).await.expect("a live lease can be given back");

    let (item, token, _) = must_fetch_activity(provider, lease).await;
    assert_eq!(item, activity("peeked", 1), "a fetched activity is still stored");
    provider.ack_work_item(&token, None).await.expect("a live lease can be finished");
    assert!(fetch_activity(provider, LONG).await.is_none(), "a finished activity is deleted");
    outlive(lease).await;
    assert!(
        fetch_activity(provider, LONG).await.is_none(),
        "and does not come back with the end of its lease"
    );
    permanent(provider.ack_work_item(&token, None).await, "finishing twice");
}

/// Finishing an activity removes it and delivers its completion in one step; a message of another kind is refused.
pub async fn test_worker_ack_atomicity<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    create_rowless(provider, "worked").await;
    enqueue_activity(provider, activity("worked", 2)).await;
    let (_, token, _) = must_fetch_activity(provider, LONG).await;
    for wrong in [start_item("worked"), raised("worked", "poke", ""), activity("worked", 3)] {
        permanent(provider.ack_work_item(&token, Some(wrong)).await, "a completion of a wrong kind");
    }
    assert!(fetch(provider, LONG).await.is_none(), "a refused completion is not delivered");
    assert!(fetch_activity(provider, LONG).await.is_none(), "a refused completion keeps the lease");

    provider.ack_work_item(&token, Some(completed("worked", 2))).await.expect("the lease is live");
    assert!(fetch_activity(provider, LONG).await.is_none(), "the activity is deleted");
    let (item, _, attempt) = must_fetch(provider, LONG).await;
    assert_eq!((item.instance.as_str(), item.messages), ("worked", vec![completed("worked", 2)]));
    assert_eq!((item.history.len(), attempt), (1, 1));
}

/// A timer that is enqueued with a delay stays hidden for it, and is delivered then.
pub async fn test_timer_delayed_visibility<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    create_rowless(provider, "delayed").await;
    let timer = timer("delayed", 2, 0);
    provider.enqueue_for_orchestrator(timer.clone(), Some(Duration::from_secs(5))).await.unwrap();
    assert!(fetch(provider, LONG).await.is_none(), "hidden at once");
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert!(fetch(provider, LONG).await.is_none(), "hidden after four of five seconds");
    outlive(Duration::from_secs(1)).await;
    let (item, _, attempt) = must_fetch(provider, LONG).await;
    assert_eq!((item.instance.as_str(), item.messages, attempt), ("delayed", vec![timer], 1));
}

/// An activity whose worker lost its token is delivered again after the lease, under a new token.
pub async fn test_lost_lock_token_handling<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let lease = factory.lock_timeout();
    enqueue_activity(provider, activity("lost", 1)).await;
    let (_, lost, _) = must_fetch_activity(provider, lease).await;
    assert!(fetch_activity(provider, LONG).await.is_none(), "the lease is live");
    outlive(lease).await;

    let (item, token, attempt) = must_fetch_activity(provider, LONG).await;
    assert_eq!((item, attempt), (activity("lost", 1), 2));
    assert_ne!(token, lost, "every lease has its own token");
    provider.ack_work_item(&token, None).await.expect("the new lease is live");
    assert!(fetch_activity(provider, LONG).await.is_none());
}

/// A new activity is visible at once, enqueued directly or by a commit.
pub async fn test_worker_item_immediate_visibility<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    enqueue_activity(provider, activity("direct", 1)).await;
    let (item, _, attempt) = must_fetch_activity(provider, LONG).await;
    assert_eq!((item, attempt), (activity("direct", 1), 1));

    let token = first_turn(provider, "committed").await;
    let turn = Turn::new(&token).event(started("committed")).activity(activity("committed", 2));
    turn.commit(provider).await;
    let (item, _, attempt) = must_fetch_activity(provider, LONG).await;
    assert_eq!((item, attempt), (activity("committed", 2), 1));
}

/// A delayed activity at the head of the queue does not delay the next one.
pub async fn test_worker_delayed_visibility_skips_future_items<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let delay = factory.lock_timeout();
    enqueue_activity(provider, activity("queued", 1)).await;
    enqueue_activity(provider, activity("queued", 2)).await;
    let (_, token, _) = must_fetch_activity(provider, LONG).await;
    provider.abandon_work_item(&token, Some(delay), false).await.expect("a live lease can be given back");
    assert_eq!(must_fetch_activity(provider, LONG).await.0, activity("queued", 2));
    assert!(fetch_activity(provider, LONG).await.is_none(), "the head is hidden");

    outlive(delay).await;
    let (item, _, attempt) = must_fetch_activity(provider, LONG).await;
    assert_eq!((item, attempt), (activity("queued", 1), 2));
}

/// Queue messages for an instance that does not exist are dropped and delay no other instance; with a start, or for an existing
/// instance, they are delivered, and other messages are kept.
pub async fn test_orphan_queue_messages_dropped<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    // At the head of the queue, where they would delay all others. An external event in the same batch keeps a queue message.
    enqueue_all(provider, &[queue_message("kept", "q", "1"), raised("kept", "poke", "")]).await;
    enqueue_all(provider, &["1", "2"].map(|data| queue_message("orphan", "q", data))).await;
    let started_late = [queue_message("late", "q", "1"), start_item("late")];
    enqueue_all(provider, &started_late).await;
    let (item, token, _) = must_fetch(provider, LONG).await;
    assert_eq!(item.messages, started_late, "a message that waits with its start is delivered");
    Turn::new(&token).event(started("late")).metadata(named()).commit(provider).await;
    assert!(fetch(provider, LONG).await.is_none(), "orphans are not delivered");
    operator(provider).sees_waiting(2, 0, "only the external event and its companion are left").await;

    enqueue(provider, start_item("orphan")).await;
    assert_eq!(must_fetch(provider, LONG).await.0.messages, [start_item("orphan")]);
    enqueue(provider, queue_message("late", "q", "2")).await;
    assert_eq!(must_fetch(provider, LONG).await.0.messages, [queue_message("late", "q", "2")]);
}
