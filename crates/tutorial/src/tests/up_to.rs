//! The store as it stands after a step of the tutorial: methods of later steps are not implemented.

use super::factory::Factory;
use async_trait::async_trait;
use outlast_conformance::ProviderFactory;
use outlast_provider::{Provider, ProviderAdmin, ProviderError, forward_provider};
use std::sync::Arc;

/// The methods that each step of the tutorial adds.
const STEPS: &[(u32, &[&str])] = &[
    (
        2,
        &[
            "enqueue_for_orchestrator",
            "enqueue_for_worker",
            "read",
            "read_with_execution",
            "append_with_execution",
        ],
    ),
    (3, &["fetch_orchestration_item"]),
    (4, &["ack_orchestration_item"]),
    (5, &["abandon_orchestration_item", "renew_orchestration_item_lock"]),
    (6, &["fetch_work_item", "ack_work_item", "renew_work_item_lock", "abandon_work_item"]),
    (7, &["renew_session_lock", "cleanup_orphaned_sessions"]),
    (8, &["get_custom_status", "get_kv_value", "get_kv_all_values", "get_instance_stats"]),
    (9, &["as_management_capability"]),
];

pub(super) struct UpTo {
    pub(super) step: u32,
    pub(super) store: Arc<dyn Provider>,
}

impl UpTo {
    fn has(&self, method: &str) -> bool {
        STEPS.iter().any(|(step, methods)| *step <= self.step && methods.contains(&method))
    }

    /// Fails if a later step adds the method.
    async fn since<T>(
        &self,
        method: &'static str,
        call: impl Future<Output = Result<T, ProviderError>>,
    ) -> Result<T, ProviderError> {
        match self.has(method) {
            true => call.await,
            false => Err(ProviderError::permanent(method, "not implemented")),
        }
    }
}

#[async_trait]
impl Provider for UpTo {
    // The excepted methods have the default body of the trait until the tutorial reaches them.
    forward_provider!(
        Provider,
        |this| this.store,
        around(since),
        except(
            name,
            version,
            as_management_capability,
            fetch_turn,
            load_turn,
            load_turn_within,
            commit_turn,
            fetch_work_items,
            complete_with_turn,
            fuses_outcomes,
            complete_all_with_turn,
            abandon_work_noted,
            hold_turn,
            read_outcome,
            enqueue_within,
            enqueue_once,
            start_orchestration,
            start_with_turn,
            watch_instance
        )
    );

    fn as_management_capability(&self) -> Option<&dyn ProviderAdmin> {
        self.store.as_management_capability().filter(|_| self.has("as_management_capability"))
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
