//! Messages with large texts: the store keeps the texts apart from their rows, and they do not delay small requests.

use crate::room::{Shut, gated};
use crate::support::*;
use outlast_model::WorkItem;
use outlast_provider::{MessageBound, Provider};
use outlast_sqlite::{SqliteOptions, SqliteProvider};
use std::path::Path;
use std::sync::{Arc, Mutex};

const MIB: usize = 1 << 20;

fn message(instance: &str, bytes: usize) -> WorkItem {
    let (instance, name) = (instance.to_string(), "queue".to_string());
    WorkItem::QueueMessage { instance, name, data: "x".repeat(bytes) }
}

async fn send(store: &SqliteProvider, instance: &str, bytes: usize) {
    store.enqueue_for_orchestrator(message(instance, bytes), None).await.unwrap();
}

fn texts(path: &Path) -> i64 {
    count(path, "SELECT count(*) FROM message_texts")
}

async fn contradictions(store: &SqliteProvider) -> Vec<String> {
    let lines = store.dump().await.unwrap();
    lines.into_iter().filter(|line| line.starts_with("contradiction")).collect()
}

#[tokio::test]
async fn a_large_text_is_delivered_whole_and_deleted_with_its_message() {
    let (_folder, path) = fresh();
    let store = open(&path).await;
    let large = start_with("a", &"in".repeat(MIB));
    store.enqueue_for_orchestrator(large.clone(), None).await.unwrap();
    send(&store, "a", 20 << 10).await;
    send(&store, "a", 10).await;
    assert_eq!(texts(&path), 2);
    let expected = [large, message("a", 20 << 10), message("a", 10)];
    for attempt in 1..3 {
        let (item, token, count) = turn(&store).await;
        assert_eq!((item.messages.as_slice(), count), (&expected[..], attempt));
        match attempt {
            1 => store.abandon_orchestration_item(&token, None, false).await.unwrap(),
            _ => first_turn(&store, "a", &token).await,
        }
        assert_eq!(contradictions(&store).await, [""; 0]);
    }
    assert_eq!(texts(&path), 0);
}

#[tokio::test]
async fn a_deleted_instance_and_messages_without_an_instance_leave_no_text_behind() {
    let (_folder, path) = fresh();
    let store = open(&path).await;
    send(&store, "nowhere", MIB).await;
    send(&store, "nowhere", 2 * MIB).await;
    assert!(store.fetch_orchestration_item(LONG, NO_WAIT, None).await.unwrap().is_none());
    assert_eq!(texts(&path), 0, "messages for an instance that does not exist are dropped");
    finish(&store, "a", 10).await;
    send(&store, "a", 100 << 10).await;
    assert_eq!(texts(&path), 1);
    store.as_management_capability().unwrap().delete_instance("a", true).await.unwrap();
    assert_eq!(texts(&path), 0);
    assert_eq!(contradictions(&store).await, [""; 0]);
}

#[tokio::test]
async fn a_message_whose_text_is_missing_becomes_a_dead_letter() {
    let (_folder, path) = fresh();
    let store = open(&path).await;
    create(&store, "a").await;
    send(&store, "a", MIB).await;
    send(&store, "a", 10).await;
    crate::factory::raw(&path).execute("DELETE FROM message_texts", []).unwrap();
    let (item, _, _) = turn(&store).await;
    assert_eq!(item.messages, [message("a", 10)]);
    assert_eq!(count(&path, "SELECT count(*) FROM dead_letters WHERE reason = 'its text is missing'"), 1);
}

/// The growth of the log is the number of bytes that the transactions wrote.
#[tokio::test]
async fn a_lease_does_not_write_the_texts_of_its_messages_again() {
    let (_folder, path) = fresh();
    let store = open(&path).await;
    create(&store, "a").await;
    for _ in 0..3 {
        send(&store, "a", 2 * MIB).await;
    }
    store.checkpoint().await.unwrap();
    let before = size(&beside(&path, "-wal"));
    let (item, token, _) = turn(&store).await;
    assert_eq!(item.messages.len(), 3);
    store.renew_orchestration_item_lock(&token, LONG).await.unwrap();
    store.abandon_orchestration_item(&token, None, false).await.unwrap();
    let grown = size(&beside(&path, "-wal")).saturating_sub(before);
    assert!(grown < 3 * MIB as u64, "{grown} bytes were written for a lease on 6 MiB");
}

