//! A store with a hook before and after every call.

use async_trait::async_trait;
use outlast::providers::{InstanceWatch, Interest, Provider, ProviderError, forward_provider};
use std::sync::Arc;

/// Observes calls, and may delay them, refuse them, or panic.
#[async_trait]
pub(crate) trait Hook: Send + Sync + 'static {
    /// Runs before the store is called. An error refuses the call.
    async fn before(&self, _call: &'static str) -> Result<(), ProviderError> {
        Ok(())
    }

    /// Runs after the store has answered.
    async fn after(&self, _call: &'static str) {}

    /// Whether the store supports watches.
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

    async fn hooked<T>(
        &self,
        method: &'static str,
        call: impl Future<Output = Result<T, ProviderError>>,
    ) -> Result<T, ProviderError> {
        // A method that does more than a method of the older contract has the older name for hooks.
        let method = match method {
            "commit_turn" => "ack_orchestration_item",
            "complete_with_turn" | "complete_all_with_turn" => "ack_work_item",
            "enqueue_within" | "enqueue_once" => "enqueue_for_orchestrator",
            "load_turn_within" => "load_turn",
            method => method,
        };
        self.hook.before(method).await?;
        let answer = call.await;
        self.hook.after(method).await;
        answer
    }
}

#[async_trait]
impl<H: Hook> Provider for Hooked<H> {
    forward_provider!(Provider, |this| this.inner, around(hooked), except(watch_instance));

    fn watch_instance(&self, instance: &str, interest: Interest) -> Option<InstanceWatch> {
        self.inner.watch_instance(instance, interest).filter(|_| self.hook.watches())
    }
}
