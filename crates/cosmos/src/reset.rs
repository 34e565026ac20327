//! Resets and forks of instances: a turn of the new execution, which is written under the version of the instance and needs no lease.
//! The audit is another partition, so its record follows.

use crate::client::json;
use crate::commit::Applied;
use crate::document::{Address, Gate, Instance, Item, Pair, Versioned};
use crate::error::contended;
use crate::history::documents;
use crate::ids::MessageKey;
use crate::instance::Written;
use crate::kv;
use crate::load::needs_recovery;
use crate::message;
use crate::prepare::{Body, Prepared, document};
use crate::sql;
use crate::store::Store;
use crate::tally::Counts;
use outlast_model::ExecutionStatus;
use outlast_model::defect::{self, Defect};
use outlast_provider::{ProviderError, ResetOutcome};
use outlast_provider_kit::{CommitPlan, ResetRows};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

const RESET: &str = "reset_instance";

/// Attempts to write an instance that others change.
const ATTEMPTS: usize = 8;

impl Store {
    /// Begins the new execution, unless the source has changed, a turn of it runs, or the id of a fork is taken.
    pub(crate) async fn reset_instance(
        self: &Arc<Self>,
        rows: &ResetRows,
    ) -> Result<ResetOutcome, ProviderError> {
        let source = Address::of(&rows.source);
        let Some(read) = self.read_instance(RESET, &source).await? else { return Ok(ResetOutcome::NotFound) };
        if let Some(refused) = self.refused(rows, &read.document) {
            return Ok(refused);
        }
        let outcome = self.begin_reset(rows).await?;
        if outcome == ResetOutcome::Done
            && !defect::is_on(Defect::RecordOfResetLost)
            && let Err(error) = self.append_audit(&rows.audit).await
        {
            let message =
                format!("instance '{}' is changed, but the audit has no record of it: {error}", rows.target);
            return Err(ProviderError::permanent(RESET, message));
        }
        Ok(outcome)
    }

    /// The reason for which the plan does not fit the source.
    fn refused(&self, rows: &ResetRows, source: &Instance) -> Option<ResetOutcome> {
        if source.row.is_none() {
            return Some(ResetOutcome::NotFound);
        }
        let over = source.lock.as_ref().map_or(0, |lock| self.over_at(lock.until, lock.holder));
        if over > self.now() && !rows.is_fork() {
            return Some(ResetOutcome::InTurn { locked_until_ms: over });
        }
        let is_current = source.latest.as_ref().is_some_and(|latest| {
            latest.execution_id == rows.execution_id && latest.last_event_id == rows.last_event_id
        });
        (!is_current).then_some(ResetOutcome::Changed)
    }

    async fn begin_reset(self: &Arc<Self>, rows: &ResetRows) -> Result<ResetOutcome, ProviderError> {
        let address = Address::of(&rows.target);
        let mut taken: HashSet<String> = HashSet::new();
        for _ in 0..ATTEMPTS {
            let read = self.read_instance(RESET, &address).await?;
            if rows.is_fork()
                && (!defect::is_on(Defect::ForkIgnoresStart) || has_row(read.as_ref()))
                && self.is_taken(RESET, &address, read.as_ref().map(|read| &read.document)).await?
            {
                return Ok(ResetOutcome::Taken);
            }
            let mut current = match read {
                Some(read) => read,
                None if rows.is_fork() => match self.created(&address).await? {
                    Some(created) => created,
                    None => continue,
                },
                None => return Ok(ResetOutcome::NotFound),
            };
            if needs_recovery(&current.document) {
                let Some(recovered) = self.recover(RESET, &address, current).await? else { continue };
                current = recovered;
            }
            if !rows.is_fork()
                && let Some(refused) = self.refused(rows, &current.document)
            {
                return Ok(refused);
            }
            let Some(prepared) = self.prepare_reset(&address, &current.document, rows, &taken).await? else {
                continue;
            };
            match self.apply(&address, &current, &prepared, Vec::new()).await? {
                Applied::Yes { etags, .. } => {
                    self.tails.forget(&address.id);
                    self.committed(&address, &prepared, &rows.begin, &etags, false).await;
                    return Ok(ResetOutcome::Done);
                }
                Applied::No { taken: id } => taken.extend(id),
            }
        }
        Err(contended(RESET, &address.id))
    }

