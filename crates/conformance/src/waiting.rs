//! A parked fetch returns as soon as any call makes an item available for it, and not before.

use crate::ProviderFactory;
use crate::queues::{BOTH, Queue};
use crate::support::*;
use futures::future::{join, join3};
use outlast_provider::{
    ExecutionMetadata, OrchestrationItem, Provider, StartPolicy, StartRequest, TagFilter, WorkItem,
};
use semver::Version;
use std::future::Future;
use std::ops::RangeInclusive;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// The time for which a fetch is parked before the next call.
const BEFORE: Duration = Duration::from_millis(300);
/// Tokio's timer and a store's clock both count in milliseconds.
const ROUNDING: Duration = Duration::from_millis(5);

/// Longer than any wait here.
fn poll_timeout(factory: &dyn ProviderFactory) -> Duration {
    3 * factory.lock_timeout() + Duration::from_secs(5)
}

/// Runs a parked fetch and a future that makes an item available and returns the time; the fetch must return promptly.
async fn promptly<T>(
    factory: &dyn ProviderFactory,
    event: &str,
    fetch: impl Future<Output = Option<T>>,
    available: impl Future<Output = Instant>,
) -> T {
    let fetch = async { (fetch.await, Instant::now()) };
    let ((fetched, at), since) = join(fetch, available).await;
    let fetched = fetched.unwrap_or_else(|| panic!("{event} ends the wait"));
    let late = at.saturating_duration_since(since);
    assert!(late <= factory.short_poll_threshold(), "{event}: the fetch returned {late:?} late");
    fetched
}

/// Runs a future after the fetch is parked.
async fn happens(change: impl Future<Output = ()>) -> Instant {
    sleep(BEFORE).await;
    change.await;
    Instant::now()
}

/// As [`promptly`], for an item that becomes due; the fetch must not return before. The call that set the time takes a while, so
/// there is an earliest and a latest time.
async fn when_due<T>(
    factory: &dyn ProviderFactory,
    event: &str,
    due: RangeInclusive<Instant>,
    fetch: impl Future<Output = Option<T>>,
) -> T {
    let fetched = promptly(factory, event, fetch, async { *due.end() }).await;
    assert!(Instant::now() + ROUNDING >= *due.start(), "{event}: the fetch returned early");
    fetched
}

async fn wait_for_turn(
    provider: &dyn Provider,
    poll_timeout: Duration,
) -> Option<(OrchestrationItem, String, u32)> {
    provider
        .fetch_orchestration_item(LONG, poll_timeout, None)
        .await
        .expect("fetch_orchestration_item succeeds")
}

async fn wait_for_activity(
    provider: &dyn Provider,
    poll_timeout: Duration,
) -> Option<(WorkItem, String, u32)> {
    let fetched = provider.fetch_work_item(LONG, poll_timeout, None, &TagFilter::default()).await;
    fetched.expect("fetch_work_item succeeds")
}

/// Enqueueing ends the wait.
pub async fn an_enqueue_ends_the_wait(factory: &dyn ProviderFactory) {
    for queue in BOTH {
        let provider = &*factory.create_provider().await;
        let fetch = queue.fetch(provider, LONG, poll_timeout(factory));
        let held = promptly(factory, "an enqueue", fetch, happens(queue.put(provider, 1))).await;
        assert_eq!((held.nth, held.attempt), (1, 1));
    }
}

/// A start with a policy ends the wait.
pub async fn a_start_ends_the_wait(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let request = StartRequest {
        start: start_item("new"),
        delay: None,
        policy: StartPolicy::FailIfExists,
        messages: vec![],
    };
    let start = async { drop(provider.start_orchestration(request).await.unwrap()) };
    let fetch = wait_for_turn(provider, poll_timeout(factory));
    let (item, _, _) = promptly(factory, "a start", fetch, happens(start)).await;
    assert_eq!(item.messages, [start_item("new")]);
}

