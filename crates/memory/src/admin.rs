//! Management: lists, statistics, deletion, pruning.

use crate::MemoryProvider;
use crate::queue::{Activity, Message};
use crate::rules::{AdminRules, HoldRules, NodeRules, OnceRules};
use crate::state::{State, refuse};
use async_trait::async_trait;
use outlast_provider::model::{Event, ExecutionStatus};
use outlast_provider::{
    AuditEntry, AuditRecord, DeadLetter, DeadLetterOutcome, DeadLetterQueue, DeadLetterRecord,
    DeleteInstanceResult, ExecutionInfo, ExportOutcome, HeldCounts, HeldInstance, Hold, HoldOutcome,
    ImportOutcome, InstanceFilter, InstanceInfo, InstancePage, InstanceQuery, InstanceSnapshot, NodeRecord,
    NodeReport, OldestDue, OldestPage, PausedOrchestration, PendingWork, Provider, ProviderAdmin,
    ProviderError, PruneOptions, PruneResult, QueueBacklog, QueueDepths, QueuePage, ReleaseOutcome,
    ResetOutcome, ResetPlan, StoreGauges, SystemMetrics, TagDepth,
};
use std::collections::BTreeSet;
use std::time::Duration;

/// The limit of a bulk operation whose filter has none.
pub(crate) const DEFAULT_LIMIT: u32 = 1_000;

#[async_trait]
impl ProviderAdmin for MemoryProvider {
    async fn list_instances(&self) -> Result<Vec<String>, ProviderError> {
        Ok(self.state().newest_first(|_| true))
    }

    async fn list_instances_by_status(&self, status: &str) -> Result<Vec<String>, ProviderError> {
        let state = self.state();
        Ok(state.newest_first(|id| state.current_execution(id).is_some_and(|row| row.status == status)))
    }

