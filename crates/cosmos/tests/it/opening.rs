//! Opening a store: what it creates, and what it refuses with a reason.

use crate::factory::fresh_config;
use outlast_cosmos::{CosmosDBOptions, CosmosDBProvider, CosmosDBProviderConfig, CosmosStoreError};
use outlast_cosmos_rig::{Fault, Kind, READ_ONLY_KEY, Rig, Target};
use outlast_provider::{Provider, ProviderAdmin};

async fn rig() -> Target {
    Target::Rig(Box::new(Rig::start().await.unwrap()))
}

async fn open(config: CosmosDBProviderConfig) -> Result<CosmosDBProvider, CosmosStoreError> {
    CosmosDBProvider::open(config, CosmosDBOptions::default()).await
}

#[tokio::test]
async fn database_and_container_are_created_once_and_removed_by_cleanup() {
    let target = rig().await;
    let config = fresh_config(&target);
    let (one, other) = tokio::join!(open(config.clone()), open(config.clone()));
    let (one, other) = (one.unwrap(), other.unwrap());
    assert_eq!((one.name(), other.list_instances().await.unwrap().len()), ("cosmos", 0));
    one.cleanup().await.unwrap();
    let gone = other.list_instances().await.unwrap_err();
    assert!(!gone.is_retryable() && gone.message.contains("deleted"), "{gone}");
}

#[tokio::test]
async fn missing_settings_are_named() {
    let target = rig().await;
    let good = fresh_config(&target);
    let cases = [
        (CosmosDBProviderConfig { endpoint: String::new(), ..good.clone() }, "endpoint"),
        (CosmosDBProviderConfig { endpoint: "no address".into(), ..good.clone() }, "endpoint"),
        (CosmosDBProviderConfig { key: String::new(), ..good.clone() }, "key"),
        (CosmosDBProviderConfig { database: String::new(), ..good.clone() }, "database"),
        (CosmosDBProviderConfig { container: "a/b".into(), ..good.clone() }, "container"),
    ];
    for (config, setting) in cases {
        let error = open(config).await.unwrap_err();
        assert!(error.to_string().starts_with(setting), "{error}");
    }
}

#[tokio::test]
async fn a_wrong_key_and_missing_rights_are_denied() {
    let target = rig().await;
    let good = fresh_config(&target);
    let wrong = "d3Jvbmctd3Jvbmctd3Jvbmctd3Jvbmctd3Jvbmctd3Jvbmctd3Jvbmctd3Jvbmctd3Jvbmctd3Jvbmctd3Jvbg==";
    for key in [wrong, READ_ONLY_KEY] {
        let error = open(CosmosDBProviderConfig { key: key.into(), ..good.clone() }).await.unwrap_err();
        assert!(matches!(error, CosmosStoreError::Denied { .. }), "{error}");
        assert!(!error.to_string().contains(key), "a key is never shown");
    }
}

#[tokio::test]
async fn a_throttled_account_is_tried_again() {
    let target = rig().await;
    let throttled = target.rig().unwrap().fault(Fault::on(Kind::Container).times(1).status(429));
    open(fresh_config(&target)).await.unwrap();
    assert_eq!(throttled.struck(), 1);
}