/// A commit ends the waits for the activities that it schedules, for the messages that it sends, and for messages of its own
/// instance.
pub async fn a_commit_ends_the_wait(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let poll_timeout = poll_timeout(factory);
    create_instance(provider, "busy").await;

    let token = next_turn(provider, "busy").await;
    let commit = Turn::new(&token).activity(activity("busy", 2)).commit(provider);
    let fetch = wait_for_activity(provider, poll_timeout);
    let (work, activity_token, _) =
        promptly(factory, "a commit with an activity", fetch, happens(commit)).await;
    assert_eq!(work, activity("busy", 2));

    let token = next_turn(provider, "busy").await;
    let commit = Turn::new(&token).message(start_item("other")).commit(provider);
    let fetch = wait_for_turn(provider, poll_timeout);
    let (item, _, _) = promptly(factory, "a commit with a message", fetch, happens(commit)).await;
    assert_eq!(item.messages, [start_item("other")]);

    let token = next_turn(provider, "busy").await;
    enqueue(provider, raised("busy", "late", "")).await;
    let fetch = wait_for_turn(provider, poll_timeout);
    let commit = Turn::new(&token).commit(provider);
    let (item, token, _) = promptly(factory, "a commit that releases", fetch, happens(commit)).await;
    assert_eq!(item.messages, [raised("busy", "late", "")]);
    Turn::new(&token).commit(provider).await;

    let completion = async {
        provider.ack_work_item(&activity_token, Some(completed("busy", 2))).await.expect("the lease is live");
    };
    let fetch = wait_for_turn(provider, poll_timeout);
    let (item, _, _) = promptly(factory, "a completion", fetch, happens(completion)).await;
    assert_eq!(item.messages, [completed("busy", 2)]);
}

/// Giving back ends the wait.
pub async fn an_abandon_ends_the_wait(factory: &dyn ProviderFactory) {
    for queue in BOTH {
        let provider = &*factory.create_provider().await;
        queue.put(provider, 1).await;
        let held = queue.take(provider, LONG).await;
        let abandon = async { queue.abandon(provider, &held.token, None, false).await.unwrap() };
        let fetch = queue.fetch(provider, LONG, poll_timeout(factory));
        let held = promptly(factory, "an abandon", fetch, happens(abandon)).await;
        assert_eq!((held.nth, held.attempt), (1, 2));
    }
}

/// A timer ends the wait when it is due, whether it was set before the fetch or meanwhile.
pub async fn a_timer_ends_the_wait_when_it_is_due(factory: &dyn ProviderFactory) {
    for set_before in [true, false] {
        let provider = &*factory.create_provider().await;
        create_instance(provider, "timed").await;
        let due = Instant::now() + 2 * BEFORE;
        let timer = timer("timed", 2, factory.now_ms() + 2 * BEFORE.as_millis() as u64);
        let fetch = wait_for_turn(provider, poll_timeout(factory));
        let set = enqueue(provider, timer.clone());
        let (item, _, _) = match set_before {
            true => {
                set.await;
                when_due(factory, "a timer", due..=due, fetch).await
            }
            false => {
                let set_meanwhile = async {
                    happens(set).await;
                    due
                };
                promptly(factory, "a timer set meanwhile", fetch, set_meanwhile).await
            }
        };
        assert!(Instant::now() + ROUNDING >= due, "not before it is due");
        assert_eq!(item.messages, [timer]);
    }
}

/// A delay ends the wait when it is over, given to an enqueue or to an abandon.
pub async fn the_end_of_a_delay_ends_the_wait(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let earliest = Instant::now() + BEFORE;
    provider.enqueue_for_orchestrator(start_item("delayed"), Some(BEFORE)).await.unwrap();
    let due = earliest..=Instant::now() + BEFORE;
    let fetch = wait_for_turn(provider, poll_timeout(factory));
    let (item, _, _) = when_due(factory, "a delayed message", due, fetch).await;
    assert_eq!(item.messages, [start_item("delayed")]);

    for queue in BOTH {
        let provider = &*factory.create_provider().await;
        queue.put(provider, 1).await;
        let held = queue.take(provider, LONG).await;
        let earliest = Instant::now() + BEFORE;
        queue.abandon(provider, &held.token, Some(BEFORE), false).await.unwrap();
        let due = earliest..=Instant::now() + BEFORE;
        let fetch = queue.fetch(provider, LONG, poll_timeout(factory));
        let held = when_due(factory, "a delayed abandon", due, fetch).await;
        assert_eq!((held.nth, held.attempt), (1, 2));
    }
}