#[tokio::test]
async fn a_small_call_is_answered_before_large_calls_that_came_first() {
    let (_folder, store, gate) = gated().await;
    let answered = Arc::new(Mutex::new(Vec::new()));
    let shut = Shut::new(&gate);
    let mut calls = tokio::task::JoinSet::new();
    for bytes in [1, 2 * MIB, 2 * MIB, 2 * MIB, 2 * MIB, 2] {
        let (store, answered) = (Arc::clone(&store), Arc::clone(&answered));
        calls.spawn(async move {
            send(&store, "a", bytes).await;
            answered.lock().unwrap().push(bytes);
        });
        // No other task runs on this thread, so the call is sent after one yield.
        tokio::task::yield_now().await;
    }
    drop(shut);
    calls.join_all().await;
    let answered = answered.lock().unwrap();
    let small = answered.iter().position(|bytes| *bytes == 2).unwrap();
    assert!(small <= 3, "{answered:?}: the writer applies at most two large calls before the small one");
}

#[tokio::test]
async fn a_fetch_passes_a_large_turn_over_for_a_small_one_and_the_next_fetch_takes_it() {
    let (_folder, path) = fresh();
    let store = open(&path).await;
    store.enqueue_for_orchestrator(start_with("large", &"in".repeat(MIB)), None).await.unwrap();
    store.enqueue_for_orchestrator(start("small"), None).await.unwrap();
    // Neither fetch waits.
    let (first, _, _) = turn(&store).await;
    let (second, _, _) = turn(&store).await;
    assert_eq!([first.instance, second.instance], ["small", "large"]);
    assert!(store.fetch_orchestration_item(LONG, NO_WAIT, None).await.unwrap().is_none());
}

#[tokio::test]
async fn a_large_turn_is_fetched_although_small_turns_are_ready_for_every_fetch() {
    let (_folder, path) = fresh();
    let store = open(&path).await;
    store.enqueue_for_orchestrator(start_with("large", &"in".repeat(MIB)), None).await.unwrap();
    for n in 0..20 {
        store.enqueue_for_orchestrator(start(&format!("small-{n}")), None).await.unwrap();
    }
    let mut fetched = Vec::new();
    for _ in 0..4 {
        let (item, token, _) = turn(&store).await;
        first_turn(&store, &item.instance, &token).await;
        fetched.push(item.instance);
    }
    assert!(fetched.iter().any(|instance| instance == "large"), "{fetched:?}");
}

#[tokio::test]
async fn a_message_with_a_damaged_length_becomes_a_dead_letter_with_its_text() {
    for length in ["'many'", "x'00'"] {
        let (_folder, path) = fresh();
        let message_bound = MessageBound { messages: 2, ..MessageBound::default() };
        let store = open_with(&path, SqliteOptions { message_bound, ..SqliteOptions::default() }).await;
        store.enqueue_for_orchestrator(start_with("a", &"in".repeat(MIB)), None).await.unwrap();
        for _ in 0..4 {
            send(&store, "a", 10).await;
        }
        let damage = format!(
            "UPDATE orchestrator_queue SET external_bytes = {length} WHERE external_bytes IS NOT NULL"
        );
        crate::factory::raw(&path).execute(&damage, []).unwrap();
        assert!(store.fetch_orchestration_item(LONG, NO_WAIT, None).await.unwrap().is_none(), "{length}");
        let kept = "SELECT count(*) FROM dead_letters WHERE length(work_item) > 2000000";
        assert_eq!((count(&path, kept), texts(&path)), (1, 0), "{length}");
    }
}
