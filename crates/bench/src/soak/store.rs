//! The store and the runtime of a soak, at their defaults, and the sizes of the store.

use super::sample::Sample;
use crate::hello::registries;
use crate::measure::usage;
use crate::place::{Place, file};
use duroxide::client::Client;
use duroxide::runtime::Runtime;
use std::path::Path;
use std::sync::Arc;

const MIB: f64 = 1024.0 * 1024.0;

pub(super) struct Store {
    pub(super) client: Client,
    runtime: Arc<Runtime>,
    place: Place,
}

impl Store {
    pub(super) async fn open(name: &str) -> Result<Self, String> {
        let place = Place::new(name).await?;
        let provider = place.open().await?;
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
                let file = file(folder);
                let log = file.with_extension("db-wal");
                let size =
                    |file: &Path| std::fs::metadata(file).map_or(0.0, |found| found.len() as f64 / MIB);
                Ok(Sample { store: size(&file), log: size(&log), ..sample })
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
