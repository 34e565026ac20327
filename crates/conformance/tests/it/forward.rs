//! A wrapper that forwards every method is as good as the store inside: it passes the whole suite.

use crate::factory::MemoryFactory;
use async_trait::async_trait;
use outlast_conformance::{ProviderFactory, Validation, ValidationOutcome, validations};
use outlast_provider::{DeadLetter, MessageBound, Provider, ProviderAdmin, ProviderError, forward_provider};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Forwards all methods of both traits, and counts the asynchronous calls.
struct Forwarding {
    inner: Arc<dyn Provider>,
    calls: Arc<AtomicUsize>,
}

impl Forwarding {
    async fn counted<T>(
        &self,
        method: &'static str,
        call: impl Future<Output = Result<T, ProviderError>>,
    ) -> Result<T, ProviderError> {
        let traits = [<dyn Provider>::METHODS, <dyn ProviderAdmin>::METHODS];
        assert!(traits.iter().any(|methods| methods.contains(&method)), "{method} is no method");
        self.calls.fetch_add(1, Ordering::Relaxed);
        call.await
    }
}

#[async_trait]
impl Provider for Forwarding {
    forward_provider!(Provider, |this| this.inner, around(counted), except(as_management_capability));

    fn as_management_capability(&self) -> Option<&dyn ProviderAdmin> {
        Some(self)
    }
}

#[async_trait]
impl ProviderAdmin for Forwarding {
    forward_provider!(ProviderAdmin, |this| this
        .inner
        .as_management_capability()
        .expect("the memory store has management"),);
}

#[derive(Default)]
struct ForwardingFactory {
    inner: MemoryFactory,
    calls: Arc<AtomicUsize>,
}

impl ForwardingFactory {
    fn around(&self, inner: Arc<dyn Provider>) -> Arc<dyn Provider> {
        Arc::new(Forwarding { inner, calls: self.calls.clone() })
    }
}

#[async_trait]
impl ProviderFactory for ForwardingFactory {
    async fn create_provider(&self) -> Arc<dyn Provider> {
        self.around(self.inner.create_provider().await)
    }
    async fn create_bounded_provider(&self, bound: MessageBound) -> Option<Arc<dyn Provider>> {
        Some(self.around(self.inner.create_bounded_provider(bound).await?))
    }
    fn waits(&self) -> bool {
        true
    }
    fn now_ms(&self) -> u64 {
        self.inner.now_ms()
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
    async fn write_dead_letter(&self, letter: &DeadLetter) -> bool {
        self.inner.write_dead_letter(letter).await
    }
    async fn get_max_attempt_count(&self, instance: &str) -> u32 {
        self.inner.get_max_attempt_count(instance).await
    }
}

#[test]
fn forwarding_wrapper_passes_every_validation() {
    let run = |validation: Validation| {
        let factory = ForwardingFactory::default();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        let outcome = runtime.unwrap().block_on(validation.outcome(&factory));
        (format!("{validation:?}"), outcome, factory.calls.load(Ordering::Relaxed))
    };
    let results: Vec<_> = validations().into_iter().map(run).collect();
    let failed: Vec<_> =
        results.iter().filter(|(_, outcome, _)| *outcome != ValidationOutcome::Passed).collect();
    assert!(failed.is_empty(), "{failed:#?}");
    let calls: usize = results.iter().map(|(_, _, calls)| calls).sum();
    assert!(calls > results.len(), "only {calls} calls went through the wrapper");
}
