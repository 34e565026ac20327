//! Dead letters: pages of dead letters, and the return of a dead letter to its queue. A dead letter is a document of its instance,
//! and becomes a message or an activity in place: its id stays taken, so that a repeated delivery of an outbox finds it. The audit
//! is another partition, so its record follows.

use crate::activity;
use crate::client::{Op, is_conflict};
use crate::commit::tombstone;
use crate::document::{Address, Gate, Item, Versioned};
use crate::doubt::Verdict;
use crate::error::contended;
use crate::ids;
use crate::message::rank_of;
use crate::number;
use crate::sql;
use crate::store::Store;
use outlast_provider::{
    AuditEntry, DeadLetter, DeadLetterOutcome, DeadLetterQueue, DeadLetterRecord, ProviderError,
};
use outlast_provider_kit::RequeuedRow;
use outlast_provider_kit::plan::visible_at;

const REQUEUE: &str = "requeue_dead_letter";
const DROP: &str = "drop_dead_letter";
const ATTEMPTS: usize = 4;

/// The dead letter of a document; `None` for every other document.
fn record(item: Item) -> Option<DeadLetterRecord> {
    let instance_id = item.address().map(|address| address.id);
    let dead = item.dead?;
    let queue = match dead.queue == DeadLetterQueue::Worker.as_str() {
        true => DeadLetterQueue::Worker,
        false => DeadLetterQueue::Orchestrator,
    };
    let letter = DeadLetter {
        queue,
        instance_id,
        work_item: item.d,
        reason: dead.reason,
        attempt_count: item.attempts,
        dead_at: dead.at,
    };
    Some(DeadLetterRecord { id: dead.sequence, letter })
}

impl Store {
    pub(crate) async fn dead_letters(&self, limit: usize) -> Result<Vec<DeadLetter>, ProviderError> {
        let found: Vec<Item> =
            self.client.query_all("list_dead_letters", sql::DEAD_LETTERS, &[], limit).await?;
        Ok(found.into_iter().filter_map(record).map(|record| record.letter).collect())
    }

