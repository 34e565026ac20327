//! The store and the runtime of a soak, at their defaults, and the sizes of the store.

use super::sample::Sample;
use crate::hello::registries;
use crate::measure::{server, usage};
use duroxide::client::Client;
use duroxide::providers::Provider;
use duroxide::providers::postgres::PostgresProvider;
use duroxide::providers::sqlite::SqliteProvider;
use duroxide::runtime::Runtime;
use std::sync::Arc;
use tempfile::TempDir;
use tokio_postgres::NoTls;

const FILE: &str = "soak.db";
const MIB: f64 = 1024.0 * 1024.0;

pub(super) struct Store {
    pub(super) client: Client,
    runtime: Arc<Runtime>,
    place: Place,
}

enum Place {
    /// The folder of the file, which is removed with the value.
    Folder(TempDir),
    Server(tokio_postgres::Client),
}

impl Store {
    pub(super) async fn open(name: &str) -> Result<Self, String> {
        let (provider, place): (Arc<dyn Provider>, Place) = match name {
            "postgres" => {
                let url = server::url()?;
                let provider = PostgresProvider::new_with_schema(&url, Some("outlast")).await;
                let (watcher, connection) =
                    tokio_postgres::connect(&url, NoTls).await.map_err(|error| error.to_string())?;
                tokio::spawn(connection);
                (Arc::new(provider.map_err(|error| error.to_string())?), Place::Server(watcher))
            }
            _ => {
                let folder = crate::cases::folder();
                let url = format!("sqlite:{}", folder.path().join(FILE).display());
                let provider = SqliteProvider::new(&url, None).await;
                (Arc::new(provider.map_err(|error| error.to_string())?), Place::Folder(folder))
            }
        };
        let (activities, orchestrations) = registries();
        let client = Client::new(Arc::clone(&provider));
        let runtime = Runtime::start_with_store(provider, activities, orchestrations).await;
        Ok(Self { client, runtime, place })
    }

    /// Adds memory and the sizes of the store.
    pub(super) async fn measure(&self, sample: Sample) -> Result<Sample, String> {
        let memory = usage::memory() as f64 / MIB;
        let sample = Sample { memory, ..sample };
        match &self.place {
            Place::Folder(folder) => {
                let size = |name: &str| {
                    std::fs::metadata(folder.path().join(name)).map_or(0.0, |found| found.len() as f64 / MIB)
                };
                Ok(Sample { store: size(FILE), log: size(&format!("{FILE}-wal")), ..sample })
            }
            Place::Server(client) => {
                let row = client.query_one(include_str!("../sql/soak.sql"), &[]).await;
                let row = row.map_err(|error| format!("the sizes of the store: {error}"))?;
                let number = |place: usize| row.get::<_, i64>(place) as f64;
                let (store, log) = (number(0) / MIB, number(1) / MIB);
                Ok(Sample { store, log, checkpoints: number(2), vacuums: number(3), ..sample })
            }
        }
    }

    pub(super) async fn close(self) {
        self.runtime.shutdown(None).await;
    }
}
