//! The store as it stands after a step of the tutorial: methods of later steps are not implemented.

use super::factory::Factory;
use async_trait::async_trait;
use outlast_conformance::ProviderFactory;
use outlast_provider::model::{Event, SystemStats};
use outlast_provider::*;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

type Answer<T> = Result<T, ProviderError>;

pub(super) struct UpTo {
    pub(super) step: u32,
    pub(super) store: Arc<dyn Provider>,
}

impl UpTo {
    /// The store, if it has this method by now.
    fn since(&self, step: u32, method: &str) -> Answer<&dyn Provider> {
        match self.step >= step {
            true => Ok(&*self.store),
            false => Err(ProviderError::permanent(method, "not implemented")),
        }
    }
}

#[async_trait]
impl Provider for UpTo {
    async fn enqueue_for_orchestrator(&self, item: WorkItem, delay: Option<Duration>) -> Answer<()> {
        self.since(2, "enqueue_for_orchestrator")?.enqueue_for_orchestrator(item, delay).await
    }
    async fn enqueue_for_worker(&self, item: WorkItem) -> Answer<()> {
        self.since(2, "enqueue_for_worker")?.enqueue_for_worker(item).await
    }
    async fn read(&self, instance: &str) -> Answer<Vec<Event>> {
        self.since(2, "read")?.read(instance).await
    }
    async fn read_with_execution(&self, instance: &str, execution_id: u64) -> Answer<Vec<Event>> {
        self.since(2, "read_with_execution")?.read_with_execution(instance, execution_id).await
    }
    async fn append_with_execution(&self, instance: &str, id: u64, events: Vec<Event>) -> Answer<()> {
        self.since(2, "append_with_execution")?.append_with_execution(instance, id, events).await
    }
    async fn fetch_orchestration_item(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        filter: Option<&DispatcherCapabilityFilter>,
    ) -> Answer<Option<(OrchestrationItem, String, u32)>> {
        let store = self.since(3, "fetch_orchestration_item")?;
        store.fetch_orchestration_item(lock_timeout, poll_timeout, filter).await
    }
    async fn ack_orchestration_item(
        &self,
        token: &str,
        execution_id: u64,
        delta: Vec<Event>,
        work: Vec<WorkItem>,
        messages: Vec<WorkItem>,
        metadata: ExecutionMetadata,
        cancelled: Vec<ScheduledActivityIdentifier>,
    ) -> Answer<()> {
        let store = self.since(4, "ack_orchestration_item")?;
        store.ack_orchestration_item(token, execution_id, delta, work, messages, metadata, cancelled).await
    }
    async fn abandon_orchestration_item(
        &self,
        token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Answer<()> {
        let store = self.since(5, "abandon_orchestration_item")?;
        store.abandon_orchestration_item(token, delay, ignore_attempt).await
    }
    async fn renew_orchestration_item_lock(&self, token: &str, extend_for: Duration) -> Answer<()> {
        let store = self.since(5, "renew_orchestration_item_lock")?;
        store.renew_orchestration_item_lock(token, extend_for).await
    }
    async fn fetch_work_item(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        session: Option<&SessionFetchConfig>,
        tags: &TagFilter,
    ) -> Answer<Option<(WorkItem, String, u32)>> {
        let store = self.since(6, "fetch_work_item")?;
        store.fetch_work_item(lock_timeout, poll_timeout, session, tags).await
    }
    async fn ack_work_item(&self, token: &str, completion: Option<WorkItem>) -> Answer<()> {
        self.since(6, "ack_work_item")?.ack_work_item(token, completion).await
    }
    async fn renew_work_item_lock(&self, token: &str, extend_for: Duration) -> Answer<()> {
        self.since(6, "renew_work_item_lock")?.renew_work_item_lock(token, extend_for).await
    }
    async fn abandon_work_item(
        &self,
        token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Answer<()> {
        self.since(6, "abandon_work_item")?.abandon_work_item(token, delay, ignore_attempt).await
    }
    async fn renew_session_lock(
        &self,
        owners: &[&str],
        extend_for: Duration,
        idle: Duration,
    ) -> Answer<usize> {
        self.since(7, "renew_session_lock")?.renew_session_lock(owners, extend_for, idle).await
    }
    async fn cleanup_orphaned_sessions(&self, idle: Duration) -> Answer<usize> {
        self.since(7, "cleanup_orphaned_sessions")?.cleanup_orphaned_sessions(idle).await
    }
    async fn get_custom_status(&self, instance: &str, seen: u64) -> Answer<Option<(Option<String>, u64)>> {
        self.since(8, "get_custom_status")?.get_custom_status(instance, seen).await
    }
    async fn get_kv_value(&self, instance: &str, key: &str) -> Answer<Option<String>> {
        self.since(8, "get_kv_value")?.get_kv_value(instance, key).await
    }
    async fn get_kv_all_values(&self, instance: &str) -> Answer<HashMap<String, String>> {
        self.since(8, "get_kv_all_values")?.get_kv_all_values(instance).await
    }
    async fn get_instance_stats(&self, instance: &str) -> Answer<Option<SystemStats>> {
        self.since(8, "get_instance_stats")?.get_instance_stats(instance).await
    }
    fn as_management_capability(&self) -> Option<&dyn ProviderAdmin> {
        self.since(9, "as_management_capability").ok()?.as_management_capability()
    }
}

/// The factory of the store, with its later methods taken away.
#[derive(Default)]
pub(super) struct UpToFactory {
    pub(super) step: u32,
    pub(super) inner: Factory,
}

#[async_trait]
impl ProviderFactory for UpToFactory {
    async fn create_provider(&self) -> Arc<dyn Provider> {
        Arc::new(UpTo { step: self.step, store: self.inner.create_provider().await })
    }
    fn now_ms(&self) -> u64 {
        self.inner.now_ms()
    }
    fn waits(&self) -> bool {
        self.step >= 10
    }
    fn shows_pending(&self) -> bool {
        true
    }

    fn corrupts_queues(&self) -> bool {
        true
    }
    async fn corrupt_instance_history(&self, instance: &str) {
        self.inner.corrupt_instance_history(instance).await;
    }
    async fn corrupt_orchestrator_messages(&self, instance: &str) {
        self.inner.corrupt_orchestrator_messages(instance).await;
    }
    async fn corrupt_work_items(&self, instance: &str) {
        self.inner.corrupt_work_items(instance).await;
    }
    async fn get_max_attempt_count(&self, instance: &str) -> u32 {
        self.inner.get_max_attempt_count(instance).await
    }
}
