//! Deletion and pruning of many rows, in batches.

use crate::factory::{fresh_config, raw};
use crate::support::*;
use outlast_model::WorkItem;
use outlast_postgres::PostgresProvider;
use outlast_provider::{InstanceFilter, Provider, ProviderAdmin, PruneOptions};

async fn open() -> (PostgresProvider, String) {
    let config = fresh_config();
    let schema = config.schema_name.clone().unwrap();
    (PostgresProvider::new_with_config(config).await.unwrap(), schema)
}

/// A finished root with a child that still runs.
async fn with_running_child(store: &PostgresProvider, root: &str) {
    run(store, root).await;
    let child = match start(&format!("{root}-child")) {
        WorkItem::StartOrchestration { instance, orchestration, input, version, execution_id, .. } => {
            WorkItem::StartOrchestration {
                instance,
                orchestration,
                input,
                version,
                parent_instance: Some(root.to_string()),
                parent_id: Some(2),
                parent_execution_id: Some(1),
                execution_id,
            }
        }
        other => other,
    };
    store.enqueue_for_orchestrator(child, None).await.unwrap();
    let (item, token, _) = turn(store).await;
    let metadata =
        outlast_provider::ExecutionMetadata { parent_instance_id: Some(root.to_string()), ..named() };
    store
        .ack_orchestration_item(&token, 1, vec![started(&item.instance)], vec![], vec![], metadata, vec![])
        .await
        .unwrap();
}

/// The instances need more than one batch, and one root has a running child.
#[tokio::test]
async fn bulk_deletion_in_batches_keeps_trees_with_a_running_instance() {
    let (store, _) = open().await;
    for n in 0..130 {
        match n {
            50 => with_running_child(&store, "busy").await,
            _ => run(&store, &format!("i{n:03}")).await,
        }
    }
    let limited = InstanceFilter { limit: Some(20), ..InstanceFilter::default() };
    assert_eq!(store.delete_instance_bulk(limited).await.unwrap().instances_deleted, 20);
    let rest = store.delete_instance_bulk(InstanceFilter::default()).await.unwrap();
    assert_eq!((rest.instances_deleted, rest.executions_deleted, rest.events_deleted), (109, 109, 109));
    assert_eq!(store.list_instances().await.unwrap().len(), 2, "the root and its child");
    assert_eq!(store.delete_instance_bulk(InstanceFilter::default()).await.unwrap().instances_deleted, 0);
}

/// The executions need more than one transaction.
#[tokio::test]
async fn many_executions_are_pruned_in_batches() {
    let (store, schema) = open().await;
    run(&store, "i").await;
    execute(&format!(
        "INSERT INTO {schema}.executions (instance_id, execution_id, status, started_at, completed_at, updated_at)
         SELECT 'i', n, 'ContinuedAsNew', n, n, n FROM generate_series(2, 701) AS n;
         INSERT INTO {schema}.history (instance_id, execution_id, event_id, event_type, event_data)
         SELECT 'i', n, 1, 'x', 'x' FROM generate_series(2, 701) AS n;
         UPDATE {schema}.instances SET current_execution_id = 701;
         UPDATE {schema}.executions SET status = 'Running', completed_at = NULL WHERE execution_id = 701"
    ))
    .await;
    let options = PruneOptions { keep_last: Some(3), ..PruneOptions::default() };
    let pruned = store.prune_executions("i", options.clone()).await.unwrap();
    assert_eq!((pruned.instances_processed, pruned.executions_deleted, pruned.events_deleted), (1, 698, 698));
    assert_eq!(store.list_executions("i").await.unwrap(), [699, 700, 701]);
    let left = format!("SELECT count(*) FROM {schema}.history");
    assert_eq!(raw().await.query_one(&left, &[]).await.unwrap().get::<_, i64>(0), 3);
    let again = store.prune_executions("i", options.clone()).await.unwrap();
    assert_eq!((again.instances_processed, again.executions_deleted), (1, 0));
    assert!(store.prune_executions("nobody", options).await.is_err());
}
