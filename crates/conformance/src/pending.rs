//! The waiting messages and activities of one instance and of a whole queue, for tools.

use crate::ProviderFactory;
use crate::support::*;
use outlast_provider::{
    DeadLetterQueue, PendingWork, Provider, QueuePage, QueuedItem, TagDepth, TagFilter, WorkItem, WorkRequest,
};
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

/// A page of a queue; `None` if the store has no such pages.
async fn queue_page(
    provider: &dyn Provider,
    queue: DeadLetterQueue,
    after: Option<&str>,
    limit: usize,
) -> Option<QueuePage> {
    admin(provider).queue_page(queue, after, limit).await.expect("queue_page succeeds")
}

/// Instance, kind and event of all items of a queue, read with pages of this size.
async fn all_of(provider: &dyn Provider, queue: DeadLetterQueue, limit: usize) -> Vec<String> {
    let (mut lines, mut after): (Vec<String>, Option<String>) = (Vec::new(), None);
    loop {
        let page = queue_page(provider, queue, after.as_deref(), limit).await;
        let page = page.expect("every page of a queue is supported, or none is");
        assert!(page.items.len() <= limit, "{} items on a page of {limit}", page.items.len());
        for found in &page.items {
            let kind = found.item.kind.as_deref().unwrap_or("?");
            lines.push(format!("{} {kind} {}", found.instance_id, found.item.id.unwrap_or(0)));
        }
        assert!(lines.len() <= ALL, "the pages have no end: {lines:?}");
        match page.next {
            Some(next) => after = Some(next),
            None => return lines,
        }
    }
}

/// The pages of a queue have every item of that queue once, with its instance, whatever their size. Items that leave the queue between
/// two pages hide no other item.
pub async fn pages_of_a_queue_have_every_item_once(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let (turns, activities) = (DeadLetterQueue::Orchestrator, DeadLetterQueue::Worker);
    for instance in ["i", "j"] {
        create_instance(provider, instance).await;
    }
    let Some(empty) = queue_page(provider, turns, None, ALL).await else { return };
    assert_eq!((empty.items.len(), empty.next), (0, None), "the queue is empty");
    let due = factory.now_ms() + 3_600_000;
    let (mut messages, mut work) = (Vec::new(), Vec::new());
    for instance in ["i", "j"] {
        for id in 2..5 {
            enqueue(provider, completed(instance, id)).await;
            messages.push(format!("{instance} ActivityCompleted {id}"));
            enqueue_activity(provider, activity(instance, 10 + id)).await;
            work.push(format!("{instance} ActivityExecute {}", 10 + id));
        }
        enqueue(provider, timer(instance, 9, due)).await;
        messages.push(format!("{instance} TimerFired 9"));
    }
    enqueue(provider, start_item("new")).await;
    messages.push("new StartOrchestration 0".to_string());
    messages.sort();
    for limit in [1, 2, 3, ALL] {
        for (queue, expected) in [(turns, &messages), (activities, &work)] {
            let mut found = all_of(provider, queue, limit).await;
            found.sort();
            assert_eq!(&found, expected, "{queue:?} in pages of {limit}");
        }
    }
    let first = queue_page(provider, activities, None, 3).await.expect("supported");
    let (item, token, _) = must_fetch_activity(provider, LONG).await;
    let WorkItem::ActivityExecute { instance, id, .. } = item else { panic!("no activity: {item:?}") };
    provider.ack_work_item(&token, Some(completed(&instance, id))).await.unwrap();
    let second = queue_page(provider, activities, first.next.as_deref(), ALL).await.expect("supported");
    let gone = format!("{instance} ActivityExecute {id}");
    let found = first.items.iter().chain(&second.items);
    let found = found
        .map(|found| format!("{} ActivityExecute {}", found.instance_id, found.item.id.unwrap_or_default()));
    let mut found: Vec<String> = found.filter(|line| *line != gone).collect();
    found.sort();
    work.retain(|line| *line != gone);
    assert_eq!(found, work, "an activity was completed between two pages");
    let unknown = admin(provider).queue_page(turns, Some("no position"), 1).await;
    assert!(!unknown.expect_err("the position is unknown").is_retryable());
}

