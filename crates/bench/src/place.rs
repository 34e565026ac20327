//! A new SQLite file, or the database of a PostgreSQL server, with a connection of its own beside the store.

use crate::cases::folder;
use crate::measure::server;
use duroxide::providers::Provider;
use duroxide::providers::postgres::PostgresProvider;
use duroxide::providers::sqlite::SqliteProvider;
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;
use tokio_postgres::NoTls;

/// The schema of the store in PostgreSQL. The statements of `sql/` name it too.
const SCHEMA: &str = "outlast";

/// The stores of a benchmark: both without an option.
#[derive(clap::Args)]
pub(crate) struct Stores {
    /// Measures only this store
    #[arg(long, value_parser = STORES)]
    store: Option<String>,
}

const STORES: [&str; 2] = ["sqlite", "postgres"];

impl Stores {
    pub(crate) fn names(&self) -> Vec<&str> {
        self.store.as_deref().map_or(STORES.to_vec(), |store| vec![store])
    }
}

pub(crate) enum Place {
    /// The folder of the file, which is removed with the value.
    Folder(TempDir),
    Server(tokio_postgres::Client),
}

impl Place {
    /// `sqlite` or `postgres`.
    pub(crate) async fn new(name: &str) -> Result<Self, String> {
        if name != "postgres" {
            return Ok(Self::Folder(folder()));
        }
        let (client, connection) =
            tokio_postgres::connect(&server::url()?, NoTls).await.map_err(|error| error.to_string())?;
        tokio::spawn(connection);
        Ok(Self::Server(client))
    }

    /// Opens the store, each time as a new process would.
    pub(crate) async fn open(&self) -> Result<Arc<dyn Provider>, String> {
        match self {
            Self::Folder(folder) => {
                let url = format!("sqlite:{}", file(folder).display());
                let store = SqliteProvider::new(&url, None).await;
                Ok(Arc::new(store.map_err(|error| error.to_string())?))
            }
            Self::Server(_) => {
                let store = PostgresProvider::new_with_schema(&server::url()?, Some(SCHEMA)).await;
                Ok(Arc::new(store.map_err(|error| error.to_string())?))
            }
        }
    }

    /// Adds the finished instances with the numbers `first` to `last`.
    pub(crate) async fn fill(&self, first: u64, last: u64) -> Result<(), String> {
        // No number is a multiple of this one, so all instances are finished.
        let fill = Fill { first, last, every_running: u64::MAX >> 1, every_failed: u64::MAX >> 1 };
        match self {
            Self::Folder(folder) => {
                let direct = rusqlite::Connection::open(file(folder)).map_err(|error| error.to_string())?;
                fill.sqlite(&direct)
            }
            Self::Server(client) => fill.postgres(client).await,
        }
    }
}

pub(crate) fn file(folder: &TempDir) -> PathBuf {
    folder.path().join("store.db")
}

/// Instances that are written without a store: numbers, and which of them run or failed.
pub(crate) struct Fill {
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) every_running: u64,
    pub(crate) every_failed: u64,
}

impl Fill {
    pub(crate) fn sqlite(&self, direct: &rusqlite::Connection) -> Result<(), String> {
        let fast = "PRAGMA synchronous = OFF; PRAGMA cache_size = -262144; PRAGMA temp_store = MEMORY;";
        let fill = self.text(include_str!("sql/fill_sqlite.sql"));
        let result =
            direct.execute_batch(&format!("{fast} BEGIN; {fill} COMMIT; PRAGMA wal_checkpoint(TRUNCATE);"));
        result.map_err(|error| error.to_string())
    }

    pub(crate) async fn postgres(&self, direct: &tokio_postgres::Client) -> Result<(), String> {
        for statement in self.text(include_str!("sql/fill_postgres.sql")).split(";\n") {
            direct.batch_execute(statement).await.map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    fn text(&self, sql: &str) -> String {
        sql.replace("{first}", &self.first.to_string())
            .replace("{last}", &self.last.to_string())
            .replace("{running}", &self.every_running.to_string())
            .replace("{failed}", &self.every_failed.to_string())
    }
}
