//! The management interface.

use crate::PostgresError;
use crate::deadline::within;
use crate::delete::{self, Deleted, Removal};
use crate::provider::PostgresProvider;
use crate::request::Answer;
use crate::{dead_letter, history, hold, list, node, pending, reset, retention, transfer};
use async_trait::async_trait;
use outlast_model::Event;
use outlast_provider::{
    AuditEntry, AuditRecord, DeadLetter, DeadLetterOutcome, DeadLetterQueue, DeadLetterRecord,
    DeleteInstanceResult, ExecutionInfo, ExportOutcome, HeldCounts, HeldInstance, Hold, HoldOutcome,
    ImportOutcome, InstanceFilter, InstanceInfo, InstancePage, InstanceQuery, InstanceSnapshot, InstanceTree,
    NodeRecord, NodeReport, OldestDue, OldestPage, PausedOrchestration, PendingWork, ProviderAdmin,
    PruneOptions, PruneResult, QueueDepths, QueuePage, ReleaseOutcome, ResetOutcome, ResetPlan, StoreGauges,
    SystemMetrics, TagDepth,
};
use outlast_provider_kit::queue::PerQueue;
use outlast_provider_kit::removed::{add_deleted, add_pruned};
use outlast_provider_kit::{DEFAULT_BULK_LIMIT, ImportRows, NodeRow, ResetRows};
use std::time::Duration;

/// Instances that a bulk operation takes at a time.
const BULK_PAGE: usize = 100;

/// Names the operation in the error.
fn during<T>(operation: &str, done: Result<T, PostgresError>) -> Answer<T> {
    done.map_err(|error| error.during(operation))
}

fn missing(instance: &str) -> PostgresError {
    PostgresError::Refused(format!("instance '{instance}' not found"))
}

impl PostgresProvider {
    /// Removes instances, resolves their watches, and polls for parked fetches.
    async fn remove(&self, operation: &str, removal: Removal<'_>) -> Answer<Option<Deleted>> {
        let deleted = during(operation, delete::remove(&self.shared.db, removal).await)?;
        for instance in deleted.iter().flat_map(|deleted| &deleted.ids) {
            self.shared.watches.committed(instance, true);
        }
        self.shared.on_remote_change(PerQueue::BOTH);
        Ok(deleted)
    }

    /// Removes these roots with their descendants in one transaction. If a root does not match any more, because it runs again,
    /// removes each root in its own transaction. Returns the number of removed roots.
    async fn remove_finished<'a>(
        &self,
        operation: &str,
        roots: &'a [String],
        removal: impl Fn(&'a [String]) -> Removal<'a>,
        total: &mut DeleteInstanceResult,
    ) -> Answer<u32> {
        if let Some(deleted) = self.remove(operation, removal(roots)).await? {
            add_deleted(total, &deleted.counts);
            return Ok(roots.len() as u32);
        }
        let mut gone = 0;
        // A lone root whose removal was refused is not tried again.
        for root in roots.iter().filter(|_| roots.len() > 1) {
            if let Some(deleted) = self.remove(operation, removal(std::slice::from_ref(root))).await? {
                add_deleted(total, &deleted.counts);
                gone += 1;
            }
        }
        Ok(gone)
    }

    /// The next instances that a bulk operation may take.
    async fn bulk_page(
        &self,
        operation: &str,
        after: i64,
        filter: &InstanceFilter,
        finished_roots: bool,
        limit: usize,
    ) -> Answer<Vec<(i64, String)>> {
        let db = &self.shared.db;
        let client = during(operation, db.connection().await)?;
        let (closer, client): (_, &tokio_postgres::Client) = (client.closer(), &client);
        let page = delete::candidates(db, client, after, filter, finished_roots, limit.min(BULK_PAGE));
        during(operation, within(db, &closer, db.long_deadline, page).await)
    }
}

#[async_trait]
impl ProviderAdmin for PostgresProvider {
    async fn list_instances(&self) -> Answer<Vec<String>> {
        during("list_instances", list::ids(&self.shared.db, None).await)
    }

    async fn list_instances_by_status(&self, status: &str) -> Answer<Vec<String>> {
        during("list_instances_by_status", list::ids(&self.shared.db, Some(status)).await)
    }

    async fn list_executions(&self, instance: &str) -> Answer<Vec<u64>> {
        during("list_executions", list::executions(&self.shared.db, instance).await)
    }

    async fn read_history_with_execution_id(&self, instance: &str, execution_id: u64) -> Answer<Vec<Event>> {
        during("read_history", history::read(&self.shared.db, instance, Some(execution_id)).await)
    }

