//! Which worker gets an activity while sessions are held.

use super::*;
use crate::ProviderFactory;
use futures::future::join_all;
use tokio::time::sleep;

/// An activity without a session goes to any worker, with or without sessions.
pub async fn test_non_session_items_fetchable_by_any_worker(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    enqueue_activities(provider, &[bound(1, "s"), plain(2), plain(3), plain(4)]).await;
    let alice = Worker::new(provider, "alice");
    alice.takes(&bound(1, "s")).await;
    Worker::without_sessions(provider).takes(&plain(2)).await;
    alice.takes(&plain(3)).await;
    Worker::new(provider, "bob").takes(&plain(4)).await;
}

/// A worker that takes sessions also gets activities without one, and owns no session for them.
pub async fn test_non_session_items_returned_with_session_config(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    enqueue_activities(provider, &[plain(1), plain(2)]).await;
    let alice = Worker::new(provider, "alice");
    alice.takes(&plain(1)).await;
    alice.takes(&plain(2)).await;
    assert_eq!(
        renew(provider, &["alice"], LONG).await,
        0,
        "an activity without a session creates no session"
    );
}

/// The first fetch of a session's activity makes the worker its owner.
pub async fn test_session_item_claimable_when_no_session(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    enqueue_activities(provider, &[bound(1, "s")]).await;
    assert_eq!(renew(provider, &["alice"], LONG).await, 0, "a queued activity creates no session");
    Worker::new(provider, "alice").takes(&bound(1, "s")).await;
    assert_eq!(renew(provider, &["alice"], LONG).await, 1, "the fetch claimed the session");
    assert_eq!(renew(provider, &["bob"], LONG).await, 0, "and for its caller only");
}

/// The owner gets the session's activities, several at a time, and each fetch extends the session's lease.
pub async fn test_session_affinity_same_worker(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let lease = factory.lock_timeout();
    let alice = Worker::new(provider, "alice").session_lease(lease);
    enqueue_activities(provider, &[bound(1, "s"), bound(2, "s"), bound(3, "s")]).await;

    let token = alice.takes(&bound(1, "s")).await;
    sleep(lease * 5 / 8).await;
    alice.takes(&bound(2, "s")).await;
    alice.completes(&token, &bound(1, "s")).await;
    sleep(lease * 5 / 8).await;
    Worker::new(provider, "bob").finds_nothing("the second fetch prolonged the first claim").await;
    alice.takes(&bound(3, "s")).await;
    enqueue_activities(provider, &[bound(4, "s")]).await;
    alice.takes(&bound(4, "s")).await;
}

/// No other worker gets the session's activities, even if the owner runs none of them, and its fetches count no delivery.
pub async fn test_session_affinity_blocks_other_worker(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let (alice, bob) = (Worker::new(provider, "alice"), Worker::new(provider, "bob"));
    enqueue_activities(provider, &[bound(1, "s"), bound(2, "s")]).await;

    let token = alice.takes(&bound(1, "s")).await;
    bob.finds_nothing("alice owns the session").await;
    alice.completes(&token, &bound(1, "s")).await;
    bob.finds_nothing("a completion does not end ownership").await;
    alice.takes(&bound(2, "s")).await;
}

/// Each session has its own owner.
pub async fn test_different_sessions_different_workers(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let (alice, bob) = (Worker::new(provider, "alice"), Worker::new(provider, "bob"));
    enqueue_activities(provider, &[bound(1, "a"), bound(2, "b"), bound(3, "a"), bound(4, "b")]).await;

    alice.takes(&bound(1, "a")).await;
    bob.takes(&bound(2, "b")).await;
    bob.takes(&bound(4, "b")).await;
    bob.finds_nothing("what is left belongs to alice's session").await;
    alice.takes(&bound(3, "a")).await;
    enqueue_activities(provider, &[bound(5, "b")]).await;
    alice.finds_nothing("session b is bob's").await;
    bob.takes(&bound(5, "b")).await;
}

