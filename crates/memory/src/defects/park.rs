//! Defects of parked fetches.

use super::{Defect, Rules};
use crate::rules::{Contract, ParkRules};
use std::time::Duration;
use tokio::sync::Notify;

impl ParkRules for Rules {
    fn wake(&self, changed: &Notify) {
        if self.defect != Some(Defect::LostWakeUp) {
            Contract.wake(changed);
        }
    }

    fn parked_until(&self, now: u64, next_due: Option<u64>, give_up_at: u64) -> Option<u64> {
        match self.defect {
            Some(Defect::NeverWaits) => None,
            Some(Defect::LostWakeUp) => Contract.parked_until(now, None, give_up_at),
            _ => Contract.parked_until(now, next_due, give_up_at),
        }
    }

    async fn answer<T: Send>(&self, fetched: T) -> T {
        if self.defect == Some(Defect::DroppedFetchKeepsLease) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Contract.answer(fetched).await
    }
}
