//! Step 9: the management interface.

use crate::{TemplateStore, not_implemented};
use async_trait::async_trait;
use outlast_provider::model::Event;
use outlast_provider::{
    DeleteInstanceResult, ExecutionInfo, InstanceFilter, InstanceInfo, ProviderAdmin, ProviderError,
    PruneOptions, PruneResult, QueueDepths, SystemMetrics,
};

#[async_trait]
impl ProviderAdmin for TemplateStore {
    async fn list_instances(&self) -> Result<Vec<String>, ProviderError> {
        not_implemented("list_instances")
    }

    async fn list_instances_by_status(&self, _status: &str) -> Result<Vec<String>, ProviderError> {
        not_implemented("list_instances_by_status")
    }

    async fn list_executions(&self, _instance: &str) -> Result<Vec<u64>, ProviderError> {
        not_implemented("list_executions")
    }

    async fn read_history_with_execution_id(
        &self,
        _instance: &str,
        _execution_id: u64,
    ) -> Result<Vec<Event>, ProviderError> {
        not_implemented("read_history_with_execution_id")
    }

    async fn read_history(&self, _instance: &str) -> Result<Vec<Event>, ProviderError> {
        not_implemented("read_history")
    }

    async fn latest_execution_id(&self, _instance: &str) -> Result<u64, ProviderError> {
        not_implemented("latest_execution_id")
    }

    async fn get_instance_info(&self, _instance: &str) -> Result<InstanceInfo, ProviderError> {
        not_implemented("get_instance_info")
    }

    async fn get_execution_info(
        &self,
        _instance: &str,
        _execution_id: u64,
    ) -> Result<ExecutionInfo, ProviderError> {
        not_implemented("get_execution_info")
    }

    async fn get_system_metrics(&self) -> Result<SystemMetrics, ProviderError> {
        not_implemented("get_system_metrics")
    }

    async fn get_queue_depths(&self) -> Result<QueueDepths, ProviderError> {
        not_implemented("get_queue_depths")
    }

    async fn list_children(&self, _instance_id: &str) -> Result<Vec<String>, ProviderError> {
        not_implemented("list_children")
    }

    async fn get_parent_id(&self, _instance_id: &str) -> Result<Option<String>, ProviderError> {
        not_implemented("get_parent_id")
    }

    async fn delete_instances_atomic(
        &self,
        _ids: &[String],
        _force: bool,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        not_implemented("delete_instances_atomic")
    }

    async fn delete_instance_bulk(
        &self,
        _filter: InstanceFilter,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        not_implemented("delete_instance_bulk")
    }

    async fn prune_executions(
        &self,
        _instance_id: &str,
        _options: PruneOptions,
    ) -> Result<PruneResult, ProviderError> {
        not_implemented("prune_executions")
    }

    async fn prune_executions_bulk(
        &self,
        _filter: InstanceFilter,
        _options: PruneOptions,
    ) -> Result<PruneResult, ProviderError> {
        not_implemented("prune_executions_bulk")
    }
}
