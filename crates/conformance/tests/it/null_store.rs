//! A store that accepts everything and keeps nothing must fail every validation, with management or without.

use async_trait::async_trait;
use outlast_conformance::{ProviderFactory, ValidationOutcome, validations};
use outlast_provider::model::{Event, SystemStats};
use outlast_provider::*;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

struct NullStore {
    managed: bool,
}

type Answer<T> = Result<T, ProviderError>;

#[async_trait]
impl Provider for NullStore {
    async fn fetch_orchestration_item(
        &self,
        _: Duration,
        _: Duration,
        _: Option<&DispatcherCapabilityFilter>,
    ) -> Answer<Option<(OrchestrationItem, String, u32)>> {
        Ok(None)
    }
    async fn ack_orchestration_item(
        &self,
        _: &str,
        _: u64,
        _: Vec<Event>,
        _: Vec<WorkItem>,
        _: Vec<WorkItem>,
        _: ExecutionMetadata,
        _: Vec<ScheduledActivityIdentifier>,
    ) -> Answer<()> {
        Ok(())
    }
    async fn abandon_orchestration_item(&self, _: &str, _: Option<Duration>, _: bool) -> Answer<()> {
        Ok(())
    }
    async fn read(&self, _: &str) -> Answer<Vec<Event>> {
        Ok(vec![])
    }
    async fn read_with_execution(&self, _: &str, _: u64) -> Answer<Vec<Event>> {
        Ok(vec![])
    }
    async fn append_with_execution(&self, _: &str, _: u64, _: Vec<Event>) -> Answer<()> {
        Ok(())
    }
    async fn enqueue_for_worker(&self, _: WorkItem) -> Answer<()> {
        Ok(())
    }
    async fn fetch_work_item(
        &self,
        _: Duration,
        _: Duration,
        _: Option<&SessionFetchConfig>,
        _: &TagFilter,
    ) -> Answer<Option<(WorkItem, String, u32)>> {
        Ok(None)
    }
    async fn ack_work_item(&self, _: &str, _: Option<WorkItem>) -> Answer<()> {
        Ok(())
    }
    async fn renew_work_item_lock(&self, _: &str, _: Duration) -> Answer<()> {
        Ok(())
    }
    async fn renew_session_lock(&self, _: &[&str], _: Duration, _: Duration) -> Answer<usize> {
        Ok(0)
    }
    async fn cleanup_orphaned_sessions(&self, _: Duration) -> Answer<usize> {
        Ok(0)
    }
    async fn abandon_work_item(&self, _: &str, _: Option<Duration>, _: bool) -> Answer<()> {
        Ok(())
    }
    async fn renew_orchestration_item_lock(&self, _: &str, _: Duration) -> Answer<()> {
        Ok(())
    }
    async fn enqueue_for_orchestrator(&self, _: WorkItem, _: Option<Duration>) -> Answer<()> {
        Ok(())
    }
    fn as_management_capability(&self) -> Option<&dyn ProviderAdmin> {
        self.managed.then_some(self)
    }
    async fn get_custom_status(&self, _: &str, _: u64) -> Answer<Option<(Option<String>, u64)>> {
        Ok(None)
    }
    async fn get_kv_value(&self, _: &str, _: &str) -> Answer<Option<String>> {
        Ok(None)
    }
    async fn get_kv_all_values(&self, _: &str) -> Answer<HashMap<String, String>> {
        Ok(HashMap::new())
    }
    async fn get_instance_stats(&self, _: &str) -> Answer<Option<SystemStats>> {
        Ok(None)
    }
}

#[async_trait]
impl ProviderAdmin for NullStore {
    async fn list_instances(&self) -> Answer<Vec<String>> {
        Ok(vec![])
    }
    async fn list_instances_by_status(&self, _: &str) -> Answer<Vec<String>> {
        Ok(vec![])
    }
    async fn list_executions(&self, _: &str) -> Answer<Vec<u64>> {
        Ok(vec![])
    }
    async fn read_history_with_execution_id(&self, _: &str, _: u64) -> Answer<Vec<Event>> {
        Ok(vec![])
    }
    async fn read_history(&self, _: &str) -> Answer<Vec<Event>> {
        Ok(vec![])
    }
    async fn latest_execution_id(&self, _: &str) -> Answer<u64> {
        Ok(1)
    }
    async fn get_instance_info(&self, instance: &str) -> Answer<InstanceInfo> {
        Ok(InstanceInfo {
            instance_id: instance.to_string(),
            orchestration_name: String::new(),
            orchestration_version: String::new(),
            current_execution_id: 1,
            status: String::new(),
            output: None,
            created_at: 0,
            updated_at: 0,
            parent_instance_id: None,
        })
    }
    async fn get_execution_info(&self, _: &str, execution_id: u64) -> Answer<ExecutionInfo> {
        Ok(ExecutionInfo {
            execution_id,
            status: String::new(),
            output: None,
            started_at: 0,
            completed_at: None,
            event_count: 0,
        })
    }
    async fn get_system_metrics(&self) -> Answer<SystemMetrics> {
        Ok(SystemMetrics::default())
    }
    async fn get_queue_depths(&self) -> Answer<QueueDepths> {
        Ok(QueueDepths::default())
    }
    async fn list_children(&self, _: &str) -> Answer<Vec<String>> {
        Ok(vec![])
    }
    async fn get_parent_id(&self, _: &str) -> Answer<Option<String>> {
        Ok(None)
    }
    async fn delete_instances_atomic(&self, _: &[String], _: bool) -> Answer<DeleteInstanceResult> {
        Ok(DeleteInstanceResult::default())
    }
    async fn delete_instance_bulk(&self, _: InstanceFilter) -> Answer<DeleteInstanceResult> {
        Ok(DeleteInstanceResult::default())
    }
    async fn prune_executions(&self, _: &str, _: PruneOptions) -> Answer<PruneResult> {
        Ok(PruneResult::default())
    }
    async fn prune_executions_bulk(&self, _: InstanceFilter, _: PruneOptions) -> Answer<PruneResult> {
        Ok(PruneResult::default())
    }
}

struct NullFactory {
    managed: bool,
}

#[async_trait]
impl ProviderFactory for NullFactory {
    async fn create_provider(&self) -> Arc<dyn Provider> {
        Arc::new(NullStore { managed: self.managed })
    }
    fn waits(&self) -> bool {
        true
    }
    async fn corrupt_instance_history(&self, _: &str) {}
    async fn get_max_attempt_count(&self, _: &str) -> u32 {
        0
    }
    fn shows_pending(&self) -> bool {
        true
    }
    fn corrupts_queues(&self) -> bool {
        true
    }
    async fn corrupt_orchestrator_messages(&self, _: &str) {}
    async fn corrupt_work_items(&self, _: &str) {}
}

#[tokio::test(start_paused = true)]
async fn a_store_that_keeps_nothing_fails_every_validation() {
    for managed in [true, false] {
        let factory = NullFactory { managed };
        let mut passed = Vec::new();
        for validation in validations() {
            if !matches!(validation.outcome(&factory).await, ValidationOutcome::Failed(_)) {
                passed.push(validation);
            }
        }
        assert!(passed.is_empty(), "managed {managed}: these cannot tell a store from nothing: {passed:#?}");
    }
}
