//! Step 9: lists and statistics for operators.

use crate::state::{State, refuse};
use outlast_provider::model::ExecutionStatus;
use outlast_provider::{
    DeadLetter, DeadLetterQueue, ExecutionInfo, InstanceInfo, ProviderError, QueueDepths, SystemMetrics,
};
use std::cmp::Reverse;

impl State {
    // guide: inspect
    /// Ids of the instances that match, newest first.
    pub(crate) fn newest_first(&self, matches: impl Fn(&str) -> bool) -> Vec<String> {
        let mut rows: Vec<_> = self.instances.iter().filter(|(id, _)| matches(id)).collect();
        rows.sort_by_key(|(_, row)| Reverse(row.ordinal));
        rows.into_iter().map(|(id, _)| id.clone()).collect()
    }

    pub(crate) fn instance_info(&self, instance: &str) -> Result<InstanceInfo, ProviderError> {
        let Some(row) = self.instances.get(instance) else {
            return refuse("get_instance_info", format!("instance '{instance}' not found"));
        };
        let execution = self.current_execution(instance);
        Ok(InstanceInfo {
            instance_id: instance.to_string(),
            orchestration_name: row.orchestration_name.clone(),
            orchestration_version: row.orchestration_version.clone(),
            current_execution_id: row.current_execution,
            status: execution.map_or_else(|| "Unknown".to_string(), |execution| execution.status.clone()),
            output: execution.and_then(|execution| execution.output.clone()),
            created_at: row.created_at,
            updated_at: row.updated_at,
            parent_instance_id: row.parent.clone(),
        })
    }
    // guide: end

    pub(crate) fn execution_info(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<ExecutionInfo, ProviderError> {
        let Some(row) = self.execution(instance, execution_id) else {
            let message = format!("execution {execution_id} of instance '{instance}' not found");
            return refuse("get_execution_info", message);
        };
        Ok(ExecutionInfo {
            execution_id,
            status: row.status.clone(),
            output: row.output.clone(),
            started_at: row.started_at,
            completed_at: row.completed_at,
            event_count: self.event_texts(instance, execution_id).count(),
        })
    }

    pub(crate) fn metrics(&self) -> SystemMetrics {
        let current = || self.instances.keys().filter_map(|id| self.current_execution(id));
        let with_status =
            |status: ExecutionStatus| current().filter(|row| row.status == status.as_str()).count() as u64;
        let events = self.history.values().flat_map(|executions| executions.values());
        SystemMetrics {
            total_instances: self.instances.len() as u64,
            total_executions: self.executions.values().map(|all| all.len() as u64).sum(),
            running_instances: with_status(ExecutionStatus::Running),
            completed_instances: with_status(ExecutionStatus::Completed),
            failed_instances: with_status(ExecutionStatus::Failed),
            total_events: events.map(|events| events.len() as u64).sum(),
        }
    }

    /// Rows without a held lease. Delayed rows count.
    pub(crate) fn queue_depths(&self, now: u64) -> QueueDepths {
        let held = self.leases.values().filter(|lease| lease.is_held(now));
        let held: Vec<&str> = held.map(|lease| lease.token.as_str()).collect();
        let is_covered = |token: &Option<String>| token.as_deref().is_some_and(|token| held.contains(&token));
        let waits = self.messages.values().filter(|message| !is_covered(&message.token));
        let activities = self.activities.values();
        let free =
            activities.filter(|activity| activity.lease.as_ref().is_none_or(|lease| !lease.is_held(now)));
        QueueDepths { orchestrator_queue: waits.count(), worker_queue: free.count(), timer_queue: 0 }
    }

    pub(crate) fn children(&self, parent: &str) -> Vec<String> {
        let children = self.instances.iter().filter(|(_, row)| row.parent.as_deref() == Some(parent));
        children.map(|(id, _)| id.clone()).collect()
    }

    pub(crate) fn parent(&self, instance: &str) -> Result<Option<String>, ProviderError> {
        match self.instances.get(instance) {
            Some(row) => Ok(row.parent.clone()),
            None => refuse("get_parent_id", format!("instance '{instance}' not found")),
        }
    }

    pub(crate) fn dead_letters(&self, limit: usize) -> Vec<DeadLetter> {
        let newest = self.dead_letters.iter().rev().take(limit);
        let letters = newest.map(|row| DeadLetter {
            queue: if row.is_activity { DeadLetterQueue::Worker } else { DeadLetterQueue::Orchestrator },
            instance_id: Some(row.instance.clone()),
            work_item: row.text.clone(),
            reason: row.reason.clone(),
            attempt_count: row.attempts,
            dead_at: row.dead_at,
        });
        letters.collect()
    }
}
