//! Opening a store: what it creates, and what it refuses with a reason.

use crate::factory::fresh_config;
use crate::script;
use async_trait::async_trait;
use azure_core::credentials::{AccessToken, TokenCredential, TokenRequestOptions};
use azure_core::error::ErrorKind;
use azure_core::time::OffsetDateTime;
use azure_data_cosmos::models::{
    ContainerProperties, PartitionKeyDefinition, PartitionKeyVersion, TimeToLive,
};
use azure_data_cosmos::{AccountEndpoint, AccountReference, CosmosClient, CosmosRuntime, RoutingStrategy};
use outlast_cosmos::{CosmosDBOptions, CosmosDBProvider, CosmosDBProviderConfig, CosmosStoreError};
use outlast_cosmos_rig::{CLIENT_ID, CLIENT_SECRET, Fault, Kind, READ_ONLY_KEY, Rig, RigOptions, Target};
use outlast_provider::{Provider, ProviderAdmin};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

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
async fn opening_without_creation_refuses_missing_databases_and_containers() {
    let target = rig().await;
    let config = fresh_config(&target);
    let opened = |config: CosmosDBProviderConfig| {
        let options = CosmosDBOptions { creates: false, ..CosmosDBOptions::default() };
        CosmosDBProvider::open(config, options)
    };
    let missing = |error: CosmosStoreError| matches!(error, CosmosStoreError::Missing { .. });
    assert!(missing(opened(config.clone()).await.unwrap_err()), "the database is missing");
    open(config.clone()).await.unwrap();
    let other = CosmosDBProviderConfig { container: "other".into(), ..config.clone() };
    assert!(missing(opened(other).await.unwrap_err()), "the container is missing");
    opened(config).await.unwrap();
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
async fn writes_in_several_regions_are_refused() {
    let regions = vec!["East US".to_string(), "West US".to_string()];
    let options = RigOptions { regions, multi_region_writes: true, ..RigOptions::default() };
    let target = Target::Rig(Box::new(Rig::start_with(options).await.unwrap()));
    let error = open(fresh_config(&target)).await.unwrap_err();
    assert!(matches!(error, CosmosStoreError::MultiRegionWrites { .. }), "{error}");
    assert!(error.to_string().contains("East US, West US"), "{error}");
}

/// Creates a container with the SDK.
async fn create_container(config: &CosmosDBProviderConfig, properties: ContainerProperties) {
    let endpoint: AccountEndpoint = config.endpoint.parse().unwrap();
    let account = AccountReference::with_authentication_key(endpoint, config.key.clone());
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = CosmosRuntime::builder().build().await.unwrap();
    let routing = RoutingStrategy::PreferredRegions(Vec::new());
    let client = CosmosClient::builder().with_runtime(runtime).build(account, routing).await.unwrap();
    client.create_database(&config.database, None).await.unwrap();
    client.database_client(config.database.clone()).create_container(properties, None).await.unwrap();
}

#[tokio::test]
async fn a_container_with_another_partition_key_is_refused() {
    let target = rig().await;
    let config = fresh_config(&target);
    create_container(&config, ContainerProperties::new(config.container.clone(), "/other".into())).await;
    let error = open(config).await.unwrap_err();
    assert!(matches!(error, CosmosStoreError::PartitionKey { .. }), "{error}");
    assert!(
        error.to_string().contains("/other") && error.to_string().contains("another container"),
        "{error}"
    );
}

#[tokio::test]
async fn a_container_that_deletes_documents_after_a_time_is_refused() {
    let target = rig().await;
    let config = fresh_config(&target);
    let properties = ContainerProperties::new(config.container.clone(), "/instanceId".into())
        .with_default_ttl(TimeToLive::Seconds(60));
    create_container(&config, properties).await;
    let error = open(config).await.unwrap_err();
    assert!(matches!(error, CosmosStoreError::TimeToLive { seconds: 60, .. }), "{error}");
    assert!(error.to_string().contains("\"On (no default)\""), "{error}");
}

#[tokio::test]
async fn a_container_that_never_deletes_documents_is_refused() {
    let target = rig().await;
    let config = fresh_config(&target);
    let properties = ContainerProperties::new(config.container.clone(), "/instanceId".into());
    create_container(&config, properties).await;
    let error = open(config).await.unwrap_err();
    assert!(matches!(error, CosmosStoreError::NoTimeToLive { .. }), "{error}");
    assert!(error.to_string().contains("set it to \"On (no default)\""), "{error}");
}

#[tokio::test]
async fn a_container_with_short_partition_keys_is_refused() {
    let target = rig().await;
    let config = fresh_config(&target);
    let key = PartitionKeyDefinition::from("/instanceId").with_version(PartitionKeyVersion::V1);
    let properties =
        ContainerProperties::new(config.container.clone(), key).with_default_ttl(TimeToLive::NoDefault);
    create_container(&config, properties).await;
    let error = open(config).await.unwrap_err();
    assert!(matches!(error, CosmosStoreError::ShortPartitionKeys { .. }), "{error}");
    assert!(error.to_string().contains("101 bytes") && error.to_string().contains("version 2"), "{error}");
}

#[tokio::test]
async fn a_container_that_an_operator_created_is_used() {
    let target = rig().await;
    let config = fresh_config(&target);
    let properties = ContainerProperties::new(config.container.clone(), "/instanceId".into())
        .with_default_ttl(TimeToLive::NoDefault);
    create_container(&config, properties).await;
    target.rig().unwrap().take_recorded();
    open(config).await.unwrap();
    let records = target.rig().unwrap().recorded();
    assert!(!records.iter().any(|record| record.status == 409), "nothing is created again");
}

#[tokio::test]
async fn a_key_that_only_reads_is_denied_on_a_store_that_exists() {
    let target = rig().await;
    let config = fresh_config(&target);
    open(config.clone()).await.unwrap();
    let error = open(CosmosDBProviderConfig { key: READ_ONLY_KEY.into(), ..config }).await.unwrap_err();
    assert!(matches!(error, CosmosStoreError::Denied { status: 401 | 403, .. }), "{error}");
    assert!(error.to_string().contains("check the key"), "{error}");
}

#[tokio::test]
async fn a_region_that_the_account_does_not_have_or_does_not_write_in_is_refused() {
    let regions = vec!["East US".to_string(), "West US".to_string()];
    let options = RigOptions { regions, ..RigOptions::default() };
    let target = Target::Rig(Box::new(Rig::start_with(options).await.unwrap()));
    let preferring = |region: &str| {
        let preferred_regions = vec![region.to_string()];
        CosmosDBOptions { preferred_regions, ..CosmosDBOptions::default() }
    };
    let config = fresh_config(&target);
    let error = CosmosDBProvider::open(config.clone(), preferring("Nowhere")).await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains("'Nowhere'") && text.contains("East US, West US"), "{text}");
    let error = CosmosDBProvider::open(config.clone(), preferring("westus")).await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains("'westus'") && text.contains("writes in 'East US'"), "{text}");
    let store = CosmosDBProvider::open(config, preferring("eastus")).await.unwrap();
    script::begin(&store).await;
    script::finish(&store).await;
    script::check(&store).await;
}

