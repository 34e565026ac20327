//! While a lease on an instance is held, no other fetch returns this instance; other instances are not affected.

use crate::ProviderFactory;
use crate::support::*;
use futures::future::join_all;
use outlast_provider::{OrchestrationItem, Provider};
use std::collections::BTreeSet;
use std::time::Duration;

type Fetched = Option<(OrchestrationItem, String, u32)>;

fn names(count: usize) -> BTreeSet<String> {
    (0..count).map(|n| format!("instance-{n}")).collect()
}

async fn start_all(provider: &dyn Provider, instances: &BTreeSet<String>) {
    for instance in instances {
        enqueue(provider, start_item(instance)).await;
    }
}

/// Runs this number of fetches concurrently.
async fn race(provider: &dyn Provider, racers: usize, lease: Duration) -> Vec<Fetched> {
    join_all((0..racers).map(|_| fetch(provider, lease))).await
}

/// The only fetch that got the instance.
fn only_winner(fetched: Vec<Fetched>) -> (OrchestrationItem, String, u32) {
    let mut winners: Vec<_> = fetched.into_iter().flatten().collect();
    assert_eq!(winners.len(), 1, "exactly one of the racers gets the instance");
    winners.remove(0)
}

/// A locked instance cannot be fetched before its lease is over; then all its messages come under a new token.
pub async fn test_exclusive_instance_lock<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let lease = factory.lock_timeout();
    enqueue(provider, start_item("exclusive")).await;
    let (item, first, attempt) = must_fetch(provider, lease).await;
    assert_eq!((item.messages, attempt), (vec![start_item("exclusive")], 1));
    assert!(fetch(provider, lease).await.is_none(), "locked right after the fetch");
    poke(provider, "exclusive").await;
    tokio::time::sleep(lease / 2).await;
    assert!(fetch(provider, lease).await.is_none(), "locked until the lease is over, new messages or not");

    outlive(lease / 2).await;
    let (item, second, attempt) = must_fetch(provider, LONG).await;
    assert_eq!(item.messages, [start_item("exclusive"), raised("exclusive", "poke", "")]);
    assert_eq!(attempt, 2, "the start is delivered for the second time");
    assert_ne!(first, second, "every lease has its own token");
}

/// Every lease has its own token, also the second lease of one instance, and a token is valid for its own instance only.
pub async fn test_lock_token_uniqueness<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let instances = names(5);
    let mut tokens = BTreeSet::new();
    for _round in 0..2 {
        start_all(provider, &instances).await;
        let mut leases = Vec::new();
        for _ in &instances {
            let (item, token, _) = must_fetch(provider, LONG).await;
            assert!(tokens.insert(token.clone()), "token {token} was issued twice");
            leases.push((item, token));
        }
        for (item, token) in leases.iter().rev() {
            let id = item.history.len() as u64 + 1;
            Turn::new(token).event(event(&item.instance, id, started_kind())).commit(provider).await;
        }
    }
    assert_eq!(tokens.len(), 10);
    for instance in &instances {
        let history = provider.read(instance).await.unwrap();
        let written: Vec<_> =
            history.iter().map(|event| (event.instance_id.as_str(), event.event_id)).collect();
        assert_eq!(
            written,
            [(instance.as_str(), 1), (instance.as_str(), 2)],
            "a token opens its own instance"
        );
    }
}

