//! Opens a store: connects, creates database and container where they are missing, and refuses containers and accounts that the
//! store cannot use.

use crate::client::Client;
use crate::error::CosmosStoreError;
use crate::probe::probe;
use crate::{CosmosDBOptions, CosmosDBProviderConfig, account, tls};
use azure_core::credentials::Secret;
use azure_data_cosmos::models::{
    CompositeIndex, CompositeIndexOrder, CompositeIndexProperty, ContainerProperties, IndexingMode,
    IndexingPolicy, PartitionKeyVersion, TimeToLive,
};
use azure_data_cosmos::options::{BinaryEncodingOptions, Region};
use azure_data_cosmos::{
    AccountEndpoint, AccountReference, CosmosClient, CosmosError, CosmosRuntime, DatabaseClient,
    RoutingStrategy,
};
use std::future::Future;
use std::time::Duration;

/// The partition key of the container.
const PARTITION_KEY: &str = "/instanceId";

/// The properties that queries filter and sort by. All others are not indexed: a write is billed for each index.
const INDEXED: [&str; 9] = ["/t/?", "/slot/?", "/at/?", "/x/?", "/e/?", "/o/?", "/ct/?", "/st/?", "/par/?"];
const INDEXED_TOO: [&str; 7] = ["/since/?", "/sid/?", "/own/?", "/rev/?", "/key/?", "/wq/?", "/dead/n/?"];

/// Attempts of a request of an account that is throttled or busy.
const ATTEMPTS: u32 = 10;

/// A pause doubles up to this factor.
const LONGEST_PAUSE: u32 = 16;

type Result<T> = std::result::Result<T, CosmosStoreError>;

/// Connects to the container of a configuration.
pub(crate) async fn open(config: &CosmosDBProviderConfig, options: &CosmosDBOptions) -> Result<Client> {
    check_settings(config, options)?;
    tls::prepare()?;
    check_account(config, options).await?;
    let client = connect(config, options).await?;
    // A database that exists is not created, so that an identity without that right can open the store.
    let database = client.database_client(config.database.clone());
    let patient = Patient { pause: options.opening_pause };
    let missing = || CosmosStoreError::Missing {
        database: config.database.clone(),
        container: config.container.clone(),
    };
    if !exists("reading the database", patient.again(|| database.read(None)).await)? {
        if !options.creates {
            return Err(missing());
        }
        let created_now = patient.again(|| client.create_database(&config.database, None)).await;
        created("creating the database", created_now)?;
    }
    let container = match patient.again(|| database.container_client(&config.container, None)).await {
        Ok(container) => container,
        Err(error) if status(&error) == 404 && !options.creates => return Err(missing()),
        Err(error) if status(&error) == 404 => create(&patient, &database, config).await?,
        Err(error) => return Err(CosmosStoreError::of("opening the container", &error)),
    };
    let properties = patient.again(|| container.read(None)).await;
    let properties = properties.and_then(|properties| properties.into_model());
    check(config, &properties.map_err(|error| CosmosStoreError::of("reading the container", &error))?)?;
    let client = Client::new(container, options.deadline);
    if options.creates {
        probe(&client, options.opening_pause).await?;
    }
    Ok(client)
}

/// Refuses settings that are missing or malformed.
fn check_settings(config: &CosmosDBProviderConfig, options: &CosmosDBOptions) -> Result<()> {
    let setting = |setting, reason: &str| CosmosStoreError::Setting { setting, reason: reason.to_string() };
    if config.endpoint.is_empty() {
        return Err(setting(
            "endpoint",
            "set the address of the account, such as https://name.documents.azure.com, or use `from_env`",
        ));
    }
    if config.endpoint.parse::<AccountEndpoint>().is_err() {
        return Err(setting(
            "endpoint",
            "no address of an account: write it as https://name.documents.azure.com",
        ));
    }
    for (name, value) in [("database", &config.database), ("container", &config.container)] {
        if value.is_empty() || value.len() > 255 || value.contains(['/', '\\', '?', '#']) {
            return Err(setting(name, "a name of 1 to 255 characters without / \\ ? #"));
        }
    }
    if config.key.is_empty() && options.credential.is_none() {
        return Err(setting("key", "set the key of the account, or a credential of Entra ID"));
    }
    Ok(())
}

/// Reads the account, again if it is throttled or busy.
async fn check_account(config: &CosmosDBProviderConfig, options: &CosmosDBOptions) -> Result<()> {
    let is_busy =
        |error: &CosmosStoreError| matches!(error, CosmosStoreError::Failed { is_transient: true, .. });
    repeated(options.opening_pause, || account::check(config, options), is_busy).await
}

