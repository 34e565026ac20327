//! Stores with one damaged cell: the damage is reported for its instance or item, and other instances run. The fuzz target
//! `row_corruption` found these cases.

use crate::factory::raw;
use crate::support::*;
use outlast_model::json;
use outlast_provider::{Provider, TagFilter, TurnRequest, WorkRequest};
use outlast_sqlite::{SqliteOptions, SqliteProvider};
use std::path::Path;

/// Two instances with a turn and an activity each, `a` before `b`; one cell of `a` is changed.
async fn damaged(path: &Path, sql: &str) -> SqliteProvider {
    let store = open(path).await;
    for instance in ["a", "b"] {
        store.enqueue_for_orchestrator(start(instance), None).await.unwrap();
        let (_, token, _) = turn(&store).await;
        first_turn(&store, instance, &token).await;
    }
    for instance in ["a", "b"] {
        store.enqueue_for_orchestrator(completed(instance, 2), None).await.unwrap();
    }
    drop(store);
    assert_eq!(raw(path).execute(sql, []).unwrap(), 1, "{sql}");
    // Inline fetches run one after the other without a pause, which is the worst case for the other instance.
    open_with(path, SqliteOptions { inline: true, ..SqliteOptions::default() }).await
}

/// Fetches every due turn; returns its instance, and whether its history decodes.
async fn turns(store: &SqliteProvider) -> Vec<(String, bool)> {
    let request =
        || TurnRequest { lock_timeout: LONG, poll_timeout: NO_WAIT, filter: None, with_history: true };
    let mut found = Vec::new();
    while let Some(turn) = store.fetch_turn(request()).await.unwrap() {
        found.push((turn.item.instance, turn.item.history_error.is_none()));
    }
    found
}

async fn works(store: &SqliteProvider) -> Vec<String> {
    let mut found = Vec::new();
    while let Some((item, ..)) = store.fetch_work_item(LONG, NO_WAIT, None, &TagFilter::Any).await.unwrap() {
        found.push(item.target_instance().to_string());
    }
    found
}

async fn dead(store: &SqliteProvider) -> usize {
    store.as_management_capability().unwrap().list_dead_letters(10).await.unwrap().len()
}

#[tokio::test]
async fn an_unreadable_row_of_an_instance_is_reported_as_a_damaged_history() {
    for cell in [
        "UPDATE instances SET orchestration_name = x'AE' WHERE instance_id = 'a'",
        "UPDATE instances SET orchestration_version = CAST(x'FF' AS TEXT) WHERE instance_id = 'a'",
        "UPDATE instances SET current_execution_id = 'x' WHERE instance_id = 'a'",
        "UPDATE executions SET last_event_id = '' WHERE instance_id = 'a'",
        "UPDATE executions SET duroxide_version_major = 1.5 WHERE instance_id = 'a'",
        "UPDATE history SET event_data = x'00' WHERE instance_id = 'a' AND event_id = 2",
        "INSERT INTO kv_store (instance_id, key, value) VALUES ('a', 'k', x'00')",
    ] {
        let (_folder, path) = fresh();
        let store = damaged(&path, cell).await;
        let found = turns(&store).await;
        assert!(found.contains(&("b".to_string(), true)), "{cell}: {found:?}");
        assert!(found.contains(&("a".to_string(), false)), "{cell}: {found:?}");
        assert_eq!((works(&store).await.len(), dead(&store).await), (2, 0), "{cell}");
    }
}

#[tokio::test]
async fn an_instance_with_a_damaged_history_and_no_row_does_not_block_other_instances() {
    let (_folder, path) = fresh();
    let cell = "UPDATE history SET event_id = 1.5 WHERE instance_id = 'a' AND event_id = 1";
    let store = damaged(&path, cell).await;
    assert_eq!(raw(&path).execute("DELETE FROM instances WHERE instance_id = 'a'", []).unwrap(), 1);
    assert!(turns(&store).await.contains(&("b".to_string(), true)));
}

#[tokio::test]
async fn activities_run_without_the_name_of_their_orchestration() {
    let (_folder, path) = fresh();
    let cell = "UPDATE instances SET orchestration_name = CAST(x'FF' AS TEXT) WHERE instance_id = 'a'";
    let store = damaged(&path, cell).await;
    let request = WorkRequest {
        max_items: 5,
        lock_timeout: LONG,
        poll_timeout: NO_WAIT,
        session: None,
        tag_filter: &TagFilter::Any,
    };
    let fetched = store.fetch_work_items(request).await.unwrap();
    assert_eq!(fetched.len(), 2);
    assert!(fetched[0].orchestration.is_none() && fetched[1].orchestration.is_some(), "{fetched:?}");
}

