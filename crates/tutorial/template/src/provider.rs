//! The methods that run work.

use crate::{TemplateStore, not_implemented};
use async_trait::async_trait;
use outlast_provider::model::{Event, SystemStats};
use outlast_provider::{
    DispatcherCapabilityFilter, ExecutionMetadata, OrchestrationItem, Provider, ProviderAdmin, ProviderError,
    ScheduledActivityIdentifier, SessionFetchConfig, TagFilter, WorkItem,
};
use std::collections::HashMap;
use std::time::Duration;

#[async_trait]
impl Provider for TemplateStore {
    fn name(&self) -> &str {
        "template-store"
    }

    fn version(&self) -> &str {
        env!("CARGO_PKG_VERSION")
    }

    // Step 2: messages and history.

    async fn enqueue_for_orchestrator(
        &self,
        _item: WorkItem,
        _delay: Option<Duration>,
    ) -> Result<(), ProviderError> {
        not_implemented("enqueue_for_orchestrator")
    }

    async fn enqueue_for_worker(&self, _item: WorkItem) -> Result<(), ProviderError> {
        not_implemented("enqueue_for_worker")
    }

    async fn read(&self, _instance: &str) -> Result<Vec<Event>, ProviderError> {
        not_implemented("read")
    }

    async fn read_with_execution(
        &self,
        _instance: &str,
        _execution_id: u64,
    ) -> Result<Vec<Event>, ProviderError> {
        not_implemented("read_with_execution")
    }

    async fn append_with_execution(
        &self,
        _instance: &str,
        _execution_id: u64,
        _new_events: Vec<Event>,
    ) -> Result<(), ProviderError> {
        not_implemented("append_with_execution")
    }

    // Steps 3 to 5: turns.

    async fn fetch_orchestration_item(
        &self,
        _lock_timeout: Duration,
        _poll_timeout: Duration,
        _filter: Option<&DispatcherCapabilityFilter>,
    ) -> Result<Option<(OrchestrationItem, String, u32)>, ProviderError> {
        not_implemented("fetch_orchestration_item")
    }

    async fn ack_orchestration_item(
        &self,
        _lock_token: &str,
        _execution_id: u64,
        _history_delta: Vec<Event>,
        _worker_items: Vec<WorkItem>,
        _orchestrator_items: Vec<WorkItem>,
        _metadata: ExecutionMetadata,
        _cancelled_activities: Vec<ScheduledActivityIdentifier>,
    ) -> Result<(), ProviderError> {
        not_implemented("ack_orchestration_item")
    }

    async fn abandon_orchestration_item(
        &self,
        _lock_token: &str,
        _delay: Option<Duration>,
        _ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        not_implemented("abandon_orchestration_item")
    }

    async fn renew_orchestration_item_lock(
        &self,
        _token: &str,
        _extend_for: Duration,
    ) -> Result<(), ProviderError> {
        not_implemented("renew_orchestration_item_lock")
    }

    // Step 6: activities.

    async fn fetch_work_item(
        &self,
        _lock_timeout: Duration,
        _poll_timeout: Duration,
        _session: Option<&SessionFetchConfig>,
        _tag_filter: &TagFilter,
    ) -> Result<Option<(WorkItem, String, u32)>, ProviderError> {
        not_implemented("fetch_work_item")
    }

    async fn ack_work_item(&self, _token: &str, _completion: Option<WorkItem>) -> Result<(), ProviderError> {
        not_implemented("ack_work_item")
    }

    async fn renew_work_item_lock(&self, _token: &str, _extend_for: Duration) -> Result<(), ProviderError> {
        not_implemented("renew_work_item_lock")
    }

    async fn abandon_work_item(
        &self,
        _token: &str,
        _delay: Option<Duration>,
        _ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        not_implemented("abandon_work_item")
    }

    // Step 7: sessions.

    async fn renew_session_lock(
        &self,
        _owner_ids: &[&str],
        _extend_for: Duration,
        _idle_timeout: Duration,
    ) -> Result<usize, ProviderError> {
        not_implemented("renew_session_lock")
    }

    async fn cleanup_orphaned_sessions(&self, _idle_timeout: Duration) -> Result<usize, ProviderError> {
        not_implemented("cleanup_orphaned_sessions")
    }

    // Step 8: custom status, key values, figures.

    async fn get_custom_status(
        &self,
        _instance: &str,
        _last_seen_version: u64,
    ) -> Result<Option<(Option<String>, u64)>, ProviderError> {
        not_implemented("get_custom_status")
    }

    async fn get_kv_value(&self, _instance: &str, _key: &str) -> Result<Option<String>, ProviderError> {
        not_implemented("get_kv_value")
    }

    async fn get_kv_all_values(&self, _instance: &str) -> Result<HashMap<String, String>, ProviderError> {
        not_implemented("get_kv_all_values")
    }

    async fn get_instance_stats(&self, _instance: &str) -> Result<Option<SystemStats>, ProviderError> {
        not_implemented("get_instance_stats")
    }

    // Step 9: management. Clients find it through this method.

    fn as_management_capability(&self) -> Option<&dyn ProviderAdmin> {
        Some(self)
    }
}
