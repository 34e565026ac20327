//! The management interface.

use crate::CosmosDBProvider;
use crate::document::Address;
use crate::error::refused;
use async_trait::async_trait;
use outlast_model::Event;
use outlast_provider::{
    AuditEntry, AuditRecord, DeadLetter, DeadLetterOutcome, DeadLetterQueue, DeadLetterRecord,
    DeleteInstanceResult, ExecutionInfo, ExportOutcome, HeldCounts, HeldInstance, Hold, HoldOutcome,
    ImportOutcome, InstanceFilter, InstanceInfo, InstancePage, InstanceQuery, InstanceSnapshot, InstanceTree,
    NodeRecord, NodeReport, OldestPage, PausedOrchestration, PendingWork, ProviderAdmin, ProviderError,
    PruneOptions, PruneResult, QueueBacklog, QueueDepths, QueuePage, ReleaseOutcome, ResetOutcome, ResetPlan,
    StoreGauges, SystemMetrics, TagDepth,
};
use outlast_provider_kit::{ImportRows, NodeRow, ResetRows};
use std::time::Duration;

#[async_trait]
impl ProviderAdmin for CosmosDBProvider {
    async fn list_instances(&self) -> Result<Vec<String>, ProviderError> {
        self.store.ids("list_instances", None).await
    }

    async fn list_instances_by_status(&self, status: &str) -> Result<Vec<String>, ProviderError> {
        self.store.ids("list_instances_by_status", Some(status)).await
    }

    async fn list_executions(&self, instance: &str) -> Result<Vec<u64>, ProviderError> {
        let found = self.store.executions("list_executions", &Address::of(instance)).await?;
        Ok(found.into_iter().map(|execution| execution.execution_id).collect())
    }

