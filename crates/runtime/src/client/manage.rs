//! Management for operators: listing, statistics, deletion and pruning of instances.

use super::{Client, ClientError};
use outlast_model::{Event, SystemStats};
use outlast_provider::{
    DeadLetter, DeadLetterQueue, DeleteInstanceResult, ExecutionInfo, InstanceFilter, InstanceInfo,
    InstancePage, InstanceQuery, InstanceTree, OldestDue, PendingWork, ProviderAdmin, ProviderError,
    PruneOptions, PruneResult, QueueDepths, QueuePage, StoreGauges, SystemMetrics, TagDepth,
};
use tracing::info;

/// The log target of clients.
const TARGET: &str = "duroxide::client";

/// Management. Except for [`Client::get_orchestration_stats`] every method here returns
/// [`ClientError::ManagementNotAvailable`] if the store has no management interface.
impl Client {
    /// Whether the store has a management interface.
    pub fn has_management_capability(&self) -> bool {
        self.store.as_management_capability().is_some()
    }

    pub(super) fn admin(&self) -> Result<&dyn ProviderAdmin, ClientError> {
        self.store.as_management_capability().ok_or(ClientError::ManagementNotAvailable)
    }

    /// Sizes of an instance; `None` if it does not exist.
    ///
    /// Cancellation safety: the call only reads.
    pub async fn get_orchestration_stats(&self, instance: &str) -> Result<Option<SystemStats>, ClientError> {
        Ok(self.store.get_instance_stats(instance).await?)
    }

    /// Ids of all instances, newest first. Use [`Client::list_instances_page`] for a large store.
    ///
    /// Cancellation safety: the call only reads.
    pub async fn list_all_instances(&self) -> Result<Vec<String>, ClientError> {
        Ok(self.admin()?.list_instances().await?)
    }

    /// Ids of instances whose current execution is `Running`, `Completed`, `Failed` or `ContinuedAsNew`, newest first.
    ///
    /// Cancellation safety: the call only reads.
    pub async fn list_instances_by_status(&self, status: &str) -> Result<Vec<String>, ClientError> {
        Ok(self.admin()?.list_instances_by_status(status).await?)
    }

    /// One page of the instances that match, newest first, each with the data of [`Client::get_instance_info`]. Pass
    /// [`InstancePage::next`] as [`InstanceQuery::after`] to get the next page.
    ///
    /// Cancellation safety: the call only reads.
    pub async fn list_instances_page(&self, query: InstanceQuery) -> Result<InstancePage, ClientError> {
        Ok(self.admin()?.query_instances(&query).await?)
    }

    /// The newest dead letters, at most `limit`: messages and activities that are no longer delivered because they do not decode, or
    /// whose instance never existed.
    ///
    /// Cancellation safety: the call only reads.
    pub async fn list_dead_letters(&self, limit: usize) -> Result<Vec<DeadLetter>, ClientError> {
        Ok(self.admin()?.list_dead_letters(limit).await?)
    }

    /// The messages and activities of an instance that wait in the queues, and the lease of the instance: at most `limit` messages
    /// and `limit` activities, without payloads. `None` if the store does not support it. [`crate::lens`] explains the result.
    ///
    /// Cancellation safety: the call only reads.
    pub async fn pending_work(
        &self,
        instance: &str,
        limit: usize,
    ) -> Result<Option<PendingWork>, ClientError> {
        Ok(self.admin()?.pending(instance, limit).await?)
    }

