//! The factory by which the suite creates stores.

use async_trait::async_trait;
use outlast_provider::{Clock, DeadLetter, MessageBound, Provider, SystemClock};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

/// Creates the stores under test, and damages stored data for the rules about damaged data.
///
/// Every call of `create_provider` returns a clean store. The hooks act on the store that was created last.
#[async_trait]
pub trait ProviderFactory: Sync + Send {
    /// A clean store.
    async fn create_provider(&self) -> Arc<dyn Provider>;

    /// A clean store whose fetches take no more messages than this; `None` for a store that has no such bound.
    async fn create_bounded_provider(&self, _bound: MessageBound) -> Option<Arc<dyn Provider>> {
        None
    }

    /// The lease that validations ask for and wait out. Shorter is faster; a remote store needs more.
    fn lock_timeout(&self) -> Duration {
        Duration::from_secs(5)
    }

    /// The time within which a fetch with a poll timeout of zero must return.
    fn short_poll_threshold(&self) -> Duration {
        Duration::from_millis(100)
    }

    /// Makes every stored event of the instance undecodable.
    async fn corrupt_instance_history(&self, _instance: &str) {
        panic!("this ProviderFactory does not implement corrupt_instance_history");
    }

    /// The highest delivery count among the instance's waiting messages.
    async fn get_max_attempt_count(&self, _instance: &str) -> u32 {
        panic!("this ProviderFactory does not implement get_max_attempt_count");
    }

    /// Whether a fetch that finds nothing waits for `poll_timeout`.
    fn waits(&self) -> bool {
        false
    }

    /// The time by the clock of the store under test, in milliseconds since the Unix epoch.
    fn now_ms(&self) -> u64 {
        SystemClock.now_ms()
    }

    /// Whether the store implements [`ProviderAdmin::pending`](outlast_provider::ProviderAdmin::pending).
    fn shows_pending(&self) -> bool {
        false
    }

    /// Whether the two hooks below are implemented.
    fn corrupts_queues(&self) -> bool {
        false
    }

    /// Makes the stored text of every waiting orchestrator message of the instance undecodable.
    async fn corrupt_orchestrator_messages(&self, _instance: &str) {
        panic!("this ProviderFactory does not implement corrupt_orchestrator_messages");
    }

    /// Makes the stored text of every waiting activity of the instance undecodable.
    async fn corrupt_work_items(&self, _instance: &str) {
        panic!("this ProviderFactory does not implement corrupt_work_items");
    }

    /// Stores a dead letter, as another release may have left it. False if this is not implemented, which is right for a store without
    /// [`ProviderAdmin::requeue_dead_letter`](outlast_provider::ProviderAdmin::requeue_dead_letter) only.
    async fn write_dead_letter(&self, _letter: &DeadLetter) -> bool {
        false
    }
}

/// A borrowed factory of unknown type, as a factory: lets the catalogue call the generic validations.
pub(crate) struct Borrowed<'a>(pub(crate) &'a dyn ProviderFactory);

#[async_trait]
impl ProviderFactory for Borrowed<'_> {
    async fn create_provider(&self) -> Arc<dyn Provider> {
        self.0.create_provider().await
    }
    async fn create_bounded_provider(&self, bound: MessageBound) -> Option<Arc<dyn Provider>> {
        self.0.create_bounded_provider(bound).await
    }
    fn lock_timeout(&self) -> Duration {
        self.0.lock_timeout()
    }
    fn short_poll_threshold(&self) -> Duration {
        self.0.short_poll_threshold()
    }
    async fn corrupt_instance_history(&self, instance: &str) {
        self.0.corrupt_instance_history(instance).await;
    }
    async fn get_max_attempt_count(&self, instance: &str) -> u32 {
        self.0.get_max_attempt_count(instance).await
    }
    fn waits(&self) -> bool {
        self.0.waits()
    }
    fn now_ms(&self) -> u64 {
        self.0.now_ms()
    }
    fn shows_pending(&self) -> bool {
        self.0.shows_pending()
    }
    fn corrupts_queues(&self) -> bool {
        self.0.corrupts_queues()
    }
    async fn corrupt_orchestrator_messages(&self, instance: &str) {
        self.0.corrupt_orchestrator_messages(instance).await;
    }
    async fn corrupt_work_items(&self, instance: &str) {
        self.0.corrupt_work_items(instance).await;
    }
    async fn write_dead_letter(&self, letter: &DeadLetter) -> bool {
        self.0.write_dead_letter(letter).await
    }
}

/// A factory from a closure that opens a clean store, for stores that need none of the hooks.
pub struct FactoryFn<F>(F);

/// See [`FactoryFn`].
pub fn factory_fn<F, Fut>(open: F) -> FactoryFn<F>
where
    F: Fn() -> Fut + Send + Sync,
    Fut: Future<Output = Arc<dyn Provider>> + Send,
{
    FactoryFn(open)
}

#[async_trait]
impl<F, Fut> ProviderFactory for FactoryFn<F>
where
    F: Fn() -> Fut + Send + Sync,
    Fut: Future<Output = Arc<dyn Provider>> + Send,
{
    async fn create_provider(&self) -> Arc<dyn Provider> {
        (self.0)().await
    }
}
