//! Cleanup of expired sessions without activities.

use super::*;
use crate::ProviderFactory;

async fn sweep(provider: &dyn Provider) -> usize {
    provider.cleanup_orphaned_sessions(NO_WAIT).await.expect("cleanup_orphaned_sessions succeeds")
}

/// Alice completes activity 1 of the session and lets the session's lease expire.
async fn leave_expired_session(factory: &dyn ProviderFactory, provider: &dyn Provider, session: &str) {
    let lease = factory.lock_timeout();
    enqueue_activities(provider, &[bound(1, session)]).await;
    Worker::new(provider, "alice").session_lease(lease).processes(&bound(1, session)).await;
    outlive(lease).await;
}

/// An expired session without activities is removed, once.
pub async fn test_cleanup_removes_expired_no_items(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    assert_eq!(sweep(provider).await, 0, "the store is empty");
    leave_expired_session(factory, provider, "s").await;
    enqueue_activities(provider, &[bound(2, "other")]).await;
    Worker::new(provider, "bob").takes(&bound(2, "other")).await;

    assert_eq!(sweep(provider).await, 1, "the expired session, not the other one with its activity");
    assert_eq!(sweep(provider).await, 0, "the session is deleted");
    assert_eq!(renew(provider, &["alice", "bob"], LONG).await, 1, "the other one is not");
}

/// An expired session is kept while it has activities: waiting, leased or delayed.
pub async fn test_cleanup_keeps_sessions_with_pending_items(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let lease = factory.lock_timeout();
    let alice = Worker::new(provider, "alice").session_lease(lease);
    enqueue_activities(
        provider,
        &[bound(1, "held"), bound(2, "delayed"), bound(3, "waiting"), bound(4, "waiting")],
    )
    .await;
    let held = alice.takes(&bound(1, "held")).await;
    let delayed = alice.takes(&bound(2, "delayed")).await;
    provider.abandon_work_item(&delayed, Some(LONG), false).await.unwrap();
    alice.processes(&bound(3, "waiting")).await;

    outlive(lease).await;
    assert_eq!(sweep(provider).await, 0, "each of the three expired sessions has an activity");
    alice.completes(&held, &bound(1, "held")).await;
    assert_eq!(sweep(provider).await, 1, "its activity is completed, so the first session is removed");
    alice.processes(&bound(4, "waiting")).await;
    outlive(lease).await;
    assert_eq!(sweep(provider).await, 1, "and so is the session whose activity had waited");
}

/// A session with a live lease is kept, with its owner, even without activities.
pub async fn test_cleanup_keeps_active_sessions(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let (alice, bob) = (Worker::new(provider, "alice"), Worker::new(provider, "bob"));
    enqueue_activities(provider, &[bound(1, "s")]).await;
    alice.processes(&bound(1, "s")).await;

    assert_eq!(sweep(provider).await, 0, "alice's lease is alive");
    enqueue_activities(provider, &[bound(2, "s")]).await;
    bob.finds_nothing("the session is still alice's").await;
    alice.takes(&bound(2, "s")).await;
}

/// A new activity creates a removed session again, for the worker that fetches it first.
pub async fn test_cleanup_then_new_item_recreates_session(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    leave_expired_session(factory, provider, "s").await;
    assert_eq!(sweep(provider).await, 1);

    enqueue_activities(provider, &[bound(2, "s"), bound(3, "s")]).await;
    let bob = Worker::new(provider, "bob");
    bob.takes(&bound(2, "s")).await;
    Worker::new(provider, "alice").finds_nothing("the new session is bob's").await;
    assert_eq!(renew(provider, &["bob"], LONG).await, 1, "the session exists again");
    bob.takes(&bound(3, "s")).await;
}
