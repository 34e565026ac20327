//! Step 9: the management interface.

use crate::store::FileStore;
use async_trait::async_trait;
use outlast_provider::model::Event;
use outlast_provider::{
    DeadLetter, DeleteInstanceResult, ExecutionInfo, InstanceFilter, InstanceInfo, PendingWork, Provider,
    ProviderAdmin, ProviderError, PruneOptions, PruneResult, QueueDepths, SystemMetrics,
};

#[async_trait]
impl ProviderAdmin for FileStore {
    async fn list_instances(&self) -> Result<Vec<String>, ProviderError> {
        Ok(self.look(|state, _| state.newest_first(|_| true)))
    }

    async fn list_instances_by_status(&self, status: &str) -> Result<Vec<String>, ProviderError> {
        Ok(self.look(|state, _| {
            state.newest_first(|id| state.current_execution(id).is_some_and(|row| row.status == status))
        }))
    }

    async fn list_executions(&self, instance: &str) -> Result<Vec<u64>, ProviderError> {
        Ok(self.look(|state, _| {
            state.executions.get(instance).into_iter().flat_map(|all| all.keys().copied()).collect()
        }))
    }

    async fn read_history_with_execution_id(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<Event>, ProviderError> {
        self.read_with_execution(instance, execution_id).await
    }

    async fn read_history(&self, instance: &str) -> Result<Vec<Event>, ProviderError> {
        self.read(instance).await
    }

    async fn latest_execution_id(&self, instance: &str) -> Result<u64, ProviderError> {
        Ok(self.look(|state, _| state.newest_execution(instance)))
    }

    async fn get_instance_info(&self, instance: &str) -> Result<InstanceInfo, ProviderError> {
        self.look(|state, _| state.instance_info(instance))
    }

    async fn get_execution_info(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<ExecutionInfo, ProviderError> {
        self.look(|state, _| state.execution_info(instance, execution_id))
    }

    async fn get_system_metrics(&self) -> Result<SystemMetrics, ProviderError> {
        Ok(self.look(|state, _| state.metrics()))
    }

    async fn get_queue_depths(&self) -> Result<QueueDepths, ProviderError> {
        Ok(self.look(|state, now| state.queue_depths(now)))
    }

    async fn list_children(&self, instance_id: &str) -> Result<Vec<String>, ProviderError> {
        Ok(self.look(|state, _| state.children(instance_id)))
    }

    async fn get_parent_id(&self, instance_id: &str) -> Result<Option<String>, ProviderError> {
        self.look(|state, _| state.parent(instance_id))
    }

    async fn delete_instances_atomic(
        &self,
        ids: &[String],
        force: bool,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        self.change("delete_instances_atomic", |state, _| state.delete(ids, force))
    }

    async fn delete_instance_bulk(
        &self,
        filter: InstanceFilter,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        self.change("delete_instance_bulk", |state, _| state.delete_bulk(&filter))
    }

    async fn prune_executions(
        &self,
        instance_id: &str,
        options: PruneOptions,
    ) -> Result<PruneResult, ProviderError> {
        self.change("prune_executions", |state, _| state.prune(instance_id, &options))
    }

    async fn prune_executions_bulk(
        &self,
        filter: InstanceFilter,
        options: PruneOptions,
    ) -> Result<PruneResult, ProviderError> {
        self.change("prune_executions_bulk", |state, _| state.prune_bulk(&filter, &options))
    }

    async fn list_dead_letters(&self, limit: usize) -> Result<Vec<DeadLetter>, ProviderError> {
        Ok(self.look(|state, _| state.dead_letters(limit)))
    }

    async fn pending(&self, instance: &str, limit: usize) -> Result<Option<PendingWork>, ProviderError> {
        Ok(Some(self.look(|state, now| state.pending(instance, limit, now))))
    }
}
