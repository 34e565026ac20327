//! Containers of Cosmos DB: each test has its own.

use outlast::providers::cosmos::{
    CosmosDBOptions, CosmosDBProvider, CosmosDBProviderConfig, CosmosStoreError,
};
use outlast::providers::{Entropy, OsEntropy, Provider};
use outlast_cosmos_rig::{Rig, RigOptions, Target, target};
use std::sync::Arc;

/// A container, and the rig that serves it.
pub(crate) struct Container {
    config: CosmosDBProviderConfig,
    _target: Target,
}

/// Deletes a container, if a test created it.
async fn remove(config: CosmosDBProviderConfig) {
    let options = CosmosDBOptions { creates: false, ..CosmosDBOptions::default() };
    match CosmosDBProvider::open(config.clone(), options).await {
        Ok(store) => store.cleanup().await.expect("the container of a test is deleted"),
        Err(CosmosStoreError::Missing { .. }) => {}
        Err(error) => panic!("the container '{}' of a test is left: {error}", config.container),
    }
}

impl Container {
    /// A container that no other test has.
    pub(crate) async fn fresh() -> Self {
        let target = match target().await.unwrap() {
            Target::Rig(_) => {
                let options = RigOptions { keeps_records: false, ..RigOptions::default() };
                Target::Rig(Box::new(Rig::start_with(options).await.unwrap()))
            }
            account => account,
        };
        let config = CosmosDBProviderConfig {
            endpoint: target.endpoint().to_string(),
            key: target.key().to_string(),
            database: "outlast-test".to_string(),
            container: format!("t{:032x}", OsEntropy.next_u128()),
            ..CosmosDBProviderConfig::default()
        };
        target.at_end(remove(config.clone()));
        Self { config, _target: target }
    }

    /// Opens a new store object, as another process would.
    pub(crate) async fn open(&self) -> Arc<dyn Provider> {
        Arc::new(CosmosDBProvider::new_with_config(self.config.clone()).await.unwrap())
    }
}