/// An activity of another owner's session does not delay activities without a session behind it.
pub async fn test_mixed_session_and_non_session_items(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let (alice, bob) = (Worker::new(provider, "alice"), Worker::new(provider, "bob"));
    enqueue_activities(provider, &[bound(1, "s"), bound(2, "s"), plain(3)]).await;

    alice.takes(&bound(1, "s")).await;
    bob.takes(&plain(3)).await;
    bob.finds_nothing("what is left belongs to alice's session").await;
    alice.takes(&bound(2, "s")).await;
}

/// A worker without sessions never gets activities of sessions, enqueued directly or by a commit.
pub async fn test_none_session_skips_session_items(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let (alice, sessionless) = (Worker::new(provider, "alice"), Worker::without_sessions(provider));
    create_instance(provider, INSTANCE).await;
    let turn = next_turn(provider, INSTANCE).await;
    Turn::new(&turn).activity(bound(1, "s")).activity(plain(2)).commit(provider).await;
    enqueue_activities(provider, &[bound(3, "s")]).await;

    sessionless.takes(&plain(2)).await;
    sessionless.finds_nothing("only an activity of a session without owner is left").await;
    alice.takes(&bound(1, "s")).await;
    sessionless.finds_nothing("only an activity of an owned session is left").await;
    alice.takes(&bound(3, "s")).await;
}

/// A worker that takes sessions gets all activities in the order of enqueueing, of any session.
pub async fn test_some_session_returns_all_items(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let alice = Worker::new(provider, "alice");
    let items = [bound(1, "b"), plain(2), bound(3, "a"), bound(4, "b"), plain(5)];
    enqueue_activities(provider, &items).await;
    for item in &items {
        alice.takes(item).await;
    }
    alice.finds_nothing("everything is taken").await;
}

/// The activities of a session are fetched in the order of enqueueing.
pub async fn test_session_items_processed_in_order(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let alice = Worker::new(provider, "alice");
    let items = [3, 1, 5, 2, 4].map(|id| bound(id, "s"));
    enqueue_activities(provider, &items).await;
    for item in &items {
        alice.processes(item).await;
    }
    alice.finds_nothing("everything is done").await;
}

/// All callers with one owner id are one owner.
pub async fn test_shared_worker_id_any_caller_can_fetch_owned_session(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    enqueue_activities(provider, &[bound(1, "s"), bound(2, "s"), bound(3, "s")]).await;
    Worker::new(provider, "node").takes(&bound(1, "s")).await;
    Worker::new(provider, "node-2").finds_nothing("a longer id is another owner").await;
    Worker::new(provider, "node").takes(&bound(2, "s")).await;
    Worker::new(provider, "node").session_lease(LONG / 2).takes(&bound(3, "s")).await;
    assert_eq!(renew(provider, &["node"], LONG).await, 1, "they share one session");
}

/// Of workers that concurrently fetch activities of a free session one gets the session, and the others nothing until it ends.
pub async fn test_concurrent_session_claim_only_one_wins(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let workers = ["w1", "w2", "w3", "w4", "w5"].map(|owner| Worker::new(provider, owner));
    let items = [1, 2, 3, 4, 5].map(|id| bound(id, "s"));
    enqueue_activities(provider, &items).await;

    let fetched = join_all(workers.iter().map(Worker::fetch)).await;
    let (winners, losers): (Vec<_>, Vec<_>) =
        workers.iter().zip(&fetched).partition(|(_, fetched)| fetched.is_some());
    let [(winner, Some((first, _, 1)))] = winners.as_slice() else {
        panic!("exactly one worker gets an activity, on its first delivery, but they got {fetched:?}");
    };
    for (loser, _) in &losers {
        loser.finds_nothing("the claim is held").await;
    }
    // The race decides which activity was first; an activity that a loser held briefly is available again, uncounted.
    for item in items.iter().filter(|item| *item != first) {
        winner.takes(item).await;
    }
}
