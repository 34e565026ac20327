//! A lease lasts for its length from the claim, a renewal only extends it, and a give-back affects only the leased items.

use crate::ProviderFactory;
use crate::queues::BOTH;
use crate::support::*;
use futures::future::join;
use outlast_provider::{Provider, SessionFetchConfig, TagFilter, WorkItem};
use std::time::Duration;
use tokio::time::sleep;

const FOREVER: Duration = Duration::MAX;

fn bound(id: u64) -> WorkItem {
    activity_with("items", id, Some("session"), None)
}

async fn fetch_bound(provider: &dyn Provider, owner: &SessionFetchConfig) -> Option<WorkItem> {
    let fetched = fetch_activity_as(provider, LONG, Some(owner), &TagFilter::default()).await;
    fetched.map(|(item, _, _)| item)
}

/// A lease counts from the claim, not from the call: after a long wait it is still whole (7.2.9).
pub async fn a_lease_starts_when_the_item_is_claimed(factory: &dyn ProviderFactory) {
    let lease = factory.lock_timeout();
    for queue in BOTH {
        let provider = &*factory.create_provider().await;
        let arrival = async {
            sleep(lease * 3 / 2).await;
            queue.put(provider, 1).await;
        };
        let (held, ()) = join(queue.fetch(provider, lease, lease * 10), arrival).await;
        let held = held.unwrap_or_else(|| panic!("{queue:?}: a waiting fetch gets the arriving item"));
        sleep(lease * 7 / 10).await;
        queue.finds_nothing(provider, "the lease is live").await;
        queue.finish(provider, &held.token).await.expect("the lease is live");
    }
}

/// The same holds for the lease on a session.
pub async fn a_session_lease_starts_when_the_session_is_claimed(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let lease = factory.lock_timeout();
    let (a, b) = (session_owner("a", lease), session_owner("b", lease));
    let arrival = async {
        sleep(lease * 3 / 2).await;
        enqueue_activity(provider, bound(1)).await;
    };
    let filter = TagFilter::default();
    let (held, ()) = join(provider.fetch_work_item(LONG, lease * 10, Some(&a), &filter), arrival).await;
    assert_eq!(held.unwrap().expect("a waiting fetch gets the arriving item").0, bound(1));
    let renewed = provider.renew_session_lock(&["a"], Duration::from_millis(1), lease / 2).await.unwrap();
    assert_eq!(renewed, 1, "and it was used just now, not when the wait began (7.3.8)");
    enqueue_activity(provider, bound(2)).await;
    sleep(lease * 7 / 10).await;
    assert_eq!(fetch_bound(provider, &b).await, None, "the session is still a's");
    outlive(lease * 3 / 10).await;
    assert_eq!(fetch_bound(provider, &b).await, Some(bound(2)), "the session's lease is over");
}

/// A renewal does not revive an expired lease, so the next fetch gets the item (7.2.2).
pub async fn a_renewal_never_revives_a_lease(factory: &dyn ProviderFactory) {
    let lease = factory.lock_timeout();
    for queue in BOTH {
        let provider = &*factory.create_provider().await;
        queue.put(provider, 1).await;
        let lost = queue.take(provider, lease).await.token;
        queue.renew(provider, &lost, lease).await.expect("a live lease can be renewed");
        outlive(lease).await;
        permanent(queue.renew(provider, &lost, LONG).await, &format!("{queue:?}: renewing what ended"));
        let held = queue.take(provider, LONG).await;
        assert_eq!((held.nth, held.attempt), (1, 2));
        queue.finish(provider, &held.token).await.expect("the new lease is live");
    }

    let provider = &*factory.create_provider().await;
    enqueue_activity(provider, bound(1)).await;
    enqueue_activity(provider, bound(2)).await;
    assert_eq!(fetch_bound(provider, &session_owner("a", lease)).await, Some(bound(1)));
    outlive(lease).await;
    assert_eq!(provider.renew_session_lock(&["a"], LONG, LONG).await.unwrap(), 0);
    assert_eq!(fetch_bound(provider, &session_owner("b", LONG)).await, Some(bound(2)));
}

/// A renewal by less than the remaining time changes nothing: the lease keeps its end (7.2.2).
pub async fn a_renewal_never_shortens_a_lease(factory: &dyn ProviderFactory) {
    let lease = factory.lock_timeout();
    for queue in BOTH {
        let provider = &*factory.create_provider().await;
        queue.put(provider, 1).await;
        let token = queue.take(provider, lease).await.token;
        for extend_for in [Duration::from_millis(1), Duration::ZERO] {
            queue.renew(provider, &token, extend_for).await.expect("a live lease can be renewed");
        }
        sleep(lease * 6 / 10).await;
        queue.finds_nothing(provider, "the lease still has its old end").await;
        queue.renew(provider, &token, Duration::from_millis(1)).await.expect("the lease is live");
        outlive(lease * 4 / 10).await;
        assert_eq!(queue.take(provider, LONG).await.attempt, 2, "{queue:?}: and no later end either");
    }

    let provider = &*factory.create_provider().await;
    enqueue_activity(provider, bound(1)).await;
    enqueue_activity(provider, bound(2)).await;
    assert_eq!(fetch_bound(provider, &session_owner("a", lease)).await, Some(bound(1)));
    assert_eq!(provider.renew_session_lock(&["a"], Duration::from_millis(1), LONG).await.unwrap(), 1);
    sleep(lease * 6 / 10).await;
    assert_eq!(
        fetch_bound(provider, &session_owner("b", LONG)).await,
        None,
        "the session still has its old end"
    );
}

