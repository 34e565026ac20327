//! Leases end: by time, by commit, by abandon. Renewal moves the end, and only of a live lease.

use crate::ProviderFactory;
use crate::support::*;
use futures::future::join_all;
use outlast_provider::Provider;
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until};

/// A worker's late calls with a token that has no lease any more.
async fn refuses_work_token(provider: &dyn Provider, token: &str) {
    permanent(provider.renew_work_item_lock(token, LONG).await, "renewing with a dead token");
    permanent(provider.ack_work_item(token, None).await, "finishing with a dead token");
}

/// Enqueues an activity and takes it for this long.
async fn take_activity(provider: &dyn Provider, lease: Duration) -> String {
    enqueue_activity(provider, activity("worker", 1)).await;
    let (item, token, attempt) = must_fetch_activity(provider, lease).await;
    assert_eq!((item, attempt), (activity("worker", 1), 1));
    token
}

/// After the lease has expired, its token cannot commit, neither before nor after another fetch of the instance.
pub async fn test_lock_expires_after_timeout<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let lease = factory.lock_timeout();
    enqueue(provider, start_item("expiring")).await;
    let (_, lost, _) = must_fetch(provider, lease).await;
    assert!(fetch(provider, LONG).await.is_none(), "the lease is live");
    outlive(lease).await;
    let late = || Turn::new(&lost).event(event("expiring", 9, started_kind())).try_commit(provider);
    permanent(late().await, "a commit after the lease");

    let (item, token, attempt) = must_fetch(provider, LONG).await;
    assert_eq!((item.messages, attempt), (vec![start_item("expiring")], 2));
    permanent(late().await, "a commit after takeover");
    permanent(provider.renew_orchestration_item_lock(&lost, LONG).await, "a renewal after takeover");
    permanent(provider.abandon_orchestration_item(&lost, None, false).await, "an abandon after takeover");
    assert!(fetch(provider, LONG).await.is_none(), "the new lease is untouched");
    let first = started("expiring");
    Turn::new(&token).event(first.clone()).metadata(named()).commit(provider).await;
    assert_eq!(provider.read("expiring").await.unwrap(), [first]);
}

/// An abandoned turn can be fetched at once, with the same messages and in its old place in the queue.
pub async fn test_abandon_releases_lock_immediately<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let messages = [start_item("first"), raised("first", "poke", "")];
    enqueue_all(provider, &messages).await;
    let (_, lost, _) = must_fetch(provider, LONG).await;
    assert!(fetch(provider, LONG).await.is_none(), "the lease is live");
    enqueue(provider, start_item("second")).await;
    provider.abandon_orchestration_item(&lost, None, false).await.expect("a live lease can be given back");

    let (item, token, attempt) = must_fetch(provider, LONG).await;
    assert_eq!((item.messages.as_slice(), attempt), (messages.as_slice(), 2));
    assert_ne!(token, lost, "every lease has its own token");
    permanent(Turn::new(&lost).try_commit(provider).await, "a commit after abandon");
    Turn::new(&token).event(started("first")).metadata(named()).commit(provider).await;
    assert_eq!(must_fetch(provider, LONG).await.0.instance, "second");
}

/// After a commit, messages that were queued meanwhile are fetched at once, under a new lease.
pub async fn test_lock_renewal_on_ack<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "freed").await;
    let used = next_turn(provider, "freed").await;
    enqueue(provider, completed("freed", 2)).await;
    assert!(fetch(provider, LONG).await.is_none(), "the lease is live");
    Turn::new(&used).commit(provider).await;

    let (item, token, attempt) = must_fetch(provider, LONG).await;
    assert_eq!((item.messages, attempt), (vec![completed("freed", 2)], 1));
    assert_ne!(token, used, "every lease has its own token");
    permanent(provider.renew_orchestration_item_lock(&used, LONG).await, "a renewal after the commit");
    permanent(provider.abandon_orchestration_item(&used, None, false).await, "an abandon after the commit");
    assert!(fetch(provider, LONG).await.is_none(), "the new lease is live");
    Turn::new(&token).commit(provider).await;
}

