//! The waiting messages and activities of one instance, for tools.

use crate::ProviderFactory;
use crate::support::*;
use outlast_provider::{PendingWork, Provider, QueuedItem, TagFilter, WorkRequest};
use std::time::Duration;

/// More items than any of these validations queues.
const ALL: usize = 100;

async fn pending(provider: &dyn Provider, instance: &str) -> PendingWork {
    let pending = admin(provider).pending(instance, ALL).await.expect("pending succeeds");
    pending.expect("the factory says that the store shows pending work")
}

/// Kind, name, event and deliveries, one line each.
fn lines(items: &[QueuedItem]) -> Vec<String> {
    let line = |item: &QueuedItem| {
        let (kind, name) = (item.kind.as_deref().unwrap_or("?"), item.name.as_deref().unwrap_or("-"));
        let id = item.id.map_or("-".to_string(), |id| id.to_string());
        format!("{kind} {name} {id} delivered {}", item.attempt_count)
    };
    items.iter().map(line).collect()
}

/// Messages are listed in the order of delivery, with kind, visibility and delivery count.
pub async fn pending_messages_are_shown_in_order(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "i").await;
    let due = factory.now_ms() + 3_600_000;
    enqueue(provider, timer("i", 5, due)).await;
    enqueue(provider, raised("i", "approve", &"x".repeat(100_000))).await;
    enqueue(provider, queue_message("i", "orders", "x")).await;
    enqueue(provider, completed("i", 3)).await;
    enqueue(provider, child_completed("i", 4)).await;
    enqueue(provider, cancel("i")).await;
    let before = factory.now_ms();
    let shown = pending(provider, "i").await;
    assert_eq!(
        lines(&shown.messages),
        [
            "ExternalRaised approve - delivered 0",
            "QueueMessage orders - delivered 0",
            "ActivityCompleted - 3 delivered 0",
            "SubOrchCompleted - 4 delivered 0",
            "CancelInstance - - delivered 0",
            "TimerFired - 5 delivered 0",
        ]
    );
    assert_eq!((shown.message_count, shown.activity_count), (6, 0));
    assert!(shown.now_ms.abs_diff(before) < 60_000, "the time is the store's");
    assert_eq!(shown.messages[5].visible_at, due, "a timer can be fetched when it is due");
    assert!(shown.messages[..5].iter().all(|message| message.visible_at <= shown.now_ms));
    assert!(shown.messages[0].stored_bytes > 100_000, "sizes are those of the stored texts");
    assert_eq!(shown.messages[2].execution_id, Some(1));
}

/// The lease of an instance is shown while it is held, on the messages that it covers too, and so are deliveries.
pub async fn pending_shows_the_lease_of_a_turn(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "i").await;
    poke(provider, "i").await;
    assert_eq!(pending(provider, "i").await.turn_locked_until, None, "the turn is not leased");
    let (_, token, _) = must_fetch(provider, LONG).await;
    enqueue(provider, raised("i", "late", "x")).await;
    let held = pending(provider, "i").await;
    let until = held.turn_locked_until.expect("it is leased");
    assert!(until > held.now_ms && until - held.now_ms <= 600_000, "{until} at {}", held.now_ms);
    let covered: Vec<_> = held.messages.iter().map(|m| (m.locked_until, m.attempt_count)).collect();
    assert_eq!(covered, [(Some(until), 1), (None, 0)], "the lease covers what was fetched with it");
    provider.abandon_orchestration_item(&token, None, false).await.unwrap();
    let back = pending(provider, "i").await;
    assert_eq!(back.turn_locked_until, None, "given back");
    assert_eq!(back.messages[0].attempt_count, 1, "the delivery counts");
    let lease = factory.lock_timeout();
    must_fetch(provider, lease).await;
    outlive(lease).await;
    let over = pending(provider, "i").await;
    assert_eq!(over.turn_locked_until, None, "a lease that has run out is not shown");
    assert_eq!(over.messages.iter().filter(|message| message.locked_until.is_some()).count(), 0);
}

