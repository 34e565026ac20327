//! The store behind the management trait.

use crate::delete::Deleted;
use crate::executor::{Answer, CallInfo};
use crate::transaction::Transaction;
use crate::{SqliteProvider, delete, history, list, pending};
use async_trait::async_trait;
use outlast_model::Event;
use outlast_provider::{
    DeadLetter, DeleteInstanceResult, ExecutionInfo, InstanceFilter, InstanceInfo, InstancePage,
    InstanceQuery, InstanceTree, PendingWork, ProviderAdmin, PruneOptions, PruneResult, QueueDepths,
    StoreGauges, SystemMetrics,
};
use outlast_provider_kit::{DEFAULT_BULK_LIMIT, Watches};
use std::sync::Arc;

/// The number of instances that a bulk operation looks up at a time.
const BULK_PAGE: usize = 100;

/// Resolves the watches of deleted instances.
fn resolve_watches(watches: &Watches, deleted: &[String]) {
    for instance in deleted {
        watches.committed(instance, true);
    }
}

impl SqliteProvider {
    /// The next candidates of a bulk operation.
    async fn bulk_page(
        &self,
        operation: &'static str,
        after: i64,
        filter: &InstanceFilter,
        finished_roots: bool,
        limit: usize,
    ) -> Answer<Vec<(i64, String)>> {
        let filter = filter.clone();
        let limit = limit.min(BULK_PAGE);
        self.read_with(operation, move |db| {
            delete::candidates_after(db, after, &filter, finished_roots, limit)
        })
        .await
    }
}

#[async_trait]
impl ProviderAdmin for SqliteProvider {
    async fn list_instances(&self) -> Answer<Vec<String>> {
        self.read_with("list_instances", |db| list::ids(db, None)).await
    }

    async fn list_instances_by_status(&self, status: &str) -> Answer<Vec<String>> {
        let status = status.to_string();
        self.read_with("list_instances_by_status", move |db| list::ids(db, Some(&status))).await
    }

    async fn list_executions(&self, instance: &str) -> Answer<Vec<u64>> {
        let instance = instance.to_string();
        self.read_with("list_executions", move |db| list::executions(db, &instance)).await
    }

    async fn read_history_with_execution_id(&self, instance: &str, execution_id: u64) -> Answer<Vec<Event>> {
        let instance = instance.to_string();
        self.read_with("read_history", move |db| history::read(db, &instance, Some(execution_id))).await
    }

    async fn read_history(&self, instance: &str) -> Answer<Vec<Event>> {
        let instance = instance.to_string();
        self.read_with("read_history", move |db| history::read(db, &instance, None)).await
    }

    async fn latest_execution_id(&self, instance: &str) -> Answer<u64> {
        let instance = instance.to_string();
        self.read_with("latest_execution_id", move |db| history::newest_execution(db, &instance)).await
    }

    async fn get_instance_info(&self, instance: &str) -> Answer<InstanceInfo> {
        let instance = instance.to_string();
        self.read_with("get_instance_info", move |db| list::info(db, &instance)).await
    }

    async fn get_execution_info(&self, instance: &str, execution_id: u64) -> Answer<ExecutionInfo> {
        let instance = instance.to_string();
        self.read_with("get_execution_info", move |db| list::execution(db, &instance, execution_id)).await
    }

    async fn get_system_metrics(&self) -> Answer<SystemMetrics> {
        self.read_with("get_system_metrics", list::metrics).await
    }

    async fn get_queue_depths(&self) -> Answer<QueueDepths> {
        let now = self.options.clock.now_ms();
        self.read_with("get_queue_depths", move |db| list::depths(db, now)).await
    }

    async fn get_gauges(&self) -> Answer<StoreGauges> {
        let now = self.options.clock.now_ms();
        self.read_with("get_gauges", move |db| list::gauges(db, now)).await
    }

    async fn list_children(&self, instance_id: &str) -> Answer<Vec<String>> {
        let instance = instance_id.to_string();
        self.read_with("list_children", move |db| list::children(db, &instance)).await
    }