/// Fetches during the lease find nothing and do not extend it.
pub async fn test_concurrent_lock_attempts_respect_expiration<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let lease = factory.lock_timeout();
    enqueue(provider, start_item("awaited")).await;
    must_fetch(provider, lease).await;
    let taken = Instant::now();
    let attempts = join_all((0..=5).map(|tenth| async move {
        sleep(lease * tenth / 10).await;
        fetch(provider, lease).await
    }))
    .await;
    assert!(attempts.iter().all(Option::is_none), "no fetch gets the instance before the lease expires");

    sleep_until(taken + lease + Duration::from_millis(50)).await;
    let (item, _, attempt) = must_fetch(provider, LONG).await;
    assert_eq!(
        (item.messages, attempt),
        (vec![start_item("awaited")], 2),
        "fetches that find nothing count no delivery"
    );
}

/// Renewing a live activity lease keeps the activity locked, and a shorter renewal does not cut the lease.
pub async fn test_worker_lock_renewal_success<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let lease = factory.lock_timeout();
    let token = take_activity(provider, lease).await;
    for extend_for in [LONG, Duration::from_millis(1)] {
        provider.renew_work_item_lock(&token, extend_for).await.expect("a live lease can be renewed");
    }
    outlive(lease).await;
    assert!(fetch_activity(provider, LONG).await.is_none(), "the activity stays locked");
    provider.ack_work_item(&token, None).await.expect("the renewed lease is live");
    assert!(fetch_activity(provider, LONG).await.is_none());
}

/// An unknown token renews nothing, nor does the token of a turn.
pub async fn test_worker_lock_renewal_invalid_token<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let token = take_activity(provider, LONG).await;
    let turn_token = first_turn(provider, "turn").await;
    for unknown in ["bogus-token", "", &turn_token] {
        permanent(provider.renew_work_item_lock(unknown, LONG).await, "renewing with an unknown token");
    }
    provider.renew_work_item_lock(&token, LONG).await.expect("the real token renews");
}

/// A lease that lapsed cannot be renewed; the activity is delivered again.
pub async fn test_worker_lock_renewal_after_expiration<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let lease = factory.lock_timeout();
    let lost = take_activity(provider, lease).await;
    outlive(lease).await;
    permanent(provider.renew_work_item_lock(&lost, LONG).await, "renewing a lease that lapsed");

    let (item, token, attempt) = must_fetch_activity(provider, LONG).await;
    assert_eq!((item, attempt), (activity("worker", 1), 2));
    permanent(provider.renew_work_item_lock(&lost, LONG).await, "renewing a lease that was taken over");
    provider.renew_work_item_lock(&token, LONG).await.expect("the new lease can be renewed");
}

/// A renewal moves the end of the lease to its own time plus the extension, and no further.
pub async fn test_worker_lock_renewal_extends_timeout<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let lease = factory.lock_timeout();
    let token = take_activity(provider, lease).await;
    sleep(lease * 6 / 10).await;
    provider.renew_work_item_lock(&token, lease).await.expect("a live lease can be renewed");
    sleep(lease * 6 / 10).await;
    assert!(fetch_activity(provider, LONG).await.is_none(), "locked at 1.2 leases");

    outlive(lease * 4 / 10).await;
    let (item, _, attempt) = must_fetch_activity(provider, LONG).await;
    assert_eq!((item, attempt), (activity("worker", 1), 2), "free after 1.6 leases");
    refuses_work_token(provider, &token).await;
}

/// A finished activity has no lease to renew.
pub async fn test_worker_lock_renewal_after_ack<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let token = take_activity(provider, LONG).await;
    provider.renew_work_item_lock(&token, LONG).await.expect("a live lease can be renewed");
    provider.ack_work_item(&token, None).await.expect("a live lease can be finished");
    refuses_work_token(provider, &token).await;
    assert!(fetch_activity(provider, LONG).await.is_none(), "the activity is deleted");
}

