//! Deletions that meet writers, other deletions, and the death of their process.

use crate::factory::fresh_config;
use crate::kit::{batches_of, lease, rig_and_store, run, run_executions, signal, turn};
use crate::script::start;
use outlast_cosmos::{CosmosDBOptions, CosmosDBProvider, CosmosDBProviderConfig, OutboxFaultInjector};
use outlast_cosmos_rig::{Fault, Kind, Rig, Target};
use outlast_provider::{
    Clock, Provider, ProviderAdmin, StartOutcome, StartPolicy, StartRequest, SystemClock, TurnCommit,
};
use std::sync::Arc;
use std::time::Duration;

/// Stops the flip of the next deletion before its execution.
fn held_flip() -> Fault {
    Fault::on(Kind::Replace).partition("~sys").before().hold()
}

/// The batches that remove documents of a deleted instance.
fn purge(instance: &str) -> Fault {
    Fault::on(Kind::Batch).partition(instance).id("i")
}

fn ids(names: &[&str]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

#[tokio::test]
async fn an_instance_that_starts_again_meanwhile_is_not_deleted_without_force() {
    let (target, store) = rig_and_store(CosmosDBOptions::default()).await;
    run_executions(&store, "a", 1, 1).await;
    run_executions(&store, "b", 1, 1).await;
    let held = target.rig().unwrap().fault(held_flip());
    let deleting = store.clone();
    let deletion =
        tokio::spawn(async move { deleting.delete_instances_atomic(&ids(&["a", "b"]), false).await });
    held.wait_struck(1).await;
    // Both instances are marked. A new execution of one of them is committed.
    run(&store, "b", turn("b", 2, 1, None)).await.unwrap();
    held.release();
    let refused = deletion.await.unwrap().unwrap_err();
    assert!(refused.message.contains("'b' is still running") && !refused.is_retryable(), "{refused}");
    assert_eq!(store.read("a").await.unwrap().len(), 1, "none is deleted");
    assert_eq!(store.list_executions("b").await.unwrap(), [1, 2]);
    // Nothing of the deletion is left: both instances run on and can be deleted.
    run(&store, "b", turn("b", 2, 2, Some("Completed"))).await.unwrap();
    let deleted = store.delete_instances_atomic(&ids(&["a", "b"]), false).await.unwrap();
    assert_eq!((deleted.instances_deleted, deleted.executions_deleted, deleted.events_deleted), (2, 3, 4));
}

#[tokio::test]
async fn a_turn_that_is_leased_during_a_forced_deletion_is_deleted_or_committed_but_not_both() {
    let (target, store) = rig_and_store(CosmosDBOptions::default()).await;
    run(&store, "a", turn("a", 1, 1, None)).await.unwrap();
    store.enqueue_for_orchestrator(signal("a"), None).await.unwrap();
    let token = lease(&store, "a").await;
    let held = target.rig().unwrap().fault(held_flip());
    let deleting = store.clone();
    let deletion = tokio::spawn(async move { deleting.delete_instances_atomic(&ids(&["a"]), true).await });
    held.wait_struck(1).await;
    store.commit_turn(&token, turn("a", 1, 2, None)).await.unwrap();
    assert_eq!(store.read("a").await.unwrap().len(), 2, "the commit is visible before the deletion");
    held.release();
    let deleted = deletion.await.unwrap().unwrap();
    assert_eq!((deleted.instances_deleted, deleted.events_deleted), (1, 2), "the deletion counts the turn");
    assert!(store.read("a").await.unwrap().is_empty());
    let late = store.commit_turn(&token, turn("a", 1, 3, None)).await.unwrap_err();
    assert!(!late.is_retryable(), "{late}");
}

#[tokio::test]
async fn two_deletions_of_the_same_instances_delete_them_once() {
    let (_target, store) = rig_and_store(CosmosDBOptions::default()).await;
    for name in ["a", "b", "c"] {
        run_executions(&store, name, 1, 1).await;
    }
    let (these, those) = (ids(&["a", "b"]), ids(&["b", "c"]));
    let (one, other) = tokio::join!(
        store.delete_instances_atomic(&these, false),
        store.delete_instances_atomic(&those, false)
    );
    let (one, other) = (one.unwrap(), other.unwrap());
    assert_eq!(one.instances_deleted + other.instances_deleted, 3, "{one:?} {other:?}");
    assert!(store.list_instances().await.unwrap().is_empty());
}

/// A container in which a process died after the flip of a deletion of `a` and `b`, and a store of another process.
async fn after_death() -> (Target, CosmosDBProvider) {
    let target = Target::Rig(Box::new(Rig::start().await.unwrap()));
    let config = fresh_config(&target);
    let dying = CosmosDBProvider::new_with_config(config.clone()).await.unwrap();
    for name in ["a", "b", "c"] {
        run_executions(&dying, name, 1, 1).await;
    }
    let rig = target.rig().unwrap();
    let dead = ["a", "b"].map(|name| rig.fault(purge(name).always().status(400)));
    dying.delete_instances_atomic(&ids(&["a", "b"]), false).await.unwrap_err();
    drop(dying);
    assert!(dead[0].struck() > 0, "the process dies before the purge");
    rig.clear_faults();
    let other = CosmosDBProvider::new_with_config(config).await.unwrap();
    (target, other)
}

#[tokio::test]
async fn instances_of_a_deletion_whose_process_died_are_gone_from_every_view() {
    let (_target, store) = after_death().await;
    assert_eq!(store.get_system_metrics().await.unwrap().total_instances, 1);
    let (_target, store) = after_death().await;
    assert_eq!(store.list_instances().await.unwrap(), ["c"]);
    let (_target, store) = after_death().await;
    assert_eq!(store.list_instances_by_status("Completed").await.unwrap(), ["c"]);
    let (_target, store) = after_death().await;
    let page = store.query_instances(&outlast_provider::InstanceQuery::default()).await.unwrap();
    assert_eq!(page.instances.iter().map(|info| info.instance_id.as_str()).collect::<Vec<_>>(), ["c"]);
    let (_target, store) = after_death().await;
    let filter = outlast_provider::InstanceFilter::default();
    assert_eq!(store.delete_instance_bulk(filter).await.unwrap().instances_deleted, 1);
    let (_target, store) = after_death().await;
    assert!(store.read("b").await.unwrap().is_empty());
    // The reader that met the instance removed its documents.
    assert!(!store.dump().await.unwrap().iter().any(|line| line.contains(" b ")));
}

#[tokio::test]
async fn a_record_whose_process_died_before_the_flip_deletes_nothing() {
    let target = Target::Rig(Box::new(Rig::start().await.unwrap()));
    let config = fresh_config(&target);
    let dying = CosmosDBProvider::new_with_config(config.clone()).await.unwrap();
    run_executions(&dying, "a", 1, 1).await;
    let rig = target.rig().unwrap();
    let flip = rig.fault(Fault::on(Kind::Replace).partition("~sys").before().status(400));
    dying.delete_instances_atomic(&ids(&["a"]), false).await.unwrap_err();
    assert_eq!(flip.struck(), 1);
    drop(dying);
    let other = CosmosDBProvider::new_with_config(config).await.unwrap();
    assert_eq!(other.list_instances().await.unwrap(), ["a"]);
    run(&other, "a", turn("a", 2, 1, None)).await.unwrap();
    assert_eq!(other.list_executions("a").await.unwrap(), [1, 2]);
}

#[tokio::test]
async fn a_deletion_that_another_one_overtook_deletes_nothing() {
    let (target, store) = rig_and_store(CosmosDBOptions::default()).await;
    run_executions(&store, "a", 1, 1).await;
    let held = target.rig().unwrap().fault(held_flip());
    let deleting = store.clone();
    let slow = tokio::spawn(async move { deleting.delete_instances_atomic(&ids(&["a"]), false).await });
    held.wait_struck(1).await;
    let other = store.delete_instances_atomic(&ids(&["a"]), false).await.unwrap();
    assert_eq!(other.instances_deleted, 1);
    run(&store, "a", turn("a", 1, 1, None)).await.unwrap();
    held.release();
    let refused = slow.await.unwrap().unwrap_err();
    assert!(refused.message.contains("still running"), "the instance is another one: {refused}");
    assert_eq!(store.read("a").await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_message_that_arrives_after_the_deletion_is_for_a_new_instance() {
    let (target, store) = rig_and_store(CosmosDBOptions::default()).await;
    run_executions(&store, "a", 1, 1).await;
    store.enqueue_for_orchestrator(signal("a"), None).await.unwrap();
    let purge = target.rig().unwrap().fault(purge("a").before().hold());
    let deleting = store.clone();
    let deletion = tokio::spawn(async move { deleting.delete_instances_atomic(&ids(&["a"]), false).await });
    purge.wait_struck(1).await;
    store.enqueue_for_orchestrator(start("a"), None).await.unwrap();
    purge.release();
    assert_eq!(deletion.await.unwrap().unwrap().queue_messages_deleted, 1);
    let token = lease(&store, "a").await;
    store.commit_turn(&token, turn("a", 1, 1, None)).await.unwrap();
    assert_eq!(store.read("a").await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_message_that_a_deleted_instance_sent_is_delivered() {
    let target = Target::Rig(Box::new(Rig::start().await.unwrap()));
    let config =
        CosmosDBProviderConfig { reconciler_interval: Duration::from_secs(600), ..fresh_config(&target) };
    let mut store = CosmosDBProvider::new_with_config(config).await.unwrap();
    store.set_outbox_fault_injector(OutboxFaultInjector::fail_next(1));
    let sending = TurnCommit { orchestrator_items: vec![start("target")], ..turn("a", 1, 1, None) };
    run(&store, "a", sending).await.unwrap();
    assert_eq!(store.pending("target", 9).await.unwrap().unwrap().message_count, 0);
    store.delete_instances_atomic(&ids(&["a"]), true).await.unwrap();
    assert_eq!(store.pending("target", 9).await.unwrap().unwrap().message_count, 1);
}

#[tokio::test]
async fn a_refused_removal_keeps_the_record_so_that_a_later_call_completes_the_deletion() {
    let removal = || Fault::on(Kind::Delete).partition("b").id("i").always();
    let faults = [
        removal().status(400),
        removal().status(503),
        removal().status(403),
        purge("b").always().status(503),
    ];
    for fault in faults {
        let (target, store) = rig_and_store(CosmosDBOptions::default()).await;
        for name in ["a", "b", "c"] {
            run_executions(&store, name, 1, 2).await;
        }
        let rig = target.rig().unwrap();
        let refused = rig.fault(fault.clone());
        let error = store.delete_instances_atomic(&ids(&["a", "b"]), false).await.unwrap_err();
        assert!(
            refused.struck() > 0 && error.message.contains("documents of instance 'b' are left"),
            "{error}"
        );
        // The deletion is committed. A list does not need the removal.
        assert_eq!(store.list_instances().await.unwrap(), ["c"], "{fault:?}");
        assert_eq!(store.get_system_metrics().await.unwrap().total_instances, 1, "{fault:?}");
        rig.clear_faults();
        store.delete_instances_atomic(&ids(&["a", "b"]), false).await.unwrap();
        assert!(store.read("b").await.unwrap().is_empty());
        assert_eq!(store.list_instances().await.unwrap(), ["c"], "{fault:?}");
        assert!(!store.dump().await.unwrap().iter().any(|line| line.contains(" b ")), "{fault:?}");
    }
}

#[tokio::test]
async fn a_removal_whose_answer_is_lost_is_read_again() {
    let removal = || Fault::on(Kind::Delete).partition("a").id("i");
    let faults = [removal().after().status(503), removal().before().status(503), purge("a").after().reset()];
    for fault in faults {
        let (target, store) = rig_and_store(CosmosDBOptions::default()).await;
        run_executions(&store, "a", 1, 2).await;
        let lost = target.rig().unwrap().fault(fault.clone());
        let deleted = store.delete_instances_atomic(&ids(&["a"]), false).await.unwrap();
        assert_eq!((lost.struck(), deleted.instances_deleted), (1, 1), "{fault:?}");
        run(&store, "a", turn("a", 1, 1, None)).await.unwrap();
        assert_eq!(store.read("a").await.unwrap().len(), 1, "{fault:?}");
    }
}

#[tokio::test]
async fn a_purge_that_another_process_completed_removes_nothing_of_the_next_instance() {
    let (target, store) = rig_and_store(CosmosDBOptions::default()).await;
    run_executions(&store, "a", 1, 2).await;
    // The deleter has read the marked instance, and looks for its documents: its second query, after the one before the mark.
    let search = Fault::on(Kind::Query).partition("a").nth(2).before().hold();
    let held = target.rig().unwrap().fault(search);
    let deleting = store.clone();
    let deletion = tokio::spawn(async move { deleting.delete_instances_atomic(&ids(&["a"]), false).await });
    held.wait_struck(1).await;
    assert!(store.read("a").await.unwrap().is_empty(), "the reader completes the purge");
    run(&store, "a", turn("a", 1, 1, None)).await.unwrap();
    held.release();
    deletion.await.unwrap().unwrap();
    assert_eq!(store.read("a").await.unwrap().len(), 1, "the next instance keeps its history");
}

/// The clock of a machine that is wrong.
struct Wrong(i64);

impl Clock for Wrong {
    fn now_ms(&self) -> u64 {
        SystemClock.now_ms().saturating_add_signed(self.0)
    }
}

/// A process whose machine's clock is wrong by this number of milliseconds.
async fn process(config: &CosmosDBProviderConfig, by_ms: i64) -> CosmosDBProvider {
    let machine: Option<Arc<dyn Clock>> = Some(Arc::new(Wrong(by_ms)));
    let options = CosmosDBOptions { machine, ..CosmosDBOptions::default() };
    CosmosDBProvider::open(config.clone(), options).await.unwrap()
}

#[tokio::test]
async fn a_start_after_a_deletion_whose_process_died_is_kept_with_any_clocks() {
    for (deleters, senders) in [(0, -60_000), (60_000, 0), (0, 60_000), (-60_000, 0)] {
        let target = Target::Rig(Box::new(Rig::start().await.unwrap()));
        let config = fresh_config(&target);
        let (dying, sender) = (process(&config, deleters).await, process(&config, senders).await);
        run_executions(&dying, "a", 1, 1).await;
        sender.enqueue_for_orchestrator(signal("a"), None).await.unwrap();
        let rig = target.rig().unwrap();
        let died = rig.fault(purge("a").always().status(400));
        dying.delete_instances_atomic(&ids(&["a"]), false).await.unwrap_err();
        assert!(died.struck() > 0);
        drop(dying);
        // The message is acknowledged while the documents of the deleted instance are there.
        sender.enqueue_for_orchestrator(start("a"), None).await.unwrap();
        rig.clear_faults();
        assert!(sender.read("a").await.unwrap().is_empty(), "the reader completes the purge");
        let waiting = sender.pending("a", 9).await.unwrap().unwrap();
        assert_eq!(waiting.message_count, 1, "{deleters} {senders}: the signal is gone, the start stays");
        let again = StartRequest {
            start: start("a"),
            delay: None,
            policy: StartPolicy::FailIfExists,
            messages: Vec::new(),
        };
        let refused = sender.start_orchestration(again).await.unwrap();
        assert!(matches!(refused, StartOutcome::AlreadyExists { .. }), "its id is taken: {refused:?}");
        let token = lease(&sender, "a").await;
        sender.commit_turn(&token, turn("a", 1, 1, None)).await.unwrap();
        assert_eq!(sender.read("a").await.unwrap().len(), 1);
    }
}

#[tokio::test]
async fn a_message_that_arrives_after_the_check_of_retention_is_kept_with_any_clocks() {
    for senders in [-60_000, 60_000] {
        let target = Target::Rig(Box::new(Rig::start().await.unwrap()));
        let config = fresh_config(&target);
        let (store, sender) = (process(&config, 0).await, process(&config, senders).await);
        run_executions(&store, "a", 1, 1).await;
        let mark = target.rig().unwrap().fault(Fault::on(Kind::Replace).partition("a").before().hold());
        let deleting = store.clone();
        let deletion = tokio::spawn(async move { deleting.delete_ended(&ids(&["a"]), u64::MAX).await });
        mark.wait_struck(1).await;
        sender.enqueue_for_orchestrator(start("a"), None).await.unwrap();
        mark.release();
        assert_eq!(deletion.await.unwrap().unwrap().unwrap().instances_deleted, 1);
        assert_eq!(sender.pending("a", 9).await.unwrap().unwrap().message_count, 1, "{senders}");
    }
}

#[tokio::test]
async fn messages_of_different_ages_are_deleted_with_their_instance() {
    let (target, store) = rig_and_store(CosmosDBOptions::default()).await;
    let rig = target.rig().unwrap();
    run(&store, "a", turn("a", 1, 1, None)).await.unwrap();
    for _ in 0..3 {
        store.enqueue_for_orchestrator(signal("a"), None).await.unwrap();
        rig.advance_clock(Duration::from_secs(40));
    }
    let deleted = store.delete_instances_atomic(&ids(&["a"]), true).await.unwrap();
    assert_eq!((deleted.instances_deleted, deleted.queue_messages_deleted), (1, 3));
    assert_eq!(store.pending("a", 9).await.unwrap().unwrap().message_count, 0);
}

/// A record whose deleter died, and no call that meets its instances.
#[tokio::test]
async fn a_reconciler_completes_a_deletion_whose_process_died_and_removes_its_record() {
    // The deleter dies before the purge, or after the purge and before the removal of the record.
    let deaths = [
        Fault::on(Kind::Batch).partition("a").id("i").always().status(400),
        Fault::on(Kind::Delete).partition("~sys").before().times(1).status(400),
    ];
    for death in deaths {
        let target = Target::Rig(Box::new(Rig::start().await.unwrap()));
        let config = fresh_config(&target);
        let dying = process(&config, 0).await;
        for name in ["a", "b"] {
            run_executions(&dying, name, 1, 1).await;
        }
        let rig = target.rig().unwrap();
        let died = rig.fault(death);
        let _ = dying.delete_instances_atomic(&ids(&["a", "b"]), false).await;
        assert!(died.struck() > 0);
        drop(dying);
        rig.clear_faults();
        let often =
            CosmosDBProviderConfig { reconciler_interval: Duration::from_millis(20), ..config.clone() };
        // A young record belongs to a deleter that lives.
        let young = process(&often, 0).await;
        let looks = rig.fault(Fault::on(Kind::Query).partition("~sys").after().always());
        looks.wait_struck(1).await;
        assert_eq!(young.count_records().await.unwrap(), 1);
        drop(young);
        let removed = rig.fault(Fault::on(Kind::Delete).partition("~sys").after().always());
        let clock: Option<Arc<dyn Clock>> = Some(Arc::new(Wrong(301_000)));
        let options = CosmosDBOptions { clock, ..CosmosDBOptions::default() };
        let later = CosmosDBProvider::open(often, options).await.unwrap();
        removed.wait_struck(1).await;
        assert_eq!(later.count_records().await.unwrap(), 0);
        assert!(later.dump().await.unwrap().is_empty(), "no document of the instances is left");
    }
}

/// A turn that sends six messages, in batches of four operations, is committed by its last batch.
async fn uncommitted(nth: u64) -> Option<(Target, CosmosDBProviderConfig)> {
    let target = Target::Rig(Box::new(Rig::start().await.unwrap()));
    let config = CosmosDBProviderConfig {
        reconciler_interval: Duration::from_millis(20),
        reconciler_age_threshold: Duration::ZERO,
        ..fresh_config(&target)
    };
    let quiet = CosmosDBProviderConfig { reconciler_interval: Duration::from_secs(600), ..config.clone() };
    let mut dying = CosmosDBProvider::open(quiet, batches_of(4)).await.unwrap();
    dying.set_outbox_fault_injector(OutboxFaultInjector::fail_next(u32::MAX));
    dying.enqueue_for_orchestrator(start("a"), None).await.unwrap();
    let token = lease(&dying, "a").await;
    let rig = target.rig().unwrap();
    let death = rig.fault(Fault::on(Kind::Batch).partition("a").nth(nth).always().status(400));
    let sending = TurnCommit { orchestrator_items: vec![start("target"); 6], ..turn("a", 1, 1, None) };
    let died = dying.commit_turn(&token, sending).await.is_err();
    rig.clear_faults();
    assert_eq!(died, death.struck() > 0);
    died.then_some((target, config))
}

#[tokio::test]
async fn a_message_of_an_uncommitted_turn_is_not_delivered_when_its_sender_is_deleted() {
    let mut nth = 2;
    // At least one batch of intents is stored.
    while let Some((target, config)) = uncommitted(nth).await {
        let quiet =
            CosmosDBProviderConfig { reconciler_interval: Duration::from_secs(600), ..config.clone() };
        let store = CosmosDBProvider::open(quiet, batches_of(4)).await.unwrap();
        let rig = target.rig().unwrap();
        let sent = rig.fault(Fault::on(Kind::Batch).partition("target").after().always());
        // The reconciler of another process has found the intents, and reads their sender after the deletion.
        let sender = rig.fault(Fault::on(Kind::Read).partition("a").id("i").before().hold());
        let reconciling = CosmosDBProvider::open(config, batches_of(4)).await.unwrap();
        sender.wait_struck(1).await;
        store.delete_instances_atomic(&ids(&["a"]), true).await.unwrap();
        assert_eq!(sent.struck(), 0, "the purge delivers messages of the uncommitted turn, batch {nth}");
        let rounds = rig.fault(Fault::on(Kind::Query).after().always());
        sender.release();
        rounds.wait_struck(8).await;
        assert_eq!(sent.struck(), 0, "the reconciler delivers messages of the uncommitted turn, batch {nth}");
        drop(reconciling);
        nth += 1;
    }
    assert!(nth > 3, "the turn has several batches: {nth}");
}
