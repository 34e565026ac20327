//! A runtime with a warm cache fetches turns without their history, and gets the position of the instance in the store.
//!
//! A store that always returns the history passes too, if it reports this.

use crate::ProviderFactory;
use crate::support::*;
use outlast_provider::model::Event;
use outlast_provider::{
    DispatcherCapabilityFilter, ExecutionMetadata, FetchedTurn, KvEntry, LoadedTurn, Provider, TurnRequest,
    WorkItem,
};
use std::collections::HashMap;

async fn try_fetch_turn(
    provider: &dyn Provider,
    with_history: bool,
    filter: Option<&DispatcherCapabilityFilter>,
) -> Option<FetchedTurn> {
    let request = TurnRequest { lock_timeout: LONG, poll_timeout: NO_WAIT, filter, with_history };
    provider.fetch_turn(request).await.expect("fetch_turn succeeds")
}

async fn fetch_turn(provider: &dyn Provider, with_history: bool) -> FetchedTurn {
    let turn = try_fetch_turn(provider, with_history, None).await.expect("a turn is ready");
    assert!(turn.history_loaded || !with_history, "what is asked for is delivered");
    turn
}

/// History and snapshot of a turn, loaded now if the fetch did not bring them.
async fn loaded(provider: &dyn Provider, turn: &FetchedTurn) -> LoadedTurn {
    let item = &turn.item;
    if turn.history_loaded {
        return LoadedTurn {
            history: item.history.clone(),
            kv_snapshot: item.kv_snapshot.clone(),
            history_error: item.history_error.clone(),
        };
    }
    assert!(item.history.is_empty() && item.kv_snapshot.is_empty(), "neither was read");
    assert_eq!(item.history_error, None, "what is not read is not judged");
    provider.load_turn(&item.instance, item.execution_id).await.expect("load_turn succeeds")
}

/// Checks the last event id that the store reports; a store that returns the whole history may omit it.
fn assert_ends_at(turn: &FetchedTurn, expected: u64) {
    match turn.last_event_id {
        Some(last) => assert_eq!(last, expected, "last event id of {}", turn.item.instance),
        None => assert!(turn.history_loaded, "without the history, its end must be known"),
    }
}

async fn give_back(provider: &dyn Provider, token: &str) {
    provider.abandon_orchestration_item(token, None, true).await.expect("the lease is live");
}

fn set(instance: &str, execution_id: u64, event_id: u64, key: &str, value: &str) -> Event {
    event_in(instance, execution_id, event_id, value_kind(key, value, 1_000 + event_id))
}

/// An instance in its second execution, with values of the first and of the second, and two waiting messages.
async fn create_waiting(provider: &dyn Provider) -> [WorkItem; 2] {
    create_instance(provider, "warm").await;
    let token = next_turn(provider, "warm").await;
    Turn::new(&token).event(set("warm", 1, 2, "kept", "by 1")).commit(provider).await;
    continue_as_new(provider, "warm", 1).await;
    let token = next_turn(provider, "warm").await;
    Turn::new(&token).execution(2).event(set("warm", 2, 2, "own", "by 2")).commit(provider).await;
    let messages = [completed("warm", 9), raised("warm", "poke", "")];
    enqueue_all(provider, &messages).await;
    messages
}

/// A turn is the same turn, fetched with its history or without, or by the older call.
pub async fn a_warm_fetch_delivers_the_same_turn(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let messages = create_waiting(provider).await;
    let (plain, token, attempt) = must_fetch(provider, LONG).await;
    assert_eq!((plain.messages.as_slice(), attempt), (messages.as_slice(), 1));
    assert_eq!((plain.execution_id, plain.history.len()), (2, 2));
    let snapshot = KvEntry { value: "by 1".to_string(), last_updated_at_ms: 1_002 };
    assert_eq!(plain.kv_snapshot, HashMap::from([("kept".to_string(), snapshot)]));
    give_back(provider, &token).await;

    for with_history in [true, false] {
        let turn = fetch_turn(provider, with_history).await;
        let item = &turn.item;
        assert_eq!((&item.instance, &item.orchestration_name), (&plain.instance, &plain.orchestration_name));
        assert_eq!((&item.version, item.execution_id), (&plain.version, plain.execution_id));
        assert_eq!((item.messages.as_slice(), turn.attempt_count), (messages.as_slice(), 1));
        assert_ends_at(&turn, 2);
        if let Some(now_ms) = turn.now_ms {
            assert!(now_ms.abs_diff(factory.now_ms()) < 1_000, "{now_ms} is not the store's time");
        }
        let loaded = loaded(provider, &turn).await;
        assert_eq!((&loaded.history, &loaded.kv_snapshot), (&plain.history, &plain.kv_snapshot));
        assert_eq!(loaded.history_error, None);
        assert!(fetch(provider, LONG).await.is_none(), "it is a lease like any other");
        give_back(provider, &turn.lock_token).await;
    }

    let turn = fetch_turn(provider, false).await;
    provider.renew_orchestration_item_lock(&turn.lock_token, LONG).await.expect("the lease is live");
    Turn::new(&turn.lock_token).execution(2).event(set("warm", 2, 3, "own", "new")).commit(provider).await;
    assert!(try_fetch_turn(provider, false, None).await.is_none(), "the messages are consumed");
    assert_eq!(provider.read("warm").await.unwrap().len(), 3);
}