/// An abandoned activity can be fetched at once, under a new token and in its old place in the queue.
pub async fn test_abandon_work_item_releases_lock<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let lost = take_activity(provider, LONG).await;
    assert!(fetch_activity(provider, LONG).await.is_none(), "the lease is live");
    enqueue_activity(provider, activity("worker", 2)).await;
    provider.abandon_work_item(&lost, None, false).await.expect("a live lease can be given back");

    let (item, token, attempt) = must_fetch_activity(provider, LONG).await;
    assert_eq!((item, attempt), (activity("worker", 1), 2));
    assert_ne!(token, lost, "every lease has its own token");
    refuses_work_token(provider, &lost).await;
    permanent(provider.abandon_work_item(&lost, None, false).await, "a second abandon");
    provider.ack_work_item(&token, None).await.expect("the new lease is live");
    assert_eq!(must_fetch_activity(provider, LONG).await.0, activity("worker", 2));
}

/// An activity that is given back with a delay is hidden for the delay, and is not leased meanwhile.
pub async fn test_abandon_work_item_with_delay<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let delay = factory.lock_timeout();
    let lost = take_activity(provider, LONG).await;
    provider.abandon_work_item(&lost, Some(delay), false).await.expect("a live lease can be given back");
    assert!(fetch_activity(provider, LONG).await.is_none(), "hidden at once");
    refuses_work_token(provider, &lost).await;
    sleep(delay / 2).await;
    assert!(fetch_activity(provider, LONG).await.is_none(), "hidden until the delay is over");

    outlive(delay / 2).await;
    let (item, _, attempt) = must_fetch_activity(provider, LONG).await;
    assert_eq!((item, attempt), (activity("worker", 1), 2));
}

/// Finishing an activity after its lease is refused: the activity stays, and no completion is delivered.
pub async fn test_worker_ack_fails_after_lock_expiry<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let lease = factory.lock_timeout();
    create_instance(provider, "worker").await;
    let lost = take_activity(provider, lease).await;
    outlive(lease).await;
    let late = || provider.ack_work_item(&lost, Some(completed("worker", 1)));
    permanent(late().await, "finishing after the lease");

    let (item, token, attempt) = must_fetch_activity(provider, LONG).await;
    assert_eq!((item, attempt), (activity("worker", 1), 2), "the activity survives");
    permanent(late().await, "finishing after takeover");
    assert!(fetch(provider, LONG).await.is_none(), "a refused completion is not delivered");
    provider.ack_work_item(&token, Some(completed("worker", 1))).await.expect("the new lease is live");
    assert_eq!(must_fetch(provider, LONG).await.0.messages, [completed("worker", 1)]);
    assert!(fetch_activity(provider, LONG).await.is_none());
}

/// A live turn lease can be renewed past its first end; once it lapsed it cannot.
pub async fn test_orchestration_lock_renewal_after_expiration<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let lease = factory.lock_timeout();
    enqueue(provider, start_item("renewed")).await;
    let (_, lost, _) = must_fetch(provider, lease).await;
    sleep(lease * 6 / 10).await;
    for extend_for in [lease, Duration::from_millis(1)] {
        provider.renew_orchestration_item_lock(&lost, extend_for).await.expect("a live lease can be renewed");
    }
    sleep(lease * 6 / 10).await;
    assert!(fetch(provider, LONG).await.is_none(), "locked at 1.2 leases");

    outlive(lease * 4 / 10).await;
    let late = || provider.renew_orchestration_item_lock(&lost, LONG);
    permanent(late().await, "renewing a lease that lapsed");
    let (item, token, attempt) = must_fetch(provider, LONG).await;
    assert_eq!((item.messages, attempt), (vec![start_item("renewed")], 2));
    permanent(late().await, "renewing a lease that was taken over");
    provider.renew_orchestration_item_lock(&token, LONG).await.expect("the new lease can be renewed");
    Turn::new(&token).event(started("renewed")).metadata(named()).commit(provider).await;
}
