//! Bad tokens, bad events, missing and damaged data are reported with the right class of error.

use crate::ProviderFactory;
use crate::support::*;
use outlast_provider::model::INITIAL_EXECUTION_ID;
use outlast_provider::{Provider, WorkItem};
use std::sync::Arc;

/// A commit with an unknown token is refused, and the error names the token as the reason.
pub async fn test_invalid_lock_token_on_ack<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let token = first_turn(provider, "guarded").await;
    for unknown in ["no-such-token", ""] {
        let turn = Turn::new(unknown).event(started("guarded")).metadata(named());
        let error = permanent(turn.try_commit(provider).await, "a commit with an unknown token");
        let expected = ["Invalid lock token", "lock_token"];
        assert!(expected.iter().any(|text| error.message.contains(text)), "unexpected message: {error}");
    }
    assert!(provider.read("guarded").await.unwrap().is_empty(), "a refused commit writes nothing");

    let first = started("guarded");
    Turn::new(&token).event(first.clone()).metadata(named()).commit(provider).await;
    permanent(Turn::new(&token).try_commit(provider).await, "a second commit with one token");
    assert_eq!(provider.read("guarded").await.unwrap(), [first]);
}

/// An event id is stored once per execution: a second event with it is refused and the first stays; zero is no id.
pub async fn test_duplicate_event_id_rejection<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "strict").await;
    let stored = provider.read("strict").await.unwrap();
    assert_eq!(stored.len(), 1);

    let token = next_turn(provider, "strict").await;
    for ids in [vec![1], vec![2, 1], vec![2, 2], vec![2, 0]] {
        let events: Vec<_> = ids.iter().map(|&id| event("strict", id, scheduled_kind("refused"))).collect();
        let turn = Turn::new(&token).events(events.clone());
        permanent(turn.try_commit(provider).await, &format!("a commit of events {ids:?}"));
        let appended = provider.append_with_execution("strict", INITIAL_EXECUTION_ID, events).await;
        permanent(appended, &format!("appending events {ids:?}"));
        assert_eq!(provider.read("strict").await.unwrap(), stored, "history is unchanged after {ids:?}");
    }

    // Another execution counts for itself.
    Turn::new(&token).execution(2).event(started("strict")).commit(provider).await;
    assert_eq!(provider.read_with_execution("strict", 2).await.unwrap().len(), 1);
    assert_eq!(provider.read_with_execution("strict", 1).await.unwrap(), stored);
}

/// Reading an instance that does not exist yields nothing, also when similar ones exist.
pub async fn test_missing_instance_metadata<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "known").await;
    let stored = provider.read("known").await.unwrap();
    assert_eq!(stored.len(), 1, "what is stored can be read");
    assert_eq!(provider.read_with_execution("known", 1).await.unwrap(), stored);
    assert!(provider.read_with_execution("known", 2).await.unwrap().is_empty(), "no second execution");
    assert!(provider.get_instance_stats("known").await.unwrap().is_some());

    for unknown in ["missing", "know", "known2", "KNOWN", "%"] {
        assert!(provider.read(unknown).await.unwrap().is_empty(), "{unknown}");
        assert!(provider.read_with_execution(unknown, 1).await.unwrap().is_empty(), "{unknown}");
        assert_eq!(provider.get_custom_status(unknown, 0).await.unwrap(), None, "{unknown}");
        assert_eq!(provider.get_kv_value(unknown, "key").await.unwrap(), None, "{unknown}");
        assert!(provider.get_kv_all_values(unknown).await.unwrap().is_empty(), "{unknown}");
        assert_eq!(provider.get_instance_stats(unknown).await.unwrap(), None, "{unknown}");
        operator(provider).sees_newest_history(unknown, &[]).await;
        operator(provider).sees_no_instance(unknown).await;
    }
}

