//! Input that the store refuses with advice, or keeps although Cosmos DB forbids it.

use crate::kit::{lease, rig_and_store, run, signal, turn};
use crate::script::{LEASE, start};
use outlast_cosmos::{CosmosDBOptions, CosmosDBProvider};
use outlast_cosmos_rig::{Fault, Rig};
use outlast_provider::model::{Event, EventKind, WorkItem};
use outlast_provider::{
    Provider, ProviderAdmin, ProviderError, SessionFetchConfig, StartOutcome, StartPolicy, StartRequest,
    TagFilter, TurnCommit,
};
use std::time::Duration;

/// The largest document.
const LIMIT: usize = 1_800_000;

/// Every character that Cosmos DB forbids in ids, and texts that an id or a partition of the store could be mistaken for.
fn hostile_texts() -> Vec<String> {
    let mut texts: Vec<String> =
        ["/", "\\", "?", "#", "a/b\\c?d#e", " ", "end ", "~", "~sys", "~#", "~~", "'\"", "`", "@", "t.", "."]
            .map(str::to_string)
            .to_vec();
    texts.extend(["é", "\u{1f980}", "\u{202e}x", "\u{feff}"].map(str::to_string));
    texts.extend([200, 201, 255, 512].map(|length| "x".repeat(length)));
    texts.push("é".repeat(250));
    texts
}

/// A turn that sets a key and schedules an activity with a session and a tag.
fn rich_turn(instance: &str, text: &str) -> TurnCommit {
    let set = EventKind::KeyValueSet { key: text.into(), value: "v".into(), last_updated_at_ms: 7 };
    let activity = WorkItem::ActivityExecute {
        instance: instance.into(),
        execution_id: 1,
        id: 1,
        name: text.into(),
        input: text.into(),
        session_id: Some(text.into()),
        tag: Some(text.into()),
    };
    TurnCommit {
        history_delta: vec![Event::at(7, 1, instance, 1, None, set)],
        worker_items: vec![activity],
        orchestrator_items: vec![start(&child_of(text))],
        ..turn(instance, 1, 1, None)
    }
}

/// An id like the text, and not longer than ids may be.
fn child_of(text: &str) -> String {
    let kept: String = text.chars().skip(if text.len() > 500 { 6 } else { 0 }).collect();
    format!("{kept}-child")
}

#[tokio::test]
async fn ids_keys_sessions_and_tags_of_any_text_round_trip() {
    let (_target, store) = rig_and_store(CosmosDBOptions::default()).await;
    for text in hostile_texts() {
        run(&store, &text, rich_turn(&text, &text)).await.unwrap();
        let owner = SessionFetchConfig { owner_id: text.clone(), lock_timeout: LEASE * 50 };
        let tags = TagFilter::tags([text.clone()]);
        let fetched = store.fetch_work_item(LEASE * 50, Duration::ZERO, Some(&owner), &tags).await.unwrap();
        let (work, token, _) = fetched.unwrap_or_else(|| panic!("{text:?}: no activity"));
        assert!(
            matches!(&work, WorkItem::ActivityExecute { instance, input, .. } if *instance == text && *input == text)
        );
        let outcome = WorkItem::ActivityCompleted {
            instance: text.clone(),
            execution_id: 1,
            id: 1,
            result: text.clone(),
        };
        store.ack_work_item(&token, Some(outcome)).await.unwrap();
        let child = child_of(&text);
        let (one, other) = (lease_any(&store).await, lease_any(&store).await);
        let mut leased = [one, other].map(|(instance, token)| (instance, token));
        leased.sort();
        let mut expected = [text.clone(), child];
        expected.sort();
        assert_eq!([&leased[0].0, &leased[1].0], [&expected[0], &expected[1]]);
        for (instance, token) in &leased {
            let end = TurnCommit { history_delta: Vec::new(), ..turn(instance, 1, 2, Some("Completed")) };
            store.commit_turn(token, end).await.unwrap();
        }
        assert_eq!(store.get_kv_value(&text, &text).await.unwrap().as_deref(), Some("v"), "{text:?}");
        assert_eq!(store.get_instance_info(&text).await.unwrap().instance_id, text);
        let ids = expected.to_vec();
        let mut listed = store.list_instances().await.unwrap();
        listed.sort();
        assert_eq!(listed, ids);
        assert_eq!(store.delete_instances_atomic(&ids, false).await.unwrap().instances_deleted, 2);
    }
}

