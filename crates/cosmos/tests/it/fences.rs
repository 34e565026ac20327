//! Two writers of the same documents: one of them is refused.

use crate::factory::fresh_config;
use crate::kit::{lease, signal, turn};
use crate::script::start;
use outlast_conformance::model::Hand;
use outlast_cosmos::{CosmosDBOptions, CosmosDBProvider};
use outlast_cosmos_rig::{Fault, Kind, Rig, Target};
use outlast_provider::model::WorkItem;
use outlast_provider::{
    Clock, Completion, Provider, ProviderAdmin, SessionFetchConfig, TagFilter, TurnAhead, TurnCommit,
};
use std::sync::Arc;
use std::time::Duration;

const LEASE: Duration = Duration::from_secs(10);
const BEGIN: u64 = 60_000_000;

fn clock_at(now_ms: u64) -> Arc<Hand> {
    let clock = Arc::new(Hand::default());
    clock.set(now_ms);
    clock
}

/// Two processes with these clocks.
async fn with_clocks(clocks: [&Arc<Hand>; 2]) -> (Target, CosmosDBProvider, CosmosDBProvider) {
    let target = Target::Rig(Box::new(Rig::start().await.unwrap()));
    let config = fresh_config(&target);
    let [one, other] = clocks.map(|clock| {
        let given: Option<Arc<dyn Clock>> = Some(clock.clone());
        CosmosDBOptions { clock: given, ..CosmosDBOptions::default() }
    });
    let one = CosmosDBProvider::open(config.clone(), one).await.unwrap();
    let other = CosmosDBProvider::open(config, other).await.unwrap();
    (target, one, other)
}

/// Two processes with one clock.
async fn two() -> (Target, Arc<Hand>, CosmosDBProvider, CosmosDBProvider) {
    let clock = clock_at(BEGIN);
    let (target, one, other) = with_clocks([&clock, &clock]).await;
    (target, clock, one, other)
}

/// An activity of `a`, which runs.
async fn with_activity(store: &CosmosDBProvider, session: Option<&str>) {
    store.enqueue_for_orchestrator(start("a"), None).await.unwrap();
    let token = lease(store, "a").await;
    let activity = WorkItem::ActivityExecute {
        instance: "a".into(),
        execution_id: 1,
        id: 2,
        name: "Work".into(),
        input: String::new(),
        session_id: session.map(str::to_string),
        tag: None,
    };
    let commit = TurnCommit { worker_items: vec![activity], ..turn("a", 1, 1, None) };
    store.commit_turn(&token, commit).await.unwrap();
}

fn outcome() -> WorkItem {
    WorkItem::ActivityCompleted { instance: "a".into(), execution_id: 1, id: 2, result: "r".into() }
}

fn ahead(clock: &Hand) -> TurnAhead {
    TurnAhead { after_event_id: 1, ran_at_ms: clock.now_ms(), commit: turn("a", 1, 2, None) }
}

async fn lease_activity(store: &CosmosDBProvider) -> String {
    let fetched = store.fetch_work_item(LEASE, Duration::ZERO, None, &TagFilter::default()).await.unwrap();
    fetched.expect("an activity waits").1
}

#[tokio::test]
async fn a_message_that_arrives_meanwhile_keeps_a_turn_from_being_committed_ahead() {
    let (target, clock, one, other) = two().await;
    with_activity(&one, None).await;
    let token = lease_activity(&one).await;
    let held = target.rig().unwrap().fault(Fault::on(Kind::Batch).partition("a").before().hold());
    let (completing, turn_ahead) = (one.clone(), ahead(&clock));
    let completion =
        tokio::spawn(async move { completing.complete_with_turn(&token, outcome(), turn_ahead).await });
    held.wait_struck(1).await;
    other.enqueue_for_orchestrator(signal("a"), None).await.unwrap();
    held.release();
    assert_eq!(completion.await.unwrap().unwrap(), Completion::Queued);
    assert_eq!(one.read("a").await.unwrap().len(), 1);
    assert_eq!(one.pending("a", 9).await.unwrap().unwrap().message_count, 2);
}

#[tokio::test]
async fn an_activity_that_another_worker_took_is_not_completed_ahead() {
    let (target, clock, one, other) = two().await;
    with_activity(&one, None).await;
    let token = lease_activity(&one).await;
    let held = target.rig().unwrap().fault(Fault::on(Kind::Batch).partition("a").before().hold());
    let (completing, turn_ahead) = (one.clone(), ahead(&clock));
    let completion =
        tokio::spawn(async move { completing.complete_with_turn(&token, outcome(), turn_ahead).await });
    held.wait_struck(1).await;
    clock.set(BEGIN + 20_000);
    let stolen = lease_activity(&other).await;
    held.release();
    let late = completion.await.unwrap().unwrap_err();
    assert!(!late.is_retryable(), "{late}");
    other.ack_work_item(&stolen, Some(outcome())).await.unwrap();
    assert_eq!(
        (one.read("a").await.unwrap().len(), one.pending("a", 9).await.unwrap().unwrap().message_count),
        (1, 1)
    );
}