    async fn get_parent_id(&self, instance_id: &str) -> Answer<Option<String>> {
        let instance = instance_id.to_string();
        self.read_with("get_parent_id", move |db| {
            let missing = || crate::SqliteError::Refused(format!("instance '{instance}' not found"));
            list::parent(db, &instance)?.ok_or_else(missing)
        })
        .await
    }

    async fn delete_instances_atomic(&self, ids: &[String], force: bool) -> Answer<DeleteInstanceResult> {
        if ids.is_empty() {
            return Ok(DeleteInstanceResult::default());
        }
        let ids: Arc<[String]> = ids.into();
        let (watches, doomed) = (self.watches(), Arc::clone(&ids));
        let delete = move |tx: &mut Transaction<'_>| delete::instances(tx, &ids, force);
        let info = CallInfo::of("delete_instances_atomic").instance(&doomed.join(", "));
        self.write_then(info, delete, move |_| resolve_watches(&watches, &doomed)).await
    }

    async fn get_instance_tree(&self, instance_id: &str) -> Answer<InstanceTree> {
        let root_id = instance_id.to_string();
        let root = root_id.clone();
        let all_ids = self.read_with("get_instance_tree", move |db| list::tree(db, &root)).await?;
        Ok(InstanceTree { root_id, all_ids })
    }

    async fn delete_instance(&self, instance_id: &str, force: bool) -> Answer<DeleteInstanceResult> {
        let root = instance_id.to_string();
        let watches = self.watches();
        let delete = move |tx: &mut Transaction<'_>| delete::tree(tx, &root, force);
        let info = CallInfo::of("delete_instance").instance(instance_id);
        let deleted = self.write_then(info, delete, move |deleted| resolve_watches(&watches, &deleted.ids));
        Ok(deleted.await?.counts)
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
            for (_, root) in page {
                let before = filter.completed_before;
                let watches = self.watches();
                let info = CallInfo::of(BULK).instance(&root);
                let delete = move |tx: &mut Transaction<'_>| delete::finished_tree(tx, &root, before);
                let on_commit = move |deleted: &Option<Deleted>| {
                    resolve_watches(&watches, deleted.as_ref().map_or(&[], |deleted| &deleted.ids));
                };
                if let Some(deleted) = self.write_then(info, delete, on_commit).await? {
                    delete::add(&mut total, &deleted.counts);
                    left -= 1;
                }
            }
        }
        if total.instances_deleted > 0 {
            self.return_space().await?;
        }
        Ok(total)
    }

    async fn prune_executions(&self, instance_id: &str, options: PruneOptions) -> Answer<PruneResult> {
        let instance = instance_id.to_string();
        let info = CallInfo::of("prune_executions").instance(instance_id);
        self.write(info, move |tx| delete::prune(tx, &instance, &options)).await
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
            let options = options.clone();
            let pruned = self.write(CallInfo::of(BULK), move |tx| {
                let mut sum = PruneResult::default();
                for (_, instance) in &page {
                    // The instance was deleted after it was listed.
                    if list::parent(tx.db, instance)?.is_none() {
                        continue;
                    }
                    let pruned = delete::prune(tx, instance, &options)?;
                    sum.instances_processed += 1;
                    sum.executions_deleted += pruned.executions_deleted;
                    sum.events_deleted += pruned.events_deleted;
                }
                Ok(sum)
            });
            let pruned = pruned.await?;
            total.instances_processed += pruned.instances_processed;
            total.executions_deleted += pruned.executions_deleted;
            total.events_deleted += pruned.events_deleted;
        }
        Ok(total)
    }

    async fn query_instances(&self, query: &InstanceQuery) -> Answer<InstancePage> {
        let query = query.clone();
        self.read_with("query_instances", move |db| list::page(db, &query)).await
    }

    async fn list_dead_letters(&self, limit: usize) -> Answer<Vec<DeadLetter>> {
        self.read_with("list_dead_letters", move |db| list::dead_letters(db, limit)).await
    }

    async fn pending(&self, instance: &str, limit: usize) -> Answer<Option<PendingWork>> {
        let (instance, now) = (instance.to_string(), self.options.clock.now_ms());
        let read = self.read_with("pending", move |db| pending::of_instance(db, &instance, limit, now));
        Ok(Some(read.await?))
    }
}