    async fn read_history(&self, instance: &str) -> Answer<Vec<Event>> {
        during("read_history", history::read(&self.shared.db, instance, None).await)
    }

    async fn latest_execution_id(&self, instance: &str) -> Answer<u64> {
        during("latest_execution_id", history::newest_execution(&self.shared.db, instance).await)
    }

    async fn get_instance_info(&self, instance: &str) -> Answer<InstanceInfo> {
        during("get_instance_info", list::info(&self.shared.db, instance).await)
    }

    async fn get_execution_info(&self, instance: &str, execution_id: u64) -> Answer<ExecutionInfo> {
        during("get_execution_info", list::execution(&self.shared.db, instance, execution_id).await)
    }

    async fn get_system_metrics(&self) -> Answer<SystemMetrics> {
        during("get_system_metrics", list::metrics(&self.shared.db).await)
    }

    async fn get_queue_depths(&self) -> Answer<QueueDepths> {
        during("get_queue_depths", list::depths(&self.shared.db).await)
    }

    async fn get_gauges(&self) -> Answer<StoreGauges> {
        during("get_gauges", list::gauges(&self.shared.db).await)
    }

    async fn oldest_due(&self) -> Answer<Option<OldestDue>> {
        during("oldest_due", list::oldest_due(&self.shared.db).await.map(Some))
    }

    async fn list_children(&self, instance_id: &str) -> Answer<Vec<String>> {
        during("list_children", list::children(&self.shared.db, instance_id).await)
    }

    async fn get_parent_id(&self, instance_id: &str) -> Answer<Option<String>> {
        let found = list::parent(&self.shared.db, instance_id).await;
        during("get_parent_id", found.and_then(|parent| parent.ok_or_else(|| missing(instance_id))))
    }

    async fn delete_instances_atomic(&self, ids: &[String], force: bool) -> Answer<DeleteInstanceResult> {
        if ids.is_empty() {
            return Ok(DeleteInstanceResult::default());
        }
        let deleted = self.remove("delete_instances_atomic", Removal::Listed { ids, force }).await?;
        Ok(deleted.map(|deleted| deleted.counts).unwrap_or_default())
    }

    async fn get_instance_tree(&self, instance_id: &str) -> Answer<InstanceTree> {
        let all_ids = during("get_instance_tree", list::tree(&self.shared.db, instance_id).await)?;
        Ok(InstanceTree { root_id: instance_id.to_string(), all_ids })
    }

    async fn delete_instance(&self, instance_id: &str, force: bool) -> Answer<DeleteInstanceResult> {
        let deleted = self.remove("delete_instance", Removal::Tree { root: instance_id, force }).await?;
        Ok(deleted.map(|deleted| deleted.counts).unwrap_or_default())
    }

    async fn delete_instance_bulk(&self, filter: InstanceFilter) -> Answer<DeleteInstanceResult> {
        const BULK: &str = "delete_instance_bulk";
        let mut left = filter.limit.unwrap_or(DEFAULT_BULK_LIMIT);
        let mut total = DeleteInstanceResult::default();
        let mut after = i64::MIN;
        while left > 0 {
            let page = self.bulk_page(BULK, after, &filter, true, left as usize).await?;
            let Some((last, _)) = page.last() else { break };
            after = *last;
            let roots: Vec<String> = page.into_iter().map(|(_, root)| root).collect();
            let removal = |roots| Removal::Finished { roots, completed_before: filter.completed_before };
            left -= self.remove_finished(BULK, &roots, removal, &mut total).await?;
        }
        Ok(total)
    }

    async fn prune_executions(&self, instance_id: &str, options: PruneOptions) -> Answer<PruneResult> {
        let pruned = delete::prune(&self.shared.db, instance_id, &options).await;
        during("prune_executions", pruned.and_then(|pruned| pruned.ok_or_else(|| missing(instance_id))))
    }

    async fn prune_executions_bulk(
        &self,
        filter: InstanceFilter,
        options: PruneOptions,
    ) -> Answer<PruneResult> {
        const BULK: &str = "prune_executions_bulk";
        let mut left = filter.limit.unwrap_or(DEFAULT_BULK_LIMIT) as usize;
        let mut total = PruneResult::default();
        let mut after = i64::MIN;
        while left > 0 {
            let page = self.bulk_page(BULK, after, &filter, false, left).await?;
            let Some((last, _)) = page.last() else { break };
            after = *last;
            left -= page.len();
            for (_, instance) in &page {
                // The instance was deleted after it was listed, so it has nothing to prune.
                let pruned = during(BULK, delete::prune(&self.shared.db, instance, &options).await)?;
                let Some(pruned) = pruned else { continue };
                add_pruned(&mut total, &pruned);
            }
        }
        Ok(total)
    }