#[tokio::test]
async fn an_account_that_ignores_the_condition_of_a_read_is_refused() {
    let options = RigOptions { guards_reads: false, ..RigOptions::default() };
    let target = Target::Rig(Box::new(Rig::start_with(options).await.unwrap()));
    let config = fresh_config(&target);
    for _ in 0..2 {
        let error = open(config.clone()).await.unwrap_err();
        assert!(matches!(error, CosmosStoreError::UnguardedReads), "{error}");
        assert!(error.to_string().contains("Azure, or a newer emulator"), "{error}");
    }
}

#[tokio::test]
async fn the_condition_of_a_read_is_tried_once_for_a_container() {
    let target = rig().await;
    let config = fresh_config(&target);
    let rig = target.rig().unwrap();
    let batches = || {
        let records = rig.take_recorded();
        records
            .iter()
            .filter(|record| record.kind == Kind::Batch && record.partition.as_deref() == Some("~sys"))
            .count()
    };
    open(config.clone()).await.unwrap();
    assert_eq!(batches(), 1);
    open(config).await.unwrap();
    assert_eq!(batches(), 0);
}

#[tokio::test]
async fn an_account_that_throttles_everything_is_named_after_ten_attempts() {
    let target = rig().await;
    let options =
        || CosmosDBOptions { opening_pause: Duration::from_millis(1), ..CosmosDBOptions::default() };
    for kind in [Kind::Container, Kind::Upsert] {
        let throttled = target
            .rig()
            .unwrap()
            .fault(Fault::on(kind).always().status(429).retry_after(Duration::from_millis(1)));
        let error = CosmosDBProvider::open(fresh_config(&target), options()).await.unwrap_err();
        assert!(error.to_string().contains("raise its throughput"), "{error}");
        assert!(throttled.struck() >= 5, "{kind:?}: {}", throttled.struck());
        target.rig().unwrap().clear_faults();
    }
}

