//! Messages between instances: their keys, their tombstones, and the lag of their delivery.

use crate::factory::{fresh_config, quiet_target};
use crate::kit::{batches_of, lease, rig_and_store, signal, turn};
use crate::script::{self, start};
use metrics::{Counter, Gauge, GaugeFn, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use outlast_cosmos::{CosmosDBOptions, CosmosDBProvider, CosmosDBProviderConfig, OutboxFaultInjector};
use outlast_cosmos_rig::{Fault, Kind, Rig, Target};
use outlast_provider::model::{AppErrorKind, ErrorDetails, WorkItem};
use outlast_provider::{Provider, ProviderAdmin, TurnCommit};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Keeps the values that the gauge of the lag gets.
struct Lag(watch::Sender<f64>);

impl GaugeFn for Lag {
    fn set(&self, value: f64) {
        self.0.send_replace(value);
    }
    fn increment(&self, _: f64) {}
    fn decrement(&self, _: f64) {}
}

struct LagRecorder(Arc<Lag>);

impl Recorder for LagRecorder {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn register_counter(&self, _: &Key, _: &Metadata<'_>) -> Counter {
        Counter::noop()
    }
    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        match key.name() == "outlast_outbox_lag_seconds" {
            true => Gauge::from_arc(Arc::clone(&self.0)),
            false => Gauge::noop(),
        }
    }
    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

/// Waits until the gauge is set to a value that is accepted.
async fn lag_that(set: &mut watch::Receiver<f64>, accepts: impl Fn(f64) -> bool) -> f64 {
    let waited = tokio::time::timeout(Duration::from_secs(60), set.wait_for(|lag| accepts(*lag))).await;
    *waited.expect("the gauge gets the value").unwrap()
}

#[tokio::test]
async fn the_reconciler_shows_the_age_of_the_oldest_undelivered_message() {
    let lag = Arc::new(Lag(watch::Sender::new(-1.0)));
    let mut set = lag.0.subscribe();
    let recorder = LagRecorder(lag);
    // The reconciler runs on this thread.
    let _installed = metrics::set_default_local_recorder(&recorder);
    let target = quiet_target().await;
    let config = CosmosDBProviderConfig {
        reconciler_interval: Duration::from_millis(20),
        reconciler_age_threshold: Duration::from_millis(20),
        ..fresh_config(&target)
    };
    let mut store = CosmosDBProvider::new_with_config(config).await.unwrap();
    lag_that(&mut set, |lag| lag == 0.0).await;
    store.set_outbox_fault_injector(OutboxFaultInjector::fail_next(u32::MAX));
    script::begin(&store).await;
    script::finish(&store).await;
    let first = lag_that(&mut set, |lag| lag > 0.0).await;
    lag_that(&mut set, |lag| lag > first).await;
    assert_eq!(waiting(&store).await, 0);
    store.set_outbox_fault_injector(OutboxFaultInjector::fail_next(0));
    lag_that(&mut set, |lag| lag == 0.0).await;
    assert_eq!(waiting(&store).await, 1);
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
        rig.fault(Fault::on(Kind::Delete).partition("source").after().times(6)).wait_struck(6).await;
        assert_eq!(waiting(&store).await, 0, "batches of {batch}: a consumed message returns");
    }
}

/// One message of each kind that a turn sends to another instance: a child, a detached instance, outcomes of a child,
/// cancellation, events.
fn messages_to(target: &str) -> Vec<WorkItem> {
    let (instance, parent_instance) = (target.to_string(), target.to_string());
    let child = WorkItem::StartOrchestration {
        instance: instance.clone(),
        orchestration: "Flow".into(),
        input: String::new(),
        version: None,
        parent_instance: Some("source".into()),
        parent_id: Some(2),
        parent_execution_id: Some(1),
        execution_id: 1,
    };
    let details = ErrorDetails::Application {
        kind: AppErrorKind::OrchestrationFailed,
        message: "no".into(),
        retryable: false,
    };
    vec![
        child,
        start(target),
        WorkItem::SubOrchCompleted {
            parent_instance: parent_instance.clone(),
            parent_execution_id: 1,
            parent_id: 3,
            result: "out".into(),
        },
        WorkItem::SubOrchFailed { parent_instance, parent_execution_id: 1, parent_id: 4, details },
        WorkItem::CancelInstance { instance: instance.clone(), reason: "stop".into() },
        signal(target),
        WorkItem::QueueMessage { instance, name: "queue".into(), data: "data".into() },
    ]
}