#[tokio::test]
async fn a_completion_after_another_worker_took_the_activity_is_refused() {
    let (target, clock, one, other) = two().await;
    with_activity(&one, None).await;
    let token = lease_activity(&one).await;
    let held = target.rig().unwrap().fault(Fault::on(Kind::Batch).partition("a").before().hold());
    let completing = one.clone();
    let completion = tokio::spawn(async move { completing.ack_work_item(&token, Some(outcome())).await });
    held.wait_struck(1).await;
    clock.set(BEGIN + 20_000);
    let stolen = lease_activity(&other).await;
    held.release();
    assert!(!completion.await.unwrap().unwrap_err().is_retryable());
    other.renew_work_item_lock(&stolen, LEASE).await.unwrap();
    other.ack_work_item(&stolen, Some(outcome())).await.unwrap();
    assert_eq!(one.pending("a", 9).await.unwrap().unwrap().message_count, 1);
}

#[tokio::test]
async fn a_commit_after_another_runtime_took_the_turn_is_refused() {
    let (target, clock, one, other) = two().await;
    one.enqueue_for_orchestrator(start("a"), None).await.unwrap();
    let token = lease(&one, "a").await;
    let held = target.rig().unwrap().fault(Fault::on(Kind::Batch).partition("a").before().hold());
    let committing = one.clone();
    let commit = tokio::spawn(async move { committing.commit_turn(&token, turn("a", 1, 1, None)).await });
    held.wait_struck(1).await;
    // The lease of the helper is fifty times as long as that of the script.
    clock.set(BEGIN + 60_000);
    let stolen = lease(&other, "a").await;
    held.release();
    assert!(!commit.await.unwrap().unwrap_err().is_retryable());
    assert!(one.read("a").await.unwrap().is_empty());
    other.commit_turn(&stolen, turn("a", 1, 1, None)).await.unwrap();
}

/// A clock that is wrong lets a process take a lease that is not over. The condition of the commit lets one of the two commit.
#[tokio::test]
async fn clocks_that_differ_by_minutes_let_one_of_two_processes_commit() {
    let (slow, fast) = (clock_at(BEGIN), clock_at(BEGIN + 120_000));
    let (_target, one, other) = with_clocks([&slow, &fast]).await;
    with_activity(&one, None).await;
    let work = lease_activity(&one).await;
    let stolen = lease_activity(&other).await;
    assert!(!one.ack_work_item(&work, Some(outcome())).await.unwrap_err().is_retryable());
    assert!(!one.renew_work_item_lock(&work, LEASE).await.unwrap_err().is_retryable());
    other.ack_work_item(&stolen, Some(outcome())).await.unwrap();
    let token = lease(&other, "a").await;
    other.commit_turn(&token, turn("a", 1, 2, None)).await.unwrap();

    one.enqueue_for_orchestrator(start("b"), None).await.unwrap();
    let token = lease(&one, "b").await;
    // The fast clock is beyond the lease, and the next look for work is due.
    fast.set(BEGIN + 180_000);
    let stolen = lease(&other, "b").await;
    let late = one.commit_turn(&token, turn("b", 1, 1, None)).await.unwrap_err();
    assert!(!late.is_retryable(), "{late}");
    other.commit_turn(&stolen, turn("b", 1, 1, None)).await.unwrap();
    assert_eq!(one.read("b").await.unwrap().len(), 1);
    // A lease of the fast process is not over by the slow clock, whatever the fast one says.
    other.enqueue_for_orchestrator(signal("b"), None).await.unwrap();
    let token = lease(&other, "b").await;
    fast.set(BEGIN + 300_000);
    assert!(one.fetch_orchestration_item(LEASE, Duration::ZERO, None).await.unwrap().is_none());
    fast.set(BEGIN + 181_000);
    other.commit_turn(&token, turn("b", 1, 2, None)).await.unwrap();
}

#[tokio::test]
async fn a_lease_of_another_process_is_taken_half_a_second_after_its_end() {
    let (_target, clock, one, other) = two().await;
    with_activity(&one, None).await;
    lease_activity(&one).await;
    clock.set(BEGIN + 10_499);
    let tags = TagFilter::default();
    assert_eq!(other.fetch_work_item(LEASE, Duration::ZERO, None, &tags).await.unwrap(), None);
    clock.set(BEGIN + 12_000);
    lease_activity(&other).await;

    // The lease of a turn lasts 20 s.
    one.enqueue_for_orchestrator(start("b"), None).await.unwrap();
    lease(&one, "b").await;
    clock.set(BEGIN + 32_499);
    let early = other.fetch_orchestration_item(LEASE, Duration::ZERO, None).await.unwrap();
    assert!(early.is_none(), "the clock of the other process may be behind");
    clock.set(BEGIN + 34_000);
    lease(&other, "b").await;
}

