//! A store with somebody in between, who sees every call before it is made and after it was answered.

use async_trait::async_trait;
use outlast::providers::{
    Completion, DispatcherCapabilityFilter, ExecutionMetadata, FetchedTurn, FetchedWork, InstanceOutcome,
    InstanceWatch, Interest, LoadedTurn, OrchestrationItem, Provider, ProviderAdmin, ProviderError,
    StartOutcome, StartRequest, TurnAhead, TurnCommit, TurnRequest, WorkItem, WorkRequest,
};
use outlast::{Event, ScheduledActivityIdentifier, SessionFetchConfig, SystemStats, TagFilter};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// Sees the calls, and may hold them up, refuse them, or panic.
#[async_trait]
pub(crate) trait Hook: Send + Sync + 'static {
    /// Before the store is called; with an error it is not.
    async fn before(&self, _call: &'static str) -> Result<(), ProviderError> {
        Ok(())
    }

    /// After the store has answered.
    async fn after(&self, _call: &'static str) {}

    /// Whether the store tells of its commits.
    fn watches(&self) -> bool {
        true
    }
}

pub(crate) struct Hooked<H> {
    inner: Arc<dyn Provider>,
    hook: Arc<H>,
}

impl<H: Hook> Hooked<H> {
    pub(crate) fn around(inner: Arc<dyn Provider>, hook: Arc<H>) -> Arc<dyn Provider> {
        Arc::new(Self { inner, hook })
    }
}

/// One method of the contract: the hook, the store, the hook.
macro_rules! hooked {
    ($self:ident . $call:ident ( $($argument:expr),* $(,)? )) => {{
        $self.hook.before(stringify!($call)).await?;
        let answer = $self.inner.$call($($argument),*).await;
        $self.hook.after(stringify!($call)).await;
        answer
    }};
}

#[async_trait]
impl<H: Hook> Provider for Hooked<H> {
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
        hooked!(self.fetch_orchestration_item(lock_timeout, poll_timeout, filter))
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
        hooked!(self.ack_orchestration_item(
            lock_token,
            execution_id,
            history_delta,
            worker_items,
            orchestrator_items,
            metadata,
            cancelled_activities,
        ))
    }

    /// Under the contract's name: it is the same operation.
    async fn commit_turn(&self, lock_token: &str, commit: TurnCommit) -> Result<Option<u64>, ProviderError> {
        self.hook.before("ack_orchestration_item").await?;
        let answer = self.inner.commit_turn(lock_token, commit).await;
        self.hook.after("ack_orchestration_item").await;
        answer
    }

    async fn abandon_orchestration_item(
        &self,
        lock_token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        hooked!(self.abandon_orchestration_item(lock_token, delay, ignore_attempt))
    }

    async fn read(&self, instance: &str) -> Result<Vec<Event>, ProviderError> {
        hooked!(self.read(instance))
    }

    async fn read_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<Event>, ProviderError> {
        hooked!(self.read_with_execution(instance, execution_id))
    }

    async fn append_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
        new_events: Vec<Event>,
    ) -> Result<(), ProviderError> {
        hooked!(self.append_with_execution(instance, execution_id, new_events))
    }

    async fn enqueue_for_worker(&self, item: WorkItem) -> Result<(), ProviderError> {
        hooked!(self.enqueue_for_worker(item))
    }

    async fn fetch_work_item(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        session: Option<&SessionFetchConfig>,
        tag_filter: &TagFilter,
    ) -> Result<Option<(WorkItem, String, u32)>, ProviderError> {
        hooked!(self.fetch_work_item(lock_timeout, poll_timeout, session, tag_filter))
    }

    async fn ack_work_item(&self, token: &str, completion: Option<WorkItem>) -> Result<(), ProviderError> {
        hooked!(self.ack_work_item(token, completion))
    }

    /// Under the contract's name: to whoever runs the activity it is the same operation.
    async fn complete_with_turn(
        &self,
        token: &str,
        completion: WorkItem,
        turn: TurnAhead,
    ) -> Result<Completion, ProviderError> {
        self.hook.before("ack_work_item").await?;
        let answer = self.inner.complete_with_turn(token, completion, turn).await;
        self.hook.after("ack_work_item").await;
        answer
    }

    async fn renew_work_item_lock(&self, token: &str, extend_for: Duration) -> Result<(), ProviderError> {
        hooked!(self.renew_work_item_lock(token, extend_for))
    }

    async fn renew_session_lock(
        &self,
        owner_ids: &[&str],
        extend_for: Duration,
        idle_timeout: Duration,
    ) -> Result<usize, ProviderError> {
        hooked!(self.renew_session_lock(owner_ids, extend_for, idle_timeout))
    }

    async fn cleanup_orphaned_sessions(&self, idle_timeout: Duration) -> Result<usize, ProviderError> {
        hooked!(self.cleanup_orphaned_sessions(idle_timeout))
    }

    async fn abandon_work_item(
        &self,
        token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        hooked!(self.abandon_work_item(token, delay, ignore_attempt))
    }

    async fn renew_orchestration_item_lock(
        &self,
        token: &str,
        extend_for: Duration,
    ) -> Result<(), ProviderError> {
        hooked!(self.renew_orchestration_item_lock(token, extend_for))
    }

    async fn enqueue_for_orchestrator(
        &self,
        item: WorkItem,
        delay: Option<Duration>,
    ) -> Result<(), ProviderError> {
        hooked!(self.enqueue_for_orchestrator(item, delay))
    }

    fn as_management_capability(&self) -> Option<&dyn ProviderAdmin> {
        self.inner.as_management_capability()
    }

    async fn get_custom_status(
        &self,
        instance: &str,
        last_seen_version: u64,
    ) -> Result<Option<(Option<String>, u64)>, ProviderError> {
        hooked!(self.get_custom_status(instance, last_seen_version))
    }

    async fn get_kv_value(&self, instance: &str, key: &str) -> Result<Option<String>, ProviderError> {
        hooked!(self.get_kv_value(instance, key))
    }

    async fn get_kv_all_values(&self, instance: &str) -> Result<HashMap<String, String>, ProviderError> {
        hooked!(self.get_kv_all_values(instance))
    }

    async fn get_instance_stats(&self, instance: &str) -> Result<Option<SystemStats>, ProviderError> {
        hooked!(self.get_instance_stats(instance))
    }

    async fn fetch_turn(&self, request: TurnRequest<'_>) -> Result<Option<FetchedTurn>, ProviderError> {
        hooked!(self.fetch_turn(request))
    }

    async fn load_turn(&self, instance: &str, execution_id: u64) -> Result<LoadedTurn, ProviderError> {
        hooked!(self.load_turn(instance, execution_id))
    }

    async fn fetch_work_items(&self, request: WorkRequest<'_>) -> Result<Vec<FetchedWork>, ProviderError> {
        hooked!(self.fetch_work_items(request))
    }

    async fn read_outcome(&self, instance: &str) -> Result<Option<InstanceOutcome>, ProviderError> {
        hooked!(self.read_outcome(instance))
    }

    async fn start_orchestration(&self, request: StartRequest) -> Result<StartOutcome, ProviderError> {
        hooked!(self.start_orchestration(request))
    }

    fn watch_instance(&self, instance: &str, interest: Interest) -> Option<InstanceWatch> {
        self.inner.watch_instance(instance, interest).filter(|_| self.hook.watches())
    }
}
