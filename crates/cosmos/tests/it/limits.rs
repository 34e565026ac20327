//! Requests that get no answer: a call under a lease ends before the lease does, and every other call by the deadline of the store.

use crate::factory::fresh_config;
use crate::kit::{rig_and_store, run, signal, turn};
use crate::script::start;
use outlast_cosmos::{CosmosDBOptions, CosmosDBProvider};
use outlast_cosmos_rig::{Fault, Kind, Rig, Target};
use outlast_provider::model::WorkItem;
use outlast_provider::{Clock, Provider, ProviderError, SystemClock, TagFilter};
use std::sync::Arc;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(3);
const SHORT: Duration = Duration::from_millis(900);

fn activity() -> WorkItem {
    WorkItem::ActivityExecute {
        instance: "a".into(),
        execution_id: 1,
        id: 5,
        name: "Work".into(),
        input: String::new(),
        session_id: None,
        tag: None,
    }
}

fn completed() -> WorkItem {
    WorkItem::ActivityCompleted { instance: "a".into(), execution_id: 1, id: 5, result: String::new() }
}

/// An instance with a message and an activity that wait.
async fn waiting() -> (Target, CosmosDBProvider) {
    let (target, store) = rig_and_store(CosmosDBOptions::default()).await;
    run(&store, "a", turn("a", 1, 1, None)).await.unwrap();
    store.enqueue_for_orchestrator(signal("a"), None).await.unwrap();
    store.enqueue_for_worker(activity()).await.unwrap();
    (target, store)
}

/// Lets the first request of a call on the instance get no answer. The call succeeds before its lease is over.
async fn succeeds_within(
    lease: Duration,
    target: &Target,
    call: impl Future<Output = Result<(), ProviderError>>,
) {
    let held = target.rig().unwrap().fault(Fault::any().partition("a").before().hold());
    let answer = tokio::time::timeout(lease, call).await;
    assert_eq!(held.struck(), 1);
    answer.expect("the call ends before its lease").expect("the repetition succeeds");
    held.release();
}

#[tokio::test]
async fn a_call_on_a_turn_whose_request_gets_no_answer_succeeds_before_the_lease_ends() {
    for lease in [LONG, SHORT] {
        for call in ["renew", "renew to a longer lease", "commit", "abandon"] {
            let (target, store) = waiting().await;
            let fetched = store.fetch_orchestration_item(lease, Duration::ZERO, None).await.unwrap();
            let (_, token, _) = fetched.unwrap();
            let called = async {
                match call {
                    "renew" => store.renew_orchestration_item_lock(&token, lease).await,
                    "renew to a longer lease" => store.renew_orchestration_item_lock(&token, 9 * lease).await,
                    "commit" => store.commit_turn(&token, turn("a", 1, 2, None)).await.map(drop),
                    _ => store.abandon_orchestration_item(&token, None, false).await,
                }
            };
            succeeds_within(lease, &target, called).await;
        }
    }
}

#[tokio::test]
async fn a_call_on_an_activity_whose_request_gets_no_answer_succeeds_before_the_lease_ends() {
    for lease in [LONG, SHORT] {
        for call in ["renew", "complete", "abandon"] {
            let (target, store) = waiting().await;
            let untagged = TagFilter::default();
            let fetched = store.fetch_work_item(lease, Duration::ZERO, None, &untagged).await.unwrap();
            let (_, token, _) = fetched.unwrap();
            let called = async {
                match call {
                    "renew" => store.renew_work_item_lock(&token, lease).await,
                    "complete" => store.ack_work_item(&token, Some(completed())).await,
                    _ => store.abandon_work_item(&token, None, false).await,
                }
            };
            succeeds_within(lease, &target, called).await;
        }
    }
}

#[tokio::test]
async fn a_renewal_is_given_up_when_its_lease_is_over_and_the_token_is_free_for_the_next_call() {
    let (target, store) = waiting().await;
    let fetched = store.fetch_orchestration_item(SHORT, Duration::ZERO, None).await.unwrap();
    let (_, token, _) = fetched.unwrap();
    let writes = target.rig().unwrap().fault(Fault::on(Kind::Replace).partition("a").always().hold());
    let renewed = tokio::time::timeout(LONG, store.renew_orchestration_item_lock(&token, SHORT)).await;
    let error = renewed.expect("the call ends").unwrap_err();
    assert!(error.is_retryable() && writes.struck() > 1, "{error}");
    writes.remove();
    writes.release();
    let later = tokio::time::timeout(LONG, store.abandon_orchestration_item(&token, None, false)).await;
    later.expect("no call holds the token").unwrap();
}

#[tokio::test]
async fn a_lease_that_ends_by_a_given_clock_limits_no_request() {
    let given = Some(Arc::new(SystemClock) as Arc<dyn Clock>);
    let options = CosmosDBOptions { clock: given, ..CosmosDBOptions::default() };
    let (target, store) = rig_and_store(options).await;
    run(&store, "a", turn("a", 1, 1, None)).await.unwrap();
    store.enqueue_for_orchestrator(signal("a"), None).await.unwrap();
    let fetched = store.fetch_orchestration_item(LONG, Duration::ZERO, None).await.unwrap();
    let (_, token, _) = fetched.unwrap();
    let held = target.rig().unwrap().fault(Fault::any().partition("a").before().hold());
    let mut renewed = Box::pin(store.renew_orchestration_item_lock(&token, LONG));
    assert!(
        tokio::time::timeout(LONG * 2 / 3, &mut renewed).await.is_err(),
        "the first request is not given up"
    );
    assert_eq!(held.struck(), 1);
    held.release();
    renewed.await.unwrap();
}

#[tokio::test]
async fn a_call_without_a_lease_ends_by_the_deadline_of_the_store() {
    let target = Target::Rig(Box::new(Rig::start().await.unwrap()));
    let options = CosmosDBOptions { deadline: Duration::from_millis(300), ..CosmosDBOptions::default() };
    let store = CosmosDBProvider::open(fresh_config(&target), options).await.unwrap();
    let held = target.rig().unwrap().fault(Fault::on(Kind::Batch).partition("a").before().hold());
    let stored = tokio::time::timeout(LONG, store.enqueue_for_orchestrator(start("a"), None)).await;
    stored.expect("the first request is given up").unwrap();
    assert_eq!(held.struck(), 1);
}
