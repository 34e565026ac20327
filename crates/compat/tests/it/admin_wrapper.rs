//! The management interface as outside code implements it: the sixteen required methods, and no more. The older
//! interface needs none.

use async_trait::async_trait;
use duroxide::Event;
use duroxide::providers::memory::MemoryProvider;
use duroxide::providers::{
    DeleteInstanceResult, ExecutionInfo, ExecutionMetadata, InstanceFilter, InstanceInfo, InstanceQuery,
    ManagementProvider, Provider, ProviderAdmin, ProviderError, PruneOptions, PruneResult, QueueDepths,
    SystemMetrics, WorkItem,
};
use std::sync::Mutex;
use std::time::Duration;

struct Counting {
    store: MemoryProvider,
    calls: Mutex<Vec<&'static str>>,
}

impl Counting {
    fn count(&self, call: &'static str) -> &dyn ProviderAdmin {
        self.calls.lock().unwrap().push(call);
        self.store.as_management_capability().unwrap()
    }

    fn calls(&self) -> Vec<&'static str> {
        std::mem::take(&mut *self.calls.lock().unwrap())
    }
}

#[async_trait]
impl ProviderAdmin for Counting {
    async fn list_instances(&self) -> Result<Vec<String>, ProviderError> {
        self.count("list_instances").list_instances().await
    }
    async fn list_instances_by_status(&self, status: &str) -> Result<Vec<String>, ProviderError> {
        self.count("list_instances_by_status").list_instances_by_status(status).await
    }
    async fn list_executions(&self, instance: &str) -> Result<Vec<u64>, ProviderError> {
        self.count("list_executions").list_executions(instance).await
    }
    async fn read_history_with_execution_id(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<Event>, ProviderError> {
        let inner = self.count("read_history_with_execution_id");
        inner.read_history_with_execution_id(instance, execution_id).await
    }
    async fn read_history(&self, instance: &str) -> Result<Vec<Event>, ProviderError> {
        self.count("read_history").read_history(instance).await
    }
    async fn latest_execution_id(&self, instance: &str) -> Result<u64, ProviderError> {
        self.count("latest_execution_id").latest_execution_id(instance).await
    }
    async fn get_instance_info(&self, instance: &str) -> Result<InstanceInfo, ProviderError> {
        self.count("get_instance_info").get_instance_info(instance).await
    }
    async fn get_execution_info(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<ExecutionInfo, ProviderError> {
        self.count("get_execution_info").get_execution_info(instance, execution_id).await
    }
    async fn get_system_metrics(&self) -> Result<SystemMetrics, ProviderError> {
        self.count("get_system_metrics").get_system_metrics().await
    }
    async fn get_queue_depths(&self) -> Result<QueueDepths, ProviderError> {
        self.count("get_queue_depths").get_queue_depths().await
    }
    async fn list_children(&self, instance_id: &str) -> Result<Vec<String>, ProviderError> {
        self.count("list_children").list_children(instance_id).await
    }
    async fn get_parent_id(&self, instance_id: &str) -> Result<Option<String>, ProviderError> {
        self.count("get_parent_id").get_parent_id(instance_id).await
    }
    async fn delete_instances_atomic(
        &self,
        ids: &[String],
        force: bool,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        self.count("delete_instances_atomic").delete_instances_atomic(ids, force).await
    }
    async fn delete_instance_bulk(
        &self,
        filter: InstanceFilter,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        self.count("delete_instance_bulk").delete_instance_bulk(filter).await
    }
    async fn prune_executions(
        &self,
        instance_id: &str,
        options: PruneOptions,
    ) -> Result<PruneResult, ProviderError> {
        self.count("prune_executions").prune_executions(instance_id, options).await
    }
    async fn prune_executions_bulk(
        &self,
        filter: InstanceFilter,
        options: PruneOptions,
    ) -> Result<PruneResult, ProviderError> {
        self.count("prune_executions_bulk").prune_executions_bulk(filter, options).await
    }
}

/// A parent and its child.
async fn family() -> Counting {
    let store = MemoryProvider::new();
    for (instance, parent) in [("root", None), ("child", Some("root".to_string()))] {
        let start = WorkItem::StartOrchestration {
            instance: instance.into(),
            orchestration: "Order".into(),
            input: "{}".into(),
            version: None,
            parent_instance: parent.clone(),
            parent_id: parent.as_ref().map(|_| 2),
            parent_execution_id: None,
            execution_id: 1,
        };
        store.enqueue_for_orchestrator(start, None).await.unwrap();
        let fetched = store.fetch_orchestration_item(Duration::from_secs(60), Duration::ZERO, None).await;
        let (_, token, _) = fetched.unwrap().unwrap();
        let metadata = ExecutionMetadata {
            orchestration_name: Some("Order".into()),
            orchestration_version: Some("1.0.0".into()),
            parent_instance_id: parent,
            ..ExecutionMetadata::default()
        };
        store.ack_orchestration_item(&token, 1, vec![], vec![], vec![], metadata, vec![]).await.unwrap();
    }
    Counting { store, calls: Mutex::default() }
}

#[tokio::test]
async fn added_methods_call_the_required_methods() {
    let admin = family().await;
    let page = admin.query_instances(&InstanceQuery::default()).await.unwrap();
    assert_eq!((page.instances.len(), page.next), (2, None));
    assert_eq!(admin.calls(), ["list_instances", "get_instance_info", "get_instance_info"]);
    assert!(admin.list_dead_letters(10).await.unwrap().is_empty());
    assert_eq!(admin.calls(), [""; 0]);
    let gauges = admin.get_gauges().await.unwrap();
    assert_eq!((gauges.running_instances, gauges.orchestrator_queue, gauges.worker_queue), (2, 0, 0));
    assert_eq!((gauges.orchestrator_backlog, gauges.worker_backlog), (None, None));
    assert_eq!(admin.calls(), ["get_system_metrics", "get_queue_depths"]);
}

#[tokio::test]
async fn two_defaults_of_the_contract_call_the_required_methods() {
    let admin = family().await;
    let tree = admin.get_instance_tree("root").await.unwrap();
    assert_eq!(
        (tree.root_id.as_str(), tree.all_ids.as_slice()),
        ("root", ["root", "child"].map(String::from).as_slice())
    );
    assert_eq!(admin.calls(), ["list_children", "list_children"]);

    let refused = admin.delete_instance("child", true).await.unwrap_err();
    assert!(refused.message.contains("sub-orchestration") && !refused.is_retryable(), "{refused}");
    assert_eq!(admin.calls(), ["get_parent_id"]);

    let deleted = admin.delete_instance("root", true).await.unwrap();
    assert_eq!(deleted.instances_deleted, 2);
    assert_eq!(admin.calls(), ["get_parent_id", "list_children", "list_children", "delete_instances_atomic"]);
}

struct Old;

impl ManagementProvider for Old {}

#[tokio::test]
async fn older_management_interface_answers_without_added_methods() {
    assert!(Old.list_instances().await.unwrap().is_empty());
    assert!(Old.list_instances_by_status("Running").await.unwrap().is_empty());
    assert_eq!(Old.list_executions("i").await.unwrap(), [1]);
    assert_eq!(Old.latest_execution_id("i").await.unwrap(), 1);
    assert_eq!(Old.get_system_metrics().await.unwrap().total_instances, 0);
    assert_eq!(Old.get_queue_depths().await.unwrap().worker_queue, 0);
    let refusals = [
        Old.read_execution("i", 1).await.unwrap_err(),
        Old.get_instance_info("i").await.unwrap_err(),
        Old.get_execution_info("i", 1).await.unwrap_err(),
    ];
    for refusal in refusals {
        assert!(!refusal.is_retryable() && refusal.message == "not supported for instance: i", "{refusal}");
    }
}