    /// A new document without a row, for a fork; `None` if another caller created it.
    pub(crate) async fn created(
        &self,
        address: &Address,
    ) -> Result<Option<Versioned<Instance>>, ProviderError> {
        let mut document = Instance::skeleton(address, self.uid());
        let write = self.uid();
        let gate = crate::client::Op::upsert(&Gate::new(&address.partition, write))?;
        let written = self.write_instance(RESET, None, &mut document, write, vec![gate], None).await?;
        Ok(match written {
            Written::Done { etag, is_last: true, .. } if !etag.is_empty() => {
                Some(Versioned { etag, document })
            }
            _ => None,
        })
    }

    /// The documents of a reset; `None` if documents are newer than the instance.
    async fn prepare_reset(
        &self,
        address: &Address,
        before: &Instance,
        rows: &ResetRows,
        taken: &HashSet<String>,
    ) -> Result<Option<Prepared>, ProviderError> {
        let now = self.now();
        let mut base = before.clone();
        base.lock = None;
        if defect::is_on(Defect::ResetEndsHold) {
            base.hold = None;
        }
        if let Some(end) = &rows.end
            && !defect::is_on(Defect::ResetLeavesExecutionOpen)
        {
            end_execution(&mut base, end, now);
        }
        // The keys of the reset are written below.
        let begin = CommitPlan { kv: Vec::new(), ..rows.begin.clone() };
        let prepared = self.prepare(address, base, &begin, Vec::new(), taken, now).await?;
        let Some(mut prepared) = prepared else { return Ok(None) };
        let (rev, write) = (prepared.rev, prepared.write);
        if let Some(end) = &rows.end {
            for part in
                documents(address, rows.execution_id, &end.history, Some(rev), write, self.limits.bytes)
            {
                let body = Body::Json(json(&part)?);
                prepared.turn.creates.push(document(&part.id, body, &part));
            }
        }
        let available_at = match rows.first_messages.is_empty() {
            true => now,
            false => self.first_available(address, rows.first_available_ms.min(now)).await?,
        };
        for row in &rows.first_messages {
            let (key, sequence) = (MessageKey::Enqueued(self.uid()), self.time.sequence());
            let mut item = message::document(address, &key, row, available_at, sequence, write);
            item.rev = Some(rev);
            let body = Body::Item(Box::new(item.clone()));
            prepared.turn.creates.push(document(&item.id, body, &item));
            prepared.messages.push(item);
        }
        let stored: Vec<Versioned<Pair>> =
            self.client.query(RESET, &address.partition, sql::PAIRS, &[]).await?;
        let stored: HashMap<String, Versioned<Pair>> =
            stored.into_iter().map(|pair| (pair.document.id.clone(), pair)).collect();
        let Ok(pairs) = kv::rebased(address, &mut prepared.instance, rows, &stored, now, rev, write) else {
            return Ok(None);
        };
        let pairs = pairs.into_iter().map(|pair| {
            let (id, sized) = (pair.id.clone(), pair.clone());
            document(&id, Body::Pair(Box::new(pair)), &sized)
        });
        prepared.turn.key_values = pairs.collect();
        prepared.counted = Counts::of(&prepared.instance).since(Counts::of(before));
        prepared.turn.instance_bytes =
            serde_json::to_string(&prepared.instance).map_or(0, |text| text.len()) + 200;
        Ok(Some(prepared))
    }

    /// The time of messages that are delivered before all messages that wait for the instance. Plans of one chain of resets have the
    /// same time, so that messages of an earlier reset can wait with the time of a plan.
    async fn first_available(&self, address: &Address, planned: u64) -> Result<u64, ProviderError> {
        if defect::is_on(Defect::SecondResetComesLast) {
            return Ok(planned);
        }
        let waiting: Vec<Item> =
            self.client.query(RESET, &address.partition, sql::MESSAGE_TIMES, &[]).await?;
        let before_waiting = waiting.iter().map(|item| item.visible_at.saturating_sub(1)).min();
        Ok(before_waiting.map_or(planned, |before| before.min(planned)))
    }
}

/// Whether the instance has had a turn.
fn has_row(read: Option<&Versioned<Instance>>) -> bool {
    read.is_some_and(|read| read.document.row.is_some())
}

/// Ends the newest execution as continued. Its keys are not merged.
fn end_execution(instance: &mut Instance, end: &CommitPlan, now: u64) {
    let Some(latest) = &mut instance.latest else { return };
    latest.append(&end.history);
    latest.status = ExecutionStatus::ContinuedAsNew.to_string();
    latest.output.clone_from(&end.metadata.output);
    latest.output_is_far = false;
    latest.completed_at = Some(now);
    instance.events += end.history.len() as u64;
}
