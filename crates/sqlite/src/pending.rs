//! The messages and activities that wait for one instance.

use crate::db::{Db, Result, attempts, column, stored_text, unsigned};
use crate::sql;
use outlast_model::{HEAD_CHARS, decode_head};
use outlast_provider::{PendingWork, QueuedItem};
use rusqlite::Row;

/// A page of the messages and of the activities of an instance.
pub(crate) struct PendingPage {
    pub(crate) instance: String,
    pub(crate) limit: usize,
    pub(crate) now: u64,
}

pub(crate) fn of_instance(db: &Db, page: &PendingPage) -> Result<PendingWork> {
    let &PendingPage { ref instance, limit, now } = page;
    let summary = db.one(sql::PENDING_SUMMARY, (instance, column(now)), |row| {
        Ok((until(row, 0)?, unsigned(row, 1)?, unsigned(row, 2)?))
    })?;
    let (turn_locked_until, message_count, activity_count) = summary.unwrap_or_default();
    let wanted = (instance, column(now), column(limit as u64), column(HEAD_CHARS as u64));
    Ok(PendingWork {
        now_ms: now,
        turn_locked_until,
        messages: db.all(sql::PENDING_MESSAGES, wanted, item)?,
        message_count,
        activities: db.all(sql::PENDING_ACTIVITIES, wanted, |row| {
            let failures = attempts(row, 7)?;
            Ok(QueuedItem { tag: row.get(5)?, session_id: row.get(6)?, failures, ..item(row)? })
        })?,
        activity_count,
    })
}

fn item(row: &Row<'_>) -> rusqlite::Result<QueuedItem> {
    Ok(QueuedItem {
        stored_bytes: unsigned(row, 1)?,
        visible_at: unsigned(row, 2)?,
        locked_until: until(row, 3)?,
        attempt_count: attempts(row, 4)?,
        ..QueuedItem::of(decode_head(&stored_text(row, 0)?))
    })
}

fn until(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<u64>> {
    Ok(row.get::<_, Option<i64>>(index)?.map(|at| u64::try_from(at).unwrap_or(0)))
}