#[tokio::test]
async fn text_that_is_not_utf_8_does_not_decode() {
    let (_folder, path) = fresh();
    // The bytes are inside a JSON string: repaired, the text would be a valid event with another input.
    let cell = "UPDATE history SET event_data = CAST(replace(CAST(event_data AS BLOB), x'696E707574', x'69FFFF7574') AS TEXT)
                WHERE instance_id = 'a' AND event_id = 2";
    let store = damaged(&path, cell).await;
    let found = turns(&store).await;
    assert_eq!(found, [("a".to_string(), false), ("b".to_string(), true)]);
}

#[tokio::test]
async fn a_message_that_cannot_be_read_becomes_a_dead_letter() {
    for cell in [
        "UPDATE orchestrator_queue SET available_at = 0.5 WHERE instance_id = 'a'",
        "UPDATE orchestrator_queue SET instance_id = x'61' WHERE instance_id = 'a'",
        "UPDATE orchestrator_queue SET instance_id = CAST(x'61FF' AS TEXT) WHERE instance_id = 'a'",
        "UPDATE orchestrator_queue SET work_item = x'00' WHERE instance_id = 'a'",
    ] {
        let (_folder, path) = fresh();
        let store = damaged(&path, cell).await;
        assert_eq!(turns(&store).await, [("b".to_string(), true)], "{cell}");
        assert_eq!(dead(&store).await, 1, "{cell}");
    }
}

#[tokio::test]
async fn an_activity_that_cannot_be_read_becomes_a_dead_letter() {
    for cell in [
        "UPDATE worker_queue SET instance_id = x'61' WHERE instance_id = 'a'",
        "UPDATE worker_queue SET session_id = CAST(x'FF' AS TEXT) WHERE instance_id = 'a'",
        "UPDATE worker_queue SET work_item = 7 WHERE instance_id = 'a'",
    ] {
        let (_folder, path) = fresh();
        let store = damaged(&path, cell).await;
        let session = outlast_provider::SessionFetchConfig { owner_id: "o".to_string(), lock_timeout: LONG };
        let fetched = store.fetch_work_item(LONG, NO_WAIT, Some(&session), &TagFilter::DefaultOnly).await;
        let (item, ..) = fetched.unwrap().expect("the activity of `b`");
        assert_eq!(item.target_instance(), "b", "{cell}");
        assert_eq!(dead(&store).await, 1, "{cell}");
    }
}

#[tokio::test]
async fn items_with_damaged_counts_or_times_are_delivered() {
    for cell in [
        "UPDATE orchestrator_queue SET attempt_count = '' WHERE instance_id = 'a'",
        "UPDATE orchestrator_queue SET visible_at = 0.5 WHERE instance_id = 'a'",
        "UPDATE instances SET created_at = 0.5 WHERE instance_id = 'a'",
        "UPDATE worker_queue SET attempt_count = x'00' WHERE instance_id = 'a'",
    ] {
        let (_folder, path) = fresh();
        let store = damaged(&path, cell).await;
        let mut found = turns(&store).await;
        found.sort();
        assert_eq!(found, [("a".to_string(), true), ("b".to_string(), true)], "{cell}");
        assert_eq!(works(&store).await, ["a", "b"], "{cell}");
    }
    // No fetch asks for a tag of bytes.
    let (_folder, path) = fresh();
    let store = damaged(&path, "UPDATE worker_queue SET tag = x'00' WHERE instance_id = 'a'").await;
    assert_eq!(works(&store).await, ["b"]);
}

#[tokio::test]
async fn an_item_of_another_instance_becomes_a_dead_letter() {
    let start = json::encode_work_item(&start("b")).unwrap();
    let (_folder, path) = fresh();
    let cell = format!("UPDATE orchestrator_queue SET work_item = '{start}' WHERE instance_id = 'a'");
    let store = damaged(&path, &cell).await;
    assert_eq!(turns(&store).await, [("b".to_string(), true)]);
    assert_eq!(dead(&store).await, 1);

    for item in [activity("b", 2), completed("a", 2)] {
        let (_folder, path) = fresh();
        let text = json::encode_work_item(&item).unwrap();
        let cell = format!("UPDATE worker_queue SET work_item = '{text}' WHERE instance_id = 'a'");
        let store = damaged(&path, &cell).await;
        assert_eq!(works(&store).await, ["b"], "{item:?}");
        assert_eq!(dead(&store).await, 1, "{item:?}");
    }
}
