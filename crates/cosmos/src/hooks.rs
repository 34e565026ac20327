//! Hooks for tests of the search for ready work (feature `test-hooks`).

use crate::CosmosDBProvider;
use crate::document::Address;
use crate::store::locked;
use outlast_provider::ProviderError;
use serde::de::IgnoredAny;

impl CosmosDBProvider {
    /// Runs the due steps of the background task: heartbeat, slot table, hints, repair.
    pub async fn seek(&self) {
        self.store.seek_once().await;
    }

    /// The number of slots that this process owns.
    pub fn owned_slots(&self) -> usize {
        let fleet = locked(&self.store.fleet);
        let now = self.store.time.monotonic_ms();
        (0..=u8::MAX).filter(|slot| fleet.owns(*slot, now)).count()
    }

    /// Whether this process owns the slot of an instance.
    pub fn owns_slot_of(&self, instance: &str) -> bool {
        self.store.owns(&Address::of(instance))
    }

    /// The number of records of deletions.
    pub async fn count_records(&self) -> Result<usize, ProviderError> {
        let records: Vec<IgnoredAny> =
            self.store.client.query("records", crate::layout::SYSTEM, crate::sql::RECORDS, &[]).await?;
        Ok(records.len())
    }

    /// The number of fetches that wait for work.
    pub fn waiting_fetches(&self) -> usize {
        self.store.seats.count_waiting()
    }
}
