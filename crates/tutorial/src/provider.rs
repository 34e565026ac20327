//! The provider trait: each method calls the function of one file.

use crate::store::FileStore;
use async_trait::async_trait;
use outlast_provider::model::{Event, SystemStats};
use outlast_provider::{
    DispatcherCapabilityFilter, ExecutionMetadata, OrchestrationItem, Provider, ProviderAdmin, ProviderError,
    ScheduledActivityIdentifier, SessionFetchConfig, StartOutcome, StartRequest, TagFilter, WorkItem,
};
use outlast_provider_kit::CommitPlan;
use std::collections::HashMap;
use std::time::Duration;

#[async_trait]
impl Provider for FileStore {
    fn name(&self) -> &str {
        "file"
    }

    fn version(&self) -> &str {
        env!("CARGO_PKG_VERSION")
    }

    // guide: provider-enqueue
    async fn enqueue_for_orchestrator(
        &self,
        item: WorkItem,
        delay: Option<Duration>,
    ) -> Result<(), ProviderError> {
        self.change("enqueue_for_orchestrator", |state, now| {
            state.enqueue_for_orchestrator(&item, delay, now)
        })
    }

    async fn enqueue_for_worker(&self, item: WorkItem) -> Result<(), ProviderError> {
        self.change("enqueue_for_worker", |state, now| state.enqueue_for_worker(&item, now))
    }
    // guide: end

    async fn read(&self, instance: &str) -> Result<Vec<Event>, ProviderError> {
        self.look(|state, _| state.read(instance, state.newest_execution(instance)))
    }

    async fn read_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<Event>, ProviderError> {
        self.look(|state, _| state.read(instance, execution_id))
    }

    async fn append_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
        new_events: Vec<Event>,
    ) -> Result<(), ProviderError> {
        self.change("append_with_execution", |state, _| {
            state.append_with_execution(instance, execution_id, &new_events)
        })
    }

    // guide: provider-turn
    async fn fetch_orchestration_item(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        filter: Option<&DispatcherCapabilityFilter>,
    ) -> Result<Option<(OrchestrationItem, String, u32)>, ProviderError> {
        self.fetch("fetch_orchestration_item", poll_timeout, |state, now| {
            state.fetch_turn(now, lock_timeout, filter)
        })
        .await
    }

    async fn ack_orchestration_item(
        &self,
        lock_token: &str,
        execution_id: u64,
        history_delta: Vec<Event>,
        worker_items: Vec<WorkItem>,
        orchestrator_items: Vec<WorkItem>,
        metadata: ExecutionMetadata,
        cancelled_activities: Vec<ScheduledActivityIdentifier>,
    ) -> Result<(), ProviderError> {
        // The plan checks and encodes the turn before any table changes.
        let plan = CommitPlan::new(
            execution_id,
            &history_delta,
            &worker_items,
            &orchestrator_items,
            metadata,
            cancelled_activities,
        )?;
        self.change("ack_orchestration_item", |state, now| state.commit(lock_token, plan, now))
    }
    // guide: end

    async fn abandon_orchestration_item(
        &self,
        lock_token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        self.change("abandon_orchestration_item", |state, now| {
            state.abandon_turn(lock_token, delay, ignore_attempt, now)
        })
    }

    async fn renew_orchestration_item_lock(
        &self,
        token: &str,
        extend_for: Duration,
    ) -> Result<(), ProviderError> {
        self.change("renew_orchestration_item_lock", |state, now| state.renew_turn(token, extend_for, now))
    }

    async fn fetch_work_item(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        session: Option<&SessionFetchConfig>,
        tag_filter: &TagFilter,
    ) -> Result<Option<(WorkItem, String, u32)>, ProviderError> {
        if *tag_filter == TagFilter::None {
            return Ok(None);
        }
        self.fetch("fetch_work_item", poll_timeout, |state, now| {
            state.fetch_activity(now, lock_timeout, session, tag_filter)
        })
        .await
    }

    async fn ack_work_item(&self, token: &str, completion: Option<WorkItem>) -> Result<(), ProviderError> {
        self.change("ack_work_item", |state, now| state.ack_activity(token, completion.as_ref(), now))
    }

    async fn renew_work_item_lock(&self, token: &str, extend_for: Duration) -> Result<(), ProviderError> {
        self.change("renew_work_item_lock", |state, now| state.renew_activity(token, extend_for, now))
    }

    async fn abandon_work_item(
        &self,
        token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        self.change("abandon_work_item", |state, now| {
            state.abandon_activity(token, delay, ignore_attempt, now)
        })
    }

    async fn renew_session_lock(
        &self,
        owner_ids: &[&str],
        extend_for: Duration,
        idle_timeout: Duration,
    ) -> Result<usize, ProviderError> {
        self.change("renew_session_lock", |state, now| {
            Ok(state.renew_sessions(owner_ids, extend_for, idle_timeout, now))
        })
    }

    async fn cleanup_orphaned_sessions(&self, _idle_timeout: Duration) -> Result<usize, ProviderError> {
        self.change("cleanup_orphaned_sessions", |state, now| Ok(state.cleanup_sessions(now)))
    }

    async fn get_custom_status(
        &self,
        instance: &str,
        last_seen_version: u64,
    ) -> Result<Option<(Option<String>, u64)>, ProviderError> {
        self.look(|state, _| {
            let row = state.instances.get(instance);
            let newer = row.filter(|row| row.custom_status_version > last_seen_version);
            Ok(newer.map(|row| (row.custom_status.clone(), row.custom_status_version)))
        })
    }

    async fn get_kv_value(&self, instance: &str, key: &str) -> Result<Option<String>, ProviderError> {
        Ok(self.look(|state, _| state.live_values(instance).remove(key)))
    }

    async fn get_kv_all_values(&self, instance: &str) -> Result<HashMap<String, String>, ProviderError> {
        Ok(self.look(|state, _| state.live_values(instance)))
    }

    async fn get_instance_stats(&self, instance: &str) -> Result<Option<SystemStats>, ProviderError> {
        self.look(|state, _| state.stats(instance))
    }

    // guide: discovery
    fn as_management_capability(&self) -> Option<&dyn ProviderAdmin> {
        Some(self)
    }
    // guide: end

    async fn start_orchestration(&self, request: StartRequest) -> Result<StartOutcome, ProviderError> {
        self.change("start_orchestration", |state, now| state.start(&request, now))
    }
}
