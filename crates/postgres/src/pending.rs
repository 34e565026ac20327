//! Messages and activities that wait for one instance, and those of a whole queue.

use crate::PostgresError;
use crate::db::{Db, Param, Result, cell, column, text, text_option, unsigned};
use crate::text::owned;
use outlast_model::{HEAD_CHARS, decode_head};
use outlast_provider::{DeadLetterQueue, InstanceItem, PendingWork, QueuePage, QueuedItem, TagDepth};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

/// The messages and activities that wait for an instance, at most `limit` of each, with their numbers.
pub(crate) async fn of_instance(db: &Db, instance: &str, limit: usize) -> Result<PendingWork> {
    let instance = owned(instance);
    let mut pending = match db.one(&db.statements.pending_summary, &[(&instance, Type::TEXT)]).await? {
        Some(row) => PendingWork {
            now_ms: unsigned(&row, "now")?,
            turn_locked_until: until(&row, "locked_until")?,
            message_count: unsigned(&row, "messages")?,
            activity_count: unsigned(&row, "activities")?,
            ..PendingWork::default()
        },
        None => PendingWork::default(),
    };
    let (now, limit, head) = (column(pending.now_ms), column(limit as u64), HEAD_CHARS as i32);
    let wanted: [Param<'_>; 4] =
        [(&instance, Type::TEXT), (&now, Type::INT8), (&limit, Type::INT8), (&head, Type::INT4)];
    let messages = db.all(&db.statements.pending_messages, &wanted).await?;
    pending.messages = messages.iter().map(item).collect::<Result<_>>()?;
    let activities = db.all(&db.statements.pending_activities, &wanted).await?;
    pending.activities = activities.iter().map(activity).collect::<Result<_>>()?;
    Ok(pending)
}

/// A page in the order of arrival. A position is the id of a row.
pub(crate) async fn of_queue(
    db: &Db,
    queue: DeadLetterQueue,
    after: Option<&str>,
    limit: usize,
) -> Result<QueuePage> {
    let unknown = |_| PostgresError::Refused("the position of the page is unknown".to_string());
    let after: i64 = after.map_or(Ok(0), str::parse).map_err(unknown)?;
    let time = db.one(&db.statements.queue_time, &[]).await?;
    let now_ms = time.map_or(Ok(0), |row| unsigned(&row, "now"))?;
    let (now, most) = (column(now_ms), column((limit as u64).saturating_add(1)));
    let head = HEAD_CHARS as i32;
    let wanted: [Param<'_>; 4] =
        [(&after, Type::INT8), (&now, Type::INT8), (&most, Type::INT8), (&head, Type::INT4)];
    let (statement, read): (_, fn(&Row) -> Result<QueuedItem>) = match queue {
        DeadLetterQueue::Orchestrator => (&db.statements.queue_messages, item),
        DeadLetterQueue::Worker => (&db.statements.queue_activities, activity),
    };
    let rows = db.all(statement, &wanted).await?;
    let shown = rows.get(..limit).unwrap_or(&rows);
    let item = |row: &Row| Ok(InstanceItem { instance_id: text(row, "instance_id")?, item: read(row)? });
    let items = shown.iter().map(item).collect::<Result<_>>()?;
    let next = match shown.last().filter(|_| rows.len() > limit) {
        Some(last) => Some(unsigned(last, "id")?.to_string()),
        None => None,
    };
    Ok(QueuePage { now_ms, items, next })
}

/// The number of activities for each tag.
pub(crate) async fn tag_depths(db: &Db, limit: usize) -> Result<Vec<TagDepth>> {
    let rows = db.all(&db.statements.tag_depths, &[(&column(limit as u64), Type::INT8)]).await?;
    let depth = |row: &Row| {
        Ok(TagDepth {
            tag: text_option(row, "tag")?,
            due: unsigned(row, "due")?,
            delayed: unsigned(row, "delayed")?,
            leased: unsigned(row, "leased")?,
            oldest_ms: until(row, "oldest_ms")?,
        })
    };
    rows.iter().map(depth).collect()
}

fn activity(row: &Row) -> Result<QueuedItem> {
    Ok(QueuedItem {
        tag: text_option(row, "tag")?,
        session_id: text_option(row, "session_id")?,
        failures: u32::try_from(cell::<i32>(row, "failures")?).unwrap_or(0),
        ..item(row)?
    })
}

/// Reads a message or activity from its row. The payload is not read.
fn item(row: &Row) -> Result<QueuedItem> {
    Ok(QueuedItem {
        stored_bytes: unsigned(row, "bytes")?,
        visible_at: unsigned(row, "visible_at")?,
        locked_until: until(row, "locked_until")?,
        attempt_count: u32::try_from(cell::<i32>(row, "attempt_count")?).unwrap_or(0),
        ..QueuedItem::of(decode_head(cell(row, "head")?))
    })
}

fn until(row: &Row, column: &str) -> Result<Option<u64>> {
    Ok(cell::<Option<i64>>(row, column)?.map(|at| u64::try_from(at).unwrap_or(0)))
}
