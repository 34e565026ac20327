//! Cold turns: a turn whose instance is not in memory reads its history and its keys, and no more than a bound allows.

use crate::factory::{fresh_config, meddle};
use crate::support::*;
use outlast_model::{Event, EventKind};
use outlast_postgres::PostgresProvider;
use outlast_provider::{BoundedTurn, HistoryBound, LoadedTurn, Provider, TurnCommit};

const BOUND: HistoryBound = HistoryBound { events: 1_500, bytes: 4 << 20 };

fn status(event_id: u64, text: &str) -> Event {
    let kind = EventKind::CustomStatusUpdated { status: Some(text.to_string()) };
    Event::at(7, event_id, "i", 1, None, kind)
}

/// An ended instance with a key and two events. No task of the store makes round trips.
async fn open() -> (PostgresProvider, String) {
    let config = fresh_config().listen(false);
    let schema = config.schema_name.clone().unwrap();
    let store = PostgresProvider::new_with_config(config).await.unwrap();
    enqueue(&store, "i").await;
    let (_, token, _) = turn(&store).await;
    let (key, value, last_updated_at_ms) = ("ключ".to_string(), "a\u{0}b".to_string(), 9);
    let kind = EventKind::KeyValueSet { key, value, last_updated_at_ms };
    let history_delta = vec![started("i"), Event::at(7, 2, "i", 1, None, kind)];
    let commit = TurnCommit { history_delta, metadata: ended(), ..begin("i", vec![]) };
    store.commit_turn(&token, commit).await.unwrap();
    (store, schema)
}

/// Loads the turn, and returns the number of round trips too.
async fn load(store: &PostgresProvider) -> (BoundedTurn, u64) {
    let before = store.stats().round_trips;
    let loaded = store.load_turn_within("i", 1, BOUND).await.unwrap();
    (loaded, store.stats().round_trips - before)
}

async fn load_whole(store: &PostgresProvider) -> (LoadedTurn, u64) {
    match load(store).await {
        (BoundedTurn::Whole(loaded), round_trips) => (loaded, round_trips),
        (BoundedTurn::Oversized(_), _) => panic!("the history is within the bound"),
    }
}

#[tokio::test]
async fn a_small_history_takes_one_round_trip_and_a_longer_one_is_read_by_pages() {
    let (store, _) = open().await;
    for (last_event, expected) in [(2, 1), (1_000, 1), (1_001, 3)] {
        let stored = store.read("i").await.unwrap().len() as u64;
        let more = (stored + 1..=last_event).map(|id| status(id, "short")).collect();
        store.append_with_execution("i", 1, more).await.unwrap();
        let (loaded, round_trips) = load_whole(&store).await;
        let whole = store.load_turn("i", 1).await.unwrap();
        assert_eq!((loaded.history.len() as u64, round_trips), (last_event, expected));
        assert_eq!((loaded.history, loaded.history_error), (whole.history, None));
        assert_eq!((loaded.kv_snapshot.len(), loaded.kv_snapshot), (1, whole.kv_snapshot));
    }
}

#[tokio::test]
async fn a_history_of_many_bytes_is_read_by_pages() {
    let (store, _) = open().await;
    store.append_with_execution("i", 1, vec![status(3, &"x".repeat(1 << 20))]).await.unwrap();
    let (loaded, round_trips) = load_whole(&store).await;
    assert_eq!((loaded.history.len(), round_trips), (3, 2));
}

#[tokio::test]
async fn a_history_above_the_bound_is_not_read() {
    let (store, _) = open().await;
    let more = (3..=1_501).map(|id| status(id, "short")).collect();
    store.append_with_execution("i", 1, more).await.unwrap();
    let (loaded, _) = load(&store).await;
    let BoundedTurn::Oversized(turn) = loaded else { panic!("there are too many events") };
    assert_eq!((turn.events, turn.kv_snapshot.len()), (1_501, 1));
}

#[tokio::test]
async fn an_event_that_does_not_decode_is_reported_with_the_keys() {
    let (store, schema) = open().await;
    let damage =
        "UPDATE {schema}.history SET event_data = 'no event' WHERE instance_id = $1 AND event_id = 2";
    meddle(&schema, damage, "i").await;
    let (loaded, _) = load_whole(&store).await;
    assert!(loaded.history.is_empty());
    assert!(loaded.history_error.is_some());
    assert_eq!(loaded.kv_snapshot.len(), 1);
}
