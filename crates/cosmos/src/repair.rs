//! The query that finds work without a hint: of dispatch slots that this process has just got, of an earlier life of a process, and
//! of lost hints. Overdue work is found in every dispatch slot.

use crate::document::{Address, Item};
use crate::error::damaged;
use crate::limit;
use crate::number::{indexed, parameter};
use crate::seats::Roles;
use crate::slots::{LEASE_MS, SKEW_MS, is_overdue};
use crate::sql;
use crate::store::{Store, locked};
use outlast_provider::{ProviderError, saturating_ms};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Items that become due later are found by a later query.
const HORIZON_MS: u64 = 120_000;

/// The last query, and the next one.
#[derive(Default)]
pub(crate) struct Repaired {
    at: Option<u64>,
    /// Slots were taken over: the query is repeated when every write has ended that was in flight at the first one.
    again_at: Option<u64>,
    /// A query failed: the next one is not sent before this time.
    not_before: u64,
}

impl Repaired {
    fn due(&self, interval_ms: u64, has_new_role: bool) -> u64 {
        if has_new_role {
            return self.not_before;
        }
        let due = self.at.map_or(0, |at| at.saturating_add(interval_ms.min(HORIZON_MS / 2)));
        due.min(self.again_at.unwrap_or(u64::MAX)).max(self.not_before)
    }
}

impl Store {
    /// The time at which the next query is due.
    pub(crate) async fn repair_due(&self) -> u64 {
        self.repair.lock().await.due(self.repair_interval_ms, self.has_new_role())
    }

    /// Whether the process takes a kind of work for which it has never searched.
    pub(crate) fn has_new_role(&self) -> bool {
        self.roles().exceeds(&locked(&self.covered))
    }

    /// Whether the clock was set back behind the last query.
    pub(crate) async fn was_set_back(&self, now: u64) -> bool {
        self.repair.lock().await.at.is_some_and(|at| at > now)
    }

    /// Stops the queries, because the process has stopped fetching. If it fetches again, it queries all slots.
    pub(crate) async fn stop_repairing(&self) {
        let mut repaired = self.repair.lock().await;
        *repaired = Repaired::default();
        *locked(&self.covered) = Roles::default();
    }

    /// Queries at the next opportunity, and again when all requests that are running now have ended.
    pub(crate) async fn repair_soon(&self) {
        let again_at = self.now().saturating_add(saturating_ms(limit::LONGEST));
        let mut repaired = self.repair.lock().await;
        (repaired.at, repaired.again_at) = (None, Some(again_at));
    }

    /// Runs the repair query.
    pub(crate) async fn repair(self: &Arc<Self>, now: u64) -> Result<(), ProviderError> {
        let mut repaired = self.repair.lock().await;
        let roles = self.roles();
        if repaired.at.is_some_and(|at| at <= now)
            && now < repaired.due(self.repair_interval_ms, self.has_new_role())
        {
            // Another fetch was faster.
            return Ok(());
        }
        let overdue = now.saturating_sub(2 * LEASE_MS);
        debug_assert!(is_overdue(overdue, now) || now < 2 * LEASE_MS);
        // Work that is stored from here on enters the index when it is stored; the query finds older work.
        let covered = std::mem::replace(&mut *locked(&self.covered), roles.clone());
        let (turns, activities) = {
            let (fleet, monotonic) = (locked(&self.fleet), self.time.monotonic_ms());
            // The first query for a kind of work covers all slots: the process may be the next life of a runtime whose lease is
            // not over.
            let turns = |slot: &u8| roles.turns && (!covered.turns || fleet.serves(*slot, now, monotonic));
            let works_as = |slot: &u8, group: &String| {
                !covered.activities.contains_key(group) || fleet.works(*slot, group, None, now)
            };
            let works = |slot: &u8| roles.activities.keys().any(|group| works_as(slot, group));
            let slots = || 0..=u8::MAX;
            (slots().filter(turns).collect::<Vec<u8>>(), slots().filter(works).collect::<Vec<u8>>())
        };
        let overdue_for = |is_taken: bool| if is_taken { parameter(indexed(overdue)) } else { (-1).into() };
        let parameters = [
            ("@horizon", parameter(indexed(now.saturating_add(HORIZON_MS)))),
            ("@turns", serde_json::json!(turns)),
            ("@work", serde_json::json!(activities)),
            ("@turnsOverdue", overdue_for(roles.turns)),
            ("@workOverdue", overdue_for(roles.takes_activities())),
            ("@anyQueue", roles.queues().is_none().into()),
            ("@queues", serde_json::json!(roles.queues().unwrap_or_default())),
        ];
        let found = self.client.query_all("repair", sql::READY, &parameters, usize::MAX).await;
        repaired.not_before = 0;
        if found.is_err() {
            repaired.not_before = now.saturating_add(self.poll_interval_ms);
            *locked(&self.covered) = Roles::default();
        }
        let found: Vec<Item> = found?;
        repaired.at = Some(now);
        repaired.again_at = repaired.again_at.filter(|again_at| *again_at > now);
        let mut is_new = false;
        for item in found {
            let address =
                item.address().ok_or_else(|| damaged("repair", format!("'{}' has no owner", item.id)))?;
            is_new |= match item.t.as_str() {
                "m" => self.ready.found(&address.id, &item.id, item.visible_at, item.sequence),
                "a" if roles.takes(item.tag.as_deref()) => self.found_activity(&address, &item),
                _ => false,
            };
        }
        if is_new {
            self.repairs.fetch_add(1, Ordering::Release);
            self.ready.wake();
        }
        drop(repaired);
        Ok(())
    }

    fn found_activity(&self, address: &Address, item: &Item) -> bool {
        let is_own = item.lock.as_ref().is_none_or(|lock| lock.holder == self.own);
        self.ready.found_activity(address, item, if is_own { 0 } else { SKEW_MS })
    }
}