    /// A page of the messages or the activities of all instances that are in a queue, without payloads, at most `limit`, after the
    /// position [`QueuePage::next`] of the page before. Leased and delayed items are part of it. `None` if the store does not support
    /// it.
    ///
    /// Cancellation safety: it only reads.
    pub async fn queue_page(
        &self,
        queue: DeadLetterQueue,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Option<QueuePage>, ClientError> {
        Ok(self.admin()?.queue_page(queue, after, limit).await?)
    }

    /// The number of activities in the queue for each tag, by ascending tag, at most `limit` tags; activities without a tag come first.
    /// `None` if the store does not support it.
    ///
    /// Cancellation safety: it only reads.
    pub async fn tag_depths(&self, limit: usize) -> Result<Option<Vec<TagDepth>>, ClientError> {
        Ok(self.admin()?.tag_depths(limit).await?)
    }

    /// One instance; a [`ClientError::Provider`] that says "not found" if it does not exist.
    ///
    /// Cancellation safety: the call only reads.
    pub async fn get_instance_info(&self, instance: &str) -> Result<InstanceInfo, ClientError> {
        Ok(self.admin()?.get_instance_info(instance).await?)
    }

    /// One execution; a [`ClientError::Provider`] that says "not found" if it does not exist.
    ///
    /// Cancellation safety: the call only reads.
    pub async fn get_execution_info(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<ExecutionInfo, ClientError> {
        Ok(self.admin()?.get_execution_info(instance, execution_id).await?)
    }

    /// Execution ids, ascending; empty if the instance does not exist.
    ///
    /// Cancellation safety: the call only reads.
    pub async fn list_executions(&self, instance: &str) -> Result<Vec<u64>, ClientError> {
        Ok(self.admin()?.list_executions(instance).await?)
    }

    /// Events of one execution; empty if it does not exist. The whole history is held in memory; use
    /// [`Client::get_orchestration_stats`], which reads sizes only, to check its size first.
    ///
    /// Cancellation safety: the call only reads.
    pub async fn read_execution_history(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<Event>, ClientError> {
        Ok(self.admin()?.read_history_with_execution_id(instance, execution_id).await?)
    }

    /// Events of one execution with ids above `after`, ascending, at most `limit`; empty if there are none. The stores of Outlast read
    /// these events only, so that the pages of a long history cost little.
    ///
    /// Cancellation safety: the call only reads.
    pub async fn history_page(
        &self,
        instance: &str,
        execution_id: u64,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Event>, ClientError> {
        Ok(self.admin()?.history_page(instance, execution_id, after, limit).await?)
    }

    /// Totals over the whole store.
    ///
    /// Cancellation safety: the call only reads.
    pub async fn get_system_metrics(&self) -> Result<SystemMetrics, ClientError> {
        Ok(self.admin()?.get_system_metrics().await?)
    }

    /// The number of waiting messages and activities.
    ///
    /// Cancellation safety: the call only reads.
    pub async fn get_queue_depths(&self) -> Result<QueueDepths, ClientError> {
        Ok(self.admin()?.get_queue_depths().await?)
    }

    /// The numbers that runtimes publish as gauges: running instances, and waiting messages, due and delayed ones separately. The
    /// stores of Outlast compute them at a much lower cost than [`Client::get_system_metrics`].
    ///
    /// Cancellation safety: the call only reads.
    pub async fn get_gauges(&self) -> Result<StoreGauges, ClientError> {
        Ok(self.admin()?.get_gauges().await?)
    }

    /// For each queue the longest wait of the items that a runtime may take now. `None` if the store does not report it.
    ///
    /// Cancellation safety: the call only reads.
    pub async fn oldest_due(&self) -> Result<Option<OldestDue>, ClientError> {
        Ok(self.admin()?.oldest_due().await?)
    }

    /// An instance and its descendants; only the id itself if the instance does not exist.
    ///
    /// Cancellation safety: the call only reads.
    pub async fn get_instance_tree(&self, instance_id: &str) -> Result<InstanceTree, ClientError> {
        Ok(self.admin()?.get_instance_tree(instance_id).await?)
    }

    /// Removes an instance and its descendants, all or none. A running instance is removed only with `force`: its current turn and
    /// activities run on, but their commits fail. A child is removed only with its root.
    ///
    /// Cancellation safety: when the future is dropped, the instance and all descendants are removed, or none of them.
    ///
    /// # Errors
    ///
    /// [`ClientError::InstanceNotFound`], [`ClientError::InstanceStillRunning`],
    /// [`ClientError::CannotDeleteSubOrchestration`], and [`ClientError::Provider`] for any other error of the store.
    pub async fn delete_instance(
        &self,
        instance_id: &str,
        force: bool,
    ) -> Result<DeleteInstanceResult, ClientError> {
        let deleted = self.admin()?.delete_instance(instance_id, force).await;
        let deleted = deleted.map_err(|error| refused_deletion(error, instance_id))?;
        info!(
            target: TARGET,
            instance_id,
            force,
            instances_deleted = deleted.instances_deleted,
            executions_deleted = deleted.executions_deleted,
            events_deleted = deleted.events_deleted,
            queue_messages_deleted = deleted.queue_messages_deleted,
            "Deleted instance"
        );
        Ok(deleted)
    }

    /// Removes ended roots that match, each with its descendants; at most 1000 if the filter has no limit. Skips running instances
    /// and children. An empty list of ids matches no instance.
    ///
    /// Cancellation safety: when the future is dropped, some of the trees may have been removed, each as a whole.
    pub async fn delete_instance_bulk(
        &self,
        filter: InstanceFilter,
    ) -> Result<DeleteInstanceResult, ClientError> {
        let deleted = self.admin()?.delete_instance_bulk(filter).await?;
        info!(
            target: TARGET,
            instances_deleted = deleted.instances_deleted,
            executions_deleted = deleted.executions_deleted,
            events_deleted = deleted.events_deleted,
            queue_messages_deleted = deleted.queue_messages_deleted,
            "Deleted instances in bulk"
        );
        Ok(deleted)
    }

    /// Removes old executions of an instance, never the current or a running one. All criteria must hold.
    ///
    /// Cancellation safety: when the future is dropped, all matching executions are removed, or none of them.
    pub async fn prune_executions(
        &self,
        instance_id: &str,
        options: PruneOptions,
    ) -> Result<PruneResult, ClientError> {
        let pruned = self.admin()?.prune_executions(instance_id, options).await?;
        info!(
            target: TARGET,
            instance_id,
            executions_deleted = pruned.executions_deleted,
            events_deleted = pruned.events_deleted,
            "Pruned executions"
        );
        Ok(pruned)
    }

    /// [`Client::prune_executions`] for every instance that matches, running ones included.
    ///
    /// Cancellation safety: when the future is dropped, some of the instances may have been pruned.
    pub async fn prune_executions_bulk(
        &self,
        filter: InstanceFilter,
        options: PruneOptions,
    ) -> Result<PruneResult, ClientError> {
        let pruned = self.admin()?.prune_executions_bulk(filter, options).await?;
        info!(
            target: TARGET,
            instances_processed = pruned.instances_processed,
            executions_deleted = pruned.executions_deleted,
            events_deleted = pruned.events_deleted,
            "Pruned executions in bulk"
        );
        Ok(pruned)
    }
}

/// Maps an error of the store to an error of the client by its message, because the contract's errors have no codes for these cases.
/// No other place in the runtime reads the message of an error.
fn refused_deletion(error: ProviderError, instance_id: &str) -> ClientError {
    let instance_id = instance_id.to_string();
    let text = error.to_string().to_lowercase();
    if text.contains("not found") {
        ClientError::InstanceNotFound { instance_id }
    } else if text.contains("still running") {
        ClientError::InstanceStillRunning { instance_id }
    } else if text.contains("sub-orchestration") || text.contains("delete the root") {
        ClientError::CannotDeleteSubOrchestration { instance_id }
    } else {
        ClientError::Provider(error)
    }
}