async fn connect(config: &CosmosDBProviderConfig, options: &CosmosDBOptions) -> Result<CosmosClient> {
    let endpoint: AccountEndpoint = config.endpoint.parse().map_err(|_| CosmosStoreError::Setting {
        setting: "endpoint",
        reason: "no address of an account".to_string(),
    })?;
    let account = match &options.credential {
        Some(credential) => AccountReference::with_credential(endpoint, credential.clone()),
        None => AccountReference::with_authentication_key(endpoint, Secret::new(config.key.clone())),
    };
    let regions: Vec<Region> = options.preferred_regions.iter().map(|region| region.clone().into()).collect();
    let routing = RoutingStrategy::PreferredRegions(regions);
    // A runtime of its own: clients that share a runtime share the credential of the first one.
    let build = || async {
        let runtime = CosmosRuntime::builder().build().await?;
        let binary = BinaryEncodingOptions::new().with_enabled(false);
        let builder = CosmosClient::builder().with_runtime(runtime).with_binary_encoding_options(binary);
        builder.build(account.clone(), routing.clone()).await
    };
    let patient = Patient { pause: options.opening_pause };
    patient.again(build).await.map_err(|error| CosmosStoreError::of("connecting to the account", &error))
}

async fn create(
    patient: &Patient,
    database: &DatabaseClient,
    config: &CosmosDBProviderConfig,
) -> Result<azure_data_cosmos::ContainerClient> {
    let properties = properties(&config.container);
    created(
        "creating the container",
        patient.again(|| database.create_container(properties.clone(), None)).await,
    )?;
    let opened = patient.again(|| database.container_client(&config.container, None)).await;
    opened.map_err(|error| CosmosStoreError::of("opening the container", &error))
}

/// Accepts a 409: another process was faster.
fn created<T>(action: &str, answer: std::result::Result<T, CosmosError>) -> Result<()> {
    match answer {
        Ok(_) => Ok(()),
        Err(error) if status(&error) == 409 => Ok(()),
        Err(error) => Err(CosmosStoreError::of(action, &error)),
    }
}

fn exists<T>(action: &str, answer: std::result::Result<T, CosmosError>) -> Result<bool> {
    match answer {
        Ok(_) => Ok(true),
        Err(error) if status(&error) == 404 => Ok(false),
        Err(error) => Err(CosmosStoreError::of(action, &error)),
    }
}

/// The properties of a new container.
fn properties(name: &str) -> ContainerProperties {
    let mut policy = IndexingPolicy::default()
        .with_indexing_mode(IndexingMode::Consistent)
        .with_excluded_path("/*")
        .with_composite_index(composite(&[("/t", false), ("/slot", false), ("/at", false)]))
        .with_composite_index(composite(&[("/t", false), ("/x", false), ("/e", false)]))
        .with_composite_index(composite(&[("/t", false), ("/ct", true)]))
        .with_composite_index(composite(&[("/t", false), ("/st", false), ("/ct", true)]));
    policy.automatic = true;
    for path in INDEXED.into_iter().chain(INDEXED_TOO) {
        policy = policy.with_included_path(path);
    }
    ContainerProperties::new(name.to_string(), PARTITION_KEY.into())
        .with_indexing_policy(policy)
        .with_default_ttl(TimeToLive::NoDefault)
}

fn composite(paths: &[(&str, bool)]) -> CompositeIndex {
    let order = |is_descending| match is_descending {
        true => CompositeIndexOrder::Descending,
        false => CompositeIndexOrder::Ascending,
    };
    paths.iter().fold(CompositeIndex::default(), |index, (path, is_descending)| {
        index.with_property(CompositeIndexProperty::new(*path, order(*is_descending)))
    })
}

/// Refuses a container that the store cannot use.
fn check(config: &CosmosDBProviderConfig, found: &ContainerProperties) -> Result<()> {
    let (database, container) = (config.database.clone(), config.container.clone());
    let paths: Vec<String> = found.partition_key.paths().iter().map(ToString::to_string).collect();
    if paths != [PARTITION_KEY] {
        return Err(CosmosStoreError::PartitionKey { database, container, found: paths });
    }
    // Version 1 takes keys with the same first 101 bytes as one key, and ids of instances are longer.
    if found.partition_key.version() == PartitionKeyVersion::V1 {
        return Err(CosmosStoreError::ShortPartitionKeys { database, container });
    }
    match found.default_ttl {
        TimeToLive::NoDefault => Ok(()),
        TimeToLive::Seconds(seconds) => Err(CosmosStoreError::TimeToLive { database, container, seconds }),
        // `Forever`: documents with a time to live stay.
        _ => Err(CosmosStoreError::NoTimeToLive { database, container }),
    }
}

/// The requests of one opening. A request that a throttled or busy account refuses is repeated.
struct Patient {
    pause: Duration,
}

impl Patient {
    async fn again<T, F, Fut>(&self, request: F) -> std::result::Result<T, CosmosError>
    where
        F: Fn() -> Fut,
        Fut: Future<Output = std::result::Result<T, CosmosError>>,
    {
        repeated(self.pause, request, |error| matches!(status(error), 429 | 449 | 503)).await
    }
}

async fn repeated<T, E, F, Fut>(
    first_pause: Duration,
    request: F,
    is_busy: impl Fn(&E) -> bool,
) -> std::result::Result<T, E>
where
    F: Fn() -> Fut,
    Fut: Future<Output = std::result::Result<T, E>>,
{
    let mut pause = first_pause;
    for _ in 1..ATTEMPTS {
        match request().await {
            Err(error) if is_busy(&error) => {
                tokio::time::sleep(pause).await;
                pause = (2 * pause).min(LONGEST_PAUSE * first_pause);
            }
            answer => return answer,
        }
    }
    request().await
}

fn status(error: &CosmosError) -> u16 {
    u16::from(error.status().status_code())
}
