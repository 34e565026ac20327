//! Sessions whose lease has expired.

use super::*;
use crate::ProviderFactory;

/// After the owner's lease has expired, and not before, another worker gets the session's activities.
pub async fn test_session_claimable_after_lock_expiry(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let lease = factory.lock_timeout();
    let bob = Worker::new(provider, "bob");
    enqueue_activities(provider, &[bound(1, "s"), bound(2, "s")]).await;

    Worker::new(provider, "alice").session_lease(lease).processes(&bound(1, "s")).await;
    bob.finds_nothing("alice's lease is alive").await;
    outlive(lease).await;
    bob.takes(&bound(2, "s")).await;
}

/// A worker that takes an expired session owns it, and the former owner gets none of its activities.
pub async fn test_session_takeover_after_lock_expiry(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let lease = factory.lock_timeout();
    let (alice, bob) = (Worker::new(provider, "alice").session_lease(lease), Worker::new(provider, "bob"));
    enqueue_activities(provider, &[bound(1, "s"), bound(2, "s"), bound(3, "s")]).await;

    alice.processes(&bound(1, "s")).await;
    outlive(lease).await;
    bob.takes(&bound(2, "s")).await;
    alice.finds_nothing("the session is bob's now").await;
    assert_eq!(renew(provider, &["alice"], LONG).await, 0, "alice owns nothing any more");
    assert_eq!(renew(provider, &["bob"], LONG).await, 1, "bob owns the session");
    bob.takes(&bound(3, "s")).await;
}

/// The former owner may take its expired session again, and then owns it as before.
pub async fn test_original_worker_reclaims_expired_session(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let lease = factory.lock_timeout();
    enqueue_activities(provider, &[bound(1, "s"), bound(2, "s"), bound(3, "s")]).await;

    Worker::new(provider, "alice").session_lease(lease).processes(&bound(1, "s")).await;
    outlive(lease).await;
    let alice = Worker::new(provider, "alice");
    alice.processes(&bound(2, "s")).await;
    Worker::new(provider, "bob").finds_nothing("alice has the session again").await;
    assert_eq!(renew(provider, &["alice"], LONG).await, 1, "it is alive again");
    alice.processes(&bound(3, "s")).await;
}

/// The former owner may take its expired session again while it still runs an earlier activity of it.
pub async fn test_session_lock_expires_same_worker_reacquires(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let lease = factory.lock_timeout();
    enqueue_activities(provider, &[bound(1, "s"), bound(2, "s"), bound(3, "s")]).await;

    let token = Worker::new(provider, "alice").session_lease(lease).takes(&bound(1, "s")).await;
    outlive(lease).await;
    let alice = Worker::new(provider, "alice");
    alice.takes(&bound(2, "s")).await;
    Worker::new(provider, "bob").finds_nothing("alice has the session again").await;
    alice.completes(&token, &bound(1, "s")).await;
    alice.takes(&bound(3, "s")).await;
}
