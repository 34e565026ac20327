//! An activity's lease and its session's lease run out independently.

use super::*;
use crate::ProviderFactory;
use tokio::time::sleep;

/// An abandoned activity goes back to its session's owner, on its second delivery.
pub async fn test_abandoned_session_item_retryable(factory: &dyn ProviderFactory) {
    check_abandoned(factory, false, 2).await;
}

/// An abandon that does not count leaves the next delivery the first.
pub async fn test_abandoned_session_item_ignore_attempt(factory: &dyn ProviderFactory) {
    check_abandoned(factory, true, 1).await;
}

async fn check_abandoned(factory: &dyn ProviderFactory, ignore_attempt: bool, next_delivery: u32) {
    let provider = &*factory.create_provider().await;
    let alice = Worker::new(provider, "alice");
    enqueue_activities(provider, &[bound(1, "s"), bound(2, "s")]).await;
    let token = alice.takes(&bound(1, "s")).await;

    provider.abandon_work_item(&token, None, ignore_attempt).await.unwrap();
    refuses_ack(provider, &token, "an abandoned activity").await;
    Worker::new(provider, "bob").finds_nothing("an abandon does not end ownership of the session").await;
    let token = alice.takes_delivery(next_delivery, &bound(1, "s")).await;
    alice.completes(&token, &bound(1, "s")).await;
    alice.takes(&bound(2, "s")).await;
}

/// When an activity's lease runs out and its session's does not, only the session's owner gets it again.
pub async fn test_activity_lock_expires_session_lock_valid_same_worker_refetches(
    factory: &dyn ProviderFactory,
) {
    let provider = &*factory.create_provider().await;
    let lease = factory.lock_timeout();
    enqueue_activities(provider, &[bound(1, "s")]).await;
    let token = Worker::new(provider, "alice").activity_lease(lease).takes(&bound(1, "s")).await;

    outlive(lease).await;
    Worker::new(provider, "bob").finds_nothing("the session is still alice's").await;
    let alice = Worker::new(provider, "alice");
    let second = alice.takes_delivery(2, &bound(1, "s")).await;
    refuses_ack(provider, &token, "a lost delivery").await;
    alice.completes(&second, &bound(1, "s")).await;
}

/// When the session has a new owner, activities that the old owner had leased are redelivered to the new one.
pub async fn test_session_lock_expires_new_owner_gets_redelivery(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let lease = factory.lock_timeout();
    let alice = Worker::new(provider, "alice").session_lease(lease).activity_lease(lease * 2);
    let bob = Worker::new(provider, "bob");
    enqueue_activities(provider, &[bound(1, "s"), bound(2, "s")]).await;

    alice.takes(&bound(1, "s")).await;
    sleep(lease * 3 / 2).await;
    bob.takes(&bound(2, "s")).await;
    bob.finds_nothing("alice's lease on the activity outlives the one on the session").await;
    outlive(lease / 2).await;
    alice.finds_nothing("the session is bob's now").await;
    bob.takes_delivery(2, &bound(1, "s")).await;
}

/// When both leases have expired, any worker may take session and activity, and the first worker has lost both.
pub async fn test_both_locks_expire_different_worker_claims(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let lease = factory.lock_timeout();
    let alice = Worker::new(provider, "alice").session_lease(lease).activity_lease(lease);
    let bob = Worker::new(provider, "bob");
    enqueue_activities(provider, &[bound(1, "s"), bound(2, "s")]).await;
    let token = alice.takes(&bound(1, "s")).await;

    outlive(lease).await;
    let second = bob.takes_delivery(2, &bound(1, "s")).await;
    alice.finds_nothing("the session is bob's now").await;
    refuses_ack(provider, &token, "a lost delivery").await;
    bob.completes(&second, &bound(1, "s")).await;
    bob.takes(&bound(2, "s")).await;
}

/// An activity whose own lease is alive can be completed after its session was lost.
pub async fn test_session_lock_expires_activity_lock_valid_ack_succeeds(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let lease = factory.lock_timeout();
    let alice = Worker::new(provider, "alice").session_lease(lease);
    let bob = Worker::new(provider, "bob");
    create_instance(provider, INSTANCE).await;
    enqueue_activities(provider, &[bound(1, "s"), bound(2, "t"), bound(3, "t")]).await;
    let tokens = [alice.takes(&bound(1, "s")).await, alice.takes(&bound(2, "t")).await];

    outlive(lease).await;
    bob.takes(&bound(3, "t")).await;
    for (id, (token, session)) in (1..).zip(tokens.iter().zip(["s", "t"])) {
        alice.completes(token, &bound(id, session)).await;
    }
    let (turn, _, _) = must_fetch(provider, LONG).await;
    assert_eq!(turn.messages, [completed(INSTANCE, 1), completed(INSTANCE, 2)]);
    bob.finds_nothing("all activities are completed or leased").await;
}

async fn refuses_ack(provider: &dyn Provider, token: &str, what: &str) {
    let completion = Some(completed(INSTANCE, 1));
    permanent(provider.ack_work_item(token, completion).await, &format!("completing {what}"));
}
