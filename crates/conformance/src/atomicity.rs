//! A commit is applied completely or not at all.

use crate::ProviderFactory;
use crate::support::*;
use futures::future::join_all;
use outlast_provider::model::EventKind;

/// A commit that is refused for an event id changes nothing and keeps its lease.
pub async fn test_atomicity_failure_rollback<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let stored = vec![started("kept")];
    let token = first_turn(provider, "kept").await;
    let turn = Turn::new(&token).events(stored.clone()).activity(activity("kept", 7)).metadata(named());
    turn.commit(provider).await;

    let token = next_turn(provider, "kept").await;
    let added =
        [event("kept", 2, custom_status_kind(Some("half"))), event("kept", 3, value_kind("key", "value", 1))];
    for refused_id in [1, 0] {
        let turn = Turn::new(&token)
            .events(added.clone())
            .event(event("kept", refused_id, scheduled_kind("refused")))
            .activity(activity("kept", 8))
            .message(start_item("other"))
            .cancels(scheduled("kept", 7))
            .metadata(status("Completed", "done"));
        permanent(turn.try_commit(provider).await, "a commit with a stored event id or with id 0");

        assert_eq!(provider.read("kept").await.unwrap(), stored, "no event is appended");
        assert_eq!(provider.get_custom_status("kept", 0).await.unwrap(), None);
        assert!(provider.get_kv_all_values("kept").await.unwrap().is_empty(), "no value is set");
        operator(provider).sees_current("kept", 1, "Running", None).await;
        assert!(fetch(provider, LONG).await.is_none(), "the lease is kept and no message is sent");
    }
    assert_eq!(must_fetch_activity(provider, LONG).await.0, activity("kept", 7), "nothing was cancelled");
    assert!(fetch_activity(provider, LONG).await.is_none(), "nothing was scheduled");

    provider.abandon_orchestration_item(&token, None, false).await.expect("the lease is kept");
    let (item, token, attempt) = must_fetch(provider, LONG).await;
    assert_eq!((item.messages, attempt), (vec![raised("kept", "poke", "")], 2), "no message is consumed");
    Turn::new(&token).events(added.clone()).commit(provider).await;
    assert_eq!(provider.read("kept").await.unwrap(), [&stored[..], &added[..]].concat());
    assert_eq!(provider.get_custom_status("kept", 0).await.unwrap(), Some((Some("half".to_string()), 1)));
    assert!(fetch(provider, LONG).await.is_none(), "the message of the turn is consumed");
}

/// Events, activities and messages of one commit all land, in the order in which the turn gave them.
pub async fn test_multi_operation_atomic_ack<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let past = factory.now_ms().saturating_sub(60_000);
    let events = [
        started("busy"),
        event("busy", 2, scheduled_kind("Activity2")),
        event("busy", 3, scheduled_kind("Activity3")),
        event("busy", 4, scheduled_kind("Activity4")),
        event("busy", 5, EventKind::TimerCreated { fire_at_ms: past }),
    ];
    // A timer with a fire time in the past must not overtake messages that were enqueued before it.
    let messages =
        [raised("busy", "poke", "before"), timer("busy", 5, past), raised("busy", "poke", "after")];
    let token = first_turn(provider, "busy").await;
    let activities = [4, 2, 3].map(|id| activity("busy", id));
    let turn = Turn::new(&token).events(events.clone()).activities(activities.clone());
    let turn = turn.messages(messages.clone());
    // Without name and version no instance row is created, and all items must still be delivered.
    turn.commit(provider).await;

    assert_eq!(provider.read("busy").await.unwrap(), events);
    for expected in activities {
        assert_eq!(must_fetch_activity(provider, LONG).await.0, expected);
    }
    assert!(fetch_activity(provider, LONG).await.is_none());
    let (item, _, _) = must_fetch(provider, LONG).await;
    assert_eq!((item.instance.as_str(), item.orchestration_name.as_str()), ("busy", "TestOrch"));
    assert_eq!(item.messages, messages, "the start is deleted, and the other messages keep their order");
    assert_eq!(item.history, events);
}

/// A refused commit does not free the instance; expiry does, and so does a commit that succeeds.
pub async fn test_lock_released_only_on_successful_ack<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let lease = factory.lock_timeout();
    enqueue(provider, start_item("held")).await;
    let (_, lost, _) = must_fetch(provider, lease).await;
    let bogus = Turn::new("bogus-token").event(started("held")).metadata(named());
    permanent(bogus.try_commit(provider).await, "a commit with an unknown token");
    assert!(fetch(provider, LONG).await.is_none(), "a refused commit does not free the instance");

    outlive(lease).await;
    let (item, token, attempt) = must_fetch(provider, LONG).await;
    assert_eq!((item.messages, item.history.len(), attempt), (vec![start_item("held")], 0, 2));
    assert_ne!(token, lost, "every lease has its own token");

    poke(provider, "held").await;
    assert!(fetch(provider, LONG).await.is_none(), "the instance is locked again");
    Turn::new(&token).event(started("held")).metadata(named()).commit(provider).await;
    assert_eq!(must_fetch(provider, LONG).await.0.messages, [raised("held", "poke", "")]);
}

/// Of two parallel commits under one lease exactly one takes effect.
pub async fn test_concurrent_ack_prevention<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let token = first_turn(provider, "raced").await;
    // Different event ids, so that only the lease can distinguish them.
    let events = [1, 2].map(|id| event("raced", id, started_kind()));
    let commits = events.iter().map(|event| {
        let id = event.event_id;
        Turn::new(&token).event(event.clone()).activity(activity("raced", id)).try_commit(provider)
    });
    let outcomes = join_all(commits).await;

    let winners: Vec<_> = events.iter().zip(&outcomes).filter(|(_, outcome)| outcome.is_ok()).collect();
    assert_eq!(winners.len(), 1, "one commit per lease: {outcomes:?}");
    let winner = winners[0].0.clone();
    assert_eq!(must_fetch_activity(provider, LONG).await.0, activity("raced", winner.event_id));
    assert!(fetch_activity(provider, LONG).await.is_none(), "the loser schedules nothing");
    assert_eq!(provider.read("raced").await.unwrap(), [winner], "the loser appends nothing");
    permanent(Turn::new(&token).try_commit(provider).await, "a commit under a lease that is used up");
}
