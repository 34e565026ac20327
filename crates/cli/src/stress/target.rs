//! The stores that are put under load: new ones by default.

use crate::args::StressArgs;
use crate::failure::Failure;
#[cfg(feature = "cosmos")]
use crate::store::cosmos;
use crate::store::{Kind, Place, StoreUrl, postgres, sqlite};
use outlast::client::Client;
#[cfg(feature = "cosmos")]
use outlast::providers::cosmos::CosmosDBProvider;
use outlast::providers::memory::MemoryProvider;
use outlast::providers::postgres::{PostgresProvider, ProviderConfig};
use outlast::providers::sqlite::SqliteProvider;
use outlast::providers::{Entropy, InstanceQuery, OsEntropy, Provider};
use std::path::PathBuf;
use std::sync::Arc;

/// A store to put under load, not opened yet.
pub(super) enum Target {
    Memory,
    SqliteMemory,
    SqliteFile(StoreUrl),
    Postgres {
        config: Box<ProviderConfig>,
        pool_size: u32,
    },
    #[cfg(feature = "cosmos")]
    Cosmos(cosmos::Settings),
}

/// An open store, and the data to remove at the end.
pub(super) struct Opened {
    pub(super) label: String,
    pub(super) pool_size: Option<u32>,
    pub(super) provider: Arc<dyn Provider>,
    made: Made,
}

/// The file, schema or container that the command created.
enum Made {
    Nothing,
    File(PathBuf),
    Schema(Arc<PostgresProvider>),
    #[cfg(feature = "cosmos")]
    Container(Box<CosmosDBProvider>),
}

impl Target {
    /// One target, or one per pool size.
    pub(super) fn of(url: &StoreUrl, args: &StressArgs) -> Result<Vec<Self>, Failure> {
        match url.as_str() {
            "memory" => return Ok(vec![Self::Memory]),
            "sqlite::memory:" | "sqlite://:memory:" => return Ok(vec![Self::SqliteMemory]),
            _ => {}
        }
        match Kind::of(url)? {
            Kind::Sqlite => Ok(vec![Self::SqliteFile(url.clone())]),
            Kind::Postgres => {
                let place = Place { url: url.clone(), schema: args.schema.clone() };
                let config = postgres::config(&place)?;
                let sized = |pool_size: &u32| {
                    let config = Box::new(config.clone().pool_size(*pool_size as usize));
                    Self::Postgres { config, pool_size: *pool_size }
                };
                Ok(args.pool_size.iter().map(sized).collect())
            }
            #[cfg(feature = "cosmos")]
            Kind::Cosmos => Ok(vec![Self::Cosmos(cosmos::Settings::of(url)?)]),
            #[cfg(not(feature = "cosmos"))]
            Kind::Cosmos => Err(crate::store::without_cosmos()),
        }
    }

    pub(super) async fn open(self, args: &StressArgs) -> Result<Opened, Failure> {
        match self {
            Self::Memory => Ok(Opened::new("memory", Arc::new(MemoryProvider::new()), Made::Nothing)),
            Self::SqliteMemory => {
                let store = sqlite_at("sqlite::memory:").await?;
                Ok(Opened::new("sqlite in memory", Arc::new(store), Made::Nothing))
            }
            Self::SqliteFile(url) => open_file(&url, args).await,
            Self::Postgres { config, pool_size } => open_schema(*config, pool_size, args).await,
            #[cfg(feature = "cosmos")]
            Self::Cosmos(settings) => open_container(settings, args).await,
        }
    }
}

async fn sqlite_at(url: &str) -> Result<SqliteProvider, Failure> {
    SqliteProvider::new(url, None).await.map_err(|error| Failure::new(error.to_string()))
}

