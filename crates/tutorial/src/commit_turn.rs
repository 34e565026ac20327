//! Step 4: a commit writes the whole turn and releases the lease.

use crate::state::{Execution, Instance, State, refuse};
use outlast_provider::model::ExecutionStatus;
use outlast_provider::{ExecutionMetadata, ProviderError, ScheduledActivityIdentifier};
use outlast_provider_kit::{CommitPlan, invalid_token, is_final};

const ACK: &str = "ack_orchestration_item";

impl State {
    // guide: commit
    pub(crate) fn commit(&mut self, token: &str, plan: CommitPlan, now: u64) -> Result<(), ProviderError> {
        // The fence: a commit without a live lease writes nothing.
        let instance = self.held_instance(ACK, token, now)?;
        let ends_execution = plan.ends_execution();
        self.messages.retain(|_, message| message.token.as_deref() != Some(token));
        self.record_instance(&instance, plan.execution_id, &plan.metadata, now);
        self.record_execution(&instance, plan.execution_id, &plan.metadata, now);
        self.append(ACK, &instance, plan.execution_id, plan.history)?;
        if let (Some(status), Some(row)) = (plan.custom_status, self.instances.get_mut(&instance)) {
            row.custom_status = status;
            row.custom_status_version += 1;
        }
        self.change_values(&instance, plan.kv);
        if ends_execution {
            self.merge_values(&instance);
        }
        for activity in plan.activities {
            self.push_activity(activity, now);
        }
        // Cancelled activities are removed after the turn's activities are stored: an activity in both lists never runs.
        self.cancel(&plan.cancelled);
        for message in plan.messages {
            self.push_message(message, None, now);
        }
        self.leases.remove(&instance);
        Ok(())
    }

    /// The instance whose lease has this token and is held now.
    pub(crate) fn held_instance(
        &self,
        operation: &str,
        token: &str,
        now: u64,
    ) -> Result<String, ProviderError> {
        let held = self.leases.iter().find(|(_, lease)| lease.token == token && lease.is_held(now));
        match held {
            Some((instance, _)) => Ok(instance.clone()),
            None => refuse(operation, invalid_token(token)),
        }
    }
    // guide: end

    // guide: record
    fn record_instance(&mut self, instance: &str, execution_id: u64, metadata: &ExecutionMetadata, now: u64) {
        if let (Some(name), Some(version)) = (&metadata.orchestration_name, &metadata.orchestration_version) {
            let ordinal = self.next_ordinal();
            let row = self.instances.entry(instance.to_string()).or_insert_with(|| Instance {
                orchestration_name: String::new(),
                orchestration_version: String::new(),
                current_execution: execution_id,
                parent: metadata.parent_instance_id.clone(),
                custom_status: None,
                custom_status_version: 0,
                created_at: now,
                updated_at: now,
                ordinal,
            });
            row.orchestration_name.clone_from(name);
            row.orchestration_version.clone_from(version);
        }
        if let Some(row) = self.instances.get_mut(instance) {
            row.current_execution = row.current_execution.max(execution_id);
            row.updated_at = now;
        }
    }

    fn record_execution(
        &mut self,
        instance: &str,
        execution_id: u64,
        metadata: &ExecutionMetadata,
        now: u64,
    ) {
        let executions = self.executions.entry(instance.to_string()).or_default();
        let row = executions.entry(execution_id).or_insert_with(|| Execution {
            status: ExecutionStatus::Running.to_string(),
            output: None,
            started_at: now,
            completed_at: None,
            pinned_version: None,
        });
        if let Some(status) = &metadata.status {
            row.status.clone_from(status);
            row.output.clone_from(&metadata.output);
            row.completed_at = is_final(status).then_some(now);
        }
        if let Some(version) = &metadata.pinned_duroxide_version {
            row.pinned_version = Some(version.to_string());
        }
    }
    // guide: end

    fn cancel(&mut self, cancelled: &[ScheduledActivityIdentifier]) {
        self.activities.retain(|_, activity| {
            !cancelled.iter().any(|cancelled| {
                cancelled.instance == activity.instance
                    && cancelled.execution_id == activity.execution_id
                    && cancelled.activity_id == activity.activity_id
            })
        });
    }
}
