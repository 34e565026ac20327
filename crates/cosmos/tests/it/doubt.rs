//! Writes whose answers are lost.

use crate::kit::{batches_of, lease, rig_and_store, run, run_executions, signal, turn};
use crate::script::start;
use outlast_cosmos::CosmosDBProvider;
use outlast_cosmos_rig::{Fault, FaultHandle, Kind, Target};
use outlast_provider::model::WorkItem;
use outlast_provider::{
    AuditEntry, DeadLetter, DeadLetterOutcome, DeadLetterQueue, EnqueueOnce, Provider, ProviderAdmin,
    ProviderError, PruneOptions, StartOutcome, StartPolicy, StartRequest, TagFilter, TurnCommit,
};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(60);

/// Loses the answers to the next writes on a partition.
fn loses(target: &Target, partition: &str) -> [FaultHandle; 3] {
    let lost = |kind| Fault::on(kind).partition(partition).after().status(503);
    let rig = target.rig().unwrap();
    [Kind::Batch, Kind::Create, Kind::Replace].map(|kind| rig.fault(lost(kind)))
}

#[track_caller]
fn struck(target: &Target, faults: &[FaultHandle; 3]) {
    assert!(faults.iter().any(|fault| fault.struck() > 0), "no answer was lost");
    target.rig().unwrap().clear_faults();
}

