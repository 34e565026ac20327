//! Renewal of sessions: which ones it extends, and which calls count as use.

use super::*;
use crate::ProviderFactory;
use tokio::time::sleep;

/// A renewal extends every live session of the named owners, of no other owner, and returns their number.
pub async fn test_renew_session_lock_active(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let (alice, bob) = (Worker::new(provider, "alice"), Worker::new(provider, "bob"));
    enqueue_activities(provider, &[bound(1, "a"), bound(2, "b"), bound(3, "c")]).await;

    alice.takes(&bound(1, "a")).await;
    assert_eq!(renew(provider, &["alice"], LONG).await, 1);
    alice.processes(&bound(2, "b")).await;
    assert_eq!(renew(provider, &["alice"], LONG).await, 2, "with or without a leased activity");
    bob.takes(&bound(3, "c")).await;
    for (owners, expected) in [(vec!["alice"], 2), (vec!["bob"], 1), (vec!["bob", "nobody", "alice"], 3)] {
        assert_eq!(renew(provider, &owners, LONG).await, expected, "sessions of {owners:?}");
    }
}

/// A session that was not used within the window is not renewed, and being renewed is not a use.
pub async fn test_renew_session_lock_skips_idle(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let window = factory.lock_timeout() / 2;
    let renewed_within = async |window| renew_if_used_within(provider, &["alice"], LONG, window).await;
    enqueue_activities(provider, &[bound(1, "s"), bound(2, "t"), bound(3, "s")]).await;
    let alice = Worker::new(provider, "alice");
    alice.takes(&bound(1, "s")).await;
    sleep(window * 2).await;

    assert_eq!(renewed_within(LONG).await, 1, "used within the wide window");
    assert_eq!(renewed_within(window).await, 0, "but not within the narrow one");
    alice.takes(&bound(2, "t")).await;
    assert_eq!(renewed_within(window).await, 1, "a fetch uses the session of its activity");
    alice.takes(&bound(3, "s")).await;
    assert_eq!(renewed_within(window).await, 2, "also when the session exists already");
    assert_eq!(renewed_within(NO_WAIT).await, 0, "nothing was used within no time");
}

/// A renewal without sessions returns 0, for an unknown owner and for an empty list of owners.
pub async fn test_renew_session_lock_no_sessions(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    assert_eq!(renew(provider, &["alice"], LONG).await, 0, "the store is empty");
    enqueue_activities(provider, &[bound(1, "s")]).await;
    Worker::new(provider, "alice").takes(&bound(1, "s")).await;
    for (owners, expected) in [(vec![], 0), (vec!["bob", "carol"], 0), (vec!["alice"], 1)] {
        assert_eq!(renew(provider, &owners, LONG).await, expected, "sessions of {owners:?}");
    }
}

/// A renewal after the session's lease has expired does not extend it.
pub async fn test_renew_session_lock_after_expiry_returns_zero(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let lease = factory.lock_timeout();
    enqueue_activities(provider, &[bound(1, "s"), bound(2, "s")]).await;
    Worker::new(provider, "alice").session_lease(lease).takes(&bound(1, "s")).await;
    assert_eq!(renew(provider, &["alice"], lease).await, 1, "in time");

    outlive(lease).await;
    assert_eq!(renew(provider, &["alice"], LONG).await, 0, "too late");
    Worker::new(provider, "bob").takes(&bound(2, "s")).await;
}

/// A renewed session outlives its first deadline and no renewal brings the deadline nearer.
pub async fn test_session_lock_renewal_extends_past_original_timeout(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let lease = factory.lock_timeout();
    let bob = Worker::new(provider, "bob");
    enqueue_activities(provider, &[bound(1, "s"), bound(2, "s")]).await;

    Worker::new(provider, "alice").session_lease(lease).processes(&bound(1, "s")).await;
    sleep(lease * 5 / 8).await;
    assert_eq!(renew(provider, &["alice"], lease).await, 1, "alice's lease is alive");
    renew(provider, &["alice"], NO_WAIT).await;
    sleep(lease * 5 / 8).await;
    bob.finds_nothing("the first deadline is over, the renewed one is not").await;
    outlive(lease * 3 / 8).await;
    bob.takes(&bound(2, "s")).await;
}

/// Completing an activity counts as use of its session, and of no other.
pub async fn test_ack_updates_session_last_activity(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let window = factory.lock_timeout() / 2;
    let token = hold_one_of_two_idle_sessions(provider, window).await;
    provider.ack_work_item(&token, Some(completed(INSTANCE, 1))).await.unwrap();
    let renewed = renew_if_used_within(provider, &["alice"], LONG, window).await;
    assert_eq!(renewed, 1, "the session of the completed activity was used");
}

/// Renewing an activity's lease counts as use of its session, and of no other.
pub async fn test_renew_work_item_updates_session_last_activity(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let window = factory.lock_timeout() / 2;
    let token = hold_one_of_two_idle_sessions(provider, window).await;
    provider.renew_work_item_lock(&token, LONG).await.unwrap();
    let renewed = renew_if_used_within(provider, &["alice"], LONG, window).await;
    assert_eq!(renewed, 1, "the session of the renewed activity was used");
}

/// Two sessions of alice, both unused for longer than the window, and the token of activity 1, which is leased in one of them.
async fn hold_one_of_two_idle_sessions(provider: &dyn Provider, window: Duration) -> String {
    enqueue_activities(provider, &[bound(1, "busy"), bound(2, "idle")]).await;
    let alice = Worker::new(provider, "alice");
    let token = alice.takes(&bound(1, "busy")).await;
    alice.takes(&bound(2, "idle")).await;
    let fresh = renew_if_used_within(provider, &["alice"], LONG, window).await;
    assert_eq!(fresh, 2, "fetching is a use");
    sleep(window * 2).await;
    let idle = renew_if_used_within(provider, &["alice"], LONG, window).await;
    assert_eq!(idle, 0, "both sessions were idle");
    token
}
