//! Messages that no turn takes: those that do not decode become dead letters, and those of instances that do not exist wait, or
//! are removed.

use crate::client::Op;
use crate::document::{Address, Instance};
use crate::fetch::{Attempt, Batch, FETCH};
use crate::instance::Written;
use crate::message::{Waiting, dead_letter};
use crate::store::Store;
use outlast_provider::{DeadLetterQueue, ProviderError};
use outlast_provider_kit::orphans::Fate;

impl Store {
    /// The operations that turn messages into dead letters, as many as fit beside the instance.
    pub(crate) fn burials(
        &self,
        instance: &mut Instance,
        damaged: &[(Waiting, String)],
        now: u64,
    ) -> Result<Vec<Op>, ProviderError> {
        let mut operations = Vec::new();
        let mut bytes = 0;
        for (row, reason) in damaged {
            bytes += row.item.d.len() + 1_000;
            let is_full = operations.len() + 1 >= self.limits.operations || bytes > self.limits.bytes;
            if is_full && !operations.is_empty() {
                break;
            }
            let letter = dead_letter(
                &row.item,
                DeadLetterQueue::Orchestrator,
                reason.clone(),
                row.attempts,
                now,
                self.time.sequence(),
            );
            operations.push(Op::replace(&row.item.id, &letter, Some(&row.etag))?);
            instance.overrides.remove(&row.item.id);
        }
        Ok(operations)
    }

    /// Turns messages into dead letters, without a turn.
    pub(crate) async fn bury(
        &self,
        address: &Address,
        etag: Option<String>,
        mut instance: Instance,
        batch: Batch,
        now: u64,
    ) -> Result<Attempt, ProviderError> {
        (instance.lock, instance.rest) = (None, None);
        let operations = self.burials(&mut instance, &batch.damaged, now)?;
        let buried: Vec<String> =
            batch.damaged.iter().take(operations.len()).map(|(row, _)| row.item.id.clone()).collect();
        let written =
            self.write_instance(FETCH, etag.as_deref(), &mut instance, self.uid(), operations, None).await?;
        if matches!(written, Written::Done { .. }) {
            self.ready.consumed(&address.id, &buried, 0);
        }
        Ok(Attempt::Retry)
    }

    /// Removes queue messages for an instance that does not exist.
    pub(crate) async fn drop_orphans(
        &self,
        address: &Address,
        etag: Option<String>,
        mut instance: Instance,
        batch: Batch,
        now: u64,
    ) -> Result<Attempt, ProviderError> {
        (instance.lock, instance.rest) = (None, None);
        let room = self.limits.operations - 1;
        let mut operations = self.burials(&mut instance, &batch.damaged, now)?;
        let mut gone: Vec<String> =
            batch.damaged.iter().take(operations.len()).map(|(row, _)| row.item.id.clone()).collect();
        for row in &batch.rows {
            if operations.len() >= room {
                break;
            }
            instance.overrides.remove(&row.item.id);
            operations.push(Op::delete(&row.item.id, Some(&row.etag)));
            gone.push(row.item.id.clone());
        }
        let written =
            self.write_instance(FETCH, etag.as_deref(), &mut instance, self.uid(), operations, None).await?;
        let is_whole = gone.len() == batch.rows.len() + batch.damaged.len();
        match written {
            Written::Done { .. } => {
                self.ready.consumed(&address.id, &gone, 0);
                Ok(if is_whole { Attempt::Nothing } else { Attempt::Retry })
            }
            Written::Conflict { .. } => Ok(Attempt::Retry),
        }
    }

    /// Delays messages for an instance that does not exist yet.
    #[allow(clippy::too_many_arguments)]
    pub(crate) async fn delay_orphans(
        &self,
        address: &Address,
        etag: Option<String>,
        mut instance: Instance,
        batch: Batch,
        until: u64,
        fates: Vec<Fate>,
        now: u64,
    ) -> Result<Attempt, ProviderError> {
        instance.lock = None;
        instance.rest = batch.is_partial.then_some(until);
        let mut buried = batch.damaged;
        let mut delayed = Vec::new();
        for (row, fate) in batch.rows.into_iter().zip(fates) {
            match fate {
                Fate::Delayed => {
                    instance.overrides.entry(row.item.id.clone()).or_default().at = Some(until);
                    delayed.push(row);
                }
                Fate::DeadLetter(reason) => buried.push((row, reason)),
            }
        }
        let operations = self.burials(&mut instance, &buried, now)?;
        let gone: Vec<String> =
            buried.iter().take(operations.len()).map(|(row, _)| row.item.id.clone()).collect();
        let is_whole = gone.len() == buried.len();
        let rest = instance.rest.unwrap_or(0);
        let written =
            self.write_instance(FETCH, etag.as_deref(), &mut instance, self.uid(), operations, None).await?;
        match written {
            Written::Done { .. } => {
                self.ready.consumed(&address.id, &gone, rest);
                for row in &delayed {
                    self.ready.arrived(&address.id, &row.item.id, until, row.item.sequence);
                }
                Ok(if is_whole { Attempt::Nothing } else { Attempt::Retry })
            }
            Written::Conflict { .. } => Ok(Attempt::Retry),
        }
    }
}