#[tokio::test]
async fn a_write_that_was_applied_is_reported_as_applied() {
    let (target, store) = rig_and_store(batches_of(100)).await;
    let lost = loses(&target, "a");
    store.enqueue_for_orchestrator(start("a"), None).await.unwrap();
    struck(&target, &lost);
    assert_eq!(store.pending("a", 9).await.unwrap().unwrap().message_count, 1, "the message is stored once");

    let lost = loses(&target, "a");
    let token = lease(&store, "a").await;
    struck(&target, &lost);

    let lost = loses(&target, "a");
    store.renew_orchestration_item_lock(&token, LONG).await.unwrap();
    struck(&target, &lost);

    let lost = loses(&target, "a");
    store.abandon_orchestration_item(&token, None, true).await.unwrap();
    struck(&target, &lost);

    // A turn without events leaves its write id in the instance only.
    let token = lease(&store, "a").await;
    let lost = loses(&target, "a");
    let activity = WorkItem::ActivityExecute {
        instance: "a".into(),
        execution_id: 1,
        id: 1,
        name: "Work".into(),
        input: String::new(),
        session_id: None,
        tag: None,
    };
    let commit =
        TurnCommit { history_delta: Vec::new(), worker_items: vec![activity], ..turn("a", 1, 1, None) };
    store.commit_turn(&token, commit).await.unwrap();
    struck(&target, &lost);

    let tags = TagFilter::default();
    let lost = loses(&target, "a");
    let fetched = store.fetch_work_item(LONG, Duration::ZERO, None, &tags).await.unwrap();
    let (_, token, attempt) = fetched.expect("the activity is leased");
    assert_eq!(attempt, 1);
    struck(&target, &lost);

    let lost = loses(&target, "a");
    store.renew_work_item_lock(&token, LONG).await.unwrap();
    struck(&target, &lost);

    let lost = loses(&target, "a");
    let outcome =
        WorkItem::ActivityCompleted { instance: "a".into(), execution_id: 1, id: 1, result: "r".into() };
    store.ack_work_item(&token, Some(outcome)).await.unwrap();
    struck(&target, &lost);
    assert_eq!(store.pending("a", 9).await.unwrap().unwrap().message_count, 1, "the outcome is stored once");

    let token = lease(&store, "a").await;
    let lost = loses(&target, "a");
    store.commit_turn(&token, turn("a", 1, 1, Some("Completed"))).await.unwrap();
    struck(&target, &lost);
    assert_eq!(store.read("a").await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_start_a_deletion_and_a_prune_whose_answers_are_lost_happen_once() {
    let (target, store) = rig_and_store(batches_of(100)).await;
    let request = StartRequest {
        start: start("a"),
        delay: None,
        policy: StartPolicy::FailIfExists,
        messages: Vec::new(),
    };
    let lost = loses(&target, "a");
    assert_eq!(store.start_orchestration(request).await.unwrap(), StartOutcome::Started);
    struck(&target, &lost);
    assert_eq!(store.pending("a", 9).await.unwrap().unwrap().message_count, 1);
    let token = lease(&store, "a").await;
    store.commit_turn(&token, turn("a", 1, 1, Some("ContinuedAsNew"))).await.unwrap();
    run(&store, "a", turn("a", 2, 1, Some("Completed"))).await.unwrap();

    let lost = loses(&target, "a");
    let prune = PruneOptions { keep_last: Some(1), ..PruneOptions::default() };
    let pruned = store.prune_executions("a", prune).await.unwrap();
    struck(&target, &lost);
    assert_eq!((pruned.executions_deleted, pruned.events_deleted), (1, 1));
    assert_eq!(store.list_executions("a").await.unwrap(), [2]);

    for partition in ["b", "~sys"] {
        run_executions(&store, "b", 1, 1).await;
        let lost = loses(&target, partition);
        let deleted = store.delete_instances_atomic(&["b".to_string()], false).await.unwrap();
        struck(&target, &lost);
        assert_eq!(deleted.instances_deleted, 1, "{partition}");
        assert!(store.read("b").await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn a_keyed_message_and_changes_of_dead_letters_whose_answers_are_lost_happen_once() {
    let (target, store) = rig_and_store(batches_of(100)).await;
    store.enqueue_for_orchestrator(start("a"), None).await.unwrap();
    let token = lease(&store, "a").await;
    store.commit_turn(&token, turn("a", 1, 1, None)).await.unwrap();

    let lost = loses(&target, "a");
    assert_eq!(store.enqueue_once(signal("a"), "key", 9).await.unwrap(), EnqueueOnce::Stored);
    struck(&target, &lost);
    assert_eq!(store.enqueue_once(signal("a"), "key", 9).await.unwrap(), EnqueueOnce::Repeated);
    assert_eq!(store.pending("a", 9).await.unwrap().unwrap().message_count, 1);

    let letter = DeadLetter {
        queue: DeadLetterQueue::Orchestrator,
        instance_id: Some("a".into()),
        work_item: outlast_provider::model::json::encode_work_item(&signal("a")).unwrap(),
        reason: "r".into(),
        attempt_count: 1,
        dead_at: 1,
    };
    let entry = AuditEntry {
        actor: "ada".into(),
        action: "dead-letter".into(),
        target: "a".into(),
        reason: "r".into(),
        request: None,
        result: "done".into(),
    };
    for partition in ["a", "~audit"] {
        for _ in 0..2 {
            store.write_dead_letter(&letter).await.unwrap();
        }
        let ids: Vec<u64> =
            store.dead_letter_page(None, 9).await.unwrap().unwrap().iter().map(|one| one.id).collect();
        let lost = loses(&target, partition);
        assert_eq!(store.requeue_dead_letter(ids[0], &entry).await.unwrap(), DeadLetterOutcome::Done);
        struck(&target, &lost);
        let lost = loses(&target, partition);
        assert_eq!(store.drop_dead_letter(ids[1], &entry).await.unwrap(), DeadLetterOutcome::Done);
        drop(lost);
        target.rig().unwrap().clear_faults();
        assert_eq!(store.dead_letter_page(None, 9).await.unwrap(), Some(Vec::new()), "{partition}");
    }
    assert_eq!(store.pending("a", 9).await.unwrap().unwrap().message_count, 3, "each is stored once");
    assert_eq!(store.audit_page(None, 9).await.unwrap().unwrap().len(), 4, "each change has one record");
}

/// Sends a message while the first requests fail; returns the answer.
async fn send(target: &Target, store: &CosmosDBProvider, failing: u64) -> Result<(), ProviderError> {
    let rig = target.rig().unwrap();
    rig.fault(Fault::on(Kind::Batch).partition("a").times(failing).before().status(503));
    let answer = store.enqueue_for_orchestrator(signal("a"), None).await;
    rig.clear_faults();
    answer
}

#[tokio::test]
async fn a_message_is_stored_if_and_only_if_its_sender_is_told_so() {
    let (target, store) = rig_and_store(batches_of(100)).await;
    let mut stored = 0;
    for failing in [1, 2, 3, 4, 6, 9, 20] {
        match send(&target, &store, failing).await {
            Ok(()) => stored += 1,
            Err(error) => assert!(error.is_retryable(), "{error}"),
        }
        assert_eq!(store.pending("a", 9).await.unwrap().unwrap().message_count, stored, "{failing} failures");
    }
    assert!(stored > 2, "short failures are repeated");
}