    async fn list_executions(&self, instance: &str) -> Result<Vec<u64>, ProviderError> {
        Ok(self.state().executions.get(instance).into_iter().flat_map(|all| all.keys().copied()).collect())
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

    async fn history_page(
        &self,
        instance: &str,
        execution_id: u64,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Event>, ProviderError> {
        self.state().history_page(instance, execution_id, after, limit)
    }

    async fn latest_execution_id(&self, instance: &str) -> Result<u64, ProviderError> {
        Ok(self.state().latest_execution(instance))
    }

    async fn get_instance_info(&self, instance: &str) -> Result<InstanceInfo, ProviderError> {
        match self.state().info(instance) {
            Some(info) => Ok(info),
            None => refuse("get_instance_info", format!("instance '{instance}' not found")),
        }
    }

    async fn get_execution_info(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<ExecutionInfo, ProviderError> {
        let state = self.state();
        let Some(row) = state.execution(instance, execution_id) else {
            return refuse(
                "get_execution_info",
                format!("execution {execution_id} of instance '{instance}' not found"),
            );
        };
        Ok(ExecutionInfo {
            execution_id,
            status: row.status.clone(),
            output: row.output.clone(),
            started_at: row.started_at,
            completed_at: row.completed_at,
            event_count: state.event_texts(instance, execution_id).count(),
        })
    }

    async fn get_system_metrics(&self) -> Result<SystemMetrics, ProviderError> {
        let state = self.state();
        let with_status = |status: ExecutionStatus| {
            let current = state.instances.keys().filter_map(|id| state.current_execution(id));
            current.filter(|row| row.status == status.as_str()).count() as u64
        };
        Ok(SystemMetrics {
            total_instances: state.instances.len() as u64,
            total_executions: state.executions.values().map(|all| all.len() as u64).sum(),
            running_instances: with_status(ExecutionStatus::Running),
            completed_instances: with_status(ExecutionStatus::Completed),
            failed_instances: with_status(ExecutionStatus::Failed),
            total_events: state.history.values().map(|events| events.len() as u64).sum(),
        })
    }

    async fn get_queue_depths(&self) -> Result<QueueDepths, ProviderError> {
        self.change(|state, now| {
            Ok(QueueDepths {
                orchestrator_queue: state.waiting_messages(now).count(),
                worker_queue: state.waiting_activities(now).count(),
                timer_queue: 0,
            })
        })
    }

    async fn get_gauges(&self) -> Result<StoreGauges, ProviderError> {
        let running_instances = self.get_system_metrics().await?.running_instances;
        self.change(|state, now| {
            let messages = state.waiting_messages(now).count() as u64;
            let later = state.waiting_messages(now).filter(|message| message.visible_at > now).count() as u64;
            let activities = state.waiting_activities(now).count() as u64;
            let later_activities =
                state.waiting_activities(now).filter(|activity| activity.visible_at > now).count() as u64;
            Ok(StoreGauges {
                running_instances,
                orchestrator_queue: messages,
                worker_queue: activities,
                orchestrator_backlog: Some(QueueBacklog::of(messages, later)),
                worker_backlog: Some(QueueBacklog::of(activities, later_activities)),
            })
        })
    }

    async fn oldest_due(&self) -> Result<Option<OldestDue>, ProviderError> {
        self.change(|state, now| {
            let messages = state.waiting_messages(now).filter(|message| {
                message.visible_at <= now && state.rules.may_be_oldest(state, &message.instance, now)
            });
            let activities = state.waiting_activities(now).filter(|activity| activity.visible_at <= now);
            Ok(Some(OldestDue {
                message_ms: messages.map(|message| now - message.visible_at).max(),
                activity_ms: activities.map(|activity| now - activity.visible_at).max(),
            }))
        })
    }

    async fn list_children(&self, instance_id: &str) -> Result<Vec<String>, ProviderError> {
        Ok(self.state().children(instance_id))
    }

    async fn get_parent_id(&self, instance_id: &str) -> Result<Option<String>, ProviderError> {
        match self.state().instances.get(instance_id) {
            Some(row) => Ok(row.parent_instance_id.clone()),
            None => refuse("get_parent_id", format!("instance '{instance_id}' not found")),
        }
    }

    async fn delete_instances_atomic(
        &self,
        ids: &[String],
        force: bool,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        let result = self.change(|state, _| state.delete(ids, force))?;
        self.deleted(ids);
        Ok(result)
    }

    async fn delete_instance_bulk(
        &self,
        filter: InstanceFilter,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        let mut gone = Vec::new();
        let result = self.change(|state, _| {
            let rules = state.rules;
            let mut total = DeleteInstanceResult::default();
            let mut left = rules.bulk_limit(&filter);
            for root in state.bulk_roots(&filter) {
                if left == 0 {
                    break;
                }
                let tree = state.tree(&root);
                if !rules.may_bulk_delete_tree(state, &tree) {
                    continue;
                }
                let deleted = state.delete(&tree, true)?;
                left -= 1;
                total.instances_deleted += deleted.instances_deleted;
                total.executions_deleted += deleted.executions_deleted;
                total.events_deleted += deleted.events_deleted;
                total.queue_messages_deleted += deleted.queue_messages_deleted;
                gone.extend(tree);
            }
            Ok(total)
        });
        self.deleted(&gone);
        result
    }

    async fn prune_executions(
        &self,
        instance_id: &str,
        options: PruneOptions,
    ) -> Result<PruneResult, ProviderError> {
        self.change(|state, _| match state.instances.contains_key(instance_id) {
            true => Ok(state.prune(instance_id, &options)),
            false => refuse("prune_executions", format!("instance '{instance_id}' not found")),
        })
    }

    async fn prune_executions_bulk(
        &self,
        filter: InstanceFilter,
        options: PruneOptions,
    ) -> Result<PruneResult, ProviderError> {
        self.change(|state, _| {
            let mut total = PruneResult::default();
            for id in state.rules.bulk_prune_candidates(state, &filter) {
                let pruned = state.prune(&id, &options);
                total.instances_processed += pruned.instances_processed;
                total.executions_deleted += pruned.executions_deleted;
                total.events_deleted += pruned.events_deleted;
            }
            Ok(total)
        })
    }

    async fn query_instances(&self, query: &InstanceQuery) -> Result<InstancePage, ProviderError> {
        let state = self.state();
        let ids = state.newest_first(|_| true);
        let Some(ids) = state.rules.page(ids, query.after.as_deref()) else {
            return refuse("query_instances", "page position not found: start again from the first page");
        };
        let mut page = InstancePage::default();
        for info in ids.iter().filter_map(|id| state.info(id)).filter(|info| query.matches(info)) {
            if page.instances.len() == query.page_size() {
                page.next = page.instances.last().map(|last| last.instance_id.clone());
                break;
            }
            page.instances.push(info);
        }
        Ok(page)
    }

    async fn list_dead_letters(&self, limit: usize) -> Result<Vec<DeadLetter>, ProviderError> {
        Ok(self.state().dead_letters.values().rev().take(limit).cloned().collect())
    }

    async fn dead_letter_page(
        &self,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Option<Vec<DeadLetterRecord>>, ProviderError> {
        Ok(Some(self.state().dead_letter_page(before, limit)))
    }

    async fn requeue_dead_letter(
        &self,
        id: u64,
        entry: &AuditEntry,
    ) -> Result<DeadLetterOutcome, ProviderError> {
        self.change(|state, now| state.requeue_dead_letter(id, entry, now))
    }

    async fn drop_dead_letter(
        &self,
        id: u64,
        entry: &AuditEntry,
    ) -> Result<DeadLetterOutcome, ProviderError> {
        Ok(self.change(|state, now| state.drop_dead_letter(id, entry, now)))
    }

    async fn pending(&self, instance: &str, limit: usize) -> Result<Option<PendingWork>, ProviderError> {
        self.change(|state, now| Ok(Some(state.pending(instance, limit, now))))
    }

    async fn queue_page(
        &self,
        queue: DeadLetterQueue,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Option<QueuePage>, ProviderError> {
        self.change(|state, now| state.queue_page(queue, after, limit, now).map(Some))
    }

    async fn tag_depths(&self, limit: usize) -> Result<Option<Vec<TagDepth>>, ProviderError> {
        self.change(|state, now| Ok(Some(state.tag_depths(limit, now))))
    }

    async fn hold_instance(&self, instance: &str, hold: &Hold) -> Result<HoldOutcome, ProviderError> {
        Ok(self.change(|state, now| state.hold(instance, hold, now)))
    }

    async fn release_instance(&self, instance: &str) -> Result<ReleaseOutcome, ProviderError> {
        Ok(self.change(|state, _| state.release(instance)))
    }

    async fn held_instance(&self, instance: &str) -> Result<Option<HeldInstance>, ProviderError> {
        Ok(self.state().holds.get(instance).cloned())
    }

    async fn list_held(&self, after: Option<&str>, limit: usize) -> Result<Vec<HeldInstance>, ProviderError> {
        Ok(self.state().list_held(after, limit))
    }

    async fn count_held(&self) -> Result<Option<HeldCounts>, ProviderError> {
        Ok(Some(self.state().held_counts()))
    }

    async fn pause_orchestration(
        &self,
        orchestration: &str,
        actor: &str,
        reason: &str,
    ) -> Result<HoldOutcome, ProviderError> {
        Ok(self.change(|state, now| state.pause(orchestration, actor, reason, now)))
    }

    async fn resume_orchestration(&self, orchestration: &str) -> Result<ReleaseOutcome, ProviderError> {
        Ok(self.change(|state, _| state.resume(orchestration)))
    }

    async fn paused_orchestrations(&self) -> Result<Option<Vec<PausedOrchestration>>, ProviderError> {
        Ok(Some(self.state().paused.values().cloned().collect()))
    }

    async fn append_audit(&self, entry: &AuditEntry) -> Result<bool, ProviderError> {
        self.change(|state, now| {
            state.record(entry, now);
            Ok(true)
        })
    }

    async fn audit_page(
        &self,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Option<Vec<AuditRecord>>, ProviderError> {
        let state = self.state();
        let records =
            state.audit.iter().rev().filter(|record| before.is_none_or(|before| record.id < before));
        Ok(Some(records.take(limit).cloned().collect()))
    }

    async fn reset_instance(&self, plan: &ResetPlan) -> Result<ResetOutcome, ProviderError> {
        let outcome = self.change(|state, now| state.reset(plan, now))?;
        if outcome == ResetOutcome::Done {
            self.was_reset(&plan.target);
        }
        Ok(outcome)
    }

    async fn export_instance(&self, instance: &str) -> Result<ExportOutcome, ProviderError> {
        self.state().export(instance)
    }

    async fn import_instance(
        &self,
        snapshot: &InstanceSnapshot,
        audit: &AuditEntry,
    ) -> Result<ImportOutcome, ProviderError> {
        let outcome = self.change(|state, now| state.import(snapshot, audit, now))?;
        if outcome == ImportOutcome::Imported {
            self.was_reset(&snapshot.instance_id);
        }
        Ok(outcome)
    }

    async fn list_unstarted(&self, after: Option<&str>, limit: usize) -> Result<Vec<String>, ProviderError> {
        Ok(self.state().unstarted(after, limit))
    }

    async fn oldest_instances(
        &self,
        after: Option<u64>,
        limit: usize,
    ) -> Result<Option<OldestPage>, ProviderError> {
        Ok(Some(self.state().oldest_instances(after, limit)))
    }

    async fn delete_ended(
        &self,
        roots: &[String],
        ended_before: u64,
    ) -> Result<Option<DeleteInstanceResult>, ProviderError> {
        let (deleted, gone) = self.change(|state, _| state.delete_ended(roots, ended_before))?;
        self.deleted(&gone);
        Ok(Some(deleted))
    }

    async fn prune_audit(&self, before_ms: u64, limit: usize) -> Result<Option<u64>, ProviderError> {
        Ok(Some(self.change(|state, _| state.prune_audit(before_ms, limit))))
    }

    async fn prune_dead_letters(&self, before_ms: u64, limit: usize) -> Result<Option<u64>, ProviderError> {
        Ok(Some(self.change(|state, _| state.prune_dead_letters(before_ms, limit))))
    }

    async fn announce_node(
        &self,
        report: &NodeReport,
        live: Duration,
        kept: Duration,
    ) -> Result<bool, ProviderError> {
        self.change(|state, now| state.announce_node(report, live, kept, now))
    }

    async fn remove_node(&self, node_id: &str) -> Result<bool, ProviderError> {
        self.change(|state, _| {
            let rules = state.rules;
            Ok(rules.remove_report(state, node_id))
        })
    }

    async fn nodes(
        &self,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Option<Vec<NodeRecord>>, ProviderError> {
        self.change(|state, now| Ok(Some(state.nodes(after, limit, now))))
    }

    async fn sweep_nodes(&self, limit: usize) -> Result<u64, ProviderError> {
        self.change(|state, now| Ok(state.sweep_nodes(limit, now)))
    }
}

impl State {
    /// Messages that no live lease covers, without those of held instances.
    fn waiting_messages(&self, now: u64) -> impl Iterator<Item = &Message> {
        self.messages.iter().filter(move |message| {
            let lease = self.live_lease(&message.instance, now).map(|lease| &lease.token);
            let is_covered = message.token.is_some() && lease == message.token.as_ref();
            !is_covered && self.rules.counts_as_waiting(self, &message.instance)
        })
    }

    /// Activities that no live lease covers.
    fn waiting_activities(&self, now: u64) -> impl Iterator<Item = &Activity> {
        self.activities.rows.values().filter(move |activity| !activity.is_leased(now))
    }

    /// Ids in reverse order of creation, which does not depend on the clock.
    fn newest_first(&self, wanted: impl Fn(&str) -> bool) -> Vec<String> {
        let mut ids: Vec<_> = self.instances.iter().filter(|(id, _)| wanted(id)).collect();
        ids.sort_by_key(|(_, row)| std::cmp::Reverse(row.created_nth));
        ids.into_iter().map(|(id, _)| id.clone()).collect()
    }

    fn info(&self, instance: &str) -> Option<InstanceInfo> {
        let row = self.instances.get(instance)?;
        let execution = self.current_execution(instance);
        Some(InstanceInfo {
            instance_id: instance.to_string(),
            orchestration_name: row.orchestration_name.clone(),
            orchestration_version: row.orchestration_version.clone(),
            current_execution_id: row.current_execution_id,
            status: execution.map_or_else(|| "Unknown".to_string(), |row| row.status.clone()),
            output: execution.and_then(|row| row.output.clone()),
            created_at: row.created_at,
            updated_at: row.updated_at,
            parent_instance_id: row.parent_instance_id.clone(),
        })
    }

    /// The instance and its descendants.
    pub(crate) fn tree(&self, root: &str) -> Vec<String> {
        let mut seen = BTreeSet::from([root.to_string()]);
        let mut all = vec![root.to_string()];
        let mut next = 0;
        while let Some(id) = all.get(next).cloned() {
            all.extend(self.children(&id).into_iter().filter(|child| seen.insert(child.clone())));
            next += 1;
        }
        all
    }

    pub(crate) fn delete(
        &mut self,
        ids: &[String],
        force: bool,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        const DELETE: &str = "delete_instances_atomic";
        let rules = self.rules;
        rules.check_not_running(self, DELETE, ids, force)?;
        rules.check_whole_tree(self, DELETE, ids)?;
        let mut deleted = DeleteInstanceResult::default();
        for id in ids {
            deleted.instances_deleted += u64::from(self.instances.remove(id).is_some());
            deleted.executions_deleted += self.executions.remove(id).map_or(0, |all| all.len() as u64);
            let histories: Vec<_> = self.history.keys().filter(|(owner, _)| owner == id).cloned().collect();
            for key in histories {
                deleted.events_deleted += self.history.remove(&key).map_or(0, |events| events.len() as u64);
            }
            for ordinal in self.messages.of_instance(id, |_| true) {
                self.messages.remove(ordinal);
                deleted.queue_messages_deleted += 1;
            }
            deleted.queue_messages_deleted += rules.delete_activities(self, id);
            rules.delete_lease(self, id);
            rules.delete_hold(self, id);
            rules.delete_keys(self, id);
            rules.delete_kv(self, id);
        }
        Ok(deleted)
    }

    /// Roots that a bulk deletion considers, oldest first. The limit is not applied here, because a root with a running
    /// descendant is passed over and does not count.
    fn bulk_roots(&self, filter: &InstanceFilter) -> Vec<String> {
        self.bulk_matching(filter, |id| {
            let is_root = self.instances.get(id).is_some_and(|row| row.parent_instance_id.is_none());
            is_root && self.rules.may_bulk_delete(self, id)
        })
    }

    /// Instances that a bulk filter selects, oldest first.
    pub(crate) fn bulk_matching(
        &self,
        filter: &InstanceFilter,
        wanted: impl Fn(&str) -> bool,
    ) -> Vec<String> {
        let mut ids = self.newest_first(|id| {
            let listed = filter.instance_ids.as_ref().is_none_or(|ids| ids.iter().any(|wanted| wanted == id));
            let ended = self.current_execution(id).and_then(|row| row.completed_at);
            let early = filter.completed_before.is_none_or(|before| ended.is_some_and(|at| at < before));
            listed && early && wanted(id)
        });
        ids.reverse();
        ids
    }

    fn prune(&mut self, instance: &str, options: &PruneOptions) -> PruneResult {
        let rules = self.rules;
        let current = self.instances.get(instance).map(|row| row.current_execution_id);
        let executions = self.executions.entry(instance.to_string()).or_default();
        let keep = options.keep_last.unwrap_or(0) as usize;
        let kept: Vec<u64> = executions.keys().rev().take(keep).copied().collect();
        let pruned: Vec<u64> = executions
            .iter()
            .filter(|(id, row)| {
                !rules.is_protected(**id, current)
                    && row.status != ExecutionStatus::Running.as_str()
                    && !kept.contains(id)
                    && rules.is_before_cutoff(row, options)
            })
            .map(|(id, _)| *id)
            .collect();
        let mut result = PruneResult { instances_processed: 1, ..PruneResult::default() };
        for execution_id in pruned {
            result.executions_deleted += 1;
            result.events_deleted += rules.prune_execution(self, instance, execution_id);
        }
        result
    }
}
