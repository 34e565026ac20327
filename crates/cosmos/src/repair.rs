//! The query that finds work of other processes, of an earlier life of this process, and intents that were not delivered.

use crate::document::{Address, Item};
use crate::error::damaged;
use crate::number::{indexed, parameter};
use crate::slots::SKEW_MS;
use crate::sql;
use crate::store::Store;
use outlast_provider::ProviderError;
use std::sync::Arc;

/// Items that become due later are found by a later query.
const HORIZON_MS: u64 = 120_000;

/// The last query.
#[derive(Default)]
pub(crate) struct Repaired {
    at: Option<u64>,
}

impl Store {
    /// When the next query is due.
    pub(crate) async fn repair_due(&self) -> u64 {
        self.repair
            .lock()
            .await
            .at
            .map_or(0, |at| at.saturating_add(self.poll_interval_ms.min(HORIZON_MS / 2)))
    }

    /// Whether the clock was set back behind the last query.
    pub(crate) async fn was_set_back(&self, now: u64) -> bool {
        self.repair.lock().await.at.is_some_and(|at| at > now)
    }

    /// Looks for work; returns whether there is some that was not known.
    pub(crate) async fn repair(self: &Arc<Self>, now: u64) -> Result<bool, ProviderError> {
        let mut repaired = self.repair.lock().await;
        let due = repaired.at.map_or(0, |at| at.saturating_add(self.poll_interval_ms));
        if repaired.at.is_some_and(|at| at <= now) && now < due {
            // Another fetch was faster.
            return Ok(false);
        }
        let horizon = indexed(now.saturating_add(HORIZON_MS));
        let parameters = [("@horizon", parameter(horizon))];
        let found: Vec<Item> = self.client.query_all("repair", sql::READY, &parameters, usize::MAX).await?;
        repaired.at = Some(now);
        drop(repaired);
        let mut is_new = false;
        for item in found {
            let address =
                item.address().ok_or_else(|| damaged("repair", format!("'{}' has no owner", item.id)))?;
            is_new |= match item.t.as_str() {
                "m" => self.ready.found(&address.id, &item.id, item.visible_at, item.sequence),
                "a" => self.found_activity(&address, &item),
                _ => false,
            };
        }
        if is_new {
            self.ready.wake();
        }
        Ok(is_new)
    }

    fn found_activity(&self, address: &Address, item: &Item) -> bool {
        let is_own = item.lock.as_ref().is_none_or(|lock| lock.holder == self.own);
        self.ready.found_work(address, item, if is_own { 0 } else { SKEW_MS })
    }
}
