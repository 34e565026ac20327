//! Messages and activities that wait for one instance.

use crate::db::{Db, Param, Result, cell, column, text_option, unsigned};
use crate::text::owned;
use outlast_model::{HEAD_CHARS, decode_head};
use outlast_provider::{PendingWork, QueuedItem};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

pub(crate) async fn of_instance(db: &Db, instance: &str, limit: usize) -> Result<PendingWork> {
    let instance = owned(instance);
    let mut pending = match db.one(&db.statements.pending_summary, &[(&instance, Type::TEXT)]).await? {
        Some(row) => PendingWork {
            now_ms: unsigned(&row, 0)?,
            turn_locked_until: until(&row, 1)?,
            message_count: unsigned(&row, 2)?,
            activity_count: unsigned(&row, 3)?,
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
        Ok(QueuedItem { tag: text_option(row, 5)?, session_id: text_option(row, 6)?, ..item(row)? })
    };
    pending.activities = activities.iter().map(activity).collect::<Result<_>>()?;
    Ok(pending)
}

fn item(row: &Row) -> Result<QueuedItem> {
    Ok(QueuedItem {
        stored_bytes: unsigned(row, 1)?,
        visible_at: unsigned(row, 2)?,
        locked_until: until(row, 3)?,
        attempt_count: u32::try_from(cell::<i32>(row, 4)?).unwrap_or(0),
        ..QueuedItem::of(decode_head(cell(row, 0)?))
    })
}

fn until(row: &Row, index: usize) -> Result<Option<u64>> {
    Ok(cell::<Option<i64>>(row, index)?.map(|at| u64::try_from(at).unwrap_or(0)))
}
