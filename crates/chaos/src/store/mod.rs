//! The store under test: what the run must know of it beyond the contract.

mod sqlite;

use clap::ValueEnum;
use outlast::providers::Provider;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// A store that a run can be about. A new one is a variant here and a file beside `sqlite.rs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StoreKind {
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
            Self::Sqlite => "sqlite",
        }
    }

    /// Opens the store in a folder; creates it if need be. Tries again while that may help.
    pub(crate) async fn open(self, disk: &Path) -> Result<Store, String> {
        match self {
            Self::Sqlite => {
                let tools = sqlite::Tools::open(disk).await?;
                Ok(Store { provider: tools.provider.clone(), tools: Tools::Sqlite(tools) })
            }
        }
    }
}

impl Store {
    /// Copies the store to a folder while it is used, and says what is wrong with the copy.
    pub(crate) async fn backup(&self, to: &Path, known: Known) -> Result<Vec<String>, String> {
        match &self.tools {
            Tools::Sqlite(tools) => tools.backup(to, known).await,
        }
    }

    /// What is wrong with the stored bytes.
    pub(crate) async fn damage(&self) -> Result<Vec<String>, String> {
        match &self.tools {
            Tools::Sqlite(tools) => tools.damage().await,
        }
    }

    /// Rows that nobody should have left: messages, activities, leases, dead letters.
    pub(crate) async fn leftovers(&self) -> Result<Vec<String>, String> {
        match &self.tools {
            Tools::Sqlite(tools) => tools.leftovers().await,
        }
    }
}