    async fn query_instances(&self, query: &InstanceQuery) -> Answer<InstancePage> {
        during("query_instances", list::page(&self.shared.db, query).await)
    }

    async fn list_dead_letters(&self, limit: usize) -> Answer<Vec<DeadLetter>> {
        during("list_dead_letters", dead_letter::newest(&self.shared.db, limit).await)
    }

    async fn dead_letter_page(
        &self,
        before: Option<u64>,
        limit: usize,
    ) -> Answer<Option<Vec<DeadLetterRecord>>> {
        during("dead_letter_page", dead_letter::page(&self.shared.db, before, limit).await.map(Some))
    }

    async fn requeue_dead_letter(&self, id: u64, entry: &AuditEntry) -> Answer<DeadLetterOutcome> {
        let requeued = dead_letter::requeue(&self.shared.db, id, entry).await;
        let (outcome, queue) = during("requeue_dead_letter", requeued)?;
        if outcome == DeadLetterOutcome::Done {
            let activities = queue == DeadLetterQueue::Worker;
            self.shared.on_remote_change(PerQueue { turns: !activities, activities });
            // The item is stored. Without the notification another process finds it at its next poll.
            let _ = hold::notify(&self.shared, activities).await;
        }
        Ok(outcome)
    }

    async fn drop_dead_letter(&self, id: u64, entry: &AuditEntry) -> Answer<DeadLetterOutcome> {
        during("drop_dead_letter", dead_letter::remove(&self.shared.db, id, entry).await)
    }

    async fn pending(&self, instance: &str, limit: usize) -> Answer<Option<PendingWork>> {
        during("pending", pending::of_instance(&self.shared.db, instance, limit).await.map(Some))
    }

    async fn queue_page(
        &self,
        queue: DeadLetterQueue,
        after: Option<&str>,
        limit: usize,
    ) -> Answer<Option<QueuePage>> {
        during("queue_page", pending::of_queue(&self.shared.db, queue, after, limit).await.map(Some))
    }

    async fn tag_depths(&self, limit: usize) -> Answer<Option<Vec<TagDepth>>> {
        during("tag_depths", pending::tag_depths(&self.shared.db, limit).await.map(Some))
    }

    async fn history_page(
        &self,
        instance: &str,
        execution_id: u64,
        after: u64,
        limit: usize,
    ) -> Answer<Vec<Event>> {
        during("history_page", history::page(&self.shared.db, instance, execution_id, after, limit).await)
    }

    async fn hold_instance(&self, instance: &str, hold: &Hold) -> Answer<HoldOutcome> {
        during("hold_instance", hold::instance(&self.shared.db, instance, hold).await)
    }

    async fn release_instance(&self, instance: &str) -> Answer<ReleaseOutcome> {
        let was_held = during("release_instance", hold::release(&self.shared.db, instance).await)?;
        if !was_held {
            return Ok(ReleaseOutcome::NotHeld);
        }
        self.shared.on_remote_change(PerQueue { turns: true, activities: false });
        // The instance is released already. Without the notification another process finds it at its next poll.
        let _ = hold::notify(&self.shared, false).await;
        Ok(ReleaseOutcome::Released)
    }

    async fn held_instance(&self, instance: &str) -> Answer<Option<HeldInstance>> {
        during("held_instance", hold::of_instance(&self.shared.db, instance).await)
    }

    async fn list_held(&self, after: Option<&str>, limit: usize) -> Answer<Vec<HeldInstance>> {
        during("list_held", hold::list(&self.shared.db, after, limit).await)
    }

    async fn count_held(&self) -> Answer<Option<HeldCounts>> {
        during("count_held", hold::count(&self.shared.db).await.map(Some))
    }

    async fn pause_orchestration(
        &self,
        orchestration: &str,
        actor: &str,
        reason: &str,
    ) -> Answer<HoldOutcome> {
        let paused = hold::pause(&self.shared.db, orchestration, actor, reason).await;
        match during("pause_orchestration", paused)? {
            true => Ok(HoldOutcome::Held),
            false => Ok(HoldOutcome::AlreadyHeld),
        }
    }

    async fn resume_orchestration(&self, orchestration: &str) -> Answer<ReleaseOutcome> {
        match during("resume_orchestration", hold::resume(&self.shared.db, orchestration).await)? {
            true => Ok(ReleaseOutcome::Released),
            false => Ok(ReleaseOutcome::NotHeld),
        }
    }

    async fn paused_orchestrations(&self) -> Answer<Option<Vec<PausedOrchestration>>> {
        during("paused_orchestrations", hold::paused(&self.shared.db).await.map(Some))
    }