#[tokio::test]
async fn every_kind_of_message_that_was_not_delivered_arrives_once_after_its_process_died() {
    let target = Target::Rig(Box::new(Rig::start().await.unwrap()));
    let config = CosmosDBProviderConfig {
        reconciler_interval: Duration::from_millis(20),
        reconciler_age_threshold: Duration::from_millis(10),
        ..fresh_config(&target)
    };
    let quiet = CosmosDBProviderConfig { reconciler_interval: Duration::from_secs(600), ..config.clone() };
    let mut dead = CosmosDBProvider::new_with_config(quiet).await.unwrap();
    dead.set_outbox_fault_injector(OutboxFaultInjector::fail_next(u32::MAX));
    let sent = messages_to("target");
    run_source(&dead, TurnCommit { orchestrator_items: sent.clone(), ..turn("source", 1, 1, None) }).await;
    assert_eq!(waiting(&dead).await, 0, "no delivery succeeds");
    drop(dead);
    // The answers of the removals are lost, so each message is delivered a second time.
    let removed = target
        .rig()
        .unwrap()
        .fault(Fault::on(Kind::Delete).partition("source").after().times(sent.len() as u64));
    let alive = CosmosDBProvider::new_with_config(config).await.unwrap();
    removed.wait_struck(sent.len() as u64).await;
    let fetched =
        alive.fetch_orchestration_item(Duration::from_secs(60), Duration::from_secs(10), None).await;
    let (item, ..) = fetched.unwrap().expect("the messages of the target wait");
    let kinds = |items: &[WorkItem]| -> Vec<&'static str> {
        let mut kinds: Vec<&'static str> = items.iter().map(WorkItem::kind_name).collect();
        kinds.sort_unstable();
        kinds
    };
    assert_eq!((item.instance.as_str(), kinds(&item.messages)), ("target", kinds(&sent)));
}

/// A container in which a process died before it delivered messages: a staged turn of `source` and a small one of `second` to
/// `bad`, and then a small one of `fine` to `good`.
async fn undelivered() -> (Target, CosmosDBProviderConfig) {
    let target = Target::Rig(Box::new(Rig::start().await.unwrap()));
    let config = CosmosDBProviderConfig {
        reconciler_interval: Duration::from_millis(20),
        reconciler_age_threshold: Duration::from_millis(1),
        ..fresh_config(&target)
    };
    let quiet = CosmosDBProviderConfig { reconciler_interval: Duration::from_secs(600), ..config.clone() };
    let mut dead = CosmosDBProvider::open(quiet, batches_of(4)).await.unwrap();
    dead.set_outbox_fault_injector(OutboxFaultInjector::fail_next(u32::MAX));
    for (sender, target, count) in [("source", "bad", 6), ("second", "bad", 1), ("fine", "good", 1)] {
        dead.enqueue_for_orchestrator(start(sender), None).await.unwrap();
        let token = lease(&dead, sender).await;
        let orchestrator_items = vec![start(target); count];
        let commit = TurnCommit { orchestrator_items, ..turn(sender, 1, 1, None) };
        dead.commit_turn(&token, commit).await.unwrap();
    }
    (target, config)
}

#[tokio::test]
async fn a_target_or_a_sender_that_fails_does_not_delay_other_messages() {
    let faults = [
        (true, Fault::on(Kind::Batch).partition("bad").always().hold()),
        (false, Fault::on(Kind::Batch).partition("bad").always().status(400)),
        // The turn of the sender cannot be read.
        (false, Fault::on(Kind::Read).partition("source").id("i").always().status(400)),
    ];
    for (is_silent, fault) in faults {
        let (target, config) = undelivered().await;
        let rig = target.rig().unwrap();
        let failing = rig.fault(fault.clone());
        // These faults only count.
        let removals = |sender: &str| rig.fault(Fault::on(Kind::Delete).partition(sender).after().always());
        let (removed, later) = (removals("fine"), [(removals("source"), 6), (removals("second"), 1)]);
        let alive = CosmosDBProvider::new_with_config(config).await.unwrap();
        failing.wait_struck(1).await;
        removed.wait_struck(1).await;
        if is_silent {
            assert_eq!(failing.struck(), 1, "one request to the target, and no wait for its end");
        }
        let waits = alive.pending("good", 9).await.unwrap().unwrap().message_count;
        assert_eq!(waits, 1, "{fault:?}");
        failing.remove();
        failing.release();
        for (removals, count) in later {
            removals.wait_struck(count).await;
        }
        assert_eq!(alive.pending("bad", 9).await.unwrap().unwrap().message_count, 7, "{fault:?}");
    }
}

