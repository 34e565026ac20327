//! The store behind the management trait.

use crate::command::CallInfo;
use crate::db::Db;
use crate::dead_letter::{ChangeDeadLetter, DeadLetterPage};
use crate::delete::{BulkPage, Deleted, FinishedTree};
use crate::executor::Answer;
use crate::history::{EventPage, ExecutionKey};
use crate::hold::{AuditPage, HeldPage, HoldInstance, PauseOrchestration};
use crate::node::NodePage;
use crate::pending::{PendingPage, QueuePosition};
use crate::retention::EndedRoots;
use crate::transaction::Transaction;
use crate::transfer::UnstartedPage;
use crate::{
    SqliteError, SqliteProvider, dead_letter, delete, history, hold, list, node, pending, reset, retention,
    transfer,
};
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
use outlast_provider_kit::removed::{add_deleted, add_pruned};
use outlast_provider_kit::{DEFAULT_BULK_LIMIT, ImportRows, NodeRow, ResetRows, Watches};
use std::time::Duration;

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
        let page = BulkPage { after, filter: filter.clone(), finished_roots, limit: limit.min(BULK_PAGE) };
        self.read_with(operation, page, delete::candidates_after).await
    }
}

#[async_trait]
impl ProviderAdmin for SqliteProvider {
    async fn list_instances(&self) -> Answer<Vec<String>> {
        self.read_with("list_instances", (), |db, ()| list::ids(db, None)).await
    }

    async fn list_instances_by_status(&self, status: &str) -> Answer<Vec<String>> {
        let ids = |db: &Db, status: &str| list::ids(db, Some(status));
        self.read_with("list_instances_by_status", status.to_string(), ids).await
    }

    async fn list_executions(&self, instance: &str) -> Answer<Vec<u64>> {
        self.read_with("list_executions", instance.to_string(), list::executions).await
    }

    async fn read_history_with_execution_id(&self, instance: &str, execution_id: u64) -> Answer<Vec<Event>> {
        let key = ExecutionKey::of(instance, execution_id);
        self.read_with("read_history", key, history::read).await
    }

    async fn read_history(&self, instance: &str) -> Answer<Vec<Event>> {
        self.read_with("read_history", instance.to_string(), history::read_newest).await
    }

    async fn latest_execution_id(&self, instance: &str) -> Answer<u64> {
        self.read_with("latest_execution_id", instance.to_string(), history::newest_execution).await
    }

    async fn get_instance_info(&self, instance: &str) -> Answer<InstanceInfo> {
        self.read_with("get_instance_info", instance.to_string(), list::info).await
    }

    async fn get_execution_info(&self, instance: &str, execution_id: u64) -> Answer<ExecutionInfo> {
        let key = ExecutionKey::of(instance, execution_id);
        self.read_with("get_execution_info", key, list::execution).await
    }

    async fn get_system_metrics(&self) -> Answer<SystemMetrics> {
        self.read_with("get_system_metrics", (), |db, ()| list::metrics(db)).await
    }

    async fn get_queue_depths(&self) -> Answer<QueueDepths> {
        let now = self.options.clock.now_ms();
        self.read_with("get_queue_depths", now, |db, now| list::depths(db, *now)).await
    }

    async fn get_gauges(&self) -> Answer<StoreGauges> {
        let now = self.options.clock.now_ms();
        self.read_with("get_gauges", now, |db, now| list::gauges(db, *now)).await
    }

    async fn oldest_due(&self) -> Answer<Option<OldestDue>> {
        let now = self.options.clock.now_ms();
        Ok(Some(self.read_with("oldest_due", now, |db, now| list::oldest_due(db, *now)).await?))
    }

    async fn list_children(&self, instance_id: &str) -> Answer<Vec<String>> {
        self.read_with("list_children", instance_id.to_string(), list::children).await
    }

    async fn get_parent_id(&self, instance_id: &str) -> Answer<Option<String>> {
        let parent = |db: &Db, instance: &str| {
            let missing = || SqliteError::Refused(format!("instance '{instance}' not found"));
            list::parent(db, instance)?.ok_or_else(missing)
        };
        self.read_with("get_parent_id", instance_id.to_string(), parent).await
    }