/// Commit, abandon and renewal reject an unknown token, and do not change the lease.
pub async fn test_invalid_lock_token_rejection<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    enqueue(provider, start_item("guarded")).await;
    enqueue_activity(provider, activity("guarded", 1)).await;
    let (_, token, _) = must_fetch(provider, LONG).await;
    let (_, activity_token, _) = must_fetch_activity(provider, LONG).await;

    for bogus in ["bogus-token", &activity_token] {
        let turn = Turn::new(bogus).event(started("guarded")).metadata(named());
        permanent(turn.try_commit(provider).await, "a commit with a bogus token");
        permanent(provider.abandon_orchestration_item(bogus, None, false).await, "a bogus abandon");
        let delayed = provider.abandon_orchestration_item(bogus, Some(LONG), true).await;
        permanent(delayed, "a delayed bogus abandon");
        permanent(provider.renew_orchestration_item_lock(bogus, LONG).await, "a bogus renewal");
    }
    assert!(fetch(provider, LONG).await.is_none(), "the lease is intact");
    assert!(provider.read("guarded").await.unwrap().is_empty(), "nothing was written");
    provider.renew_orchestration_item_lock(&token, LONG).await.expect("the real token renews");
    let first = started("guarded");
    Turn::new(&token).event(first.clone()).metadata(named()).commit(provider).await;
    assert_eq!(provider.read("guarded").await.unwrap(), [first]);
    provider.ack_work_item(&activity_token, None).await.expect("the activity's lease is intact");
}

/// Ten parallel fetches take ten waiting instances, each another one.
pub async fn test_concurrent_instance_fetching<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let instances = names(10);
    start_all(provider, &instances).await;
    let fetched = race(provider, 10, LONG).await;
    let taken: Vec<_> = fetched.into_iter().flatten().map(|(item, _, _)| item.instance).collect();
    assert_eq!(taken.len(), 10, "no fetch goes without: {taken:?}");
    assert_eq!(BTreeSet::from_iter(taken), instances);
    assert!(fetch(provider, LONG).await.is_none(), "all are locked");
}

/// Messages for a locked instance wait for the end of the lease and then arrive together, in order.
pub async fn test_completions_arriving_during_lock_blocked<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "locked").await;
    let token = next_turn(provider, "locked").await;
    let late = [4, 2, 3].map(|id| completed("locked", id));
    for message in late.clone() {
        enqueue(provider, message).await;
        assert!(fetch(provider, LONG).await.is_none(), "the instance is locked");
    }
    Turn::new(&token).commit(provider).await;
    let (item, token, attempt) = must_fetch(provider, LONG).await;
    assert_eq!((item.messages.as_slice(), attempt), (late.as_slice(), 1));
    Turn::new(&token).commit(provider).await;
    assert!(fetch(provider, LONG).await.is_none(), "every message was delivered once");
}

/// A lease on one instance does not delay other instances, and instances are fetched in the order of arrival.
pub async fn test_cross_instance_lock_isolation<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let order = ["zulu", "mike", "alpha"];
    for instance in order {
        enqueue(provider, start_item(instance)).await;
    }
    let mut tokens = Vec::new();
    for instance in order {
        let (item, token, _) = must_fetch(provider, LONG).await;
        assert_eq!((item.instance.as_str(), item.messages), (instance, vec![start_item(instance)]));
        enqueue(provider, raised(instance, "late", instance)).await;
        tokens.push(token);
    }
    assert!(fetch(provider, LONG).await.is_none(), "all are locked");

    let turn = Turn::new(&tokens[1]).event(started("mike")).metadata(named());
    turn.commit(provider).await;
    let (item, _, _) = must_fetch(provider, LONG).await;
    assert_eq!(item.messages, [raised("mike", "late", "mike")]);
    assert!(fetch(provider, LONG).await.is_none(), "a commit frees its own instance only");
}

/// A commit removes the messages that its fetch saw, and not the one that arrived in between.
pub async fn test_message_tagging_during_lock<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "tagged").await;
    enqueue(provider, raised("tagged", "seen", "")).await;
    let (item, token, _) = must_fetch(provider, LONG).await;
    assert_eq!(item.messages, [raised("tagged", "seen", "")]);
    enqueue(provider, raised("tagged", "late", "")).await;
    Turn::new(&token).commit(provider).await;

    let (item, token, attempt) = must_fetch(provider, LONG).await;
    assert_eq!(item.messages, [raised("tagged", "late", "")]);
    assert_eq!(attempt, 1, "the late message was not delivered before");
    Turn::new(&token).commit(provider).await;
    assert!(fetch(provider, LONG).await.is_none());
}

