//! The messages and activities that wait for one instance, and those of a whole queue.

use crate::SqliteError;
use crate::db::{Db, Result, attempts, column, stored_text, unsigned};
use crate::sql;
use outlast_model::{HEAD_CHARS, decode_head};
use outlast_provider::{DeadLetterQueue, InstanceItem, PendingWork, QueuePage, QueuedItem, TagDepth};
use rusqlite::Row;

/// A page of the messages and of the activities of an instance.
pub(crate) struct PendingPage {
    pub(crate) instance: String,
    pub(crate) limit: usize,
    pub(crate) now: u64,
}

/// A page of a queue.
pub(crate) struct QueuePosition {
    pub(crate) queue: DeadLetterQueue,
    pub(crate) after: Option<String>,
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

/// A page in the order of arrival. A position is the id of a row.
pub(crate) fn of_queue(db: &Db, page: &QueuePosition) -> Result<QueuePage> {
    let &QueuePosition { queue, ref after, limit, now } = page;
    let unknown = |_| SqliteError::Refused("the position of the page is unknown".to_string());
    let after: i64 = after.as_deref().map_or(Ok(0), str::parse).map_err(unknown)?;
    let wanted = (after, column(now), column((limit as u64).saturating_add(1)), column(HEAD_CHARS as u64));
    let of_row = |row: &Row<'_>, item| Ok((row.get(5)?, InstanceItem { instance_id: row.get(6)?, item }));
    let mut rows: Vec<(i64, InstanceItem)> = match queue {
        DeadLetterQueue::Orchestrator => {
            db.all(sql::QUEUE_MESSAGES, wanted, |row| of_row(row, item(row)?))?
        }
        DeadLetterQueue::Worker => db.all(sql::QUEUE_ACTIVITIES, wanted, |row| {
            let (tag, session_id, failures) = (row.get(7)?, row.get(8)?, attempts(row, 9)?);
            of_row(row, QueuedItem { tag, session_id, failures, ..item(row)? })
        })?,
    };
    let is_cut = rows.len() > limit;
    rows.truncate(limit);
    let next = rows.last().map(|(id, _)| id.to_string()).filter(|_| is_cut);
    Ok(QueuePage { now_ms: now, items: rows.into_iter().map(|(_, item)| item).collect(), next })
}

/// The number of activities for each tag, at the given time.
pub(crate) fn tag_depths(db: &Db, now: u64, limit: usize) -> Result<Vec<TagDepth>> {
    db.all(sql::TAG_DEPTHS, (column(now), column(limit as u64)), |row| {
        let oldest_ms = until(row, 4)?.map(|at| now.saturating_sub(at));
        let (due, delayed, leased) = (unsigned(row, 1)?, unsigned(row, 2)?, unsigned(row, 3)?);
        Ok(TagDepth { tag: row.get(0)?, due, delayed, leased, oldest_ms })
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
