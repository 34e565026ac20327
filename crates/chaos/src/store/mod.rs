//! The store under test, and the operations that a run needs besides the provider trait.

#[cfg_attr(not(feature = "cosmos"), path = "without_cosmos.rs")]
mod cosmos;
mod postgres;
mod sqlite;

pub(crate) use cosmos::{Account, serve as serve_rig};
pub(crate) use postgres::{COMMIT_BYTES, DEADLINE, Server, URL as POSTGRES_URL};

use crate::args::Phase;
use clap::ValueEnum;
use outlast::providers::Provider;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// The kind of a store. A new kind needs a variant here and a file beside `sqlite.rs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StoreKind {
    Cosmos,
    Postgres,
    Sqlite,
}

/// An open store.
#[derive(Clone)]
pub(crate) struct Store {
    pub(crate) provider: Arc<dyn Provider>,
    tools: Tools,
}

#[derive(Clone)]
enum Tools {
    Cosmos(cosmos::Tools),
    Postgres(postgres::Tools),
    Sqlite(sqlite::Tools),
}

/// Instances that a backup must contain.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known {
    /// Instances whose start was acknowledged.
    pub(crate) started: BTreeSet<String>,
    /// Instances whose end a client has seen.
    pub(crate) ended: BTreeSet<String>,
}

impl StoreKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Cosmos => "cosmos",
            Self::Postgres => "postgres",
            Self::Sqlite => "sqlite",
        }
    }

    /// The phases of a run on this store. A server has its own disk, which the run cannot fill.
    pub(crate) fn phases(self) -> &'static [Phase] {
        match self {
            Self::Cosmos => &[Phase::Kills],
            Self::Postgres => &[Phase::Kills, Phase::Partitions],
            Self::Sqlite => &[Phase::Kills, Phase::DiskFull, Phase::FsyncErrors],
        }
    }

    /// The kills after which a run continues on a new store. The emulator of Cosmos DB slows as its container fills.
    pub(crate) fn kills_per_store(self) -> u64 {
        match self {
            Self::Cosmos => 100,
            Self::Postgres | Self::Sqlite => u64::MAX,
        }
    }

    /// Opens the store in a folder, its schema on a server, or its container in an account; creates it if necessary. Tries
    /// again after retryable errors. The supervisor names the account; workers find it in their environment.
    pub(crate) async fn open(self, disk: &Path, account: Option<&Account>) -> Result<Store, String> {
        match self {
            Self::Cosmos => {
                let tools = cosmos::Tools::open(disk, account).await?;
                Ok(Store { provider: tools.provider.clone(), tools: Tools::Cosmos(tools) })
            }
            Self::Postgres => {
                let tools = postgres::Tools::open(disk).await?;
                Ok(Store { provider: tools.provider.clone(), tools: Tools::Postgres(tools) })
            }
            Self::Sqlite => {
                let tools = sqlite::Tools::open(disk).await?;
                Ok(Store { provider: tools.provider.clone(), tools: Tools::Sqlite(tools) })
            }
        }
    }
}

impl Store {
    /// Whether the store can back itself up while it is used.
    pub(crate) fn can_be_copied(&self) -> bool {
        matches!(self.tools, Tools::Sqlite(_))
    }

    /// Backs up the store to a folder while it is used, and returns problems of the backup.
    pub(crate) async fn backup(&self, to: &Path, known: Known) -> Result<Vec<String>, String> {
        match &self.tools {
            Tools::Cosmos(_) => Err("Azure backs up an account".to_string()),
            Tools::Postgres(_) => Err("PostgreSQL is backed up by its own tools".to_string()),
            Tools::Sqlite(tools) => tools.backup(to, known).await,
        }
    }

    /// Problems of the stored bytes.
    pub(crate) async fn damage(&self) -> Result<Vec<String>, String> {
        match &self.tools {
            Tools::Cosmos(tools) => tools.damage().await,
            Tools::Postgres(tools) => tools.damage().await,
            Tools::Sqlite(tools) => tools.damage().await,
        }
    }

    /// Messages, activities, leases and dead letters that are left.
    pub(crate) async fn leftovers(&self) -> Result<Vec<String>, String> {
        match &self.tools {
            Tools::Cosmos(tools) => tools.leftovers().await,
            Tools::Postgres(tools) => tools.leftovers().await,
            Tools::Sqlite(tools) => tools.leftovers().await,
        }
    }
}
