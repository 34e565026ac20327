//! Messages for an instance that does not exist: they delay no other instance, and are delivered if the instance starts.

use crate::ProviderFactory;
use crate::support::*;
use outlast_provider::model::AppErrorKind;
use outlast_provider::{Provider, WorkItem};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// An orphan is delayed for at least a second, and a new one at most for this time.
const PUT_OFF: Duration = Duration::from_millis(1_200);

/// Every kind of message that is kept for an instance that does not exist.
fn control_messages(instance: &str) -> Vec<WorkItem> {
    let details = failure(AppErrorKind::ActivityFailed, "broken");
    vec![
        cancel(instance),
        raised(instance, "event", "data"),
        completed(instance, 2),
        WorkItem::ActivityFailed {
            instance: instance.to_string(),
            execution_id: 1,
            id: 3,
            details: details.clone(),
        },
        timer(instance, 4, 1),
        child_completed(instance, 5),
        WorkItem::SubOrchFailed {
            parent_instance: instance.to_string(),
            parent_execution_id: 1,
            parent_id: 6,
            details,
        },
    ]
}

/// Starts the instance of orphans, and collects the messages of its turns until the orphans are among them.
async fn start_and_collect(
    provider: &dyn Provider,
    instance: &str,
    orphans: usize,
    time: Duration,
) -> Vec<WorkItem> {
    enqueue(provider, start_item(instance)).await;
    let (item, token, attempt) = must_fetch(provider, LONG).await;
    assert_eq!((item.instance.as_str(), attempt), (instance, 1));
    assert!(item.messages.contains(&start_item(instance)), "a start is delivered at once");
    Turn::new(&token).event(started(instance)).metadata(named()).commit(provider).await;
    let mut delivered = item.messages;
    let give_up = Instant::now() + time;
    while delivered.len() < orphans + 1 {
        let (item, token, attempt) = within(give_up - Instant::now(), || fetch(provider, LONG)).await;
        assert_eq!((item.instance.as_str(), attempt), (instance, 1), "looking at an orphan is no delivery");
        Turn::new(&token).commit(provider).await;
        delivered.extend(item.messages);
    }
    delivered.retain(|message| *message != start_item(instance));
    delivered
}

/// A message for a missing instance at the head of the queue does not delay the instances behind it (C1).
pub async fn an_orphan_does_not_block_others(factory: &dyn ProviderFactory) {
    for orphan in control_messages("nobody") {
        let provider = &*factory.create_provider().await;
        enqueue(provider, orphan.clone()).await;
        enqueue(provider, start_item("somebody")).await;
        let (item, token, attempt) = must_fetch(provider, LONG).await;
        assert_eq!((item.messages, attempt), (vec![start_item("somebody")], 1), "behind {orphan:?}");
        Turn::new(&token).event(started("somebody")).metadata(named()).commit(provider).await;
        assert!(fetch(provider, LONG).await.is_none(), "{orphan:?} is an orphan");
        operator(provider).sees_waiting(1, 0, "the orphan is kept").await;
    }
}

/// Orphans are kept, not counted as delivered, and delivered in order once their instance has started.
pub async fn orphans_are_delivered_once_their_instance_starts(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let orphans = control_messages("late");
    enqueue_all(provider, &orphans).await;
    for _ in 0..5 {
        assert!(fetch(provider, LONG).await.is_none(), "the instance does not exist yet");
    }
    operator(provider).sees_waiting(orphans.len(), 0, "orphans are kept").await;
    operator(provider).sees_instances(&[]).await;
    assert_eq!(start_and_collect(provider, "late", orphans.len(), PUT_OFF).await, orphans);
    operator(provider).sees_waiting(0, 0, "what was delivered is gone").await;
}

/// The first delivery of an orphan is number 1, after any number of delays.
pub async fn a_put_off_orphan_has_no_counted_delivery(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    enqueue(provider, cancel("late")).await;
    for _ in 0..12 {
        assert!(fetch(provider, LONG).await.is_none(), "the instance does not exist yet");
        sleep(Duration::from_millis(100)).await;
    }
    // The second fetch, a second after the first, delays it for longer.
    let delivered = start_and_collect(provider, "late", 1, 3 * PUT_OFF).await;
    assert_eq!(delivered, [cancel("late")]);
}

/// Queue messages that wait together with a control message are kept with it.
pub async fn queue_messages_beside_a_control_message_are_kept(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let mixed = [queue_message("late", "q", "1"), cancel("late"), queue_message("late", "q", "2")];
    enqueue_all(provider, &mixed).await;
    for _ in 0..3 {
        assert!(fetch(provider, LONG).await.is_none(), "the instance does not exist yet");
        operator(provider).sees_waiting(3, 0, "all three are kept").await;
    }
    assert_eq!(start_and_collect(provider, "late", 3, PUT_OFF).await, mixed);
}