/// Extensions count to the millisecond, those below a second included (7.4.5).
pub async fn a_renewal_counts_milliseconds(factory: &dyn ProviderFactory) {
    let ms = Duration::from_millis;
    for (lease, extend_for) in [(ms(500), ms(750)), (ms(1_000), ms(1_750))] {
        let provider = &*factory.create_provider().await;
        let mut tokens = Vec::new();
        for queue in BOTH {
            queue.put(provider, 1).await;
            tokens.push(queue.take(provider, lease).await.token);
        }
        enqueue_activity(provider, bound(2)).await;
        enqueue_activity(provider, bound(3)).await;
        assert_eq!(fetch_bound(provider, &session_owner("a", lease)).await, Some(bound(2)));
        sleep(ms(250)).await;
        for (queue, token) in BOTH.into_iter().zip(&tokens) {
            queue.renew(provider, token, extend_for).await.expect("a live lease can be renewed");
        }
        assert_eq!(provider.renew_session_lock(&["a"], extend_for, LONG).await.unwrap(), 1);

        sleep(extend_for - ms(200)).await;
        assert_eq!(
            fetch_bound(provider, &session_owner("b", LONG)).await,
            None,
            "renewed for {extend_for:?}"
        );
        for (queue, token) in BOTH.into_iter().zip(&tokens) {
            queue.finds_nothing(provider, &format!("renewed for {extend_for:?}")).await;
            queue.finish(provider, token).await.expect("the lease is live");
        }
    }
}

/// A renewed lease covers its messages too: nothing is delivered again when its first end passes.
pub async fn a_renewed_lease_covers_the_fetched_messages(factory: &dyn ProviderFactory) {
    let lease = factory.lock_timeout();
    for queue in BOTH {
        let provider = &*factory.create_provider().await;
        queue.put(provider, 1).await;
        let token = queue.take(provider, lease).await.token;
        for _ in 0..3 {
            sleep(lease / 2).await;
            queue.renew(provider, &token, lease).await.expect("a live lease can be renewed");
            queue.finds_nothing(provider, "the lease is live").await;
        }
        sleep(lease / 2).await;
        queue.finds_nothing(provider, "the lease is live").await;
        queue.finish(provider, &token).await.expect("the lease is live");
        outlive(lease).await;
        queue.finds_nothing(provider, "it is finished").await;
    }
}

/// A lease that takes over covers all messages of the lost lease: after its commit none of them is delivered again.
pub async fn a_takeover_covers_the_messages_of_the_old_lease(factory: &dyn ProviderFactory) {
    let lease = factory.lock_timeout();
    for queue in BOTH {
        let provider = &*factory.create_provider().await;
        queue.put(provider, 1).await;
        for attempt in [1, 2] {
            assert_eq!(queue.take(provider, lease).await.attempt, attempt, "{queue:?}");
            outlive(lease).await;
        }
        let held = queue.take(provider, LONG).await;
        assert_eq!((held.nth, held.attempt), (1, 3), "{queue:?}");
        queue.finish(provider, &held.token).await.expect("the lease is live");
        queue.holds(provider, 0, "it is finished").await;
        queue.finds_nothing(provider, "it is finished").await;
    }
}

/// The longest duration is accepted everywhere, and means an infinite time.
pub async fn the_longest_duration_is_accepted(factory: &dyn ProviderFactory) {
    for queue in BOTH {
        let provider = &*factory.create_provider().await;
        for nth in [1, 2] {
            queue.put(provider, nth).await;
        }
        for longest in [FOREVER, Duration::from_millis(u64::MAX)] {
            let held = queue.fetch(provider, longest, longest).await;
            let held = held.unwrap_or_else(|| panic!("{queue:?}: something is ready"));
            queue.renew(provider, &held.token, longest).await.expect("the lease is live");
            sleep(Duration::from_millis(20)).await;
            queue.renew(provider, &held.token, Duration::from_millis(1)).await.expect("the lease is live");
            match held.nth {
                1 => queue.abandon(provider, &held.token, Some(longest), false).await.unwrap(),
                _ => queue.finish(provider, &held.token).await.expect("the lease is live"),
            }
        }
        sleep(Duration::from_millis(20)).await;
        queue.finds_nothing(provider, "the first is hidden for ever, the second finished").await;
        queue.holds(provider, 1, "the hidden one is kept").await;
    }

    let provider = &*factory.create_provider().await;
    provider.enqueue_for_orchestrator(start_item("never"), Some(FOREVER)).await.unwrap();
    enqueue(provider, timer("never", 1, u64::MAX)).await;
    assert!(fetch(provider, LONG).await.is_none(), "both are hidden permanently");
    operator(provider).sees_waiting(2, 0, "both are kept").await;

    enqueue_activity(provider, bound(1)).await;
    enqueue_activity(provider, bound(2)).await;
    assert_eq!(fetch_bound(provider, &session_owner("a", FOREVER)).await, Some(bound(1)));
    assert_eq!(provider.renew_session_lock(&["a"], FOREVER, FOREVER).await.unwrap(), 1);
    assert_eq!(provider.cleanup_orphaned_sessions(FOREVER).await.unwrap(), 0);
    assert_eq!(
        fetch_bound(provider, &session_owner("b", LONG)).await,
        None,
        "the session is a's permanently"
    );
    assert_eq!(fetch_bound(provider, &session_owner("a", LONG)).await, Some(bound(2)));
}

