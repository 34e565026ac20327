//! A store that records its calls and acknowledgements.

use super::call_log::{CallLog, CallState};
use async_trait::async_trait;
use outlast_model::{Event, SystemStats, WorkItem};
use outlast_provider::{
    Completion, DispatcherCapabilityFilter, ExecutionMetadata, FetchedTurn, FetchedWork, InstanceOutcome,
    InstanceWatch, Interest, LoadedTurn, OrchestrationItem, Provider, ProviderAdmin, ProviderError,
    ScheduledActivityIdentifier, SessionFetchConfig, StartOutcome, StartRequest, TagFilter, TurnAhead,
    TurnCommit, TurnRequest, WorkRequest,
};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// Wraps the shipped store. Every method is forwarded; calls that change the store are recorded before, as unanswered,
/// and after, as acknowledged.
pub(crate) struct RecordingStore {
    pub(crate) inner: Arc<dyn Provider>,
    pub(crate) call_log: Arc<CallLog>,
}

#[async_trait]
impl Provider for RecordingStore {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn version(&self) -> &str {
        self.inner.version()
    }

    async fn fetch_orchestration_item(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        filter: Option<&DispatcherCapabilityFilter>,
    ) -> Result<Option<(OrchestrationItem, String, u32)>, ProviderError> {
        self.inner.fetch_orchestration_item(lock_timeout, poll_timeout, filter).await
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
        let delta = history_delta.clone();
        self.call_log.committing(&delta);
        let call = self.inner.ack_orchestration_item(
            lock_token,
            execution_id,
            history_delta,
            worker_items,
            orchestrator_items,
            metadata,
            cancelled_activities,
        );
        call.await.inspect(|()| self.call_log.committed(&delta))
    }

    async fn abandon_orchestration_item(
        &self,
        lock_token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        self.inner.abandon_orchestration_item(lock_token, delay, ignore_attempt).await
    }

    async fn read(&self, instance: &str) -> Result<Vec<Event>, ProviderError> {
        self.inner.read(instance).await
    }

    async fn read_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<Event>, ProviderError> {
        self.inner.read_with_execution(instance, execution_id).await
    }

