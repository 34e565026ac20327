//! Pruning of executions with more documents than a batch has room for.

use crate::factory::fresh_config;
use crate::kit::{batches_of, rig_and_store, run, run_executions, turn};
use outlast_cosmos::CosmosDBProvider;
use outlast_cosmos_rig::{Fault, Kind};
use outlast_provider::{Provider, ProviderAdmin, PruneOptions};

fn all_but_the_last() -> PruneOptions {
    PruneOptions { keep_last: Some(1), ..PruneOptions::default() }
}

/// The documents of events in the container, also hidden ones.
async fn events(store: &CosmosDBProvider) -> usize {
    store.dump().await.unwrap().iter().filter(|line| line.starts_with("history")).count()
}

#[tokio::test]
async fn a_prune_that_dies_in_the_middle_shows_all_executions_or_none() {
    let (target, store) = rig_and_store(batches_of(5)).await;
    run_executions(&store, "a", 3, 6).await;
    let rig = target.rig().unwrap();
    // The first batch commits the prune. The removal of the rest fails.
    let dead = rig.fault(Fault::on(Kind::Batch).partition("a").nth(2).always().status(400));
    let pruned = store.prune_executions("a", all_but_the_last()).await.unwrap();
    assert_eq!((pruned.executions_deleted, pruned.events_deleted), (2, 12));
    assert!(dead.struck() > 0 && events(&store).await > 6, "documents are left");
    let other = CosmosDBProvider::new_with_config(fresh_config(&target)).await.unwrap();
    drop(other);
    for execution in [1, 2] {
        let history = store.read_history_with_execution_id("a", execution).await.unwrap();
        assert!(history.is_empty(), "execution {execution} is not shown in part: {history:?}");
    }
    assert_eq!(store.list_executions("a").await.unwrap(), [3]);
    assert_eq!(store.read("a").await.unwrap().len(), 6);
    assert_eq!(store.get_system_metrics().await.unwrap().total_events, 6);
    rig.clear_faults();
    // The next prune goes on.
    let again = store.prune_executions("a", all_but_the_last()).await.unwrap();
    assert_eq!((again.executions_deleted, events(&store).await), (0, 6));
}

#[tokio::test]
async fn a_prune_that_fails_before_its_commit_removes_nothing() {
    let (target, store) = rig_and_store(batches_of(5)).await;
    run_executions(&store, "a", 2, 6).await;
    let rig = target.rig().unwrap();
    rig.fault(Fault::on(Kind::Batch).partition("a").always().status(400));
    store.prune_executions("a", all_but_the_last()).await.unwrap_err();
    rig.clear_faults();
    assert_eq!(store.list_executions("a").await.unwrap(), [1, 2]);
    assert_eq!(store.read_history_with_execution_id("a", 1).await.unwrap().len(), 6);
}

#[tokio::test]
async fn the_next_turn_removes_documents_that_a_prune_left() {
    let (target, store) = rig_and_store(batches_of(5)).await;
    run_executions(&store, "a", 2, 6).await;
    let rig = target.rig().unwrap();
    rig.fault(Fault::on(Kind::Batch).partition("a").nth(2).always().status(400));
    store.prune_executions("a", all_but_the_last()).await.unwrap();
    rig.clear_faults();
    assert!(events(&store).await > 6);
    run(&store, "a", turn("a", 2, 7, Some("Completed"))).await.unwrap();
    assert_eq!(events(&store).await, 7);
}

#[tokio::test]
async fn an_append_to_a_pruned_execution_does_not_meet_its_old_events() {
    let (target, store) = rig_and_store(batches_of(5)).await;
    run_executions(&store, "a", 2, 6).await;
    let rig = target.rig().unwrap();
    rig.fault(Fault::on(Kind::Batch).partition("a").nth(2).always().status(400));
    store.prune_executions("a", all_but_the_last()).await.unwrap();
    rig.clear_faults();
    // The document of these events has the id of one that is hidden.
    let events = (5..=6).map(|id| crate::kit::event("a", 1, id)).collect();
    store.append_with_execution("a", 1, events).await.unwrap();
    assert_eq!(store.read_history_with_execution_id("a", 1).await.unwrap().len(), 2);
}
