//! Dead letters: their numbers, and their way back into a queue.

use crate::commit::visible_at;
use crate::rules::DeadLetterRules;
use crate::state::State;
use outlast_provider::model::{WorkItem, json};
use outlast_provider::{
    AuditEntry, AuditRecord, DeadLetter, DeadLetterOutcome, DeadLetterQueue, DeadLetterRecord, ProviderError,
};

impl State {
    /// Stores a dead letter under the next number.
    pub(crate) fn bury(&mut self, letter: DeadLetter) {
        self.last_dead_letter += 1;
        self.dead_letters.insert(self.last_dead_letter, letter);
    }

    /// Appends a record to the audit.
    pub(crate) fn record(&mut self, entry: &AuditEntry, now: u64) {
        let id = self.next_record();
        self.audit.push(AuditRecord { id, at_ms: now, entry: entry.clone() });
    }

    /// The id of the next record: the newest record is never deleted.
    pub(crate) fn next_record(&self) -> u64 {
        self.audit.last().map_or(1, |newest| newest.id + 1)
    }

    pub(crate) fn dead_letter_page(&self, before: Option<u64>, limit: usize) -> Vec<DeadLetterRecord> {
        let older = self.dead_letters.range(..before.unwrap_or(u64::MAX)).rev().take(limit);
        older.map(|(id, letter)| DeadLetterRecord { id: *id, letter: letter.clone() }).collect()
    }

    pub(crate) fn requeue_dead_letter(
        &mut self,
        id: u64,
        entry: &AuditEntry,
        now: u64,
    ) -> Result<DeadLetterOutcome, ProviderError> {
        let rules = self.rules;
        let Some(letter) = self.dead_letters.get(&id).cloned() else {
            return Ok(DeadLetterOutcome::NotFound);
        };
        let item = match rules.deliverable(&letter) {
            Ok(item) => item,
            Err(reason) => return Ok(DeadLetterOutcome::Undeliverable { reason }),
        };
        match letter.queue {
            DeadLetterQueue::Orchestrator => {
                let at = visible_at(&item, now, None);
                self.messages.push(item.target_instance(), letter.work_item, at);
                self.cancels_hold(&item);
            }
            DeadLetterQueue::Worker => self.push_activity(item, now)?,
        }
        rules.remove_requeued(self, id);
        rules.record_requeue(self, entry, now);
        Ok(DeadLetterOutcome::Done)
    }

    pub(crate) fn drop_dead_letter(&mut self, id: u64, entry: &AuditEntry, now: u64) -> DeadLetterOutcome {
        if self.dead_letters.remove(&id).is_none() {
            return DeadLetterOutcome::NotFound;
        }
        let rules = self.rules;
        rules.record_drop(self, entry, now);
        DeadLetterOutcome::Done
    }
}

/// The item of a dead letter, or the reason why it cannot be delivered.
pub(crate) fn deliverable(letter: &DeadLetter) -> Result<WorkItem, String> {
    let item = json::decode_work_item(&letter.work_item).map_err(|error| error.to_string())?;
    let is_activity = matches!(item, WorkItem::ActivityExecute { .. });
    let is_placed = is_activity == (letter.queue == DeadLetterQueue::Worker);
    match is_placed && letter.instance_id.as_deref() == Some(item.target_instance()) {
        true => Ok(item),
        false => Err(format!("{} of another instance or queue", item.kind_name())),
    }
}
