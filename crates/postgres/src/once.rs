//! Messages that are stored at most once. The statement runs on a connection of its own, outside of the lanes: the caller may drop
//! the message only after the answer to this statement.

use crate::PostgresError;
use crate::db::{Db, ONLY, Param, Result, cell, column};
use crate::functions::{ONCE_ENDED, ONCE_FULL, ONCE_NOT_FOUND, ONCE_REPEATED, ONCE_STORED};
use crate::text::owned;
use outlast_provider::EnqueueOnce;
use outlast_provider_kit::MessageRow;
use tokio_postgres::types::Type;

/// Stores a message and its key, or returns the reason for which the message is not stored.
pub(crate) async fn enqueue(
    db: &Db,
    row: &MessageRow,
    key: &str,
    most_waiting: usize,
) -> Result<EnqueueOnce> {
    let (instance, key) = (owned(&row.instance_id), owned(key));
    let (not_before, most) = (column(row.not_before), column(most_waiting as u64));
    let wanted: [Param<'_>; 6] = [
        (&instance, Type::TEXT),
        (&key, Type::TEXT),
        (&row.work_item, Type::TEXT),
        (&not_before, Type::INT8),
        (&row.begins, Type::BOOL),
        (&most, Type::INT8),
    ];
    let answer = db.one(&db.statements.enqueue_once, &wanted).await?;
    let answer = answer.map_or(Ok(None), |row| cell::<Option<i32>>(&row, ONLY))?;
    match answer {
        Some(ONCE_STORED) => Ok(EnqueueOnce::Stored),
        Some(ONCE_REPEATED) => Ok(EnqueueOnce::Repeated),
        Some(ONCE_ENDED) => Ok(EnqueueOnce::Ended),
        Some(ONCE_NOT_FOUND) => Ok(EnqueueOnce::NotFound),
        Some(ONCE_FULL) => Ok(EnqueueOnce::Full),
        other => Err(PostgresError::Damaged { details: format!("enqueue_once_1 answered {other:?}") }),
    }
}