/// An item on a page of a queue has its lease, its delay, its deliveries, its tag and its size, but no payload.
pub async fn pages_of_a_queue_show_leases_and_delays(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "i").await;
    let Some(_) = queue_page(provider, DeadLetterQueue::Worker, None, ALL).await else { return };
    enqueue_activity(provider, activity_with("i", 2, None, Some("gpu"))).await;
    let tags = TagFilter::tags(["gpu"]);
    let request = WorkRequest {
        max_items: 1,
        lock_timeout: LONG,
        poll_timeout: NO_WAIT,
        session: None,
        tag_filter: &tags,
    };
    let work = provider.fetch_work_items(request).await.unwrap().pop().expect("the activity is fetchable");
    let shown = queue_page(provider, DeadLetterQueue::Worker, None, ALL).await.expect("supported");
    let leased = &shown.items[0].item;
    assert!(leased.locked_until.is_some_and(|until| until > shown.now_ms), "a worker has it");
    assert_eq!((leased.tag.as_deref(), leased.attempt_count), (Some("gpu"), 1));
    let delay = Duration::from_secs(3_600);
    provider.abandon_work_item(&work.lock_token, Some(delay), false).await.unwrap();
    let shown = queue_page(provider, DeadLetterQueue::Worker, None, ALL).await.expect("supported");
    let delayed = &shown.items[0].item;
    assert_eq!(delayed.locked_until, None);
    assert!(delayed.visible_at > shown.now_ms + 3_000_000, "its delay is not over");

    enqueue(provider, raised("i", "approve", &"x".repeat(100_000))).await;
    let (_, token, _) = must_fetch(provider, LONG).await;
    let shown = queue_page(provider, DeadLetterQueue::Orchestrator, None, ALL).await.expect("supported");
    let message = &shown.items[0].item;
    assert!(message.locked_until.is_some_and(|until| until > shown.now_ms), "its turn runs");
    assert!(message.stored_bytes > 100_000, "sizes are those of the stored texts");
    assert_eq!((message.name.as_deref(), message.attempt_count), (Some("approve"), 1));
    provider.abandon_orchestration_item(&token, None, false).await.unwrap();
    let shown = queue_page(provider, DeadLetterQueue::Orchestrator, None, ALL).await.expect("supported");
    let message = &shown.items[0].item;
    assert_eq!(
        (message.locked_until, message.attempt_count),
        (None, 1),
        "given back, and the delivery counts"
    );
}

/// The counts of a tag are those of its due, delayed and leased activities. A lease that is over does not count as one.
pub async fn tags_count_due_delayed_and_leased_activities(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "i").await;
    let depths = async |limit| admin(provider).tag_depths(limit).await.expect("tag_depths succeeds");
    let Some(none) = depths(ALL).await else { return };
    assert_eq!(none, [], "no activity is in the queue");
    let began = factory.now_ms();
    for (id, tag) in [(2, None), (3, Some("cpu")), (4, Some("gpu")), (5, Some("gpu"))] {
        enqueue_activity(provider, activity_with("i", id, None, tag)).await;
    }
    let counts = |depths: &[TagDepth]| -> Vec<(Option<String>, [u64; 3])> {
        depths.iter().map(|depth| (depth.tag.clone(), [depth.due, depth.delayed, depth.leased])).collect()
    };
    let named = |tag: &str| Some(tag.to_string());
    let found = depths(ALL).await.expect("supported");
    let expected = [(None, [1, 0, 0]), (named("cpu"), [1, 0, 0]), (named("gpu"), [2, 0, 0])];
    assert_eq!(counts(&found), expected);
    let most = factory.now_ms() - began + 1_000;
    assert!(found.iter().all(|depth| depth.oldest_ms.is_some_and(|waited| waited <= most)), "{found:?}");
    assert_eq!(counts(&depths(2).await.expect("supported")), expected[..2], "at most two tags");

    let (gpu, lease) = (TagFilter::tags(["gpu"]), factory.lock_timeout());
    let fetch = async |lock_timeout| {
        let request = WorkRequest {
            max_items: 1,
            lock_timeout,
            poll_timeout: NO_WAIT,
            session: None,
            tag_filter: &gpu,
        };
        provider.fetch_work_items(request).await.unwrap().pop().expect("the activity is fetchable")
    };
    let work = fetch(LONG).await;
    let found = depths(ALL).await.expect("supported");
    assert_eq!(counts(&found)[2], (named("gpu"), [1, 0, 1]), "one is leased");
    let delay = Duration::from_secs(3_600);
    provider.abandon_work_item(&work.lock_token, Some(delay), false).await.unwrap();
    assert_eq!(
        counts(&depths(ALL).await.expect("supported"))[2],
        (named("gpu"), [1, 1, 0]),
        "one is delayed"
    );
    fetch(lease).await;
    outlive(lease).await;
    let found = depths(ALL).await.expect("supported");
    assert_eq!(counts(&found)[2], (named("gpu"), [1, 1, 0]), "the lease is over");
    assert!(found[2].oldest_ms.is_some_and(|waited| waited >= lease.as_millis() as u64));
}