    async fn append_audit(&self, entry: &AuditEntry) -> Answer<bool> {
        during("append_audit", hold::append_audit(&self.shared.db, entry).await)
    }

    async fn audit_page(&self, before: Option<u64>, limit: usize) -> Answer<Option<Vec<AuditRecord>>> {
        during("audit_page", hold::audit(&self.shared.db, before, limit).await.map(Some))
    }

    async fn reset_instance(&self, plan: &ResetPlan) -> Answer<ResetOutcome> {
        let rows = ResetRows::of(plan)?;
        let outcome = during("reset_instance", reset::instance(&self.shared.db, &rows).await)?;
        if outcome == ResetOutcome::Done {
            self.shared.watches.committed(&plan.target, false);
            self.shared.on_remote_change(PerQueue { turns: true, activities: true });
            // The new execution is stored. Without the notification another process finds it at its next poll.
            let _ = hold::notify(&self.shared, true).await;
        }
        Ok(outcome)
    }

    async fn export_instance(&self, instance: &str) -> Answer<ExportOutcome> {
        during("export_instance", transfer::export(&self.shared.db, instance).await)
    }

    async fn import_instance(
        &self,
        snapshot: &InstanceSnapshot,
        audit: &AuditEntry,
    ) -> Answer<ImportOutcome> {
        let rows = ImportRows::of(snapshot, audit)?;
        if !during("import_instance", transfer::import(&self.shared.db, &rows).await)? {
            return Ok(ImportOutcome::Taken);
        }
        self.shared.watches.committed(&rows.instance, false);
        self.shared.on_remote_change(PerQueue { turns: true, activities: true });
        // The instance is stored. Without the notification another process finds its items at its next poll.
        let _ = hold::notify(&self.shared, true).await;
        Ok(ImportOutcome::Imported)
    }

    async fn list_unstarted(&self, after: Option<&str>, limit: usize) -> Answer<Vec<String>> {
        during("list_unstarted", transfer::unstarted(&self.shared.db, after, limit).await)
    }

    async fn oldest_instances(&self, after: Option<u64>, limit: usize) -> Answer<Option<OldestPage>> {
        during("oldest_instances", retention::oldest(&self.shared.db, after, limit).await.map(Some))
    }

    async fn delete_ended(
        &self,
        roots: &[String],
        ended_before: u64,
    ) -> Answer<Option<DeleteInstanceResult>> {
        const DELETE: &str = "delete_ended";
        let mut total = DeleteInstanceResult::default();
        // Each page is selected again before its removal: if another process has deleted one root of the page, the removal of the
        // whole page would be refused, and each root would be removed in a transaction of its own.
        let filter = InstanceFilter {
            instance_ids: Some(roots.to_vec()),
            completed_before: Some(ended_before),
            ..InstanceFilter::default()
        };
        let mut after = i64::MIN;
        loop {
            let page = self.bulk_page(DELETE, after, &filter, true, BULK_PAGE).await?;
            let Some((last, _)) = page.last() else { break };
            after = *last;
            let roots: Vec<String> = page.into_iter().map(|(_, root)| root).collect();
            let removal = |roots| Removal::Unused { roots, completed_before: ended_before };
            self.remove_finished(DELETE, &roots, removal, &mut total).await?;
        }
        Ok(Some(total))
    }

    async fn prune_audit(&self, before_ms: u64, limit: usize) -> Answer<Option<u64>> {
        let pruned = retention::prune_audit(&self.shared.db, before_ms, limit).await;
        during("prune_audit", pruned.map(Some))
    }

    async fn prune_dead_letters(&self, before_ms: u64, limit: usize) -> Answer<Option<u64>> {
        let pruned = retention::prune_dead_letters(&self.shared.db, before_ms, limit).await;
        during("prune_dead_letters", pruned.map(Some))
    }

    async fn announce_node(&self, report: &NodeReport, live: Duration, kept: Duration) -> Answer<bool> {
        let row = NodeRow::of(report, live, kept)?;
        during("announce_node", node::announce(&self.shared.db, &row).await)
    }

    async fn remove_node(&self, node_id: &str) -> Answer<bool> {
        during("remove_node", node::remove(&self.shared.db, node_id).await)
    }

    async fn nodes(&self, after: Option<&str>, limit: usize) -> Answer<Option<Vec<NodeRecord>>> {
        during("nodes", node::list(&self.shared.db, after, limit).await.map(Some))
    }

    async fn sweep_nodes(&self, limit: usize) -> Answer<u64> {
        during("sweep_nodes", node::sweep(&self.shared.db, limit).await)
    }
}