/// Generated ids of children are longer than a partition key may be, so the key is a hash of the id.
#[tokio::test]
async fn ids_beyond_the_limit_of_a_partition_key_keep_their_full_text() {
    let (_target, store) = rig_and_store(CosmosDBOptions::default()).await;
    let long = |end: char| format!("p::sub::{}{end}", "/x".repeat(2_000));
    let ids = [long('1'), long('2')];
    for id in &ids {
        run(&store, id, rich_turn(id, "text")).await.unwrap();
        let (child, token) = lease_any(&store).await;
        assert_eq!(child, child_of("text"));
        store.abandon_orchestration_item(&token, Some(Duration::from_secs(600)), true).await.unwrap();
        let tags = TagFilter::tags(["text"]);
        let owner = SessionFetchConfig { owner_id: "w".into(), lock_timeout: LEASE * 50 };
        let fetched = store.fetch_work_item(LEASE * 50, Duration::ZERO, Some(&owner), &tags).await.unwrap();
        let (work, token, _) = fetched.expect("an activity waits");
        assert_eq!(work.target_instance(), id.as_str());
        let outcome =
            WorkItem::ActivityCompleted { instance: id.clone(), execution_id: 1, id: 1, result: "r".into() };
        store.ack_work_item(&token, Some(outcome)).await.unwrap();
        let (leased, token) = lease_any(&store).await;
        assert_eq!(&leased, id);
        store.commit_turn(&token, turn(id, 1, 2, Some("Completed"))).await.unwrap();
        assert_eq!(store.read(id).await.unwrap().len(), 2);
        assert_eq!(store.get_instance_info(id).await.unwrap().instance_id, *id);
    }
    let mut listed = store.list_instances_by_status("Completed").await.unwrap();
    listed.sort();
    assert_eq!(listed, ids);
    assert_eq!(store.delete_instances_atomic(&ids[..1], false).await.unwrap().instances_deleted, 1);
    assert_eq!(store.list_instances_by_status("Completed").await.unwrap(), [ids[1].clone()]);
}

#[tokio::test]
async fn control_characters_are_refused_in_ids_and_kept_in_keys_and_values() {
    let (_target, store) = rig_and_store(CosmosDBOptions::default()).await;
    for (nth, text) in ["\t", "\n", "\r\n", "\u{1}", "\u{1f}", "\u{7f}"].into_iter().enumerate() {
        let refused = store.enqueue_for_orchestrator(start(text), None).await.unwrap_err();
        assert!(refused.message.contains("control character") && !refused.is_retryable(), "{refused}");
        let instance = format!("i{nth}");
        let set = EventKind::KeyValueSet { key: text.into(), value: text.into(), last_updated_at_ms: 7 };
        let mut commit = turn(&instance, 1, 1, Some("Completed"));
        commit.history_delta = vec![Event::at(7, 1, &instance, 1, None, set)];
        run(&store, &instance, commit).await.unwrap();
        assert_eq!(store.get_kv_value(&instance, text).await.unwrap().as_deref(), Some(text));
    }
}

async fn lease_any(store: &CosmosDBProvider) -> (String, String) {
    let fetched = store.fetch_orchestration_item(LEASE * 50, Duration::from_secs(10), None).await.unwrap();
    let (item, token, _) = fetched.expect("a turn waits");
    (item.instance, token)
}

/// Asserts a refusal that names the size and the limit.
#[track_caller]
fn is_too_large(answer: Result<(), ProviderError>, instance: &str) {
    let error = answer.unwrap_err();
    let size: Option<usize> =
        error.message.split_whitespace().filter_map(|word| word.parse().ok()).find(|size| *size > LIMIT);
    assert!(size.is_some(), "the size is missing: {error}");
    assert!(error.message.contains("accepts 1800000"), "the limit is missing: {error}");
    assert!(error.message.contains(&format!("'{instance}'")), "the instance is missing: {error}");
    assert!(error.message.contains("smaller"), "the advice is missing: {error}");
    assert!(!error.is_retryable());
}

#[tokio::test]
async fn a_message_near_the_limit_arrives_and_a_larger_one_is_refused() {
    let (_target, store) = rig_and_store(CosmosDBOptions::default()).await;
    let message = |length: usize| WorkItem::QueueMessage {
        instance: "a".into(),
        name: "q".into(),
        data: "x".repeat(length),
    };
    run(&store, "a", turn("a", 1, 1, None)).await.unwrap();
    is_too_large(store.enqueue_for_orchestrator(message(LIMIT), None).await, "a");
    is_too_large(store.enqueue_within(message(LIMIT), 10).await.map(drop), "a");
    store.enqueue_for_orchestrator(message(LIMIT - 1_000), None).await.unwrap();
    let fetched = store.fetch_orchestration_item(LEASE * 50, Duration::ZERO, None).await.unwrap();
    let (item, token, _) = fetched.unwrap();
    assert_eq!(item.messages, [message(LIMIT - 1_000)]);
    store.commit_turn(&token, turn("a", 1, 2, None)).await.unwrap();
    assert_eq!(store.pending("a", 1).await.unwrap().unwrap().message_count, 0);
}