/// Fetching from an empty store finds nothing, payloads of any text survive storage, and a damaged item does not stop
/// the items behind it.
pub async fn test_corrupted_serialization_data<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    assert!(fetch(provider, LONG).await.is_none(), "an empty store has no turn");
    assert!(fetch_activity(provider, LONG).await.is_none(), "an empty store has no activity");

    let long = "long ".repeat(40_000);
    for (id, text) in (1..).zip(["", "NOT_VALID_JSON{{{", "\"}]\\'; --", "\0\u{1}\n\u{7f}", "Ω日本🦀", &long])
    {
        let message = raised("texts", text, text);
        let mut work = activity("texts", id);
        if let WorkItem::ActivityExecute { input, .. } = &mut work {
            *input = text.to_string();
        }
        enqueue(provider, start_item("texts")).await;
        enqueue(provider, message.clone()).await;
        let (item, token, _) = must_fetch(provider, LONG).await;
        assert_eq!(item.messages, [start_item("texts"), message]);
        Turn::new(&token).activity(work.clone()).commit(provider).await;
        let (delivered, token, _) = must_fetch_activity(provider, LONG).await;
        assert_eq!(delivered, work);
        provider.ack_work_item(&token, None).await.unwrap();
    }

    if factory.corrupts_queues() {
        for instance in ["damaged", "healthy"] {
            enqueue(provider, start_item(instance)).await;
            enqueue_activity(provider, activity(instance, 1)).await;
        }
        factory.corrupt_orchestrator_messages("damaged").await;
        factory.corrupt_work_items("damaged").await;
        assert_eq!(must_fetch(provider, LONG).await.0.messages, [start_item("healthy")]);
        assert_eq!(must_fetch_activity(provider, LONG).await.0, activity("healthy", 1));
        if let Some(admin) = provider.as_management_capability() {
            let depths = admin.get_queue_depths().await.unwrap();
            let set_aside = admin.list_dead_letters(10).await.unwrap().len();
            let kept = depths.orchestrator_queue + depths.worker_queue + set_aside;
            assert_eq!(kept, 2, "a damaged item waits or is stored as a dead letter, and never disappears");
        }
    }
}

/// A commit after the lease expired is rejected without effect, even if no other fetch has leased the instance.
pub async fn test_lock_expiration_during_ack<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let lease = factory.lock_timeout();
    enqueue(provider, start_item("late")).await;
    let (_, token, _) = must_fetch(provider, lease).await;
    outlive(lease).await;
    let turn = Turn::new(&token)
        .event(started("late"))
        .activity(activity("late", 2))
        .message(start_item("other"))
        .metadata(named());
    permanent(turn.try_commit(provider).await, "a commit under a lease that lapsed");
    assert!(provider.read("late").await.unwrap().is_empty(), "no history");
    assert!(fetch_activity(provider, LONG).await.is_none(), "no activity");
    operator(provider).sees_instances(&[]).await;

    let (item, token, _) = must_fetch(provider, LONG).await;
    assert_eq!(item.messages, [start_item("late")], "the turn is delivered again");
    assert!(fetch(provider, LONG).await.is_none(), "no message to others");
    let first = started("late");
    Turn::new(&token).event(first.clone()).metadata(named()).commit(provider).await;
    assert_eq!(provider.read("late").await.unwrap(), [first]);
}

/// A store with a healthy and a damaged instance; both were readable before the damage.
async fn damaged_store<F: ProviderFactory>(factory: &F) -> Arc<dyn Provider> {
    let provider = factory.create_provider().await;
    for instance in ["healthy", "damaged"] {
        create_instance(&*provider, instance).await;
        let token = next_turn(&*provider, instance).await;
        Turn::new(&token).event(event(instance, 2, scheduled_kind("next"))).commit(&*provider).await;
        assert_eq!(provider.read(instance).await.unwrap().len(), 2);
    }
    factory.corrupt_instance_history("damaged").await;
    provider
}

/// Reading the newest execution of a damaged history is an error, never a shortened list.
pub async fn test_read_corrupted_history_returns_error<F: ProviderFactory>(factory: &F) {
    let provider = &*damaged_store(factory).await;
    permanent(provider.read("damaged").await, "reading a damaged history");
    if let Some(admin) = provider.as_management_capability() {
        permanent(admin.read_history("damaged").await, "reading a damaged history for management");
    }
    assert_eq!(provider.read("healthy").await.unwrap().len(), 2, "other instances are not affected");
}

/// Reading a named execution of a damaged history is an error, never a shortened list.
pub async fn test_read_with_execution_corrupted_history_returns_error<F: ProviderFactory>(factory: &F) {
    let provider = &*damaged_store(factory).await;
    permanent(provider.read_with_execution("damaged", 1).await, "reading a damaged execution");
    if let Some(admin) = provider.as_management_capability() {
        let managed = admin.read_history_with_execution_id("damaged", 1).await;
        permanent(managed, "reading a damaged execution for management");
    }
    assert_eq!(provider.read_with_execution("healthy", 1).await.unwrap().len(), 2);
}
