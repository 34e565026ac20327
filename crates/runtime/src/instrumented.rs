//! A store whose calls are timed and whose errors are counted.

use crate::observability::{MetricsProvider, Stopwatch};
use async_trait::async_trait;
use outlast_model::{Event, SystemStats, WorkItem};
use outlast_provider::{
    BoundedTurn, Completion, DispatcherCapabilityFilter, ExecutionMetadata, FetchedTurn, FetchedWork,
    HistoryBound, InstanceOutcome, InstanceWatch, Interest, LoadedTurn, OrchestrationItem, Provider,
    ProviderAdmin, ProviderError, ScheduledActivityIdentifier, SessionFetchConfig, StartOutcome,
    StartRequest, TagFilter, TurnAhead, TurnCommit, TurnRequest, WorkRequest,
};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// Wraps a store and records each of its calls in the metrics. Every method is forwarded to its namesake, the additive
/// ones too: their defaults would hide what the store can do better.
pub struct InstrumentedProvider {
    inner: Arc<dyn Provider>,
    metrics: Option<Arc<MetricsProvider>>,
}

impl InstrumentedProvider {
    /// Wraps a store; without metrics calls are only forwarded.
    pub fn new(inner: Arc<dyn Provider>, metrics: Option<Arc<MetricsProvider>>) -> Self {
        Self { inner, metrics }
    }

    async fn timed<T>(
        &self,
        operation: &'static str,
        call: impl Future<Output = Result<T, ProviderError>>,
    ) -> Result<T, ProviderError> {
        let Some(metrics) = &self.metrics else { return call.await };
        let stopwatch = Stopwatch::start();
        let result = call.await;
        let status = if result.is_ok() { "success" } else { "error" };
        metrics.provider_operation(operation, stopwatch.seconds(), status);
        if let Err(error) = &result {
            metrics.provider_error(operation, error_type(error));
        }
        result
    }
}

/// A coarse class for dashboards (api 9.2). Nothing decides by it, which is why it may look at the text.
fn error_type(error: &ProviderError) -> &'static str {
    ["deadlock", "timeout", "connection"]
        .into_iter()
        .find(|kind| error.message.contains(kind))
        .unwrap_or("other")
}

