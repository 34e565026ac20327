//! Management through the client: `InstanceFilter`, `PruneOptions`, `InstanceInfo`, `ExecutionInfo`, `SystemStats`,
//! `QueueDepths`, `SystemMetrics`.

use super::{output, started};
use duroxide::providers::{InstanceFilter, ProviderAdmin, PruneOptions};
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::{
    ClientError, ExecutionInfo, InstanceInfo, OrchestrationContext, OrchestrationRegistry, QueueDepths,
    SystemMetrics, SystemStats,
};

fn orchestrations() -> OrchestrationRegistry {
    OrchestrationRegistry::builder()
        .register("Loop", |ctx: OrchestrationContext, round: String| async move {
            match round.as_str() {
                "3" => Ok(ctx.schedule_sub_orchestration("Leaf", "").await?),
                _ => ctx.continue_as_new((round.parse::<u32>().unwrap_or(0) + 1).to_string()).await,
            }
        })
        .register("Leaf", |ctx: OrchestrationContext, _: String| async move {
            ctx.set_kv_value("key", "value");
            Ok("leaf".to_string())
        })
        .build()
}

#[tokio::test]
async fn every_management_call_answers() {
    let (store, rt, client) = started(ActivityRegistry::builder().build(), orchestrations()).await;
    assert!(client.has_management_capability());
    client.start_orchestration("loop", "Loop", "1").await.unwrap();
    client.start_orchestration("leaf", "Leaf", "").await.unwrap();
    assert_eq!(output(&client, "loop").await, "leaf");
    assert_eq!(output(&client, "leaf").await, "leaf");

    let mut all = client.list_all_instances().await.unwrap();
    all.sort();
    assert_eq!(all, ["leaf", "loop", "loop::sub::3_2"]);
    assert_eq!(client.list_instances_by_status("Completed").await.unwrap().len(), 3);
    assert_eq!(client.list_executions("loop").await.unwrap(), [1, 2, 3]);
    let info: InstanceInfo = client.get_instance_info("loop").await.unwrap();
    assert_eq!((info.status.as_str(), info.current_execution_id), ("Completed", 3));
    let first: ExecutionInfo = client.get_execution_info("loop", 1).await.unwrap();
    assert_eq!((first.status.as_str(), first.output.as_deref()), ("ContinuedAsNew", Some("2")));
    let history = client.read_execution_history("loop", 1).await.unwrap();
    assert_eq!(history.len(), first.event_count);
    let metrics: SystemMetrics = client.get_system_metrics().await.unwrap();
    assert_eq!((metrics.total_instances, metrics.total_executions, metrics.completed_instances), (3, 5, 3));
    let depths: QueueDepths = client.get_queue_depths().await.unwrap();
    assert_eq!((depths.orchestrator_queue, depths.worker_queue), (0, 0));
    let tree = client.get_instance_tree("loop").await.unwrap();
    assert!(!tree.is_root_only() && tree.size() == 2);
    let stats: SystemStats = client.get_orchestration_stats("leaf").await.unwrap().unwrap();
    assert_eq!((stats.history_event_count, stats.kv_user_key_count), (3, 1));
    assert!(client.get_orchestration_stats("nobody").await.unwrap().is_none());

    let pruned = client
        .prune_executions("loop", PruneOptions { keep_last: Some(2), ..Default::default() })
        .await
        .unwrap();
    assert_eq!(pruned.executions_deleted, 1);
    let bulk =
        client.prune_executions_bulk(InstanceFilter::default(), PruneOptions::default()).await.unwrap();
    assert_eq!(bulk.executions_deleted, 1);
    let child = client.delete_instance("loop::sub::3_2", true).await.unwrap_err();
    assert!(matches!(child, ClientError::CannotDeleteSubOrchestration { .. }), "{child:?}");
    assert_eq!(client.delete_instance("loop", false).await.unwrap().instances_deleted, 2);
    let gone = client.delete_instance("loop", false).await.unwrap_err();
    assert!(matches!(gone, ClientError::InstanceNotFound { instance_id } if instance_id == "loop"));
    let filter = InstanceFilter { instance_ids: Some(vec!["leaf".into()]), ..Default::default() };
    assert_eq!(client.delete_instance_bulk(filter).await.unwrap().instances_deleted, 1);
    let unknown = client.get_instance_info("leaf").await.unwrap_err();
    assert!(unknown.to_string().contains("not found"), "{unknown}");
    assert!(store.list_instances().await.unwrap().is_empty());
    rt.shutdown(None).await;
}

/// A store without a management interface returns `ManagementNotAvailable`.
#[tokio::test]
async fn store_without_management_returns_management_not_available() {
    let client = duroxide::Client::new(std::sync::Arc::new(crate::first_provider::MyProvider::default()));
    assert!(!client.has_management_capability());
    let refused = client.list_all_instances().await.unwrap_err();
    assert!(matches!(refused, ClientError::ManagementNotAvailable));
}
