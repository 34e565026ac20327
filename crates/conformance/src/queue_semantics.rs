//! Both queues: order, visibility, and that nothing leaves them but by a commit.

use crate::ProviderFactory;
use crate::support::*;
use outlast_provider::Provider;
use std::collections::BTreeMap;
use std::time::Duration;

/// Commits a first turn without name and version, so that there is a history and no instance row.
async fn create_without_row(provider: &dyn Provider, instance: &str) {
    enqueue(provider, start_item(instance)).await;
    let (_, token, _) = must_fetch(provider, LONG).await;
    Turn::new(&token).event(started(instance)).commit(provider).await;
}

/// Activities come out in the order in which they went in, whatever their ids.
pub async fn test_worker_queue_fifo_ordering<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let items: Vec<_> = (0..12).map(|n| activity(&format!("instance-{}", 20 - n), n * 5 % 12 + 1)).collect();
    for item in items.clone() {
        enqueue_work(provider, item).await;
    }
    for item in items {
        assert_eq!(must_fetch_work(provider, LONG).await.0, item);
    }
    assert!(fetch_work(provider, LONG).await.is_none());
}

/// A fetched activity is invisible but still stored; only finishing it removes it.
pub async fn test_worker_peek_lock_semantics<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let lease = factory.lock_timeout();
    enqueue_work(provider, activity("peeked", 1)).await;
    let (_, token, _) = must_fetch_work(provider, LONG).await;
    assert!(fetch_work(provider, LONG).await.is_none(), "a fetched activity is invisible");
    provider.abandon_work_item(&token, None, false).await.expect("a live lease can be given back");

    let (item, token, _) = must_fetch_work(provider, lease).await;
    assert_eq!(item, activity("peeked", 1), "a fetched activity is still stored");
    provider.ack_work_item(&token, None).await.expect("a live lease can be finished");
    assert!(fetch_work(provider, LONG).await.is_none(), "a finished activity is gone");
    outlive(lease).await;
    assert!(fetch_work(provider, LONG).await.is_none(), "and does not come back with the end of its lease");
    permanent(provider.ack_work_item(&token, None).await, "finishing twice");
}

/// Finishing an activity removes it and delivers its completion in one step; a message of another kind is refused.
pub async fn test_worker_ack_atomicity<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    create_without_row(provider, "worked").await;
    enqueue_work(provider, activity("worked", 2)).await;
    let (_, token, _) = must_fetch_work(provider, LONG).await;
    for wrong in [start_item("worked"), raised("worked", "poke", ""), activity("worked", 3)] {
        permanent(provider.ack_work_item(&token, Some(wrong)).await, "a completion of a wrong kind");
    }
    assert!(fetch(provider, LONG).await.is_none(), "a refused completion is not delivered");
    assert!(fetch_work(provider, LONG).await.is_none(), "a refused completion keeps the lease");

    provider.ack_work_item(&token, Some(completed("worked", 2))).await.expect("the lease is live");
    assert!(fetch_work(provider, LONG).await.is_none(), "the activity is gone");
    let (item, _, attempt) = must_fetch(provider, LONG).await;
    assert_eq!((item.instance.as_str(), item.messages), ("worked", vec![completed("worked", 2)]));
    assert_eq!((item.history.len(), attempt), (1, 1));
}

/// A timer stays hidden until its delay and its fire time are over, however it was enqueued; then it is delivered.
pub async fn test_timer_delayed_visibility<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let delay = Duration::from_secs(5);
    for instance in ["by-delay", "by-fire-time", "by-turn"] {
        create_without_row(provider, instance).await;
    }
    let token = next_turn(provider, "by-turn").await;
    let fire_at_ms = factory.now_ms() + 5_000;
    let timers =
        [timer("by-delay", 2, 0), timer("by-fire-time", 2, fire_at_ms), timer("by-turn", 2, fire_at_ms)];
    let [by_delay, by_fire_time, by_turn] = timers.clone();
    provider.enqueue_for_orchestrator(by_delay, Some(delay)).await.unwrap();
    enqueue(provider, by_fire_time).await;
    Turn::new(&token).message(by_turn).commit(provider).await;

    assert!(fetch(provider, LONG).await.is_none(), "hidden at once");
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert!(fetch(provider, LONG).await.is_none(), "hidden after four of five seconds");
    let earlier = ["by-fire-time", "by-turn"].map(|instance| raised(instance, "poke", ""));
    for message in earlier.clone() {
        enqueue(provider, message).await;
    }
    outlive(Duration::from_secs(1)).await;
    let mut delivered = BTreeMap::new();
    while let Some((item, _, _)) = fetch(provider, LONG).await {
        delivered.insert(item.instance, item.messages);
    }
    let [by_delay, by_fire_time, by_turn] = timers;
    let [before_fire_time, before_turn] = earlier;
    let expected = [
        ("by-delay", vec![by_delay]),
        ("by-fire-time", vec![before_fire_time, by_fire_time]),
        ("by-turn", vec![before_turn, by_turn]),
    ];
    let expected = BTreeMap::from(expected.map(|(instance, messages)| (instance.to_string(), messages)));
    assert_eq!(delivered, expected, "a timer takes its place in the queue when it fires");
}