    async fn read_history_with_execution_id(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<Event>, ProviderError> {
        self.store.read_events("read_history_with_execution_id", instance, Some(execution_id)).await
    }

    async fn read_history(&self, instance: &str) -> Result<Vec<Event>, ProviderError> {
        self.store.read_events("read_history", instance, None).await
    }

    async fn latest_execution_id(&self, instance: &str) -> Result<u64, ProviderError> {
        let read = self.store.read_instance("latest_execution_id", &Address::of(instance)).await?;
        Ok(read.map_or(1, |read| read.document.latest_execution()))
    }

    async fn get_instance_info(&self, instance: &str) -> Result<InstanceInfo, ProviderError> {
        const INFO: &str = "get_instance_info";
        let address = Address::of(instance);
        let info = match self.store.read_instance(INFO, &address).await? {
            Some(read) => self.store.info(INFO, &address, &read.document).await?,
            None => None,
        };
        info.ok_or_else(|| refused(INFO, format!("instance '{instance}' not found")))
    }

    async fn get_execution_info(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<ExecutionInfo, ProviderError> {
        const INFO: &str = "get_execution_info";
        let address = Address::of(instance);
        let execution = match self.store.read_instance(INFO, &address).await? {
            Some(read) => self.store.execution(INFO, &address, &read.document, execution_id).await?,
            None => None,
        };
        let Some(execution) = execution.filter(|execution| !execution.has_events_only) else {
            return Err(refused(
                INFO,
                format!("execution {execution_id} of instance '{instance}' not found"),
            ));
        };
        Ok(ExecutionInfo {
            execution_id,
            status: execution.status,
            output: execution.output,
            started_at: execution.started_at,
            completed_at: execution.completed_at,
            event_count: usize::try_from(execution.events).unwrap_or(usize::MAX),
        })
    }

    async fn get_system_metrics(&self) -> Result<SystemMetrics, ProviderError> {
        self.store.metrics("get_system_metrics").await
    }

    async fn get_queue_depths(&self) -> Result<QueueDepths, ProviderError> {
        let depths = self.store.depths("get_queue_depths").await?;
        let size = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        Ok(QueueDepths {
            orchestrator_queue: size(depths.messages),
            worker_queue: size(depths.activities),
            timer_queue: 0,
        })
    }

    async fn get_gauges(&self) -> Result<StoreGauges, ProviderError> {
        const GAUGES: &str = "get_gauges";
        let running_instances = self.store.running(GAUGES).await?;
        let depths = self.store.waiting(GAUGES).await?;
        Ok(StoreGauges {
            running_instances,
            orchestrator_queue: depths.messages,
            worker_queue: depths.activities,
            orchestrator_backlog: Some(QueueBacklog::of(depths.messages, depths.delayed_messages)),
            worker_backlog: Some(QueueBacklog::of(depths.activities, depths.delayed_activities)),
        })
    }

    async fn list_children(&self, instance_id: &str) -> Result<Vec<String>, ProviderError> {
        self.store.children("list_children", instance_id).await
    }

    async fn get_parent_id(&self, instance_id: &str) -> Result<Option<String>, ProviderError> {
        const PARENT: &str = "get_parent_id";
        let read = self.store.read_instance(PARENT, &Address::of(instance_id)).await?;
        match read.filter(|read| read.document.row.is_some()) {
            Some(read) => Ok(read.document.par),
            None => Err(refused(PARENT, format!("instance '{instance_id}' not found"))),
        }
    }

    async fn get_instance_tree(&self, instance_id: &str) -> Result<InstanceTree, ProviderError> {
        let all_ids = self.store.tree("get_instance_tree", instance_id).await?;
        Ok(InstanceTree { root_id: instance_id.to_string(), all_ids })
    }

    async fn delete_instances_atomic(
        &self,
        ids: &[String],
        force: bool,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        self.store.delete(ids, force).await
    }

    async fn delete_instance_bulk(
        &self,
        filter: InstanceFilter,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        self.store.delete_bulk(&filter).await
    }

    async fn prune_executions(
        &self,
        instance_id: &str,
        options: PruneOptions,
    ) -> Result<PruneResult, ProviderError> {
        self.store.prune(instance_id, &options).await
    }

    async fn prune_executions_bulk(
        &self,
        filter: InstanceFilter,
        options: PruneOptions,
    ) -> Result<PruneResult, ProviderError> {
        self.store.prune_bulk(&filter, &options).await
    }

    async fn query_instances(&self, query: &InstanceQuery) -> Result<InstancePage, ProviderError> {
        self.store.page(query).await
    }

    async fn list_dead_letters(&self, limit: usize) -> Result<Vec<DeadLetter>, ProviderError> {
        self.store.dead_letters(limit).await
    }

    async fn dead_letter_page(
        &self,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Option<Vec<DeadLetterRecord>>, ProviderError> {
        self.store.dead_letter_page(before, limit).await.map(Some)
    }

    async fn requeue_dead_letter(
        &self,
        id: u64,
        entry: &AuditEntry,
    ) -> Result<DeadLetterOutcome, ProviderError> {
        self.store.requeue_dead_letter(id, entry).await
    }

    async fn drop_dead_letter(
        &self,
        id: u64,
        entry: &AuditEntry,
    ) -> Result<DeadLetterOutcome, ProviderError> {
        self.store.drop_dead_letter(id, entry).await
    }

    async fn pending(&self, instance: &str, limit: usize) -> Result<Option<PendingWork>, ProviderError> {
        self.store.pending(instance, limit).await.map(Some)
    }

    async fn queue_page(
        &self,
        queue: DeadLetterQueue,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Option<QueuePage>, ProviderError> {
        self.store.queue_page(queue, after, limit).await.map(Some)
    }

    async fn tag_depths(&self, limit: usize) -> Result<Option<Vec<TagDepth>>, ProviderError> {
        self.store.tag_depths(limit).await.map(Some)
    }

    async fn hold_instance(&self, instance: &str, hold: &Hold) -> Result<HoldOutcome, ProviderError> {
        self.store.hold_instance(instance, hold).await
    }

    async fn release_instance(&self, instance: &str) -> Result<ReleaseOutcome, ProviderError> {
        self.store.release_instance(instance).await
    }

    async fn held_instance(&self, instance: &str) -> Result<Option<HeldInstance>, ProviderError> {
        self.store.hold_of(instance).await
    }

    async fn list_held(&self, after: Option<&str>, limit: usize) -> Result<Vec<HeldInstance>, ProviderError> {
        self.store.list_held(after, limit).await
    }

    async fn count_held(&self) -> Result<Option<HeldCounts>, ProviderError> {
        self.store.held_counts().await.map(Some)
    }

    async fn pause_orchestration(
        &self,
        orchestration: &str,
        actor: &str,
        reason: &str,
    ) -> Result<HoldOutcome, ProviderError> {
        self.store.pause_orchestration(orchestration, actor, reason).await
    }

    async fn resume_orchestration(&self, orchestration: &str) -> Result<ReleaseOutcome, ProviderError> {
        self.store.resume_orchestration(orchestration).await
    }

    async fn paused_orchestrations(&self) -> Result<Option<Vec<PausedOrchestration>>, ProviderError> {
        self.store.paused_orchestrations().await.map(Some)
    }

    async fn append_audit(&self, entry: &AuditEntry) -> Result<bool, ProviderError> {
        self.store.append_audit(entry).await.map(|()| true)
    }

    async fn audit_page(
        &self,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Option<Vec<AuditRecord>>, ProviderError> {
        self.store.audit_page(before, limit).await.map(Some)
    }

    async fn reset_instance(&self, plan: &ResetPlan) -> Result<ResetOutcome, ProviderError> {
        self.store.reset_instance(&ResetRows::of(plan)?).await
    }

    async fn export_instance(&self, instance: &str) -> Result<ExportOutcome, ProviderError> {
        self.store.export_instance(instance).await
    }

    async fn import_instance(
        &self,
        snapshot: &InstanceSnapshot,
        audit: &AuditEntry,
    ) -> Result<ImportOutcome, ProviderError> {
        self.store.import_instance(&ImportRows::of(snapshot, audit)?).await
    }

    async fn list_unstarted(&self, after: Option<&str>, limit: usize) -> Result<Vec<String>, ProviderError> {
        self.store.unstarted(after, limit).await
    }

    async fn oldest_instances(
        &self,
        after: Option<u64>,
        limit: usize,
    ) -> Result<Option<OldestPage>, ProviderError> {
        self.store.oldest_instances(after, limit).await.map(Some)
    }

    async fn delete_ended(
        &self,
        roots: &[String],
        ended_before: u64,
    ) -> Result<Option<DeleteInstanceResult>, ProviderError> {
        self.store.delete_ended(roots, ended_before).await.map(Some)
    }

    async fn prune_audit(&self, before_ms: u64, limit: usize) -> Result<Option<u64>, ProviderError> {
        self.store.prune_audit(before_ms, limit).await.map(Some)
    }

    async fn prune_dead_letters(&self, before_ms: u64, limit: usize) -> Result<Option<u64>, ProviderError> {
        self.store.prune_dead_letters(before_ms, limit).await.map(Some)
    }

    async fn announce_node(
        &self,
        report: &NodeReport,
        live: Duration,
        kept: Duration,
    ) -> Result<bool, ProviderError> {
        self.store.announce_node(&NodeRow::of(report, live, kept)?).await
    }

    async fn remove_node(&self, node_id: &str) -> Result<bool, ProviderError> {
        self.store.remove_node(node_id).await
    }

    async fn nodes(
        &self,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Option<Vec<NodeRecord>>, ProviderError> {
        self.store.nodes(after, limit).await.map(Some)
    }

    async fn sweep_nodes(&self, limit: usize) -> Result<u64, ProviderError> {
        self.store.sweep_nodes(limit).await
    }
}