/// The end of another holder's lease ends the wait, as renewed, not as first taken.
pub async fn the_end_of_a_lease_ends_the_wait(factory: &dyn ProviderFactory) {
    let lease = factory.lock_timeout();
    for queue in BOTH {
        for renewed in [false, true] {
            let provider = &*factory.create_provider().await;
            queue.put(provider, 1).await;
            let earliest = Instant::now() + lease;
            let held = queue.take(provider, lease).await;
            let mut due = earliest..=Instant::now() + lease;
            if renewed {
                sleep(lease / 2).await;
                let earliest = Instant::now() + lease;
                queue.renew(provider, &held.token, lease).await.unwrap();
                due = earliest..=Instant::now() + lease;
            }
            let fetch = queue.fetch(provider, LONG, poll_timeout(factory));
            let held = when_due(factory, "the end of a lease", due, fetch).await;
            assert_eq!((held.nth, held.attempt), (1, 2), "{queue:?}");
        }
    }
}

/// The end of a session's lease ends the wait for its activities.
pub async fn the_end_of_a_session_ends_the_wait(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let lease = factory.lock_timeout();
    let bound = |id| activity_with("bound", id, Some("session"), None);
    enqueue_activity(provider, bound(1)).await;
    enqueue_activity(provider, bound(2)).await;
    let filter = TagFilter::default();
    let earliest = Instant::now() + lease;
    let (first, token, _) = fetch_activity_as(provider, LONG, Some(&session_owner("a", lease)), &filter)
        .await
        .expect("the session is free");
    let due = earliest..=Instant::now() + lease;
    assert_eq!(first, bound(1));
    provider.ack_work_item(&token, None).await.unwrap();

    let b = session_owner("b", lease);
    let fetch =
        async { provider.fetch_work_item(LONG, poll_timeout(factory), Some(&b), &filter).await.unwrap() };
    let (second, _, attempt) = when_due(factory, "the end of a session", due, fetch).await;
    assert_eq!((second, attempt), (bound(2), 1));
}

/// A fetch with a poll timeout of zero never waits, not even for an item that is almost due.
pub async fn a_fetch_without_timeout_returns_at_once(factory: &dyn ProviderFactory) {
    for queue in BOTH {
        let provider = &*factory.create_provider().await;
        queue.put(provider, 1).await;
        let held = queue.take(provider, LONG).await;
        let delay = 2 * factory.short_poll_threshold();
        queue.abandon(provider, &held.token, Some(delay), false).await.unwrap();
        let begun = Instant::now();
        queue.finds_nothing(provider, "it is not due yet").await;
        let took = begun.elapsed();
        assert!(took < factory.short_poll_threshold(), "{queue:?}: a fetch without patience took {took:?}");
        assert_eq!(queue.take_within(provider, 2 * delay).await.nth, 1);
    }
}

/// Of two parked fetches one gets the only item; the other stays parked until its own timeout.
pub async fn one_item_ends_one_wait(factory: &dyn ProviderFactory) {
    let poll_timeout = 3 * BEFORE;
    for queue in BOTH {
        let provider = &*factory.create_provider().await;
        let wait = || async {
            let begun = Instant::now();
            (queue.fetch(provider, LONG, poll_timeout).await, begun.elapsed())
        };
        let (one, other, _) = join3(wait(), wait(), happens(queue.put(provider, 1))).await;
        let (served, unserved) = if one.0.is_some() { (one, other) } else { (other, one) };
        assert_eq!(served.0.map(|held| held.nth), Some(1), "{queue:?}: one gets it");
        assert!(served.1 < poll_timeout - BEFORE, "{queue:?}: and does so at once, not after {:?}", served.1);
        assert_eq!(unserved.0, None, "{queue:?}: the other does not");
        assert!(unserved.1 + ROUNDING >= poll_timeout, "{queue:?}: it gave up after {:?}", unserved.1);
    }
}

/// Two items end two equal waits.
pub async fn two_items_end_two_waits(factory: &dyn ProviderFactory) {
    for queue in BOTH {
        let provider = &*factory.create_provider().await;
        let wait = || queue.fetch(provider, LONG, poll_timeout(factory));
        let put = async {
            queue.put(provider, 1).await;
            queue.put(provider, 2).await;
        };
        let both = async {
            let (one, other) = join(wait(), wait()).await;
            Some([one?.nth, other?.nth])
        };
        let mut served = promptly(factory, "two enqueues", both, happens(put)).await;
        served.sort_unstable();
        assert_eq!(served, [1, 2], "{queue:?}");
    }
}

