//! Stores in containers of their own.

use async_trait::async_trait;
use outlast_conformance::ProviderFactory;
use outlast_conformance::model::DAMAGED;
use outlast_cosmos::{CosmosDBOptions, CosmosDBProvider, CosmosDBProviderConfig, CosmosStoreError, Texts};
use outlast_cosmos_rig::{Rig, RigOptions, Target, target};
use outlast_provider::{DeadLetter, Entropy, MessageBound, OsEntropy, Provider};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::OnceCell;

/// A configuration for a container that no other test has. The container is removed from an account when the target is dropped.
pub(crate) fn fresh_config(target: &Target) -> CosmosDBProviderConfig {
    let config = CosmosDBProviderConfig {
        endpoint: target.endpoint().to_string(),
        key: target.key().to_string(),
        database: "outlast-test".to_string(),
        container: format!("t{:032x}", OsEntropy.next_u128()),
        ..CosmosDBProviderConfig::default()
    };
    target.at_end(remove(config.clone()));
    config
}

/// Deletes a container, if a test created it.
pub(crate) async fn remove(config: CosmosDBProviderConfig) {
    let options = CosmosDBOptions { creates: false, ..CosmosDBOptions::default() };
    match CosmosDBProvider::open(config.clone(), options).await {
        Ok(store) => store.cleanup().await.expect("the container of a test is deleted"),
        Err(CosmosStoreError::Missing { .. }) => {}
        Err(error) => panic!("the container '{}' of a test is left: {error}", config.container),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use outlast_provider::ProviderAdmin;
    use std::panic::AssertUnwindSafe;

    #[tokio::test]
    async fn a_test_that_fails_leaves_no_container_in_its_account() {
        let rig = Rig::start().await.unwrap();
        let account = || Target::account(rig.endpoint(), rig.key());
        let elsewhere = account();
        let config = fresh_config(&elsewhere);
        let failing = async {
            let target = elsewhere;
            let store = CosmosDBProvider::new_with_config(config.clone()).await.unwrap();
            store.list_instances().await.unwrap();
            assert!(target.rig().is_some(), "the failure of a test");
        };
        AssertUnwindSafe(failing).catch_unwind().await.unwrap_err();
        let options = CosmosDBOptions { creates: false, ..CosmosDBOptions::default() };
        let left = CosmosDBProvider::open(config, options).await;
        assert!(matches!(left, Err(CosmosStoreError::Missing { .. })), "{left:?}");
        // A test that created no container removes none.
        let unused = account();
        fresh_config(&unused);
    }
}

/// The account of the environment, or a rig that keeps no records.
pub(crate) async fn quiet_target() -> Target {
    match target().await.unwrap() {
        Target::Rig(_) => {
            let options = RigOptions { keeps_records: false, ..RigOptions::default() };
            Target::Rig(Box::new(Rig::start_with(options).await.unwrap()))
        }
        account => account,
    }
}

/// Stores in containers of one account.
#[derive(Default)]
pub(crate) struct CosmosFactory {
    target: OnceCell<Target>,
    newest: Mutex<Option<CosmosDBProvider>>,
}

impl CosmosFactory {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    async fn create(&self, bound: MessageBound) -> Arc<dyn Provider> {
        let target = self.target.get_or_init(quiet_target).await;
        let options = CosmosDBOptions { message_bound: bound, ..CosmosDBOptions::default() };
        let store = CosmosDBProvider::open(fresh_config(target), options).await.unwrap();
        *self.newest.lock().unwrap() = Some(store.clone());
        Arc::new(store)
    }

    fn newest(&self) -> CosmosDBProvider {
        self.newest.lock().unwrap().clone().expect("a store was created")
    }
}

#[async_trait]
impl ProviderFactory for CosmosFactory {
    async fn create_provider(&self) -> Arc<dyn Provider> {
        self.create(MessageBound::default()).await
    }
    async fn create_bounded_provider(&self, bound: MessageBound) -> Option<Arc<dyn Provider>> {
        Some(self.create(bound).await)
    }
    fn lock_timeout(&self) -> Duration {
        Duration::from_millis(1_000)
    }
    fn short_poll_threshold(&self) -> Duration {
        Duration::from_millis(500)
    }
    fn waits(&self) -> bool {
        true
    }
    async fn corrupt_instance_history(&self, instance: &str) {
        self.newest().damage(Texts::History, instance, DAMAGED).await.unwrap();
    }
    async fn get_max_attempt_count(&self, instance: &str) -> u32 {
        self.newest().max_attempt_count(instance).await.unwrap()
    }
    fn shows_pending(&self) -> bool {
        true
    }
    fn corrupts_queues(&self) -> bool {
        true
    }
    async fn corrupt_orchestrator_messages(&self, instance: &str) {
        self.newest().damage(Texts::Messages, instance, DAMAGED).await.unwrap();
    }
    async fn corrupt_work_items(&self, instance: &str) {
        self.newest().damage(Texts::Activities, instance, DAMAGED).await.unwrap();
    }
    async fn write_dead_letter(&self, letter: &DeadLetter) -> bool {
        self.newest().write_dead_letter(letter).await.unwrap();
        true
    }
}