/// Every method of fetching a turn counts deliveries, takes a lease and applies the filter.
pub async fn a_warm_fetch_counts_and_filters_like_any_other(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    create_waiting(provider).await;
    let nothing = supporting([]);
    for expected in [1, 2, 3] {
        assert!(try_fetch_turn(provider, false, Some(&nothing)).await.is_none());
        let turn = fetch_turn(provider, expected % 2 == 0).await;
        assert_eq!(turn.attempt_count, expected);
        assert!(try_fetch_turn(provider, false, None).await.is_none(), "it is leased");
        provider.abandon_orchestration_item(&turn.lock_token, None, false).await.unwrap();
    }
    assert_eq!(must_fetch(provider, LONG).await.2, 4);
}

/// The last event id is the highest that is stored for the execution: none for a new instance, sparse ids as they
/// are, and each execution for itself.
pub async fn the_last_event_id_is_the_position_of_the_execution(factory: &dyn ProviderFactory) {
    for metadata in [named(), ExecutionMetadata::default()] {
        let provider = &*factory.create_provider().await;
        enqueue(provider, start_item("counted")).await;
        let turn = fetch_turn(provider, false).await;
        assert_ends_at(&turn, 0);
        assert_eq!(turn.item.messages, [start_item("counted")]);
        Turn::new(&turn.lock_token).event(started("counted")).metadata(metadata).commit(provider).await;

        let commits: [(u64, &[u64], u64); 6] = [
            (1, &[2], 1),
            (1, &[], 2),
            (1, &[100, 9], 2),
            (1, &[9_999], 100),
            (2, &[1], 9_999),
            (2, &[2, 3], 1),
        ];
        for (execution_id, ids, before) in commits {
            poke(provider, "counted").await;
            let turn = fetch_turn(provider, false).await;
            assert_ends_at(&turn, before);
            let events = ids.iter().map(|id| match id {
                1 => started_in("counted", execution_id),
                _ => event_in("counted", execution_id, *id, scheduled_kind("Activity")),
            });
            Turn::new(&turn.lock_token).execution(execution_id).events(events).commit(provider).await;
        }
        poke(provider, "counted").await;
        let turn = fetch_turn(provider, false).await;
        assert_ends_at(&turn, 3);
        let history = loaded(provider, &turn).await.history;
        assert_eq!((turn.item.execution_id, event_ids(&history)), (2, vec![1, 2, 3]));
    }
}

/// A turn of a new instance loads as nothing: no events and no values.
pub async fn a_new_instance_loads_an_empty_history(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    enqueue(provider, start_item("new")).await;
    let turn = fetch_turn(provider, false).await;
    assert_eq!((turn.item.orchestration_name.as_str(), turn.item.execution_id), ("TestOrch", 1));
    let loaded = loaded(provider, &turn).await;
    assert_eq!((loaded.history, loaded.kv_snapshot, loaded.history_error), (vec![], HashMap::new(), None));
    Turn::new(&turn.lock_token).event(started("new")).metadata(named()).commit(provider).await;
}

/// A damaged history does not fail the fetch, and is reported when the history is loaded, with a row or without.
pub async fn a_damaged_history_is_reported_when_it_is_loaded(factory: &dyn ProviderFactory) {
    for metadata in [named(), ExecutionMetadata::default()] {
        let provider = &*factory.create_provider().await;
        create_with(provider, "damaged", metadata).await;
        factory.corrupt_instance_history("damaged").await;
        let message = queue_message("damaged", "q", "");
        enqueue(provider, message.clone()).await;
        for (with_history, expected) in [(false, 1), (true, 2), (false, 3)] {
            let turn = fetch_turn(provider, with_history).await;
            assert_eq!((&turn.item.messages, turn.attempt_count), (&vec![message.clone()], expected));
            assert!(turn.last_event_id.is_none_or(|id| id == 1), "one event is stored");
            let loaded = loaded(provider, &turn).await;
            assert!(loaded.history.is_empty(), "no part of a damaged history is delivered");
            assert!(loaded.history_error.is_some_and(|reason| !reason.is_empty()), "the damage is reported");
            provider.abandon_orchestration_item(&turn.lock_token, None, false).await.unwrap();
        }
        let turn = fetch_turn(provider, false).await;
        let failure = event("damaged", 99_999, scheduled_kind("Sentinel"));
        Turn::new(&turn.lock_token)
            .event(failure)
            .metadata(status("Failed", "damaged"))
            .commit(provider)
            .await;
        assert!(fetch(provider, LONG).await.is_none(), "the turn is committed");
    }
}