/// A container in which a process died before it delivered 60 messages of `source`, one to each of `bad-0` to `bad-59`, and then a
/// message of `fine` to `good`.
async fn sixty_undelivered() -> (Target, CosmosDBProviderConfig) {
    let target = Target::Rig(Box::new(Rig::start().await.unwrap()));
    let config = CosmosDBProviderConfig {
        reconciler_interval: Duration::from_millis(20),
        reconciler_age_threshold: Duration::from_millis(1),
        ..fresh_config(&target)
    };
    let quiet = CosmosDBProviderConfig { reconciler_interval: Duration::from_secs(600), ..config.clone() };
    let mut dead = CosmosDBProvider::new_with_config(quiet).await.unwrap();
    dead.set_outbox_fault_injector(OutboxFaultInjector::fail_next(u32::MAX));
    let bad = (0..60).map(|nth| start(&format!("bad-{nth}"))).collect();
    for (sender, orchestrator_items) in [("source", bad), ("fine", vec![start("good")])] {
        dead.enqueue_for_orchestrator(start(sender), None).await.unwrap();
        let token = lease(&dead, sender).await;
        dead.commit_turn(&token, TurnCommit { orchestrator_items, ..turn(sender, 1, 1, None) })
            .await
            .unwrap();
    }
    (target, config)
}

/// A process whose reconciler reads 20 intents in a round.
async fn reconciling(config: &CosmosDBProviderConfig) -> CosmosDBProvider {
    let options = CosmosDBOptions { intents_at_once: 20, ..CosmosDBOptions::default() };
    CosmosDBProvider::open(config.clone(), options).await.unwrap()
}

#[tokio::test]
async fn more_targets_that_fail_than_a_round_takes_do_not_delay_later_messages() {
    for status in [429, 400] {
        let (target, config) = sixty_undelivered().await;
        let rig = target.rig().unwrap();
        let failing = rig.fault(Fault::on(Kind::Batch).partitions_from("bad-").always().status(status));
        let removals = |sender: &str| rig.fault(Fault::on(Kind::Delete).partition(sender).after().always());
        let (removed, later) = (removals("fine"), removals("source"));
        let alive = [reconciling(&config).await, reconciling(&config).await];
        removed.wait_struck(1).await;
        assert_eq!(alive[0].pending("good", 9).await.unwrap().unwrap().message_count, 1);
        assert!(failing.struck() > 0 && later.struck() == 0, "{status}");
        failing.remove();
        later.wait_struck(60).await;
        for nth in 0..60 {
            let waits = alive[1].pending(&format!("bad-{nth}"), 9).await.unwrap().unwrap();
            assert_eq!(waits.message_count, 1, "{status}: the message to bad-{nth}");
        }
    }
}

/// Intents whose sender refuses writes can neither be removed nor put off.
#[tokio::test]
async fn more_intents_of_a_throttled_sender_than_a_round_takes_do_not_delay_other_senders() {
    let (target, config) = sixty_undelivered().await;
    let rig = target.rig().unwrap();
    let writes = |kind| rig.fault(Fault::on(kind).partition("source").always().status(429));
    let throttled = [writes(Kind::Delete), writes(Kind::Replace)];
    let removals = |sender: &str| rig.fault(Fault::on(Kind::Delete).partition(sender).after().always());
    let (removed, later) = (removals("fine"), removals("source"));
    let alive = reconciling(&config).await;
    removed.wait_struck(1).await;
    assert!(throttled[0].struck() > 0);
    throttled.iter().for_each(|fault| fault.remove());
    later.wait_struck(60).await;
    assert_eq!(alive.pending("bad-59", 9).await.unwrap().unwrap().message_count, 1);
}

#[tokio::test]
async fn a_target_that_fails_is_asked_less_and_less_often() {
    let (target, config) = undelivered().await;
    let rig = target.rig().unwrap();
    let failing = rig.fault(Fault::on(Kind::Batch).partition("bad").always().status(400));
    let rounds = rig.fault(Fault::on(Kind::Query).after().always());
    let alive = CosmosDBProvider::new_with_config(config).await.unwrap();
    // A round has a query for the oldest intent and one for those that are due, with a page for each of four physical partitions.
    rounds.wait_struck(8 * 40).await;
    let asked = failing.struck();
    assert!((2..7 * 20).contains(&asked), "40 rounds asked for 7 messages {asked} times");
    drop(alive);
}
