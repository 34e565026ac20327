//! Several store objects on one container: as many processes have them.

use crate::factory::{fresh_config, quiet_target};
use crate::script::{self, LEASE, start};
use outlast_cosmos::{CosmosDBProvider, CosmosDBProviderConfig, OutboxFaultInjector};
use outlast_cosmos_rig::{Fault, Kind, Rig, Target};
use outlast_provider::{Provider, ProviderAdmin, TagFilter};
use std::collections::BTreeSet;
use std::time::Duration;

const WAIT: Duration = Duration::from_secs(10);

#[tokio::test]
async fn work_of_one_process_is_found_by_another() {
    let target = quiet_target().await;
    let config = fresh_config(&target);
    let client = CosmosDBProvider::new_with_config(config.clone()).await.unwrap();
    let runtime = CosmosDBProvider::new_with_config(config).await.unwrap();
    script::begin(&client).await;
    let (item, token, attempt) =
        runtime.fetch_orchestration_item(LEASE, WAIT, None).await.unwrap().expect("the start is found");
    assert_eq!((item.instance.as_str(), attempt), ("source", 1));
    assert!(client.fetch_orchestration_item(LEASE, Duration::ZERO, None).await.unwrap().is_none());
    runtime.abandon_orchestration_item(&token, None, true).await.unwrap();
    script::finish(&client).await;
    script::check(&runtime).await;
}

#[tokio::test]
async fn two_processes_never_lease_the_same_instance() {
    let target = quiet_target().await;
    let config = fresh_config(&target);
    let one = CosmosDBProvider::new_with_config(config.clone()).await.unwrap();
    let other = CosmosDBProvider::new_with_config(config).await.unwrap();
    for nth in 0..8 {
        one.enqueue_for_orchestrator(start(&format!("i{nth}")), None).await.unwrap();
    }
    let mut leased = BTreeSet::new();
    while leased.len() < 8 {
        for store in [&one, &other] {
            let fetched = store.fetch_orchestration_item(Duration::from_secs(60), WAIT, None).await.unwrap();
            let (item, ..) = fetched.expect("an instance is left");
            assert!(leased.insert(item.instance.clone()), "{} is leased twice", item.instance);
        }
    }
}

#[tokio::test]
async fn a_lease_of_a_process_that_died_is_taken_over() {
    let target = quiet_target().await;
    let config = fresh_config(&target);
    let dead = CosmosDBProvider::new_with_config(config.clone()).await.unwrap();
    script::begin(&dead).await;
    let (_, token, _) = dead.fetch_orchestration_item(LEASE, WAIT, None).await.unwrap().unwrap();
    let alive = CosmosDBProvider::new_with_config(config).await.unwrap();
    let (_, _, attempt) =
        alive.fetch_orchestration_item(LEASE, WAIT, None).await.unwrap().expect("the lease is taken over");
    assert_eq!(attempt, 2);
    let late = dead.abandon_orchestration_item(&token, None, true).await.unwrap_err();
    assert!(!late.is_retryable(), "{late}");
}

#[tokio::test]
async fn intents_that_were_not_delivered_survive_their_process() {
    let target = quiet_target().await;
    let config = CosmosDBProviderConfig {
        reconciler_interval: Duration::from_millis(50),
        reconciler_age_threshold: Duration::from_millis(10),
        ..fresh_config(&target)
    };
    let quiet = CosmosDBProviderConfig { reconciler_interval: Duration::from_secs(600), ..config.clone() };
    let mut dead = CosmosDBProvider::new_with_config(quiet).await.unwrap();
    dead.set_outbox_fault_injector(OutboxFaultInjector::fail_next(u32::MAX));
    script::begin(&dead).await;
    script::finish(&dead).await;
    assert_eq!(dead.pending("target", 10).await.unwrap().unwrap().message_count, 0);
    drop(dead);
    let alive = CosmosDBProvider::new_with_config(config).await.unwrap();
    let (item, ..) =
        alive.fetch_orchestration_item(LEASE, WAIT, None).await.unwrap().expect("the start is delivered");
    assert_eq!(item.instance, "target");
    script::check(&alive).await;
}

#[tokio::test]
async fn reconcilers_of_three_processes_deliver_a_message_once() {
    let target = Target::Rig(Box::new(Rig::start().await.unwrap()));
    let rig = target.rig().unwrap();
    let config = CosmosDBProviderConfig {
        reconciler_interval: Duration::from_millis(20),
        reconciler_age_threshold: Duration::from_millis(10),
        ..fresh_config(&target)
    };
    let quiet = CosmosDBProviderConfig { reconciler_interval: Duration::from_secs(600), ..config.clone() };
    let mut dead = CosmosDBProvider::new_with_config(quiet).await.unwrap();
    dead.set_outbox_fault_injector(OutboxFaultInjector::fail_next(u32::MAX));
    script::begin(&dead).await;
    script::finish(&dead).await;
    drop(dead);
    // Each process has read the intent before the first of them delivers it.
    let held = rig.fault(Fault::on(Kind::Batch).partition("target").before().times(3).hold());
    let removed = rig.fault(Fault::on(Kind::Delete).partition("source").after().times(3));
    let mut alive = Vec::new();
    for _ in 0..3 {
        alive.push(CosmosDBProvider::new_with_config(config.clone()).await.unwrap());
    }
    held.wait_struck(3).await;
    held.release();
    removed.wait_struck(3).await;
    script::check(&alive[0]).await;
    let contradictions = alive[0].dump().await.unwrap();
    assert!(!contradictions.iter().any(|line| line.starts_with("contradiction ")), "{contradictions:?}");
}

/// The service refuses requests for a partition that it has split, and the SDK reads the new partitions.
#[tokio::test]
async fn an_instance_goes_on_while_physical_partitions_are_split() {
    let target = Target::Rig(Box::new(Rig::start().await.unwrap()));
    let (rig, config) = (target.rig().unwrap(), fresh_config(&target));
    let store = CosmosDBProvider::new_with_config(config.clone()).await.unwrap();
    script::begin(&store).await;
    let requests = rig.fault(Fault::any().after().times(3));
    let finishing = store.clone();
    let finished = tokio::spawn(async move { script::finish(&finishing).await });
    requests.wait_struck(3).await;
    for partition in 0..4 {
        rig.split(&config.database, &config.container, partition).await.unwrap();
    }
    finished.await.unwrap();
    script::check(&store).await;
    let (mut ids, others) = (store.list_instances().await.unwrap(), store.get_queue_depths().await.unwrap());
    ids.sort();
    assert_eq!(
        (ids, others.orchestrator_queue),
        (vec!["source".to_string()], 1),
        "queries read the new partitions"
    );
}

#[tokio::test]
async fn a_fetch_without_tags_finds_nothing() {
    let target = quiet_target().await;
    let store = CosmosDBProvider::new_with_config(fresh_config(&target)).await.unwrap();
    assert_eq!(store.fetch_work_item(LEASE, Duration::ZERO, None, &TagFilter::None).await.unwrap(), None);
}