    async fn delete_instances_atomic(&self, ids: &[String], force: bool) -> Answer<DeleteInstanceResult> {
        if ids.is_empty() {
            return Ok(DeleteInstanceResult::default());
        }
        let info = CallInfo::of("delete_instances_atomic").instance(&ids.join(", "));
        let watches = self.watches();
        let delete =
            |tx: &mut Transaction<'_>, (ids, force): &(Vec<String>, bool)| delete::instances(tx, ids, *force);
        let on_commit = move |(ids, _): &(Vec<String>, bool), _: &DeleteInstanceResult| {
            resolve_watches(&watches, ids);
        };
        self.write_then(info, (ids.to_vec(), force), delete, on_commit).await
    }

    async fn get_instance_tree(&self, instance_id: &str) -> Answer<InstanceTree> {
        let root_id = instance_id.to_string();
        let all_ids = self.read_with("get_instance_tree", root_id.clone(), list::tree).await?;
        Ok(InstanceTree { root_id, all_ids })
    }

    async fn delete_instance(&self, instance_id: &str, force: bool) -> Answer<DeleteInstanceResult> {
        let info = CallInfo::of("delete_instance").instance(instance_id);
        let watches = self.watches();
        let delete =
            |tx: &mut Transaction<'_>, (root, force): &(String, bool)| delete::tree(tx, root, *force);
        let on_commit = move |_: &(String, bool), deleted: &Deleted| resolve_watches(&watches, &deleted.ids);
        let deleted = self.write_then(info, (instance_id.to_string(), force), delete, on_commit);
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
                let watches = self.watches();
                let info = CallInfo::of(BULK).instance(&root);
                let finished = FinishedTree { root, completed_before: filter.completed_before };
                let on_commit = move |_: &FinishedTree, deleted: &Option<Deleted>| {
                    resolve_watches(&watches, deleted.as_ref().map_or(&[], |deleted| &deleted.ids));
                };
                let delete = |tx: &mut Transaction<'_>, finished: &FinishedTree| {
                    delete::finished_tree(tx, finished, |_, _| Ok(false))
                };
                let deleted = self.write_then(info, finished, delete, on_commit);
                if let Some(deleted) = deleted.await? {
                    add_deleted(&mut total, &deleted.counts);
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
        let info = CallInfo::of("prune_executions").instance(instance_id);
        let prune = |tx: &mut Transaction<'_>, (instance, options): &(String, PruneOptions)| {
            delete::prune(tx, instance, options)
        };
        self.write(info, (instance_id.to_string(), options), prune).await
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
            let pruned = self.write(CallInfo::of(BULK), (page, options.clone()), delete::prune_page);
            add_pruned(&mut total, &pruned.await?);
        }
        Ok(total)
    }

    async fn query_instances(&self, query: &InstanceQuery) -> Answer<InstancePage> {
        self.read_with("query_instances", query.clone(), list::page).await
    }

    async fn list_dead_letters(&self, limit: usize) -> Answer<Vec<DeadLetter>> {
        self.read_with("list_dead_letters", limit, |db, limit| dead_letter::newest(db, *limit)).await
    }

    async fn dead_letter_page(
        &self,
        before: Option<u64>,
        limit: usize,
    ) -> Answer<Option<Vec<DeadLetterRecord>>> {
        let page = DeadLetterPage { before, limit };
        Ok(Some(self.read_with("dead_letter_page", page, dead_letter::page).await?))
    }

    async fn requeue_dead_letter(&self, id: u64, entry: &AuditEntry) -> Answer<DeadLetterOutcome> {
        let change = ChangeDeadLetter { id, entry: entry.clone() };
        self.write(CallInfo::of("requeue_dead_letter"), change, dead_letter::requeue).await
    }

    async fn drop_dead_letter(&self, id: u64, entry: &AuditEntry) -> Answer<DeadLetterOutcome> {
        let change = ChangeDeadLetter { id, entry: entry.clone() };
        self.write(CallInfo::of("drop_dead_letter"), change, dead_letter::remove).await
    }

    async fn pending(&self, instance: &str, limit: usize) -> Answer<Option<PendingWork>> {
        let now = self.options.clock.now_ms();
        let page = PendingPage { instance: instance.to_string(), limit, now };
        Ok(Some(self.read_with("pending", page, pending::of_instance).await?))
    }

    async fn queue_page(
        &self,
        queue: DeadLetterQueue,
        after: Option<&str>,
        limit: usize,
    ) -> Answer<Option<QueuePage>> {
        let now = self.options.clock.now_ms();
        let page = QueuePosition { queue, after: after.map(ToString::to_string), limit, now };
        Ok(Some(self.read_with("queue_page", page, pending::of_queue).await?))
    }

    async fn tag_depths(&self, limit: usize) -> Answer<Option<Vec<TagDepth>>> {
        let now = self.options.clock.now_ms();
        let read = |db: &Db, (now, limit): &(u64, usize)| pending::tag_depths(db, *now, *limit);
        Ok(Some(self.read_with("tag_depths", (now, limit), read).await?))
    }

    async fn history_page(
        &self,
        instance: &str,
        execution_id: u64,
        after: u64,
        limit: usize,
    ) -> Answer<Vec<Event>> {
        let page = EventPage { key: ExecutionKey::of(instance, execution_id), after, limit };
        self.read_with("history_page", page, history::page).await
    }

    async fn hold_instance(&self, instance: &str, hold: &Hold) -> Answer<HoldOutcome> {
        let info = CallInfo::of("hold_instance").instance(instance);
        let wanted = HoldInstance { instance: instance.to_string(), hold: hold.clone() };
        self.write(info, wanted, hold::instance).await
    }

    async fn release_instance(&self, instance: &str) -> Answer<ReleaseOutcome> {
        let info = CallInfo::of("release_instance").instance(instance);
        let release = |tx: &mut Transaction<'_>, instance: &str| hold::release(tx, instance);
        self.write(info, instance.to_string(), release).await
    }

    async fn held_instance(&self, instance: &str) -> Answer<Option<HeldInstance>> {
        self.read_with("held_instance", instance.to_string(), hold::of_instance).await
    }

    async fn list_held(&self, after: Option<&str>, limit: usize) -> Answer<Vec<HeldInstance>> {
        let page = HeldPage { after: after.map(str::to_string), limit };
        self.read_with("list_held", page, hold::list).await
    }

    async fn count_held(&self) -> Answer<Option<HeldCounts>> {
        Ok(Some(self.read_with("count_held", (), |db, ()| hold::count(db)).await?))
    }

    async fn pause_orchestration(
        &self,
        orchestration: &str,
        actor: &str,
        reason: &str,
    ) -> Answer<HoldOutcome> {
        let wanted = PauseOrchestration {
            orchestration: orchestration.to_string(),
            actor: actor.to_string(),
            reason: reason.to_string(),
        };
        self.write(CallInfo::of("pause_orchestration"), wanted, hold::pause).await
    }

    async fn resume_orchestration(&self, orchestration: &str) -> Answer<ReleaseOutcome> {
        let resume = |tx: &mut Transaction<'_>, orchestration: &str| hold::resume(tx, orchestration);
        self.write(CallInfo::of("resume_orchestration"), orchestration.to_string(), resume).await
    }

    async fn paused_orchestrations(&self) -> Answer<Option<Vec<PausedOrchestration>>> {
        Ok(Some(self.read_with("paused_orchestrations", (), |db, ()| hold::paused(db)).await?))
    }

    async fn append_audit(&self, entry: &AuditEntry) -> Answer<bool> {
        let info = CallInfo::of("append_audit").instance(&entry.target);
        self.write(info, entry.clone(), hold::append_audit).await
    }

    async fn audit_page(&self, before: Option<u64>, limit: usize) -> Answer<Option<Vec<AuditRecord>>> {
        Ok(Some(self.read_with("audit_page", AuditPage { before, limit }, hold::audit).await?))
    }

    async fn reset_instance(&self, plan: &ResetPlan) -> Answer<ResetOutcome> {
        let info = CallInfo::of("reset_instance").instance(&plan.source);
        let watches = self.watches();
        let on_commit = move |rows: &ResetRows, outcome: &ResetOutcome| {
            if *outcome == ResetOutcome::Done {
                watches.committed(&rows.target, false);
            }
        };
        self.write_then(info, ResetRows::of(plan)?, reset::instance, on_commit).await
    }

    async fn export_instance(&self, instance: &str) -> Answer<ExportOutcome> {
        self.read_with("export_instance", instance.to_string(), transfer::export).await
    }

    async fn import_instance(
        &self,
        snapshot: &InstanceSnapshot,
        audit: &AuditEntry,
    ) -> Answer<ImportOutcome> {
        let rows = ImportRows::of(snapshot, audit)?;
        let info = CallInfo::of("import_instance").instance(&rows.instance).bytes(rows.bytes());
        let watches = self.watches();
        let on_commit = move |rows: &ImportRows, outcome: &ImportOutcome| {
            if *outcome == ImportOutcome::Imported {
                watches.committed(&rows.instance, false);
            }
        };
        self.write_then(info, rows, transfer::import, on_commit).await
    }

    async fn list_unstarted(&self, after: Option<&str>, limit: usize) -> Answer<Vec<String>> {
        let page = UnstartedPage { after: after.map(str::to_string), limit };
        self.read_with("list_unstarted", page, transfer::unstarted).await
    }

    async fn oldest_instances(&self, after: Option<u64>, limit: usize) -> Answer<Option<OldestPage>> {
        let page = retention::Page { after, limit };
        Ok(Some(self.read_with("oldest_instances", page, retention::oldest).await?))
    }

    async fn delete_ended(
        &self,
        roots: &[String],
        ended_before: u64,
    ) -> Answer<Option<DeleteInstanceResult>> {
        let mut total = DeleteInstanceResult::default();
        for roots in roots.chunks(retention::TREES_AT_ONCE) {
            let ended = EndedRoots { roots: roots.to_vec(), ended_before };
            let watches = self.watches();
            let on_commit = move |_: &EndedRoots, deleted: &Deleted| resolve_watches(&watches, &deleted.ids);
            let info = CallInfo::of("delete_ended").instance(&roots.join(", "));
            let deleted = self.write_then(info, ended, retention::delete_ended, on_commit).await?;
            add_deleted(&mut total, &deleted.counts);
        }
        // The file keeps its size: later instances use the free pages.
        Ok(Some(total))
    }

    async fn prune_audit(&self, before_ms: u64, limit: usize) -> Answer<Option<u64>> {
        let oldest = retention::Oldest { before: before_ms, limit };
        Ok(Some(self.write(CallInfo::of("prune_audit"), oldest, retention::prune_audit).await?))
    }

    async fn prune_dead_letters(&self, before_ms: u64, limit: usize) -> Answer<Option<u64>> {
        let oldest = retention::Oldest { before: before_ms, limit };
        let info = CallInfo::of("prune_dead_letters");
        Ok(Some(self.write(info, oldest, retention::prune_dead_letters).await?))
    }

    async fn announce_node(&self, report: &NodeReport, live: Duration, kept: Duration) -> Answer<bool> {
        let row = NodeRow::of(report, live, kept)?;
        self.write(CallInfo::of("announce_node"), row, node::announce).await
    }

    async fn remove_node(&self, node_id: &str) -> Answer<bool> {
        let remove = |tx: &mut Transaction<'_>, node_id: &str| node::remove(tx, node_id);
        self.write(CallInfo::of("remove_node"), node_id.to_string(), remove).await
    }

    async fn nodes(&self, after: Option<&str>, limit: usize) -> Answer<Option<Vec<NodeRecord>>> {
        let now = self.options.clock.now_ms();
        let page = NodePage { after: after.map(str::to_string), limit, now };
        Ok(Some(self.read_with("nodes", page, node::list).await?))
    }

    async fn sweep_nodes(&self, limit: usize) -> Answer<u64> {
        self.write(CallInfo::of("sweep_nodes"), limit, node::sweep).await
    }
}
