//! Dead letters: pages of them, and their way back into a queue.

use crate::db::{Db, Result, attempts, column, unsigned};
use crate::transaction::Transaction;
use crate::{activity, hold, message, sql};
use outlast_provider::{AuditEntry, DeadLetter, DeadLetterOutcome, DeadLetterQueue, DeadLetterRecord};
use outlast_provider_kit::RequeuedRow;
use rusqlite::Row;

/// A page of dead letters.
pub(crate) struct DeadLetterPage {
    pub(crate) before: Option<u64>,
    pub(crate) limit: usize,
}

pub(crate) fn page(db: &Db, page: &DeadLetterPage) -> Result<Vec<DeadLetterRecord>> {
    let wanted = (page.before.map_or(i64::MAX, column), column(page.limit as u64));
    db.all(sql::DEAD_LETTER_PAGE, wanted, |row| {
        Ok(DeadLetterRecord { id: unsigned(row, 6)?, letter: letter(row)? })
    })
}

pub(crate) fn newest(db: &Db, limit: usize) -> Result<Vec<DeadLetter>> {
    db.all(sql::LIST_DEAD_LETTERS, [column(limit as u64)], letter)
}

fn letter(row: &Row<'_>) -> rusqlite::Result<DeadLetter> {
    let queue: String = row.get(0)?;
    Ok(DeadLetter {
        queue: match queue == DeadLetterQueue::Worker.as_str() {
            true => DeadLetterQueue::Worker,
            false => DeadLetterQueue::Orchestrator,
        },
        instance_id: row.get(1)?,
        work_item: row.get(2)?,
        reason: row.get(3)?,
        attempt_count: attempts(row, 4)?,
        dead_at: unsigned(row, 5)?,
    })
}

/// A change of a dead letter, with its record for the audit.
pub(crate) struct ChangeDeadLetter {
    pub(crate) id: u64,
    pub(crate) entry: AuditEntry,
}

/// Puts a dead letter back into its queue.
pub(crate) fn requeue(tx: &mut Transaction<'_>, change: &ChangeDeadLetter) -> Result<DeadLetterOutcome> {
    let id = column(change.id);
    let Some(letter) = tx.db.one(sql::READ_DEAD_LETTER, [id], letter)? else {
        return Ok(DeadLetterOutcome::NotFound);
    };
    let row = match RequeuedRow::of(&letter) {
        Ok(row) => row,
        Err(reason) => return Ok(DeadLetterOutcome::Undeliverable { reason }),
    };
    match &row {
        RequeuedRow::Message(row) => message::store(tx, row, None)?,
        RequeuedRow::Activity(row) => activity::enqueue(tx, row)?,
    }
    tx.db.run_exactly(1, "deleting a requeued dead letter", sql::DELETE_DEAD_LETTER, [id])?;
    hold::append_audit(tx, &change.entry)?;
    Ok(DeadLetterOutcome::Done)
}

/// Deletes a dead letter.
pub(crate) fn remove(tx: &mut Transaction<'_>, change: &ChangeDeadLetter) -> Result<DeadLetterOutcome> {
    if tx.db.run(sql::DELETE_DEAD_LETTER, [column(change.id)])? == 0 {
        return Ok(DeadLetterOutcome::NotFound);
    }
    hold::append_audit(tx, &change.entry)?;
    Ok(DeadLetterOutcome::Done)
}
