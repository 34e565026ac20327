//! Messages between instances: their keys, their tombstones, and the lag of their delivery.

use crate::factory::{fresh_config, quiet_target};
use crate::kit::{batches_of, lease, rig_and_store, signal, turn};
use crate::script::{self, start};
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use outlast_cosmos::{CosmosDBOptions, CosmosDBProvider, CosmosDBProviderConfig, OutboxFaultInjector};
use outlast_cosmos_rig::{Fault, Kind};
use outlast_provider::{Provider, ProviderAdmin, TurnCommit};
use std::time::Duration;

/// The value of the gauge; `None` before the first look at undelivered messages.
fn lag(snapshotter: &Snapshotter) -> Option<f64> {
    let rows = snapshotter.snapshot().into_vec();
    let row = rows.into_iter().find(|(key, ..)| key.key().name() == "outlast_outbox_lag_seconds")?;
    match row.3 {
        DebugValue::Gauge(value) => Some(value.into_inner()),
        other => panic!("{other:?} is no gauge"),
    }
}

/// Waits for a value of the gauge that is accepted.
async fn lag_that(snapshotter: &Snapshotter, accepts: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..2_000 {
        if let Some(lag) = lag(snapshotter).filter(|lag| accepts(*lag)) {
            return lag;
        }
        // The reconciler runs on this thread.
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("the gauge is {:?}", lag(snapshotter));
}

#[tokio::test]
async fn the_reconciler_shows_the_age_of_the_oldest_undelivered_message() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _installed = metrics::set_default_local_recorder(&recorder);
    let target = quiet_target().await;
    let config = CosmosDBProviderConfig {
        reconciler_interval: Duration::from_millis(20),
        reconciler_age_threshold: Duration::from_millis(20),
        ..fresh_config(&target)
    };
    let mut last = None;
    let mut store = CosmosDBProvider::new_with_config(config).await.unwrap();
    lag_that(&snapshotter, |lag| lag == 0.0).await;
    let faults = OutboxFaultInjector::fail_next(u32::MAX);
    store.set_outbox_fault_injector(faults);
    script::begin(&store).await;
    script::finish(&store).await;
    let first = lag_that(&snapshotter, |lag| lag > 0.0).await;
    lag_that(&snapshotter, |lag| lag > first).await;
    assert_eq!(store.pending("target", 10).await.unwrap().unwrap().message_count, 0);
    store.set_outbox_fault_injector(OutboxFaultInjector::fail_next(0));
    while store.pending("target", 10).await.unwrap().unwrap().message_count == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // The message is delivered before its intent is removed. A snapshot sets the gauge to 0, and a look at the intents sets it again.
    lag_that(&snapshotter, |lag| lag == 0.0).await;
    for _ in 0..40 {
        tokio::time::sleep(Duration::from_millis(5)).await;
        last = lag(&snapshotter);
    }
    assert_eq!(last, Some(0.0));
}

/// A turn of `source` that sends this number of starts to `target`.
fn sending(event_id: u64, count: usize) -> TurnCommit {
    TurnCommit { orchestrator_items: vec![start("target"); count], ..turn("source", 1, event_id, None) }
}

/// A turn of `source`, without a look at other instances.
async fn run_source(store: &CosmosDBProvider, commit: TurnCommit) {
    let message = if commit.history_delta[0].event_id == 1 { start("source") } else { signal("source") };
    store.enqueue_for_orchestrator(message, None).await.unwrap();
    let token = lease(store, "source").await;
    store.commit_turn(&token, commit).await.unwrap();
}

async fn waiting(store: &CosmosDBProvider) -> u64 {
    store.pending("target", 100).await.unwrap().unwrap().message_count
}

#[tokio::test]
async fn messages_of_different_turns_executions_and_lives_of_an_instance_do_not_collide() {
    let (_target, store) = rig_and_store(CosmosDBOptions::default()).await;
    // The target is leased, so that its messages wait.
    store.enqueue_for_orchestrator(start("target"), None).await.unwrap();
    let held = store.fetch_orchestration_item(Duration::from_secs(600), Duration::ZERO, None).await.unwrap();
    assert!(held.is_some());
    run_source(&store, sending(1, 2)).await;
    assert_eq!(waiting(&store).await, 3);
    run_source(&store, sending(2, 2)).await;
    assert_eq!(waiting(&store).await, 5, "a second turn");
    run_source(&store, TurnCommit { execution_id: 2, ..sending(3, 1) }).await;
    assert_eq!(waiting(&store).await, 6, "a second execution");
    store.delete_instances_atomic(&["source".to_string()], true).await.unwrap();
    run_source(&store, sending(1, 2)).await;
    assert_eq!(waiting(&store).await, 8, "an instance that was created again");
}

#[tokio::test]
async fn a_message_that_was_consumed_is_not_delivered_again() {
    for batch in [100, 4] {
        let target = quiet_target().await;
        let config = CosmosDBProviderConfig {
            reconciler_interval: Duration::from_millis(20),
            reconciler_age_threshold: Duration::from_millis(20),
            ..fresh_config(&target)
        };
        let store = CosmosDBProvider::open(config, batches_of(batch)).await.unwrap();
        let Some(rig) = target.rig() else { return };
        // The messages are delivered, and the intents stay.
        let kept = rig.fault(Fault::on(Kind::Delete).partition("source").always().status(400));
        run_source(&store, sending(1, 6)).await;
        assert!(kept.struck() > 0);
        assert_eq!(waiting(&store).await, 6);
        let token = lease(&store, "target").await;
        store.commit_turn(&token, turn("target", 1, 1, None)).await.unwrap();
        assert_eq!(waiting(&store).await, 0);
        rig.clear_faults();
        // The reconciler delivers the intents again, and removes them.
        for _ in 0..2_000 {
            if !store.dump().await.unwrap().iter().any(|line| line.contains("undelivered")) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert!(!store.dump().await.unwrap().iter().any(|line| line.contains("undelivered")));
        assert_eq!(waiting(&store).await, 0, "batches of {batch}: a consumed message returns");
    }
}