    pub(crate) async fn dead_letter_page(
        &self,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<DeadLetterRecord>, ProviderError> {
        let parameters = [("@before", number::parameter(number::indexed(before.unwrap_or(u64::MAX))))];
        let found: Vec<Item> =
            self.client.query_all("dead_letter_page", sql::DEAD_LETTER_PAGE, &parameters, limit).await?;
        Ok(found.into_iter().filter_map(record).take(limit).collect())
    }

    /// The document of a dead letter.
    async fn dead_letter(
        &self,
        operation: &str,
        id: u64,
    ) -> Result<Option<(Address, Versioned<Item>)>, ProviderError> {
        if id > number::LARGEST {
            return Ok(None);
        }
        let parameters = [("@number", number::parameter(id))];
        let found: Vec<Versioned<Item>> =
            self.client.query_all(operation, sql::DEAD_LETTER, &parameters, 1).await?;
        Ok(found.into_iter().next().and_then(|found| Some((found.document.address()?, found))))
    }

    /// Puts a dead letter back into its queue.
    pub(crate) async fn requeue_dead_letter(
        &self,
        id: u64,
        entry: &AuditEntry,
    ) -> Result<DeadLetterOutcome, ProviderError> {
        let Some((address, found)) = self.dead_letter(REQUEUE, id).await? else {
            return Ok(DeadLetterOutcome::NotFound);
        };
        let Some(DeadLetterRecord { letter, .. }) = record(found.document.clone()) else {
            return Ok(DeadLetterOutcome::NotFound);
        };
        let row = match RequeuedRow::of(&letter) {
            Ok(row) => row,
            Err(reason) => return Ok(DeadLetterOutcome::Undeliverable { reason }),
        };
        let (write, sequence) = (self.uid(), self.time.sequence());
        let next = match &row {
            RequeuedRow::Message(row) => {
                let mut next = Item {
                    t: "m".to_string(),
                    visible_at: visible_at(row, self.now(), None),
                    attempts: 0,
                    dead: None,
                    rev: None,
                    is_staged: false,
                    w: write,
                    ..found.document.clone()
                };
                next.place(rank_of(row), sequence);
                next
            }
            RequeuedRow::Activity(row) => {
                let orchestration = found.document.orchestration.clone();
                let activity = activity::document(&address, row, self.now(), sequence, write, orchestration);
                Item { id: found.document.id.clone(), ..activity }
            }
        };
        let mut operations = vec![Op::replace(&next.id, &next, Some(&found.etag))?];
        if let RequeuedRow::Message(_) = row {
            operations.push(Op::upsert(&Gate::new(&address.partition, write))?);
        }
        for _ in 0..ATTEMPTS {
            let batched = self.client.batch(&address.partition, operations.clone()).await?;
            let is_done = match batched.verdict() {
                Verdict::Applied => true,
                // The document has changed, or an attempt that was in doubt arrived late.
                Verdict::Refused(refusal) if is_conflict(refusal) => {
                    let stored = self.client.read::<Item>(REQUEUE, &address.partition, &next.id).await?;
                    if stored.is_none_or(|stored| stored.document.w != write) {
                        return Ok(DeadLetterOutcome::NotFound);
                    }
                    true
                }
                Verdict::Refused(_) => return Err(batched.error(REQUEUE)),
                Verdict::InDoubt => false,
            };
            if is_done {
                match row {
                    RequeuedRow::Message(_) => self.announced(&address, &[&next], async { Ok(()) }).await?,
                    RequeuedRow::Activity(_) => self.stored_activity(&address, &next).await,
                }
                return self.recorded(REQUEUE, id, entry).await;
            }
        }
        Err(contended(REQUEUE, &address.id))
    }

    /// Deletes a dead letter.
    pub(crate) async fn drop_dead_letter(
        &self,
        id: u64,
        entry: &AuditEntry,
    ) -> Result<DeadLetterOutcome, ProviderError> {
        let Some((address, found)) = self.dead_letter(DROP, id).await? else {
            return Ok(DeadLetterOutcome::NotFound);
        };
        match self.remove_dead_letter(DROP, &address, &found).await? {
            true => self.recorded(DROP, id, entry).await,
            false => Ok(DeadLetterOutcome::NotFound),
        }
    }

    /// Among the dead letters with the lowest numbers, deletes the dead letters from before a time.
    pub(crate) async fn prune_dead_letters(&self, before: u64, limit: usize) -> Result<u64, ProviderError> {
        const PRUNE: &str = "prune_dead_letters";
        let oldest: Vec<Versioned<Item>> =
            self.client.query_all(PRUNE, sql::DEAD_LETTERS_OLDEST, &[], limit).await?;
        let mut pruned = 0;
        for found in oldest.into_iter().take(limit) {
            let is_old = found.document.dead.as_ref().is_some_and(|dead| dead.at < before);
            let Some(address) = found.document.address().filter(|_| is_old) else { continue };
            pruned += u64::from(self.remove_dead_letter(PRUNE, &address, &found).await?);
        }
        Ok(pruned)
    }

    /// Deletes the document of a dead letter; false if another caller has changed it.
    async fn remove_dead_letter(
        &self,
        operation: &str,
        address: &Address,
        found: &Versioned<Item>,
    ) -> Result<bool, ProviderError> {
        let name = &found.document.id;
        let removal = match ids::leaves_tombstone(name) {
            true => Op::replace(name, &tombstone(address, name), Some(&found.etag))?,
            false => Op::delete(name, Some(&found.etag)),
        };
        let mut is_in_doubt = false;
        for _ in 0..ATTEMPTS {
            let batched = self.client.batch(&address.partition, vec![removal.clone()]).await?;
            match batched.verdict() {
                Verdict::Applied => return Ok(true),
                // An attempt that was in doubt removed the document, or another caller did: it is gone either way.
                Verdict::Refused(refusal) if is_conflict(refusal) => return Ok(is_in_doubt),
                Verdict::Refused(_) => return Err(batched.error(operation)),
                Verdict::InDoubt => is_in_doubt = true,
            }
        }
        Err(contended(operation, &address.id))
    }

    async fn recorded(
        &self,
        operation: &str,
        id: u64,
        entry: &AuditEntry,
    ) -> Result<DeadLetterOutcome, ProviderError> {
        match self.append_audit(entry).await {
            Ok(()) => Ok(DeadLetterOutcome::Done),
            Err(error) => Err(ProviderError::permanent(
                operation,
                format!("dead letter {id} is changed, but the audit has no record of it: {error}"),
            )),
        }
    }
}
