//! The store under test: what the run must know of it beyond the contract.

mod postgres;
mod sqlite;

pub(crate) use postgres::{COMMIT_BYTES, DEADLINE, Server, URL as POSTGRES_URL};

use crate::args::Phase;
use clap::ValueEnum;
use outlast::providers::Provider;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// A store that a run can be about. A new one is a variant here and a file beside `sqlite.rs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StoreKind {
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
    Postgres(postgres::Tools),
    Sqlite(sqlite::Tools),
}

/// What must be in a copy that is made after this was known.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known {
    /// Instances whose start was acknowledged.
    pub(crate) started: BTreeSet<String>,
    /// Instances that a client saw ended.
    pub(crate) ended: BTreeSet<String>,
}

impl StoreKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::Sqlite => "sqlite",
        }
    }

    /// The parts of a run that mean something for it: a server has a disk of its own.
    pub(crate) fn phases(self) -> &'static [Phase] {
        match self {
            Self::Postgres => &[Phase::Kills, Phase::Partitions],
            Self::Sqlite => &[Phase::Kills, Phase::DiskFull, Phase::FsyncErrors],
        }
    }

    /// Opens the store in a folder, or the one that belongs to it on a server; creates it if need be. Tries again while
    /// that may help.
    pub(crate) async fn open(self, disk: &Path) -> Result<Store, String> {
        match self {
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
    /// Whether it has a way of its own to be copied while it is used.
    pub(crate) fn can_be_copied(&self) -> bool {
        matches!(self.tools, Tools::Sqlite(_))
    }

    /// Copies the store to a folder while it is used, and says what is wrong with the copy.
    pub(crate) async fn backup(&self, to: &Path, known: Known) -> Result<Vec<String>, String> {
        match &self.tools {
            Tools::Postgres(_) => Err("a server is copied by tools of its own".to_string()),
            Tools::Sqlite(tools) => tools.backup(to, known).await,
        }
    }

    /// What is wrong with the stored bytes.
    pub(crate) async fn damage(&self) -> Result<Vec<String>, String> {
        match &self.tools {
            Tools::Postgres(tools) => tools.damage().await,
            Tools::Sqlite(tools) => tools.damage().await,
        }
    }

    /// Rows that nobody should have left: messages, activities, leases, dead letters.
    pub(crate) async fn leftovers(&self) -> Result<Vec<String>, String> {
        match &self.tools {
            Tools::Postgres(tools) => tools.leftovers().await,
            Tools::Sqlite(tools) => tools.leftovers().await,
        }
    }
}
