//! Who gets what while sessions are held.

use super::*;
use crate::ProviderFactory;
use futures::future::join_all;
use tokio::time::sleep;

/// Work without a session goes to whoever asks, with or without a session of their own.
pub async fn test_non_session_items_fetchable_by_any_worker(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    enqueue_all_work(provider, &[bound(1, "s"), plain(2), plain(3), plain(4)]).await;
    let alice = Worker::new(provider, "alice");
    alice.takes(&bound(1, "s")).await;
    Worker::without_sessions(provider).takes(&plain(2)).await;
    alice.takes(&plain(3)).await;
    Worker::new(provider, "bob").takes(&plain(4)).await;
}

/// A worker that takes sessions also gets work without one, and owns no session for it.
pub async fn test_non_session_items_returned_with_session_config(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    enqueue_all_work(provider, &[plain(1), plain(2)]).await;
    let alice = Worker::new(provider, "alice");
    alice.takes(&plain(1)).await;
    alice.takes(&plain(2)).await;
    assert_eq!(renew(provider, &["alice"], LONG).await, 0, "plain work makes no session");
}

/// The first fetch of a session's work makes the fetcher its owner.
pub async fn test_session_item_claimable_when_no_session(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    enqueue_all_work(provider, &[bound(1, "s")]).await;
    assert_eq!(renew(provider, &["alice"], LONG).await, 0, "queued work makes no session");
    Worker::new(provider, "alice").takes(&bound(1, "s")).await;
    assert_eq!(renew(provider, &["alice"], LONG).await, 1, "the fetch claimed the session");
    assert_eq!(renew(provider, &["bob"], LONG).await, 0, "and for its caller only");
}

/// The owner keeps receiving the session's work, several at a time, and each fetch prolongs its ownership.
pub async fn test_session_affinity_same_worker(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let lease = factory.lock_timeout();
    let alice = Worker::new(provider, "alice").session_lease(lease);
    enqueue_all_work(provider, &[bound(1, "s"), bound(2, "s"), bound(3, "s")]).await;

    let token = alice.takes(&bound(1, "s")).await;
    sleep(lease * 5 / 8).await;
    alice.takes(&bound(2, "s")).await;
    alice.completes(&token, &bound(1, "s")).await;
    sleep(lease * 5 / 8).await;
    Worker::new(provider, "bob").finds_nothing("the second fetch prolonged the first claim").await;
    alice.takes(&bound(3, "s")).await;
    enqueue_all_work(provider, &[bound(4, "s")]).await;
    alice.takes(&bound(4, "s")).await;
}

/// Nobody else gets the session's work, even when the owner has nothing of it in hand, and asking costs no delivery.
pub async fn test_session_affinity_blocks_other_worker(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let (alice, bob) = (Worker::new(provider, "alice"), Worker::new(provider, "bob"));
    enqueue_all_work(provider, &[bound(1, "s"), bound(2, "s")]).await;

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
    enqueue_all_work(provider, &[bound(1, "a"), bound(2, "b"), bound(3, "a"), bound(4, "b")]).await;

    alice.takes(&bound(1, "a")).await;
    bob.takes(&bound(2, "b")).await;
    bob.takes(&bound(4, "b")).await;
    bob.finds_nothing("what is left belongs to alice's session").await;
    alice.takes(&bound(3, "a")).await;
    enqueue_all_work(provider, &[bound(5, "b")]).await;
    alice.finds_nothing("session b is bob's").await;
    bob.takes(&bound(5, "b")).await;
}

/// Work of a session that someone else owns does not hide the plain work behind it.
pub async fn test_mixed_session_and_non_session_items(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let (alice, bob) = (Worker::new(provider, "alice"), Worker::new(provider, "bob"));
    enqueue_all_work(provider, &[bound(1, "s"), bound(2, "s"), plain(3)]).await;

    alice.takes(&bound(1, "s")).await;
    bob.takes(&plain(3)).await;
    bob.finds_nothing("what is left belongs to alice's session").await;
    alice.takes(&bound(2, "s")).await;
}

/// A worker without sessions never gets session work, whether it was enqueued directly or by a commit.
pub async fn test_none_session_skips_session_items(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let (alice, nobody) = (Worker::new(provider, "alice"), Worker::without_sessions(provider));
    create_instance(provider, INSTANCE).await;
    let turn = next_turn(provider, INSTANCE).await;
    Turn::new(&turn).activity(bound(1, "s")).activity(plain(2)).commit(provider).await;
    enqueue_all_work(provider, &[bound(3, "s")]).await;

    nobody.takes(&plain(2)).await;
    nobody.finds_nothing("only session work is left, of a session without owner").await;
    alice.takes(&bound(1, "s")).await;
    nobody.finds_nothing("only session work is left, of an owned session").await;
    alice.takes(&bound(3, "s")).await;
}

/// A worker that takes sessions gets everything in the order of enqueueing, whichever session it belongs to.
pub async fn test_some_session_returns_all_items(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let alice = Worker::new(provider, "alice");
    let items = [bound(1, "b"), plain(2), bound(3, "a"), bound(4, "b"), plain(5)];
    enqueue_all_work(provider, &items).await;
    for item in &items {
        alice.takes(item).await;
    }
    alice.finds_nothing("everything is taken").await;
}

/// A session's work is handed out in the order of enqueueing.
pub async fn test_session_items_processed_in_order(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let alice = Worker::new(provider, "alice");
    let items = [3, 1, 5, 2, 4].map(|id| bound(id, "s"));
    enqueue_all_work(provider, &items).await;
    for item in &items {
        alice.processes(item).await;
    }
    alice.finds_nothing("everything is done").await;
}

/// All callers with one owner id are one owner.
pub async fn test_shared_worker_id_any_caller_can_fetch_owned_session(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    enqueue_all_work(provider, &[bound(1, "s"), bound(2, "s"), bound(3, "s")]).await;
    Worker::new(provider, "node").takes(&bound(1, "s")).await;
    Worker::new(provider, "node-2").finds_nothing("a longer id is another owner").await;
    Worker::new(provider, "node").takes(&bound(2, "s")).await;
    Worker::new(provider, "node").session_lease(LONG / 2).takes(&bound(3, "s")).await;
    assert_eq!(renew(provider, &["node"], LONG).await, 1, "they share one session");
}

/// Of workers that ask at once for work of a free session one gets it, and the others none until the claim ends.
pub async fn test_concurrent_session_claim_only_one_wins(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let workers = ["w1", "w2", "w3", "w4", "w5"].map(|owner| Worker::new(provider, owner));
    let items = [1, 2, 3, 4, 5].map(|id| bound(id, "s"));
    enqueue_all_work(provider, &items).await;

    let fetched = join_all(workers.iter().map(Worker::fetch)).await;
    let (winners, losers): (Vec<_>, Vec<_>) =
        workers.iter().zip(&fetched).partition(|(_, fetched)| fetched.is_some());
    let [(winner, Some((first, _, 1)))] = winners.as_slice() else {
        panic!("exactly one worker gets work, on its first delivery, but they got {fetched:?}");
    };
    for (loser, _) in &losers {
        loser.finds_nothing("the claim is held").await;
    }
    // Which item was first is up to the race; what a loser held for a moment is back, uncounted.
    for item in items.iter().filter(|item| *item != first) {
        winner.takes(item).await;
    }
}
