//! The numbers of a store with more instances than are counted one by one.

use crate::factory::fresh_config;
use crate::kit::{event, rig_and_store, run, run_executions, signal, turn};
use crate::script::again;
use outlast_conformance::model::Hand;
use outlast_cosmos::{CosmosDBOptions, CosmosDBProvider};
use outlast_cosmos_rig::{Kind, Rig, Target};
use outlast_provider::model::WorkItem;
use outlast_provider::{
    Clock, HeldCounts, Hold, HoldKind, HoldOutcome, Provider, ProviderAdmin, PruneOptions, TurnCommit,
};
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

/// Starts instances that wait for a timer: each has one delayed message.
async fn sleepers(store: &CosmosDBProvider, numbers: std::ops::Range<usize>) {
    for nth in numbers {
        let id = format!("asleep-{nth}");
        let timer =
            WorkItem::TimerFired { instance: id.clone(), execution_id: 1, id: 1, fire_at_ms: 20 * DAY };
        let asleep = TurnCommit { orchestrator_items: vec![timer], ..turn(&id, 1, 1, None) };
        run(store, &id, asleep).await.unwrap();
    }
}

/// The rows that queries over all instances read since the last call.
fn rows_read(rig: &Rig) -> usize {
    let records = rig.take_recorded();
    for record in &records {
        assert!(record.unindexed.is_empty(), "a query scans: {record:?}");
    }
    let queries = records.iter().filter(|record| record.kind == Kind::Query && record.partition.is_none());
    queries.map(|record| record.documents_read).sum()
}

/// A read of the gauges and of the held instances, as runtimes do it every minute.
async fn gauges(store: &CosmosDBProvider) -> (u64, u64, u64) {
    let gauges = store.get_gauges().await.unwrap();
    let held = store.count_held().await.unwrap().unwrap();
    assert_eq!(held, HeldCounts::default());
    let messages = gauges.orchestrator_backlog.unwrap();
    (gauges.running_instances, messages.due, messages.delayed)
}

#[tokio::test]
async fn a_read_of_the_gauges_reads_a_bounded_number_of_rows_and_reads_converge_to_the_numbers() {
    const INSTANCES: usize = 300;
    let target = Target::Rig(Box::new(Rig::start().await.unwrap()));
    let clock = Arc::new(Hand::default());
    clock.set(10 * DAY);
    let given: Option<Arc<dyn Clock>> = Some(clock.clone());
    // Exact up to 20 rows, then about 20 rows for each of two numbers.
    let options = CosmosDBOptions { counted_exactly: 20, clock: given, ..CosmosDBOptions::default() };
    let store = CosmosDBProvider::open(fresh_config(&target), options).await.unwrap();
    let rig = target.rig().unwrap();
    sleepers(&store, 0..20).await;
    assert_eq!(gauges(&store).await, (20, 0, 20), "a small store is counted");
    sleepers(&store, 20..INSTANCES).await;
    again(|| store.enqueue_for_orchestrator(signal("asleep-7"), None)).await.unwrap();
    rows_read(rig);
    // Twice 21 rows, of up to four physical partitions, show that the store is large. Slots are read up to four times the
    // rows that they should have.
    let slots = 2 * 4 * 20 + 20;
    let (mut passes, mut found) = (0, gauges(&store).await);
    assert!(rows_read(rig) <= 2 * 4 * 21 + slots);
    while found != (INSTANCES as u64, 1, INSTANCES as u64) {
        passes += 1;
        assert!(passes < 100, "after {passes} minutes the gauges are {found:?}");
        clock.set(10 * DAY + passes * 60_000);
        found = gauges(&store).await;
        let rows = rows_read(rig);
        assert!(rows <= slots, "{rows} rows in minute {passes}");
    }
    assert!(passes > 4, "the slots were counted in several reads: {passes}");
    // Within half a minute no slot is counted again.
    gauges(&store).await;
    assert!(rows_read(rig) <= 10);
}

#[tokio::test]
async fn the_running_instances_of_a_counted_store_are_those_of_the_tally() {
    let Large { target, one, other, clock } = large().await;
    sleepers(&one, 0..9).await;
    assert_eq!(numbers(&other).await[1], 9);
    clock.set(10 * DAY + 1_000);
    let rig = target.rig().unwrap();
    // The first read finds that the store is large; the next ones ask the tally at once.
    assert_eq!(gauges(&other).await.0, 9);
    run(&one, "asleep-3", turn("asleep-3", 1, 2, Some("Completed"))).await.unwrap();
    one.flush_counts().await.unwrap();
    rig.take_recorded();
    assert_eq!(other.get_gauges().await.unwrap().running_instances, 8);
    let by_status = rig
        .take_recorded()
        .into_iter()
        .filter(|record| record.query.as_deref().is_some_and(|query| query.contains("'Running'")));
    assert_eq!(by_status.count(), 0, "no instance is counted");
    // After a day without a call of get_system_metrics the slots are counted.
    clock.set(12 * DAY);
    other.get_gauges().await.unwrap();
    let queries: Vec<_> = rig.take_recorded().into_iter().filter_map(|record| record.query).collect();
    assert!(queries.iter().any(|query| query.contains("@slots")), "{queries:?}");
    assert!(!queries.iter().any(|query| query.contains("c.nx")), "no reader of gauges counts all instances");
}

#[tokio::test]
async fn held_instances_are_found_by_an_index() {
    let (target, store) = rig_and_store(CosmosDBOptions::default()).await;
    for id in ["a", "b", "c"] {
        run(&store, id, turn(id, 1, 1, None)).await.unwrap();
    }
    let hold = Hold { kind: HoldKind::Paused, actor: "ann".into(), reason: "looks".into() };
    assert_eq!(store.hold_instance("b", &hold).await.unwrap(), HoldOutcome::Held);
    again(|| store.enqueue_for_orchestrator(signal("b"), None)).await.unwrap();
    // A lease without an end has the same place in the index, and is no hold.
    again(|| store.enqueue_for_orchestrator(signal("c"), None)).await.unwrap();
    let fetched = store.fetch_orchestration_item(Duration::MAX, Duration::ZERO, None).await.unwrap();
    assert_eq!(fetched.unwrap().0.instance, "c");
    let rig = target.rig().unwrap();
    rig.take_recorded();
    let counts = store.count_held().await.unwrap();
    assert_eq!(counts, Some(HeldCounts { instances: 1, messages: 1 }));
    let listed = store.list_held(None, 10).await.unwrap();
    assert_eq!(listed.iter().map(|held| held.instance_id.as_str()).collect::<Vec<_>>(), ["b"]);
    assert!(rows_read(rig) < 20);
}
