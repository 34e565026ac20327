//! The gauges: running instances and waiting items. Every runtime reads them once a minute, so the number of rows of a read has a
//! bound that does not depend on the number of instances:
//!
//! | number | up to [`EXACTLY`] | above |
//! |---|---|---|
//! | running instances | counted | by the tally, if it was counted within a day; else one dispatch slot at a time |
//! | delayed items | counted | one dispatch slot at a time |
//! | due items | counted | counted: an idle store has none |
//! | held instances, and their messages that are set aside | counted | slot by slot |
//!
//! One dispatch slot at a time: see [`crate::rolling`].

use crate::document::Item;
use crate::number::{self, parameter};
use crate::pending::{Covers, Depths, MOST_COUNTED};
use crate::rolling::Rolling;
use crate::sql;
use crate::store::{Store, locked};
use outlast_provider::ProviderError;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Value, json};
use std::sync::Mutex;

/// The number of rows up to which a gauge is exact.
pub(crate) const EXACTLY: usize = 250;

/// A read of several slots stops at this multiple of the rows that it should have.
const AT_MOST: usize = 4;

/// The kinds of waiting items that are counted slot by slot, in the order of [`Depths::kinds`].
const KINDS: usize = 5;

/// The counts of a process that are made slot by slot; `None` while the store is small.
#[derive(Default)]
pub(crate) struct Gauges {
    running: Mutex<Option<Rolling<1>>>,
    later: Mutex<Option<Rolling<KINDS>>>,
    held: Mutex<Option<Rolling<2>>>,
}

/// A running instance, as a count reads it.
#[derive(Deserialize)]
struct Running {
    slot: u8,
}

/// A held instance, as a count reads it.
#[derive(Deserialize)]
struct HeldSize {
    slot: u8,
    /// The messages that are set aside.
    #[serde(with = "number", default)]
    aside: u64,
}

impl Store {
    fn exactly(&self) -> usize {
        EXACTLY.min(self.counted_exactly)
    }

    /// The number of running instances.
    pub(crate) async fn running(&self, operation: &str) -> Result<u64, ProviderError> {
        let most = self.exactly();
        let is_large = locked(&self.gauges.running).is_some();
        if is_large && let Some(running) = self.tallied_running(operation).await? {
            if running > 2 * most as u64 {
                return Ok(running);
            }
            *locked(&self.gauges.running) = None;
        }
        if locked(&self.gauges.running).is_none() {
            let read = most.saturating_add(1);
            let rows: Vec<IgnoredAny> = self.client.query_all(operation, sql::RUNNING, &[], read).await?;
            if rows.len() <= most {
                return Ok(rows.len() as u64);
            }
            locked(&self.gauges.running).get_or_insert_with(|| Rolling::new(most));
            if let Some(running) = self.tallied_running(operation).await? {
                return Ok(running.max(rows.len() as u64));
            }
        }
        self.running_by_slots(operation).await
    }

    async fn running_by_slots(&self, operation: &str) -> Result<u64, ProviderError> {
        let now = self.now();
        let mut slots = locked(&self.gauges.running).as_ref().map_or(Vec::new(), |rolling| rolling.due(now));
        let rows: Vec<Running> = self.rows_of(operation, sql::RUNNING_IN, &[], &mut slots).await?;
        let rows: Vec<(u8, [u64; 1])> = rows.into_iter().map(|row| (row.slot, [1])).collect();
        let mut gauge = locked(&self.gauges.running);
        let Some(rolling) = gauge.as_mut() else { return Ok(0) };
        if !slots.is_empty() {
            rolling.counted(&slots, &rows, now);
        }
        let [running] = rolling.sum();
        if rolling.estimated_rows() <= self.exactly() {
            *gauge = None;
        }
        Ok(running)
    }

