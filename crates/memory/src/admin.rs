//! Management: lists, figures, deletion, pruning.

use crate::MemoryProvider;
use crate::queue::{Message, Work};
use crate::rules::{Defect, Rules};
use crate::state::{State, refuse};
use async_trait::async_trait;
use outlast_provider::model::{Event, ExecutionStatus};
use outlast_provider::{
    DeadLetter, DeleteInstanceResult, ExecutionInfo, InstanceFilter, InstanceInfo, InstancePage,
    InstanceQuery, PendingWork, Provider, ProviderAdmin, ProviderError, PruneOptions, PruneResult,
    QueueBacklog, QueueDepths, StoreGauges, SystemMetrics,
};
use std::collections::BTreeSet;

const DEFAULT_LIMIT: u32 = 1_000;

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
        self.change(|state, now, _| {
            Ok(QueueDepths {
                orchestrator_queue: state.waiting_messages(now).count(),
                worker_queue: state.waiting_work(now).count(),
                timer_queue: 0,
            })
        })
    }

    async fn get_gauges(&self) -> Result<StoreGauges, ProviderError> {
        let running_instances = self.get_system_metrics().await?.running_instances;
        self.change(|state, now, _| {
            let messages = state.waiting_messages(now).count() as u64;
            let later = state.waiting_messages(now).filter(|message| message.visible_at > now).count() as u64;
            let work = state.waiting_work(now).count() as u64;
            let later_work = state.waiting_work(now).filter(|work| work.visible_at > now).count() as u64;
            Ok(StoreGauges {
                running_instances,
                orchestrator_queue: messages,
                worker_queue: work,
                orchestrator_backlog: Some(QueueBacklog::of(messages, later)),
                worker_backlog: Some(QueueBacklog::of(work, later_work)),
            })
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
        let result = self.change(|state, _, rules| state.delete(ids, force, rules))?;
        self.deleted(ids);
        Ok(result)
    }

    async fn delete_instance_bulk(
        &self,
        filter: InstanceFilter,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        let mut gone = Vec::new();
        let result = self.change(|state, _, rules| {
            let mut total = DeleteInstanceResult::default();
            let mut left = bulk_limit(&filter, rules);
            for root in state.bulk_roots(&filter, rules) {
                if left == 0 {
                    break;
                }
                let tree = state.tree(&root);
                let forced = rules.broken(Defect::BulkDeleteForcesChildren)
                    || rules.broken(Defect::BulkDeleteTakesRunning);
                if !forced && tree.iter().any(|id| state.is_running(id)) {
                    continue;
                }
                let deleted = state.delete(&tree, true, rules)?;
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
        self.change(|state, _, rules| match state.instances.contains_key(instance_id) {
            true => Ok(state.prune(instance_id, &options, rules)),
            false => refuse("prune_executions", format!("instance '{instance_id}' not found")),
        })
    }

    async fn prune_executions_bulk(
        &self,
        filter: InstanceFilter,
        options: PruneOptions,
    ) -> Result<PruneResult, ProviderError> {
        self.change(|state, _, rules| {
            let mut total = PruneResult::default();
            for id in state.bulk_candidates(&filter, rules) {
                if rules.broken(Defect::BulkPruneSkipsRunning) && state.is_running(&id) {
                    continue;
                }
                let pruned = state.prune(&id, &options, rules);
                total.instances_processed += pruned.instances_processed;
                total.executions_deleted += pruned.executions_deleted;
                total.events_deleted += pruned.events_deleted;
            }
            Ok(total)
        })
    }

    async fn query_instances(&self, query: &InstanceQuery) -> Result<InstancePage, ProviderError> {
        let state = self.state();
        let mut page = InstancePage::default();
        let mut passed = query.after.is_none();
        let mut skip = usize::from(!passed && self.rules().broken(Defect::PageSkipsOne));
        for id in state.newest_first(|_| true) {
            if !passed {
                passed = Some(&id) == query.after.as_ref();
                continue;
            }
            let Some(info) = state.info(&id).filter(|info| query.matches(info)) else { continue };
            if skip > 0 {
                skip -= 1;
                continue;
            }
            if page.instances.len() == query.page_size() {
                page.next = page.instances.last().map(|last| last.instance_id.clone());
                break;
            }
            page.instances.push(info);
        }
        match passed {
            true => Ok(page),
            false => refuse("query_instances", "page position not found: start again from the first page"),
        }
    }

    async fn list_dead_letters(&self, limit: usize) -> Result<Vec<DeadLetter>, ProviderError> {
        Ok(self.state().dead_letters.iter().rev().take(limit).cloned().collect())
    }

    async fn pending(&self, instance: &str, limit: usize) -> Result<Option<PendingWork>, ProviderError> {
        self.change(|state, now, rules| Ok(Some(state.pending(instance, limit, now, rules))))
    }
}

impl State {
    /// Messages for orchestrations that no live lease covers.
    fn waiting_messages(&self, now: u64) -> impl Iterator<Item = &Message> {
        self.messages.iter().filter(move |message| {
            let lease = self.live_lease(&message.instance, now).map(|lease| &lease.token);
            message.token.is_none() || lease != message.token.as_ref()
        })
    }

    /// Activities that no live lease covers.
    fn waiting_work(&self, now: u64) -> impl Iterator<Item = &Work> {
        self.work.rows.values().filter(move |work| !work.is_leased(now))
    }

    fn newest_first(&self, wanted: impl Fn(&str) -> bool) -> Vec<String> {
        let mut ids: Vec<_> = self.instances.iter().filter(|(id, _)| wanted(id)).collect();
        // By the order of creation, whatever the clock did meanwhile.
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

    fn tree(&self, root: &str) -> Vec<String> {
        let mut seen = BTreeSet::from([root.to_string()]);
        let mut all = vec![root.to_string()];
        let mut next = 0;
        while let Some(id) = all.get(next).cloned() {
            all.extend(self.children(&id).into_iter().filter(|child| seen.insert(child.clone())));
            next += 1;
        }
        all
    }

    fn delete(
        &mut self,
        ids: &[String],
        force: bool,
        rules: &Rules,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        const DELETE: &str = "delete_instances_atomic";
        if let Some(id) = ids.iter().find(|id| self.is_running(id))
            && !force
            && !rules.broken(Defect::DeleteIgnoresRunning)
        {
            return refuse(
                DELETE,
                format!("instance '{id}' is still running: cancel it first, or use force"),
            );
        }
        let left_behind = ids.iter().flat_map(|id| self.children(id)).find(|child| !ids.contains(child));
        if let Some(child) = left_behind
            && !rules.broken(Defect::DeleteOrphansChildren)
        {
            return refuse(DELETE, format!("child '{child}' would be orphaned: delete the whole tree"));
        }
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
            if !rules.broken(Defect::DeleteKeepsWork) {
                deleted.queue_messages_deleted += self.work.remove_where(|work| work.instance == *id);
            }
            if !rules.broken(Defect::DeleteKeepsLease) {
                self.leases.remove(id);
            }
            if !rules.broken(Defect::DeleteKeepsKv) {
                self.kv_store.remove(id);
                self.kv_delta.remove(id);
            }
        }
        Ok(deleted)
    }

    /// Instances that a bulk filter selects, oldest first.
    fn bulk_candidates(&self, filter: &InstanceFilter, rules: &Rules) -> Vec<String> {
        let mut ids = self.bulk_matching(filter, |_| true);
        ids.truncate(bulk_limit(filter, rules));
        ids
    }

    /// Finished roots that a bulk filter selects, oldest first. One with a running descendant stays and does not
    /// count, so the limit is not applied here.
    fn bulk_roots(&self, filter: &InstanceFilter, rules: &Rules) -> Vec<String> {
        self.bulk_matching(filter, |id| {
            let root = self.instances.get(id).is_some_and(|row| row.parent_instance_id.is_none());
            let status = self.current_execution(id).and_then(|row| ExecutionStatus::from_text(&row.status));
            let finished = status.is_some_and(ExecutionStatus::ends_instance);
            root && (finished || rules.broken(Defect::BulkDeleteTakesRunning))
        })
    }

    fn bulk_matching(&self, filter: &InstanceFilter, wanted: impl Fn(&str) -> bool) -> Vec<String> {
        let mut ids = self.newest_first(|id| {
            let listed = filter.instance_ids.as_ref().is_none_or(|ids| ids.iter().any(|wanted| wanted == id));
            let ended = self.current_execution(id).and_then(|row| row.completed_at);
            let early = filter.completed_before.is_none_or(|before| ended.is_some_and(|at| at < before));
            listed && early && wanted(id)
        });
        ids.reverse();
        ids
    }

    fn prune(&mut self, instance: &str, options: &PruneOptions, rules: &Rules) -> PruneResult {
        let current = self.instances.get(instance).map(|row| row.current_execution_id);
        let executions = self.executions.entry(instance.to_string()).or_default();
        let keep = options.keep_last.unwrap_or(0) as usize;
        let kept: Vec<u64> = executions.keys().rev().take(keep).copied().collect();
        let doomed: Vec<u64> = executions
            .iter()
            .filter(|(id, row)| {
                let protected = Some(**id) == current && !rules.broken(Defect::PruneCurrentExecution);
                let early = options
                    .completed_before
                    .is_none_or(|before| row.completed_at.is_some_and(|at| at < before))
                    || rules.broken(Defect::PruneIgnoresCutoff);
                !protected && row.status != ExecutionStatus::Running.as_str() && !kept.contains(id) && early
            })
            .map(|(id, _)| *id)
            .collect();
        let mut result = PruneResult { instances_processed: 1, ..PruneResult::default() };
        for execution_id in doomed {
            executions.remove(&execution_id);
            let events = self.history.remove(&(instance.to_string(), execution_id));
            result.executions_deleted += 1;
            result.events_deleted += events.map_or(0, |events| events.len() as u64);
        }
        if rules.broken(Defect::PruneDeletesKv) {
            self.kv_store.remove(instance);
        }
        result
    }
}

/// How many instances a bulk operation takes.
fn bulk_limit(filter: &InstanceFilter, rules: &Rules) -> usize {
    match rules.broken(Defect::BulkDeleteIgnoresLimit) {
        true => usize::MAX,
        false => filter.limit.unwrap_or(DEFAULT_LIMIT) as usize,
    }
}
