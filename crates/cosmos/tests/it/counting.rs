//! The numbers of a store with more instances than are counted one by one.

use crate::factory::fresh_config;
use crate::kit::{event, run, run_executions, turn};
use outlast_conformance::model::Hand;
use outlast_cosmos::{CosmosDBOptions, CosmosDBProvider};
use outlast_cosmos_rig::{Kind, Rig, Target};
use outlast_provider::{Clock, Provider, ProviderAdmin, PruneOptions};
use std::sync::Arc;
use std::time::Duration;

const DAY: u64 = 24 * 60 * 60 * 1_000;

struct Large {
    target: Target,
    clock: Arc<Hand>,
    one: CosmosDBProvider,
    other: CosmosDBProvider,
}

/// Two stores on a container, which count up to two instances one by one.
async fn large() -> Large {
    let target = Target::Rig(Box::new(Rig::start().await.unwrap()));
    let clock = Arc::new(Hand::default());
    clock.set(10 * DAY);
    let given: Option<Arc<dyn Clock>> = Some(clock.clone());
    let options = CosmosDBOptions { counted_exactly: 2, clock: given, ..CosmosDBOptions::default() };
    let config = fresh_config(&target);
    let one = CosmosDBProvider::open(config.clone(), options.clone()).await.unwrap();
    let other = CosmosDBProvider::open(config, options).await.unwrap();
    Large { target, clock, one, other }
}

/// Awaits a future while the store's time goes on: a second process gets slots after heartbeats of the first one.
async fn advancing<T>(clock: &Hand, work: impl Future<Output = T>) -> T {
    tokio::pin!(work);
    let mut ticks = tokio::time::interval(Duration::from_millis(5));
    loop {
        tokio::select! {
            done = &mut work => return done,
            _ = ticks.tick() => clock.set(clock.now_ms() + 100),
        }
    }
}

async fn numbers(store: &CosmosDBProvider) -> [u64; 6] {
    let metrics = store.get_system_metrics().await.unwrap();
    [
        metrics.total_instances,
        metrics.running_instances,
        metrics.completed_instances,
        metrics.failed_instances,
        metrics.total_executions,
        metrics.total_events,
    ]
}

#[tokio::test]
async fn a_large_store_is_counted_once_and_then_by_the_changes_of_its_processes() {
    let Large { target, one, other, clock } = large().await;
    run(&one, "a", turn("a", 1, 1, None)).await.unwrap();
    run_executions(&one, "b", 1, 2).await;
    assert_eq!(numbers(&other).await, [2, 1, 1, 0, 2, 3], "two instances are counted");
    run(&one, "c", turn("c", 1, 1, Some("Failed"))).await.unwrap();
    run_executions(&one, "d", 3, 1).await;
    let counted = [4, 1, 2, 1, 6, 7];
    assert_eq!(numbers(&other).await, counted, "the first count is exact");
    one.flush_counts().await.unwrap();
    assert_eq!(numbers(&one).await, counted, "changes before the count are not added to it");

    clock.set(10 * DAY + 1_000);
    let rig = target.rig().unwrap();
    rig.take_recorded();
    run(&one, "a", turn("a", 1, 2, Some("Completed"))).await.unwrap();
    advancing(&clock, run(&other, "e", turn("e", 1, 1, None))).await.unwrap();
    assert_eq!(numbers(&other).await, [5, 2, 2, 1, 7, 8], "the changes of this process count at once");
    one.flush_counts().await.unwrap();
    other.flush_counts().await.unwrap();
    for store in [&one, &other] {
        assert_eq!(numbers(store).await, [5, 1, 3, 1, 7, 9], "and those of others after their flush");
        assert_eq!(store.get_gauges().await.unwrap().running_instances, 1);
    }
    let prune = PruneOptions { keep_last: Some(1), ..PruneOptions::default() };
    one.prune_executions("d", prune).await.unwrap();
    one.delete_instances_atomic(&["c".to_string()], false).await.unwrap();
    one.append_with_execution("b", 1, vec![event("b", 1, 3)]).await.unwrap();
    one.flush_counts().await.unwrap();
    assert_eq!(numbers(&other).await, [4, 1, 3, 0, 4, 7]);
    // No request after the first count read more rows than are counted one by one, and one more.
    let rows = rig
        .recorded()
        .iter()
        .filter(|record| record.kind == Kind::Query && record.partition.is_none())
        .map(|record| record.documents_read)
        .max();
    assert!(rows.unwrap() <= 100, "{rows:?}");
}

#[tokio::test]
async fn all_instances_are_counted_again_after_a_day() {
    let Large { target: _target, one, other, clock } = large().await;
    for name in ["a", "b", "c"] {
        run_executions(&one, name, 1, 1).await;
    }
    assert_eq!(numbers(&other).await[0], 3);
    clock.set(10 * DAY + 1_000);
    // The process dies before it flushes: its changes are not counted.
    run_executions(&one, "d", 1, 1).await;
    drop(one);
    assert_eq!(numbers(&other).await[0], 3, "a change that was not flushed is lost");
    clock.set(11 * DAY - 1);
    assert_eq!(numbers(&other).await[0], 3);
    clock.set(11 * DAY);
    assert_eq!(numbers(&other).await[0], 4, "until the next count");
}
