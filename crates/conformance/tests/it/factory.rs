use async_trait::async_trait;
use outlast_conformance::{ProviderFactory, TokioClock};
use outlast_memory::{MemoryProvider, Rules};
use outlast_provider::{Clock, DeadLetter, MessageBound, Provider};
use std::sync::{Arc, Mutex};

/// Memory stores on tokio's clock, with these rules.
#[derive(Default)]
pub(crate) struct MemoryFactory {
    rules: Rules,
    newest: Mutex<Option<(Arc<MemoryProvider>, TokioClock)>>,
}

impl MemoryFactory {
    pub(crate) fn with_rules(rules: Rules) -> Self {
        Self { rules, ..Self::default() }
    }

    fn create(&self, bound: MessageBound) -> Arc<MemoryProvider> {
        let clock = TokioClock::start();
        let provider = MemoryProvider::with_clock(Arc::new(clock)).with_rules(self.rules);
        let provider = Arc::new(provider.with_message_bound(bound));
        *self.newest.lock().unwrap() = Some((provider.clone(), clock));
        provider
    }

    fn newest(&self) -> (Arc<MemoryProvider>, TokioClock) {
        self.newest.lock().unwrap().clone().expect("a store was created")
    }
}

#[async_trait]
impl ProviderFactory for MemoryFactory {
    async fn create_provider(&self) -> Arc<dyn Provider> {
        self.create(MessageBound::default())
    }
    async fn create_bounded_provider(&self, bound: MessageBound) -> Option<Arc<dyn Provider>> {
        Some(self.create(bound))
    }
    fn waits(&self) -> bool {
        true
    }
    fn now_ms(&self) -> u64 {
        self.newest().1.now_ms()
    }
    async fn corrupt_instance_history(&self, instance: &str) {
        self.newest().0.corrupt_history(instance);
    }
    async fn get_max_attempt_count(&self, instance: &str) -> u32 {
        self.newest().0.max_attempt_count(instance)
    }
    fn shows_pending(&self) -> bool {
        true
    }
    fn corrupts_queues(&self) -> bool {
        true
    }
    async fn corrupt_orchestrator_messages(&self, instance: &str) {
        self.newest().0.corrupt_messages(instance);
    }
    async fn corrupt_work_items(&self, instance: &str) {
        self.newest().0.corrupt_activities(instance);
    }
    async fn write_dead_letter(&self, letter: &DeadLetter) -> bool {
        self.newest().0.write_dead_letter(letter.clone());
        true
    }
}
