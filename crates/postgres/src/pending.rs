//! Messages and activities that wait for one instance.

use crate::db::{Db, Param, Result, cell, column, text_option, unsigned};
use crate::text::owned;
use outlast_model::{HEAD_CHARS, decode_head};
use outlast_provider::{PendingWork, QueuedItem};
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
    let activity = |row: &Row| {
        Ok(QueuedItem {
            tag: text_option(row, "tag")?,
            session_id: text_option(row, "session_id")?,
            failures: u32::try_from(cell::<i32>(row, "failures")?).unwrap_or(0),
            ..item(row)?
        })
    };
    pending.activities = activities.iter().map(activity).collect::<Result<_>>()?;
    Ok(pending)
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