#[tokio::test]
async fn two_senders_do_not_exceed_the_bound_of_a_mailbox() {
    let (target, _, one, other) = two().await;
    one.enqueue_for_orchestrator(start("a"), None).await.unwrap();
    let token = lease(&one, "a").await;
    one.commit_turn(&token, turn("a", 1, 1, None)).await.unwrap();
    let held = target.rig().unwrap().fault(Fault::on(Kind::Batch).partition("a").before().hold());
    let message = || WorkItem::QueueMessage { instance: "a".into(), name: "q".into(), data: String::new() };
    let (sending, first) = (one.clone(), message());
    let slow = tokio::spawn(async move { sending.enqueue_within(first, 1).await });
    held.wait_struck(1).await;
    assert!(other.enqueue_within(message(), 1).await.unwrap());
    held.release();
    assert!(!slow.await.unwrap().unwrap(), "the mailbox is full");
    assert_eq!(one.pending("a", 9).await.unwrap().unwrap().message_count, 1);
}

#[tokio::test]
async fn two_workers_do_not_lease_the_same_session() {
    let (target, clock, one, other) = two().await;
    with_activity(&one, Some("s")).await;
    let owner = |name: &str| SessionFetchConfig { owner_id: name.into(), lock_timeout: LEASE };
    let tags = TagFilter::default();
    // A session that is over, so that both replace it.
    let (_, token, _) =
        one.fetch_work_item(LEASE, Duration::ZERO, Some(&owner("first")), &tags).await.unwrap().unwrap();
    one.abandon_work_item(&token, None, true).await.unwrap();
    clock.set(BEGIN + 60_000);
    let rig = target.rig().unwrap();
    let held = rig.fault(Fault::on(Kind::Replace).id("s:cw").before().hold());
    let slow = one.clone();
    let fetch = tokio::spawn(async move {
        let owner = SessionFetchConfig { owner_id: "one".into(), lock_timeout: LEASE };
        slow.fetch_work_item(LEASE, Duration::ZERO, Some(&owner), &TagFilter::default()).await
    });
    held.wait_struck(1).await;
    let fetched = other.fetch_work_item(LEASE, Duration::ZERO, Some(&owner("other")), &tags).await.unwrap();
    assert!(fetched.is_some(), "the session is free");
    held.release();
    assert_eq!(fetch.await.unwrap().unwrap(), None, "the session has another owner");
    assert_eq!(other.renew_session_lock(&["other"], LEASE, LEASE).await.unwrap(), 1, "and keeps it");
}

#[tokio::test]
async fn a_session_of_another_process_is_taken_half_a_second_after_its_end() {
    let (slow, fast) = (clock_at(BEGIN), clock_at(BEGIN + 400));
    let (_target, one, other) = with_clocks([&slow, &fast]).await;
    with_activity(&one, Some("s")).await;
    let session = |owner_id: &str| SessionFetchConfig {
        owner_id: owner_id.into(),
        lock_timeout: Duration::from_secs(20),
    };
    let tags = TagFilter::default();
    let fetch = async |store: &CosmosDBProvider, owner: &str| {
        let fetched = store.fetch_work_item(LEASE, Duration::ZERO, Some(&session(owner)), &tags).await;
        fetched.unwrap().map(|(_, token, _)| token)
    };
    let token = fetch(&one, "first").await.unwrap();
    one.abandon_work_item(&token, None, true).await.unwrap();
    // By the slow clock, which set its end, the session ends at 20,000.
    fast.set(BEGIN + 12_000);
    assert_eq!(fetch(&other, "other").await, None);
    slow.set(BEGIN + 19_900);
    fast.set(BEGIN + 20_300);
    assert_eq!(fetch(&other, "other").await, None, "the first owner's session is not over");
    assert_eq!(other.cleanup_orphaned_sessions(Duration::ZERO).await.unwrap(), 0);
    // The clock of the same process cannot be behind.
    slow.set(BEGIN + 20_000);
    let token = fetch(&one, "second").await.expect("the session of this process is over");
    one.abandon_work_item(&token, None, true).await.unwrap();
    fast.set(BEGIN + 40_499);
    assert_eq!(fetch(&other, "other").await, None);
    fast.set(BEGIN + 40_500);
    assert!(fetch(&other, "other").await.is_some());
}