async fn open_file(url: &StoreUrl, args: &StressArgs) -> Result<Opened, Failure> {
    let path = url.as_str().strip_prefix("sqlite:").unwrap_or(url.as_str());
    let path = PathBuf::from(path.strip_prefix("//").unwrap_or(path).split('?').next().unwrap_or_default());
    let existed = path.exists();
    let store = Arc::new(sqlite_at(&sqlite::with_mode(url, "rwc")?).await?);
    refuse_data(store.clone(), &url.to_string(), args).await?;
    let made = if existed { Made::Nothing } else { Made::File(path) };
    Ok(Opened::new("sqlite file", store, made))
}

async fn open_schema(
    mut config: ProviderConfig,
    pool_size: u32,
    args: &StressArgs,
) -> Result<Opened, Failure> {
    // A schema that the user named may hold other data: it is never dropped.
    let is_own = config.schema_name.is_none();
    if is_own {
        config.schema_name = Some(format!("outlast_stress_{:016x}", OsEntropy.next_u128() as u64));
    }
    let store = Arc::new(postgres::connect(config).await?);
    refuse_data(store.clone(), &format!("schema '{}'", store.schema_name()), args).await?;
    let made = if is_own { Made::Schema(store.clone()) } else { Made::Nothing };
    let label = format!("postgres, pool {pool_size}");
    Ok(Opened { pool_size: Some(pool_size), ..Opened::new(&label, store, made) })
}

/// A container that the user named may hold other data: it is never deleted.
#[cfg(feature = "cosmos")]
async fn open_container(settings: cosmos::Settings, args: &StressArgs) -> Result<Opened, Failure> {
    let cosmos::Settings { mut config, names_container } = settings;
    if !names_container {
        config.container = format!("outlast-stress-{:016x}", OsEntropy.next_u128() as u64);
    }
    let shown = format!("container '{}/{}'", config.database, config.container);
    let store = cosmos::connect(config, true).await?;
    refuse_data(Arc::new(store.clone()), &shown, args).await?;
    let made = if names_container { Made::Nothing } else { Made::Container(Box::new(store.clone())) };
    Ok(Opened::new("cosmos", Arc::new(store), made))
}

/// Rejects a store with instances: the runtime of the run would poison them, because it does not have their orchestrations.
async fn refuse_data(store: Arc<dyn Provider>, shown: &str, args: &StressArgs) -> Result<(), Failure> {
    if args.use_existing_data {
        return Ok(());
    }
    let client = Client::new(store);
    let first =
        client.list_instances_page(InstanceQuery { limit: Some(1), ..InstanceQuery::default() }).await?;
    let waiting = client.get_queue_depths().await?;
    if first.instances.is_empty() && waiting.orchestrator_queue == 0 && waiting.worker_queue == 0 {
        return Ok(());
    }
    Err(Failure::new(format!(
        "{shown} holds instances: a stress run adds thousands of its own, and fails those of others that it cannot run. Name \
         a store without data, or give --use-existing-data"
    )))
}

impl Opened {
    fn new(label: &str, provider: Arc<dyn Provider>, made: Made) -> Self {
        Self { label: label.to_string(), pool_size: None, provider, made }
    }

    /// Removes the file, schema or container that was created for the run.
    pub(super) async fn close(self, keep: bool) -> Result<(), Failure> {
        drop(self.provider);
        match self.made {
            Made::Schema(store) if !keep => {
                store.cleanup_schema().await.map_err(|error| Failure::new(error.to_string()))
            }
            #[cfg(feature = "cosmos")]
            Made::Container(store) if !keep => {
                store.cleanup().await.map_err(|error| Failure::new(error.to_string()))
            }
            Made::File(path) if !keep => {
                for ending in ["", "-wal", "-shm", "-owners"] {
                    let mut file = path.clone().into_os_string();
                    file.push(ending);
                    // The folder of the lock files stays if a lease was left.
                    let removed = match ending {
                        "-owners" => std::fs::remove_dir_all(&file),
                        _ => std::fs::remove_file(&file),
                    };
                    match removed {
                        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                            return Err(error.into());
                        }
                        _ => {}
                    }
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