/// Names of operations are those of api 9.2 where it has one: a turn fetched for a warm execution is still a
/// `fetch_orchestration_item`, and a batch of activities is still a `fetch_work_item`.
#[async_trait]
impl Provider for InstrumentedProvider {
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
        let call = self.inner.fetch_orchestration_item(lock_timeout, poll_timeout, filter);
        self.timed("fetch_orchestration_item", call).await
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
        let call = self.inner.ack_orchestration_item(
            lock_token,
            execution_id,
            history_delta,
            worker_items,
            orchestrator_items,
            metadata,
            cancelled_activities,
        );
        self.timed("ack_orchestration_item", call).await
    }

    async fn abandon_orchestration_item(
        &self,
        lock_token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        let call = self.inner.abandon_orchestration_item(lock_token, delay, ignore_attempt);
        self.timed("abandon_orchestration_item", call).await
    }

    async fn read(&self, instance: &str) -> Result<Vec<Event>, ProviderError> {
        self.timed("read", self.inner.read(instance)).await
    }

    async fn read_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<Event>, ProviderError> {
        self.timed("read_with_execution", self.inner.read_with_execution(instance, execution_id)).await
    }

    async fn append_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
        new_events: Vec<Event>,
    ) -> Result<(), ProviderError> {
        let call = self.inner.append_with_execution(instance, execution_id, new_events);
        self.timed("append_with_execution", call).await
    }

    async fn enqueue_for_worker(&self, item: WorkItem) -> Result<(), ProviderError> {
        self.timed("enqueue_worker", self.inner.enqueue_for_worker(item)).await
    }

    async fn fetch_work_item(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        session: Option<&SessionFetchConfig>,
        tag_filter: &TagFilter,
    ) -> Result<Option<(WorkItem, String, u32)>, ProviderError> {
        let call = self.inner.fetch_work_item(lock_timeout, poll_timeout, session, tag_filter);
        self.timed("fetch_work_item", call).await
    }

    async fn ack_work_item(&self, token: &str, completion: Option<WorkItem>) -> Result<(), ProviderError> {
        self.timed("ack_work_item", self.inner.ack_work_item(token, completion)).await
    }

    async fn renew_work_item_lock(&self, token: &str, extend_for: Duration) -> Result<(), ProviderError> {
        self.timed("renew_work_item_lock", self.inner.renew_work_item_lock(token, extend_for)).await
    }

    async fn renew_session_lock(
        &self,
        owner_ids: &[&str],
        extend_for: Duration,
        idle_timeout: Duration,
    ) -> Result<usize, ProviderError> {
        let call = self.inner.renew_session_lock(owner_ids, extend_for, idle_timeout);
        self.timed("renew_session_lock", call).await
    }

    async fn cleanup_orphaned_sessions(&self, idle_timeout: Duration) -> Result<usize, ProviderError> {
        self.timed("cleanup_orphaned_sessions", self.inner.cleanup_orphaned_sessions(idle_timeout)).await
    }

    async fn abandon_work_item(
        &self,
        token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        self.timed("abandon_work_item", self.inner.abandon_work_item(token, delay, ignore_attempt)).await
    }

    async fn renew_orchestration_item_lock(
        &self,
        token: &str,
        extend_for: Duration,
    ) -> Result<(), ProviderError> {
        let call = self.inner.renew_orchestration_item_lock(token, extend_for);
        self.timed("renew_orchestration_item_lock", call).await
    }

    async fn enqueue_for_orchestrator(
        &self,
        item: WorkItem,
        delay: Option<Duration>,
    ) -> Result<(), ProviderError> {
        self.timed("enqueue_orchestrator", self.inner.enqueue_for_orchestrator(item, delay)).await
    }

    fn as_management_capability(&self) -> Option<&dyn ProviderAdmin> {
        self.inner.as_management_capability()
    }

    async fn get_custom_status(
        &self,
        instance: &str,
        last_seen_version: u64,
    ) -> Result<Option<(Option<String>, u64)>, ProviderError> {
        self.timed("get_custom_status", self.inner.get_custom_status(instance, last_seen_version)).await
    }

    async fn get_kv_value(&self, instance: &str, key: &str) -> Result<Option<String>, ProviderError> {
        self.timed("get_kv_value", self.inner.get_kv_value(instance, key)).await
    }

    async fn get_kv_all_values(&self, instance: &str) -> Result<HashMap<String, String>, ProviderError> {
        self.timed("get_kv_all_values", self.inner.get_kv_all_values(instance)).await
    }

    async fn get_instance_stats(&self, instance: &str) -> Result<Option<SystemStats>, ProviderError> {
        self.timed("get_instance_stats", self.inner.get_instance_stats(instance)).await
    }

    async fn fetch_turn(&self, request: TurnRequest<'_>) -> Result<Option<FetchedTurn>, ProviderError> {
        self.timed("fetch_orchestration_item", self.inner.fetch_turn(request)).await
    }

    async fn load_turn(&self, instance: &str, execution_id: u64) -> Result<LoadedTurn, ProviderError> {
        self.timed("load_turn", self.inner.load_turn(instance, execution_id)).await
    }

    async fn load_turn_within(
        &self,
        instance: &str,
        execution_id: u64,
        bound: HistoryBound,
    ) -> Result<BoundedTurn, ProviderError> {
        self.timed("load_turn", self.inner.load_turn_within(instance, execution_id, bound)).await
    }

    async fn commit_turn(&self, lock_token: &str, commit: TurnCommit) -> Result<Option<u64>, ProviderError> {
        self.timed("ack_orchestration_item", self.inner.commit_turn(lock_token, commit)).await
    }

    async fn fetch_work_items(&self, request: WorkRequest<'_>) -> Result<Vec<FetchedWork>, ProviderError> {
        self.timed("fetch_work_item", self.inner.fetch_work_items(request)).await
    }

    async fn complete_with_turn(
        &self,
        token: &str,
        completion: WorkItem,
        turn: TurnAhead,
    ) -> Result<Completion, ProviderError> {
        self.timed("ack_work_item", self.inner.complete_with_turn(token, completion, turn)).await
    }

    async fn read_outcome(&self, instance: &str) -> Result<Option<InstanceOutcome>, ProviderError> {
        self.timed("read_outcome", self.inner.read_outcome(instance)).await
    }

    async fn enqueue_within(&self, item: WorkItem, most_waiting: usize) -> Result<bool, ProviderError> {
        self.timed("enqueue_orchestrator", self.inner.enqueue_within(item, most_waiting)).await
    }

    async fn start_orchestration(&self, request: StartRequest) -> Result<StartOutcome, ProviderError> {
        self.timed("start_orchestration", self.inner.start_orchestration(request)).await
    }

    fn watch_instance(&self, instance: &str, interest: Interest) -> Option<InstanceWatch> {
        self.inner.watch_instance(instance, interest)
    }
}