/// The commit of a turn removes only its fetched messages, for any number of messages that arrive during the turn.
pub async fn test_ack_only_affects_locked_messages<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "first").await;
    create_instance(provider, "second").await;
    let seen = [raised("first", "seen", "1"), raised("first", "seen", "2")];
    // The last one equals a fetched message in every field.
    let late = [completed("first", 2), raised("first", "late", ""), raised("first", "seen", "1")];
    enqueue_all(provider, &seen).await;
    let (item, token, _) = must_fetch(provider, LONG).await;
    assert_eq!(item.messages, seen);
    enqueue_all(provider, &late).await;
    enqueue(provider, raised("second", "other", "")).await;
    Turn::new(&token).commit(provider).await;

    let (item, token, attempt) = must_fetch(provider, LONG).await;
    assert_eq!((item.messages.as_slice(), attempt), (late.as_slice(), 1));
    Turn::new(&token).commit(provider).await;
    assert_eq!(must_fetch(provider, LONG).await.0.messages, [raised("second", "other", "")]);
    assert!(fetch(provider, LONG).await.is_none());
}

/// Of ten concurrent fetches for one instance one gets it, and the others get nothing.
pub async fn test_multi_threaded_lock_contention<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    enqueue(provider, start_item("contended")).await;
    let (item, token, attempt) = only_winner(race(provider, 10, LONG).await);
    assert_eq!((item.messages, attempt), (vec![start_item("contended")], 1));
    Turn::new(&token).event(started("contended")).metadata(named()).commit(provider).await;
    assert!(fetch(provider, LONG).await.is_none());
}

/// Forty concurrent tasks never lease the same of twenty instances; retryable errors are allowed.
pub async fn test_multi_threaded_no_duplicate_processing<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let instances = names(20);
    start_all(provider, &instances).await;
    let fetched = join_all((0..40).map(|_| fetch_with_retries(provider))).await;
    let mut taken: Vec<_> = fetched.into_iter().flatten().map(|(item, _, _)| item.instance).collect();
    assert!(!taken.is_empty(), "at least one fetch gets an instance");
    // A task may lose every race; the instances that remain can be fetched, each once.
    while let Some((item, _, _)) = fetch(provider, LONG).await {
        taken.push(item.instance);
    }
    assert_eq!(taken.len(), 20, "each instance once: {taken:?}");
    assert_eq!(BTreeSet::from_iter(taken), instances);
}

async fn fetch_with_retries(provider: &dyn Provider) -> Fetched {
    for _ in 0..100 {
        match provider.fetch_orchestration_item(LONG, NO_WAIT, None).await {
            Ok(fetched) => return fetched,
            Err(error) => assert!(
                error.is_retryable(),
                "a fetch that loses a race fails with a permanent error: {error}"
            ),
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("a fetch fails a hundred times in a row");
}

/// The instance of a crashed holder is fetched by exactly one other, after the lease has expired and not before.
pub async fn test_multi_threaded_lock_expiration_recovery<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let lease = factory.lock_timeout();
    enqueue(provider, start_item("crashed")).await;
    let (_, lost, _) = must_fetch(provider, lease).await;
    assert!(race(provider, 5, LONG).await.iter().all(Option::is_none), "the holder may still be alive");

    outlive(lease).await;
    let (item, token, attempt) = only_winner(race(provider, 5, LONG).await);
    assert_eq!((item.messages, attempt), (vec![start_item("crashed")], 2));
    let turn = Turn::new(&lost).event(event("crashed", 9, started_kind()));
    permanent(turn.try_commit(provider).await, "a commit by the crashed holder");
    let first = started("crashed");
    Turn::new(&token).event(first.clone()).metadata(named()).commit(provider).await;
    assert_eq!(provider.read("crashed").await.unwrap(), [first]);
}