#[tokio::test]
async fn a_turn_with_a_document_over_the_limit_is_refused_and_keeps_its_lease() {
    let (_target, store) = rig_and_store(CosmosDBOptions::default()).await;
    let large = || "x".repeat(LIMIT);
    store.enqueue_for_orchestrator(start("a"), None).await.unwrap();
    let token = lease(&store, "a").await;
    let activity = |input: String| WorkItem::ActivityExecute {
        instance: "a".into(),
        execution_id: 1,
        id: 1,
        name: "Work".into(),
        input,
        session_id: None,
        tag: None,
    };
    let event = |kind| vec![Event::at(7, 1, "a", 1, None, kind)];
    let set = |value| event(EventKind::KeyValueSet { key: "k".into(), value, last_updated_at_ms: 7 });
    let status = |status| event(EventKind::CustomStatusUpdated { status: Some(status) });
    let child = WorkItem::StartOrchestration {
        instance: "child".into(),
        orchestration: "Flow".into(),
        input: large(),
        version: None,
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: 1,
    };
    let mut output = turn("a", 1, 1, Some("Completed"));
    output.metadata.output = Some(large());
    let commits = [
        TurnCommit {
            history_delta: event(EventKind::OrchestrationCompleted { output: large() }),
            ..turn("a", 1, 1, None)
        },
        TurnCommit { worker_items: vec![activity(large())], ..turn("a", 1, 1, None) },
        TurnCommit { orchestrator_items: vec![child], ..turn("a", 1, 1, None) },
        TurnCommit { history_delta: set(large()), ..turn("a", 1, 1, None) },
        TurnCommit { history_delta: status(large()), ..turn("a", 1, 1, None) },
        output,
    ];
    for commit in commits {
        is_too_large(store.commit_turn(&token, commit).await.map(drop), "a");
    }
    assert!(store.read("a").await.unwrap().is_empty(), "nothing of a refused turn is stored");
    // A turn of many megabytes is committed, as long as each document is below the limit.
    let values = (1..=6).map(|id| {
        let kind = EventKind::KeyValueSet {
            key: format!("k{id}"),
            value: "x".repeat(800_000),
            last_updated_at_ms: 7,
        };
        Event::at(7, id, "a", 1, None, kind)
    });
    let commit = TurnCommit {
        history_delta: values.collect(),
        worker_items: vec![activity("x".repeat(LIMIT - 2_000))],
        ..turn("a", 1, 1, None)
    };
    store.commit_turn(&token, commit).await.unwrap();
    assert_eq!(store.get_kv_value("a", "k6").await.unwrap().map(|value| value.len()), Some(800_000));
    let tags = TagFilter::default();
    let (_, token, _) =
        store.fetch_work_item(LEASE * 50, Duration::ZERO, None, &tags).await.unwrap().unwrap();
    let outcome =
        |result| WorkItem::ActivityCompleted { instance: "a".into(), execution_id: 1, id: 1, result };
    is_too_large(store.ack_work_item(&token, Some(outcome(large()))).await, "a");
    store.ack_work_item(&token, Some(outcome("small".into()))).await.unwrap();
}

#[tokio::test]
async fn deeply_nested_json_is_a_text_for_the_store() {
    let (_target, store) = rig_and_store(CosmosDBOptions::default()).await;
    let deep = format!("{}{}", "[".repeat(50_000), "]".repeat(50_000));
    let set = EventKind::KeyValueSet { key: "k".into(), value: deep.clone(), last_updated_at_ms: 7 };
    let mut commit = turn("a", 1, 1, Some("Completed"));
    commit.history_delta = vec![Event::at(7, 1, "a", 1, None, set)];
    commit.metadata.output = Some(deep.clone());
    run(&store, "a", commit).await.unwrap();
    assert_eq!(store.get_kv_value("a", "k").await.unwrap(), Some(deep.clone()));
    assert_eq!(store.read_outcome("a").await.unwrap().unwrap().output, Some(deep));
}