    async fn append_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
        new_events: Vec<Event>,
    ) -> Result<(), ProviderError> {
        self.inner.append_with_execution(instance, execution_id, new_events).await
    }

    async fn enqueue_for_worker(&self, item: WorkItem) -> Result<(), ProviderError> {
        self.inner.enqueue_for_worker(item).await
    }

    async fn fetch_work_item(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        session: Option<&SessionFetchConfig>,
        tag_filter: &TagFilter,
    ) -> Result<Option<(WorkItem, String, u32)>, ProviderError> {
        self.inner.fetch_work_item(lock_timeout, poll_timeout, session, tag_filter).await
    }

    async fn ack_work_item(&self, token: &str, completion: Option<WorkItem>) -> Result<(), ProviderError> {
        self.call_log.activity_state(completion.as_ref(), CallState::Unanswered);
        let done = self.inner.ack_work_item(token, completion.clone()).await;
        done.inspect(|()| self.call_log.activity_state(completion.as_ref(), CallState::Acknowledged))
    }

    async fn complete_with_turn(
        &self,
        token: &str,
        completion: WorkItem,
        turn: TurnAhead,
    ) -> Result<Completion, ProviderError> {
        let delta = turn.commit.history_delta.clone();
        self.call_log.activity_state(Some(&completion), CallState::Unanswered);
        self.call_log.committing(&delta);
        let done = self.inner.complete_with_turn(token, completion.clone(), turn).await;
        done.inspect(|completed| {
            self.call_log.activity_state(Some(&completion), CallState::Acknowledged);
            if let Completion::WithTurn { .. } = completed {
                self.call_log.committed(&delta);
            }
        })
    }

    async fn renew_work_item_lock(&self, token: &str, extend_for: Duration) -> Result<(), ProviderError> {
        self.inner.renew_work_item_lock(token, extend_for).await
    }

    async fn renew_session_lock(
        &self,
        owner_ids: &[&str],
        extend_for: Duration,
        idle_timeout: Duration,
    ) -> Result<usize, ProviderError> {
        self.inner.renew_session_lock(owner_ids, extend_for, idle_timeout).await
    }

    async fn cleanup_orphaned_sessions(&self, idle_timeout: Duration) -> Result<usize, ProviderError> {
        self.inner.cleanup_orphaned_sessions(idle_timeout).await
    }

    async fn abandon_work_item(
        &self,
        token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        self.inner.abandon_work_item(token, delay, ignore_attempt).await
    }

    async fn renew_orchestration_item_lock(
        &self,
        token: &str,
        extend_for: Duration,
    ) -> Result<(), ProviderError> {
        self.inner.renew_orchestration_item_lock(token, extend_for).await
    }

    async fn enqueue_for_orchestrator(
        &self,
        item: WorkItem,
        delay: Option<Duration>,
    ) -> Result<(), ProviderError> {
        self.call_log.sending(&item);
        self.inner.enqueue_for_orchestrator(item.clone(), delay).await.inspect(|()| self.call_log.sent(&item))
    }

    fn as_management_capability(&self) -> Option<&dyn ProviderAdmin> {
        self.inner.as_management_capability()
    }

    async fn get_custom_status(
        &self,
        instance: &str,
        last_seen_version: u64,
    ) -> Result<Option<(Option<String>, u64)>, ProviderError> {
        self.inner.get_custom_status(instance, last_seen_version).await
    }

    async fn get_kv_value(&self, instance: &str, key: &str) -> Result<Option<String>, ProviderError> {
        self.inner.get_kv_value(instance, key).await
    }

    async fn get_kv_all_values(&self, instance: &str) -> Result<HashMap<String, String>, ProviderError> {
        self.inner.get_kv_all_values(instance).await
    }

    async fn get_instance_stats(&self, instance: &str) -> Result<Option<SystemStats>, ProviderError> {
        self.inner.get_instance_stats(instance).await
    }

    async fn fetch_turn(&self, request: TurnRequest<'_>) -> Result<Option<FetchedTurn>, ProviderError> {
        self.inner.fetch_turn(request).await
    }

    async fn load_turn(&self, instance: &str, execution_id: u64) -> Result<LoadedTurn, ProviderError> {
        self.inner.load_turn(instance, execution_id).await
    }

    async fn commit_turn(&self, lock_token: &str, commit: TurnCommit) -> Result<Option<u64>, ProviderError> {
        let delta = commit.history_delta.clone();
        self.call_log.committing(&delta);
        self.inner.commit_turn(lock_token, commit).await.inspect(|_| self.call_log.committed(&delta))
    }

    async fn fetch_work_items(&self, request: WorkRequest<'_>) -> Result<Vec<FetchedWork>, ProviderError> {
        self.inner.fetch_work_items(request).await
    }

    async fn read_outcome(&self, instance: &str) -> Result<Option<InstanceOutcome>, ProviderError> {
        self.inner.read_outcome(instance).await
    }

    async fn enqueue_within(&self, item: WorkItem, most_waiting: usize) -> Result<bool, ProviderError> {
        self.call_log.sending(&item);
        let done = self.inner.enqueue_within(item.clone(), most_waiting).await;
        done.inspect(|enqueued| {
            if *enqueued {
                self.call_log.sent(&item)
            }
        })
    }

    async fn start_orchestration(&self, request: StartRequest) -> Result<StartOutcome, ProviderError> {
        let items: Vec<WorkItem> = [&request.start].into_iter().chain(&request.messages).cloned().collect();
        items.iter().for_each(|item| self.call_log.sending(item));
        let done = self.inner.start_orchestration(request).await;
        if matches!(done, Ok(StartOutcome::Started)) {
            items.iter().for_each(|item| self.call_log.sent(item));
        }
        done
    }

    fn watch_instance(&self, instance: &str, interest: Interest) -> Option<InstanceWatch> {
        self.inner.watch_instance(instance, interest)
    }
}