    /// The number of held instances, and of their messages that are set aside.
    pub(crate) async fn held_sums(&self, operation: &str) -> Result<[u64; 2], ProviderError> {
        let (most, never) = (self.exactly(), [("@never", number::LARGEST.into())]);
        if locked(&self.gauges.held).is_none() {
            let read = most.saturating_add(1);
            let rows: Vec<HeldSize> = self.client.query_all(operation, sql::HELD_SIZES, &never, read).await?;
            if rows.len() <= most {
                return Ok([rows.len() as u64, rows.iter().map(|row| row.aside).sum()]);
            }
            locked(&self.gauges.held).get_or_insert_with(|| Rolling::new(most));
        }
        let now = self.now();
        let mut slots = locked(&self.gauges.held).as_ref().map_or(Vec::new(), |rolling| rolling.due(now));
        let rows: Vec<HeldSize> = self.rows_of(operation, sql::HELD_SIZES_IN, &never, &mut slots).await?;
        let rows: Vec<(u8, [u64; 2])> = rows.into_iter().map(|row| (row.slot, [1, row.aside])).collect();
        let mut gauge = locked(&self.gauges.held);
        let Some(rolling) = gauge.as_mut() else { return Ok([0, 0]) };
        if !slots.is_empty() {
            rolling.counted(&slots, &rows, now);
        }
        let sums = rolling.sum();
        if rolling.estimated_rows() <= most {
            *gauge = None;
        }
        Ok(sums)
    }

    /// The waiting items of the store.
    pub(crate) async fn waiting(&self, operation: &str) -> Result<Depths, ProviderError> {
        let (mut covers, now, most) = (self.covers(operation).await?, self.now(), self.exactly());
        if locked(&self.gauges.later).is_none() {
            let read = most.saturating_add(1);
            let rows: Vec<Item> = self.client.query_all(operation, sql::QUEUED, &[], read).await?;
            if rows.len() <= most {
                self.look_up_holds(operation, &rows, &mut covers, now).await?;
                return self.depths_of(rows, &covers, now).await;
            }
            locked(&self.gauges.later).get_or_insert_with(|| Rolling::new(most));
        }
        let parameters = [("@now", parameter(now))];
        let due: Vec<Item> = self.client.query_all(operation, sql::DUE, &parameters, MOST_COUNTED).await?;
        let due_rows = due.len();
        self.look_up_holds(operation, &due, &mut covers, now).await?;
        let mut depths = self.depths_of(due, &covers, now).await?;
        depths += self.later_by_slots(operation, &covers, now, due_rows).await?;
        Ok(depths)
    }

    /// The items that become visible later.
    async fn later_by_slots(
        &self,
        operation: &str,
        covers: &Covers,
        now: u64,
        due_rows: usize,
    ) -> Result<Depths, ProviderError> {
        let mut slots = locked(&self.gauges.later).as_ref().map_or(Vec::new(), |rolling| rolling.due(now));
        let parameters = [("@now", parameter(now))];
        let mut rows = Vec::new();
        for row in self.rows_of::<Item>(operation, sql::LATER_IN, &parameters, &mut slots).await? {
            let slot = row.slot;
            rows.push((slot, self.depths_of(vec![row], covers, now).await?.kinds()));
        }
        let mut gauge = locked(&self.gauges.later);
        let Some(rolling) = gauge.as_mut() else { return Ok(Depths::default()) };
        if !slots.is_empty() {
            rolling.counted(&slots, &rows, now);
        }
        let depths = Depths::of_kinds(rolling.sum());
        if rolling.estimated_rows() + due_rows <= self.exactly() {
            *gauge = None;
        }
        Ok(depths)
    }

    /// The rows of slots. If they are many more than expected, `slots` is shortened to one slot, whose rows are returned.
    async fn rows_of<T: DeserializeOwned>(
        &self,
        operation: &str,
        sql: &'static str,
        parameters: &[(&str, Value)],
        slots: &mut Vec<u8>,
    ) -> Result<Vec<T>, ProviderError> {
        if slots.is_empty() {
            return Ok(Vec::new());
        }
        loop {
            let most = if slots.len() > 1 { AT_MOST * self.exactly() } else { usize::MAX };
            let parameters = [parameters, &[("@slots", json!(slots))]].concat();
            let rows = self.client.query_all(operation, sql, &parameters, most).await?;
            if rows.len() < most {
                return Ok(rows);
            }
            slots.truncate(1);
        }
    }
}