/// A credential that asks the token endpoint of the rig.
#[derive(Debug)]
struct ClientSecret {
    host: String,
    path: String,
    secret: &'static str,
}

#[async_trait]
impl TokenCredential for ClientSecret {
    async fn get_token(
        &self,
        scopes: &[&str],
        _: Option<TokenRequestOptions<'_>>,
    ) -> azure_core::Result<AccessToken> {
        let scope = scopes[0].replace(':', "%3A").replace('/', "%2F");
        let secret = self.secret;
        let form = format!(
            "grant_type=client_credentials&client_id={CLIENT_ID}&client_secret={secret}&scope={scope}"
        );
        let (path, host, length) = (&self.path, &self.host, form.len());
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{form}"
        );
        let mut stream = TcpStream::connect(host).await?;
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        let body = answer.split("\r\n\r\n").nth(1).unwrap_or_default();
        let body: serde_json::Value = serde_json::from_str(body).unwrap_or_default();
        match body["access_token"].as_str() {
            Some(token) => {
                let lives = Duration::from_secs(3_600);
                Ok(AccessToken::new(token.to_string(), OffsetDateTime::now_utc() + lives))
            }
            None => Err(azure_core::Error::with_message(ErrorKind::Credential, body.to_string())),
        }
    }
}

async fn open_as(target: &Target, secret: &'static str) -> Result<CosmosDBProvider, CosmosStoreError> {
    let rig = target.rig().unwrap();
    let endpoint = rig.endpoint();
    let host = endpoint.trim_start_matches("http://").trim_end_matches('/').to_string();
    let path = format!("/{}", rig.token_endpoint().strip_prefix(endpoint).unwrap());
    let credential: Arc<dyn TokenCredential> = Arc::new(ClientSecret { host, path, secret });
    let options = CosmosDBOptions { credential: Some(credential), ..CosmosDBOptions::default() };
    let config = CosmosDBProviderConfig { key: String::new(), ..fresh_config(target) };
    CosmosDBProvider::open(config, options).await
}

#[tokio::test]
async fn an_identity_of_entra_id_opens_the_store_with_a_token() {
    let target = rig().await;
    let store = open_as(&target, CLIENT_SECRET).await.unwrap();
    assert_eq!(store.list_instances().await.unwrap().len(), 0);
    assert!(target.rig().unwrap().tokens_issued() > 0);
    let refused = open_as(&target, "wrong").await.unwrap_err();
    assert!(refused.to_string().contains("reading the account"), "{refused}");
}

#[tokio::test]
async fn a_throttled_account_is_tried_again() {
    let target = rig().await;
    let throttled = target.rig().unwrap().fault(Fault::on(Kind::Container).times(1).status(429));
    open(fresh_config(&target)).await.unwrap();
    assert_eq!(throttled.struck(), 1);
}