/// The calls of a turn and of an activity, each with its answer.
async fn calls(store: &CosmosDBProvider, token: &str) -> Vec<(&'static str, ProviderError)> {
    let wait = Duration::ZERO;
    let tags = TagFilter::default();
    let mut errors = vec![
        ("enqueue", store.enqueue_for_orchestrator(signal("a"), None).await.unwrap_err()),
        ("commit", store.commit_turn(token, turn("a", 1, 2, None)).await.unwrap_err()),
        ("renew", store.renew_orchestration_item_lock(token, LEASE * 50).await.unwrap_err()),
        ("read", store.read("a").await.unwrap_err()),
        ("key", store.get_kv_value("a", "k").await.unwrap_err()),
        ("list", store.list_instances().await.unwrap_err()),
        ("delete", store.delete_instances_atomic(&["a".to_string()], true).await.unwrap_err()),
        ("sessions", store.cleanup_orphaned_sessions(wait).await.unwrap_err()),
    ];
    // The repair query of a fetch fails; what waits in memory is not asked for.
    if let Err(error) = store.fetch_work_item(LEASE, wait, None, &tags).await {
        errors.push(("fetch", error));
    }
    errors
}

async fn leased(options: CosmosDBOptions) -> (outlast_cosmos_rig::Target, CosmosDBProvider, String) {
    let (target, store) = rig_and_store(options).await;
    run(&store, "a", turn("a", 1, 1, None)).await.unwrap();
    store.enqueue_for_orchestrator(signal("a"), None).await.unwrap();
    let token = lease(&store, "a").await;
    (target, store, token)
}

fn rig(target: &outlast_cosmos_rig::Target) -> &Rig {
    target.rig().unwrap()
}

#[tokio::test]
async fn a_database_that_throttles_everything_loses_nothing_and_says_what_to_do() {
    let (target, store, token) = leased(CosmosDBOptions::default()).await;
    rig(&target).fault(Fault::any().always().status(429).retry_after(Duration::from_millis(1)));
    for (call, error) in calls(&store, &token).await {
        assert!(error.is_retryable(), "{call}: {error}");
        assert!(error.message.contains("raise its throughput"), "{call}: {error}");
    }
    rig(&target).clear_faults();
    store.commit_turn(&token, turn("a", 1, 2, None)).await.unwrap();
    assert_eq!(store.read("a").await.unwrap().len(), 2);
    assert_eq!(
        store.pending("a", 9).await.unwrap().unwrap().message_count,
        0,
        "a refused message is not stored"
    );
}

#[tokio::test]
async fn rights_that_are_withdrawn_are_named_and_lose_nothing() {
    let (target, store, token) = leased(CosmosDBOptions::default()).await;
    rig(&target).fault(Fault::any().always().status(403));
    for (call, error) in calls(&store, &token).await {
        assert!(!error.is_retryable(), "{call}: {error}");
        assert!(error.message.contains("role assignment"), "{call}: {error}");
    }
    rig(&target).clear_faults();
    store.commit_turn(&token, turn("a", 1, 2, None)).await.unwrap();
    assert_eq!(store.read("a").await.unwrap().len(), 2);
}

/// A start of `a` with messages of this number of bytes.
fn start_with(messages: usize, bytes: usize) -> StartRequest {
    let message = WorkItem::QueueMessage { instance: "a".into(), name: "q".into(), data: "x".repeat(bytes) };
    StartRequest {
        start: start("a"),
        delay: None,
        policy: StartPolicy::FailIfExists,
        messages: vec![message; messages],
    }
}

#[tokio::test]
async fn a_start_with_messages_that_are_too_large_together_is_refused_before_it_is_sent() {
    let (target, store) = rig_and_store(CosmosDBOptions::default()).await;
    target.rig().unwrap().take_recorded();
    let refused = store.start_orchestration(start_with(2, 1_100_000)).await.unwrap_err();
    assert!(!refused.is_retryable(), "{refused}");
    for part in ["instance 'a'", "2 message(s)", "bytes", "1800000"] {
        assert!(refused.message.contains(part), "{part}: {refused}");
    }
    let refused = store.start_orchestration(start_with(91, 1)).await.unwrap_err();
    assert!(!refused.is_retryable(), "{refused}");
    assert!(refused.message.contains("91 messages") && refused.message.contains("at most 90"), "{refused}");
    assert!(target.rig().unwrap().take_recorded().is_empty(), "nothing is sent");
    let started = store.start_orchestration(start_with(90, 15_000)).await.unwrap();
    assert_eq!(started, StartOutcome::Started);
    assert_eq!(store.pending("a", 100).await.unwrap().unwrap().message_count, 91);
}