/// An item that only one of two parked fetches may get wakes that fetch.
pub async fn only_a_wait_that_can_use_the_item_ends(factory: &dyn ProviderFactory) {
    let poll_timeout = poll_timeout(factory);
    let provider = &*factory.create_provider().await;
    let gpu = activity_with("tagged", 1, None, Some("gpu"));
    let cpu = activity_with("tagged", 2, None, Some("cpu"));
    let wait_for = |tag: &str| {
        let filter = TagFilter::tags([tag]);
        async move {
            provider.fetch_work_item(LONG, poll_timeout, None, &filter).await.unwrap().map(|work| work.0)
        }
    };
    for (first, second) in [("gpu", "cpu"), ("cpu", "gpu")] {
        let both = async {
            let (one, other) = join(wait_for(first), wait_for(second)).await;
            Some([one?, other?])
        };
        let put = async {
            enqueue_activity(provider, cpu.clone()).await;
            enqueue_activity(provider, gpu.clone()).await;
        };
        let [one, other] = promptly(factory, "tagged activities", both, happens(put)).await;
        let expected = if first == "gpu" { [&gpu, &cpu] } else { [&cpu, &gpu] };
        assert_eq!([&one, &other], expected);
    }

    let pinned = ExecutionMetadata { pinned_duroxide_version: Some(Version::new(1, 0, 0)), ..named() };
    create_with(provider, "pinned", pinned).await;
    let too_new = supporting([(Version::new(9, 0, 0), Version::new(9, 9, 9))]);
    let cannot = async { provider.fetch_orchestration_item(LONG, 3 * BEFORE, Some(&too_new)).await.unwrap() };
    let poke = enqueue(provider, raised("pinned", "poke", ""));
    let can = promptly(factory, "a message", wait_for_turn(provider, poll_timeout), happens(poke));
    let (nothing, (item, _, _)) = join(cannot, can).await;
    assert!(nothing.is_none(), "its version is not supported");
    assert_eq!(item.messages, [raised("pinned", "poke", "")]);
}

/// A message for a missing instance does not end the wait, and does not prevent its end.
pub async fn an_orphan_does_not_end_the_wait(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    enqueue(provider, cancel("nobody")).await;
    let begun = Instant::now();
    let (fetched, _) =
        join(wait_for_turn(provider, 2 * BEFORE), happens(enqueue(provider, cancel("nobody")))).await;
    assert!(fetched.is_none(), "the instance does not exist");
    let took = begun.elapsed();
    assert!(took + ROUNDING >= 2 * BEFORE, "the fetch gave up after {took:?}");
    let put = Queue::Turns.put(provider, 1);
    let fetch = Queue::Turns.fetch(provider, LONG, poll_timeout(factory));
    assert_eq!(promptly(factory, "an enqueue", fetch, happens(put)).await.nth, 1);
}

/// The end of a session that started after the fetch was parked ends the wait as well.
pub async fn the_end_of_a_later_session_ends_the_wait(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let lease = factory.lock_timeout();
    let (a, b) = (session_owner("a", lease), session_owner("b", lease));
    let (untagged, tagged) = (TagFilter::default(), TagFilter::tags(["gpu"]));
    let work = activity_with("bound", 2, Some("session"), Some("gpu"));
    let waiting =
        async { provider.fetch_work_item(LONG, poll_timeout(factory), Some(&b), &tagged).await.unwrap() };
    let session = async {
        sleep(BEFORE).await;
        enqueue_activity(provider, activity_with("bound", 1, Some("session"), None)).await;
        fetch_activity_as(provider, LONG, Some(&a), &untagged).await.expect("the session is free");
        let due = Instant::now() + lease;
        enqueue_activity(provider, work.clone()).await;
        due
    };
    let (fetched, _, _) = promptly(factory, "the end of a later session", waiting, session).await;
    assert_eq!(fetched, work);
}

/// A message that came before its instance ends a later wait, once the instance exists.
pub async fn an_orphan_whose_instance_starts_ends_the_wait(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let early = happens(async {
        enqueue(provider, cancel("late")).await;
        enqueue(provider, start_item("late")).await;
    });
    let (first, _) = join(wait_for_turn(provider, poll_timeout(factory)), early).await;
    let (first, token, _) = first.expect("the start ends the wait");
    Turn::new(&token).event(started("late")).metadata(named()).commit(provider).await;
    if first.messages.len() == 2 {
        // The store was slow and found both messages at once.
        return;
    }

    let begun = Instant::now();
    let (item, _, _) =
        wait_for_turn(provider, Duration::from_secs(30)).await.expect("the early message is delivered");
    assert_eq!(item.messages, [cancel("late")]);
    assert!(begun.elapsed() < Duration::from_secs(5), "it is not forgotten for {:?}", begun.elapsed());
}