/// Giving a turn back touches the messages that were fetched; later and hidden ones keep visibility and count (7.1.6).
pub async fn an_abandon_changes_only_the_fetched_messages(factory: &dyn ProviderFactory) {
    let delay = factory.lock_timeout();
    for (hides, ignore_attempt) in [(false, false), (false, true), (true, false), (true, true)] {
        let provider = &*factory.create_provider().await;
        create_instance(provider, "split").await;
        let [first, late, hidden] = ["first", "late", "hidden"].map(|name| raised("split", name, ""));
        provider.enqueue_for_orchestrator(hidden.clone(), Some(LONG)).await.unwrap();
        enqueue(provider, first.clone()).await;
        let (_, token, _) = must_fetch(provider, LONG).await;
        enqueue(provider, late.clone()).await;
        let delay = Some(delay).filter(|_| hides);
        provider.abandon_orchestration_item(&token, delay, ignore_attempt).await.unwrap();

        let redelivery = if ignore_attempt { 1 } else { 2 };
        let case = format!("delay {delay:?}, ignore_attempt {ignore_attempt}");
        let (item, token, attempt) = must_fetch(provider, LONG).await;
        let Some(delay) = delay else {
            assert_eq!((item.messages, attempt), (vec![first, late], redelivery), "{case}");
            continue;
        };
        assert_eq!((item.messages, attempt), (vec![late], 1), "{case}");
        Turn::new(&token).commit(provider).await;
        assert!(fetch(provider, LONG).await.is_none(), "{case}: the first one is hidden");
        outlive(delay).await;
        let (item, _, attempt) = must_fetch(provider, LONG).await;
        assert_eq!((item.messages, attempt), (vec![first], redelivery), "{case}");
    }
}

/// A fetched item can be given back after its lease expired, if no other fetch has leased it.
pub async fn an_expired_lease_can_still_be_given_back(factory: &dyn ProviderFactory) {
    let lease = factory.lock_timeout();
    for queue in BOTH {
        let provider = &*factory.create_provider().await;
        queue.put(provider, 1).await;
        for (delay, ignore_attempt, next_attempt) in
            [(None, true, 1), (None, false, 2), (Some(lease), false, 3)]
        {
            let held = queue.take(provider, lease).await;
            outlive(lease).await;
            let given_back = queue.abandon(provider, &held.token, delay, ignore_attempt).await;
            given_back.unwrap_or_else(|error| panic!("{queue:?}: no other fetch has leased it: {error}"));
            permanent(queue.abandon(provider, &held.token, None, true).await, "giving back twice");
            if let Some(delay) = delay {
                queue.finds_nothing(provider, "it is hidden").await;
                outlive(delay).await;
            }
            let held = queue.take(provider, LONG).await;
            assert_eq!((held.nth, held.attempt), (1, next_attempt), "{queue:?}: {delay:?}, {ignore_attempt}");
            queue.abandon(provider, &held.token, None, true).await.unwrap();
        }
    }
}

/// An item that is hidden by a delay has no lease, and the end of a lease does not make it visible (7.1.36).
pub async fn a_delay_is_not_a_lease(factory: &dyn ProviderFactory) {
    let lease = factory.lock_timeout();
    for queue in BOTH {
        let provider = &*factory.create_provider().await;
        queue.put(provider, 1).await;
        let held = queue.take(provider, lease).await;
        queue.abandon(provider, &held.token, Some(2 * lease), false).await.unwrap();
        permanent(queue.renew(provider, &held.token, LONG).await, &format!("{queue:?}: it has no lease"));
        permanent(queue.finish(provider, &held.token).await, &format!("{queue:?}: it has no lease"));
        queue.holds(provider, 1, "it waits, unlocked").await;
        outlive(lease).await;
        queue.finds_nothing(provider, "it is hidden beyond its old lease").await;
        outlive(lease).await;
        assert_eq!(queue.take(provider, LONG).await.attempt, 2);
    }
}