/// An activity whose worker lost its token comes back after the lease, under a new token.
pub async fn test_lost_lock_token_handling<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let lease = factory.lock_timeout();
    enqueue_work(provider, activity("lost", 1)).await;
    let (_, lost, _) = must_fetch_work(provider, lease).await;
    assert!(fetch_work(provider, LONG).await.is_none(), "the lease is live");
    outlive(lease).await;

    let (item, token, attempt) = must_fetch_work(provider, LONG).await;
    assert_eq!((item, attempt), (activity("lost", 1), 2));
    assert_ne!(token, lost, "every lease has its own token");
    provider.ack_work_item(&token, None).await.expect("the new lease is live");
    assert!(fetch_work(provider, LONG).await.is_none());
}

/// New work is visible at once, enqueued directly or by a commit.
pub async fn test_worker_item_immediate_visibility<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    enqueue_work(provider, activity("direct", 1)).await;
    let (item, _, attempt) = must_fetch_work(provider, LONG).await;
    assert_eq!((item, attempt), (activity("direct", 1), 1));

    enqueue(provider, start_item("committed")).await;
    let (_, token, _) = must_fetch(provider, LONG).await;
    let turn = Turn::new(&token).event(started("committed")).activity(activity("committed", 2));
    turn.commit(provider).await;
    let (item, _, attempt) = must_fetch_work(provider, LONG).await;
    assert_eq!((item, attempt), (activity("committed", 2), 1));
}

/// A delayed activity at the head of the queue does not hold up the next one.
pub async fn test_worker_delayed_visibility_skips_future_items<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let delay = factory.lock_timeout();
    enqueue_work(provider, activity("queued", 1)).await;
    enqueue_work(provider, activity("queued", 2)).await;
    let (_, token, _) = must_fetch_work(provider, LONG).await;
    provider.abandon_work_item(&token, Some(delay), false).await.expect("a live lease can be given back");
    assert_eq!(must_fetch_work(provider, LONG).await.0, activity("queued", 2));
    assert!(fetch_work(provider, LONG).await.is_none(), "the head is hidden");

    outlive(delay).await;
    let (item, _, attempt) = must_fetch_work(provider, LONG).await;
    assert_eq!((item, attempt), (activity("queued", 1), 2));
}

/// Queue messages for an instance that does not exist are dropped and hold nobody up; with a start they are delivered,
/// for a known instance too, and other messages are kept.
pub async fn test_orphan_queue_messages_dropped<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    // At the head of the queue, where they would hold up all others. An external event beside it keeps a message.
    for message in [queue_message("kept", "q", "1"), raised("kept", "poke", "")] {
        enqueue(provider, message).await;
    }
    for data in ["1", "2"] {
        enqueue(provider, queue_message("orphan", "q", data)).await;
    }
    let started_late = [queue_message("late", "q", "1"), start_item("late")];
    for message in started_late.clone() {
        enqueue(provider, message).await;
    }
    let (item, token, _) = must_fetch(provider, LONG).await;
    assert_eq!(item.messages, started_late, "a message that waits with its start is delivered");
    Turn::new(&token).event(started("late")).metadata(named()).commit(provider).await;
    assert!(fetch(provider, LONG).await.is_none(), "orphans are not delivered");
    let depths = admin(provider).get_queue_depths().await.unwrap();
    assert_eq!(depths.orchestrator_queue, 2, "only the external event and its companion are left");

    enqueue(provider, start_item("orphan")).await;
    assert_eq!(must_fetch(provider, LONG).await.0.messages, [start_item("orphan")]);
    enqueue(provider, queue_message("late", "q", "2")).await;
    assert_eq!(must_fetch(provider, LONG).await.0.messages, [queue_message("late", "q", "2")]);
}