/// A control message keeps a queue message that arrived after it, after any number of delays.
pub async fn a_younger_queue_message_is_kept_as_long_as_its_control_message(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    enqueue(provider, cancel("late")).await;
    sleep(Duration::from_millis(400)).await;
    enqueue(provider, queue_message("late", "q", "1")).await;
    for _ in 0..40 {
        assert!(fetch(provider, LONG).await.is_none(), "the instance does not exist yet");
        operator(provider).sees_waiting(2, 0, "both are kept").await;
        sleep(Duration::from_millis(100)).await;
    }
    // The third fetch, three seconds after the first, delays them for longer again.
    let delivered = start_and_collect(provider, "late", 2, 6 * PUT_OFF).await;
    assert!(delivered.contains(&cancel("late")) && delivered.contains(&queue_message("late", "q", "1")));
}

/// Queue messages alone for a missing instance are dropped, and delay no other instance.
pub async fn queue_messages_alone_are_dropped(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    enqueue_all(provider, &["1", "2", "3"].map(|data| queue_message("nobody", "q", data))).await;
    enqueue(provider, start_item("somebody")).await;
    let (item, token, _) = must_fetch(provider, LONG).await;
    assert_eq!(item.messages, [start_item("somebody")]);
    Turn::new(&token).event(started("somebody")).metadata(named()).commit(provider).await;
    assert!(fetch(provider, LONG).await.is_none());
    operator(provider).sees_waiting(0, 0, "they are dropped").await;

    enqueue(provider, start_item("nobody")).await;
    let (item, _, attempt) = must_fetch(provider, LONG).await;
    assert_eq!((item.messages, attempt), (vec![start_item("nobody")], 1), "a later start comes alone");
}

/// Messages that arrive while the start of their instance is delayed are delivered with the start, in order.
pub async fn messages_wait_for_a_delayed_start(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let messages = |instance: &str| ["z", "a", "m"].map(|data| queue_message(instance, "q", data)).to_vec();
    let delay = Duration::from_millis(300);
    provider.enqueue_for_orchestrator(start_item("delayed"), Some(delay)).await.unwrap();
    enqueue_all(provider, &messages("delayed")).await;
    assert!(fetch(provider, LONG).await.is_none(), "the instance has not started");
    expect_with_start(provider, "delayed", messages("delayed")).await;

    enqueue(provider, start_item("given-back")).await;
    let (_, token, _) = must_fetch(provider, LONG).await;
    provider.abandon_orchestration_item(&token, Some(delay), true).await.unwrap();
    let mut mixed = messages("given-back");
    mixed.push(raised("given-back", "event", "data"));
    enqueue_all(provider, &mixed).await;
    assert!(fetch(provider, LONG).await.is_none(), "the instance has not started");
    expect_with_start(provider, "given-back", mixed).await;
    operator(provider).sees_waiting(0, 0, "every message was delivered once").await;
}

async fn expect_with_start(provider: &dyn Provider, instance: &str, messages: Vec<WorkItem>) {
    let (item, token, attempt) = within(Duration::from_secs(5), || fetch(provider, LONG)).await;
    assert_eq!((item.instance.as_str(), attempt), (instance, 1), "looking is no delivery");
    let mut delivered = item.messages;
    assert!(delivered.contains(&start_item(instance)), "{delivered:?}");
    delivered.retain(|message| *message != start_item(instance));
    assert_eq!(delivered, messages, "with the start, in order");
    Turn::new(&token).event(started(instance)).metadata(named()).commit(provider).await;
}

/// Many orphans of two instances, old and new, do not delay a third instance: each fetch returns it.
pub async fn orphans_of_two_instances_do_not_starve_a_third(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "third").await;
    for turn in 1..=5 {
        for n in 0..10 {
            enqueue(provider, cancel("nobody")).await;
            enqueue(provider, completed("no-one", 10 * turn + n)).await;
        }
        let poke = raised("third", "poke", &turn.to_string());
        enqueue(provider, poke.clone()).await;
        let (item, token, attempt) = must_fetch(provider, LONG).await;
        assert_eq!((item.messages, attempt), (vec![poke], 1));
        Turn::new(&token).commit(provider).await;
    }
    assert!(fetch(provider, LONG).await.is_none());
    operator(provider).sees_waiting(100, 0, "all orphans are kept").await;
}

/// An orphan takes no lease: its instance can be started and fetched at once.
pub async fn an_orphan_leaves_no_lease(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    enqueue(provider, raised("late", "event", "")).await;
    assert!(fetch(provider, LONG).await.is_none(), "the instance does not exist yet");
    create_instance(provider, "late").await;
    assert_eq!(provider.read("late").await.unwrap().len(), 1);
}