/// Activities are listed with tag, session, deliveries and lease, including leased ones.
pub async fn pending_activities_are_shown_with_their_leases(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "i").await;
    enqueue_activity(provider, activity("i", 2)).await;
    enqueue_activity(provider, activity_with("i", 3, None, Some("gpu"))).await;
    enqueue_activity(provider, activity_with("i", 4, Some("session"), None)).await;
    let (_, token, _) = must_fetch_activity(provider, LONG).await;
    let shown = pending(provider, "i").await;
    let [first, second, third] = shown.activities.as_slice() else {
        panic!("three activities wait: {:?}", shown.activities);
    };
    assert_eq!((first.id, first.attempt_count), (Some(2), 1));
    assert!(first.locked_until.is_some_and(|until| until > shown.now_ms), "a worker has it");
    assert_eq!((second.tag.as_deref(), second.attempt_count, second.locked_until), (Some("gpu"), 0, None));
    assert_eq!((third.session_id.as_deref(), third.id), (Some("session"), Some(4)));
    assert!(shown.activities.iter().all(|item| item.kind.as_deref() == Some("ActivityExecute")));
    assert_eq!(shown.activity_count, 3);
    provider.abandon_work_item(&token, Some(Duration::from_secs(3_600)), false).await.unwrap();
    let delayed = &pending(provider, "i").await;
    assert_eq!((delayed.activities[0].locked_until, delayed.activities[0].attempt_count), (None, 1));
    assert!(delayed.activities[0].visible_at > delayed.now_ms + 3_000_000, "its delay is not over");
}

/// An activity is listed with the failures that its handler has reported, if the store keeps them.
pub async fn pending_activities_are_shown_with_their_failures(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "i").await;
    enqueue_activity(provider, activity("i", 2)).await;
    for failures in 1..=2 {
        let request = WorkRequest {
            max_items: 1,
            lock_timeout: LONG,
            poll_timeout: NO_WAIT,
            session: None,
            tag_filter: &TagFilter::default(),
        };
        let work =
            provider.fetch_work_items(request).await.unwrap().pop().expect("the activity is fetchable");
        provider.abandon_work_noted(&work.lock_token, None, "busy").await.unwrap();
        if work.notes.is_some() {
            let shown = pending(provider, "i").await;
            assert_eq!((shown.activities[0].failures, shown.activities[0].attempt_count), (failures, 0));
        }
    }
}

/// The list holds only items of the instance, at most the limit, and the counts are those of all its items; a queued start is listed
/// before the instance exists.
pub async fn pending_work_is_bounded_and_of_one_instance(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    for instance in ["i", "j"] {
        create_instance(provider, instance).await;
    }
    for instance in ["i", "j"] {
        for id in 2..6 {
            enqueue(provider, completed(instance, id)).await;
            enqueue_activity(provider, activity(instance, 10 + id)).await;
        }
    }
    enqueue_activity(provider, activity("j", 20)).await;
    for limit in [0, 1, 3, 4, ALL] {
        let shown = admin(provider).pending("i", limit).await.unwrap().unwrap();
        assert_eq!((shown.message_count, shown.activity_count), (4, 4), "at most {limit}");
        let ids = |items: &[QueuedItem]| items.iter().filter_map(|item| item.id).collect::<Vec<_>>();
        let some = limit.min(4);
        assert_eq!(ids(&shown.messages), [2, 3, 4, 5][..some]);
        assert_eq!(ids(&shown.activities), [12, 13, 14, 15][..some]);
    }
    let nothing = pending(provider, "unheard of").await;
    assert_eq!((nothing.messages.len(), nothing.message_count, nothing.activity_count), (0, 0, 0));
    enqueue(provider, start_item("new")).await;
    assert_eq!(
        lines(&pending(provider, "new").await.messages),
        ["StartOrchestration TestOrch - delivered 0"]
    );
}
