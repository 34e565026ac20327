//! Dead letters: pages of dead letters, and the return of a dead letter to its queue.

use crate::db::{Db, Param, Result, cell, column, id_column, key_column, text, text_option, unsigned};
use crate::text::{owned, owned_option};
use outlast_provider::{AuditEntry, DeadLetter, DeadLetterOutcome, DeadLetterQueue, DeadLetterRecord};
use outlast_provider_kit::RequeuedRow;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

/// The newest dead letters.
pub(crate) async fn newest(db: &Db, limit: usize) -> Result<Vec<DeadLetter>> {
    let limit = column(limit as u64);
    let rows = db.all(&db.statements.list_dead_letters, &[(&limit, Type::INT8)]).await?;
    rows.iter().map(letter).collect()
}

/// A page of dead letters with their numbers, newest first, with numbers below `before`.
pub(crate) async fn page(db: &Db, before: Option<u64>, limit: usize) -> Result<Vec<DeadLetterRecord>> {
    let (before, limit) = (before.map_or(i64::MAX, column), column(limit as u64));
    let wanted: [Param<'_>; 2] = [(&before, Type::INT8), (&limit, Type::INT8)];
    let rows = db.all(&db.statements.dead_letter_page, &wanted).await?;
    rows.iter().map(|row| Ok(DeadLetterRecord { id: unsigned(row, "id")?, letter: letter(row)? })).collect()
}

/// Reads a dead letter from its row.
fn letter(row: &Row) -> Result<DeadLetter> {
    Ok(DeadLetter {
        queue: match cell::<&str>(row, "queue")? == DeadLetterQueue::Worker.as_str() {
            true => DeadLetterQueue::Worker,
            false => DeadLetterQueue::Orchestrator,
        },
        instance_id: text_option(row, "instance_id")?,
        work_item: cell(row, "work_item")?,
        reason: text(row, "reason")?,
        attempt_count: u32::try_from(cell::<i32>(row, "attempt_count")?).unwrap_or(0),
        dead_at: unsigned(row, "dead_at")?,
    })
}

/// The record of a change, as parameters 2 to 7 of its statement.
struct Entry {
    texts: [String; 5],
    request: Option<String>,
}

impl Entry {
    fn of(entry: &AuditEntry) -> Self {
        let AuditEntry { actor, action, target, reason, request, result } = entry;
        let texts = [actor, action, target, reason, result].map(|text| owned(text));
        Self { texts, request: owned_option(request.as_ref()) }
    }

    fn params<'a>(&'a self, id: &'a i64) -> Vec<Param<'a>> {
        let [actor, action, target, reason, result] = &self.texts;
        vec![
            (id, Type::INT8),
            (actor, Type::TEXT),
            (action, Type::TEXT),
            (target, Type::TEXT),
            (reason, Type::TEXT),
            (&self.request, Type::TEXT),
            (result, Type::TEXT),
        ]
    }
}

/// Puts a dead letter back into its queue; also returns the queue.
pub(crate) async fn requeue(
    db: &Db,
    id: u64,
    entry: &AuditEntry,
) -> Result<(DeadLetterOutcome, DeadLetterQueue)> {
    let id = column(id);
    let Some(row) = db.one(&db.statements.read_dead_letter, &[(&id, Type::INT8)]).await? else {
        return Ok((DeadLetterOutcome::NotFound, DeadLetterQueue::Orchestrator));
    };
    let letter = letter(&row)?;
    let entry = Entry::of(entry);
    let mut params = entry.params(&id);
    // A dead letter never changes: if another caller removed it meanwhile, the statement changes no row.
    let changed = match RequeuedRow::of(&letter) {
        Err(reason) => return Ok((DeadLetterOutcome::Undeliverable { reason }, letter.queue)),
        Ok(RequeuedRow::Message(row)) => {
            let (instance, not_before) = (owned(&row.instance_id), column(row.not_before));
            params.extend([
                (&instance as _, Type::TEXT),
                (&not_before as _, Type::INT8),
                (&row.begins as _, Type::BOOL),
            ]);
            db.one(&db.statements.requeue_message, &params).await?
        }
        Ok(RequeuedRow::Activity(row)) => {
            let instance = owned(&row.instance_id);
            let execution = id_column("execution id", row.execution_id)?;
            let activity = key_column(row.activity_id);
            let (session, tag) = (owned_option(row.session_id.as_ref()), owned_option(row.tag.as_ref()));
            params.extend([
                (&instance as _, Type::TEXT),
                (&execution as _, Type::INT8),
                (&activity as _, Type::INT8),
                (&session as _, Type::TEXT),
                (&tag as _, Type::TEXT),
            ]);
            db.one(&db.statements.requeue_activity, &params).await?
        }
    };
    Ok((outcome(changed), letter.queue))
}

/// Deletes a dead letter.
pub(crate) async fn remove(db: &Db, id: u64, entry: &AuditEntry) -> Result<DeadLetterOutcome> {
    let id = column(id);
    Ok(outcome(db.one(&db.statements.drop_dead_letter, &Entry::of(entry).params(&id)).await?))
}

/// The outcome of a statement that changes a dead letter: no row means that the dead letter does not exist.
fn outcome(changed: Option<Row>) -> DeadLetterOutcome {
    match changed {
        Some(_) => DeadLetterOutcome::Done,
        None => DeadLetterOutcome::NotFound,
    }
}
