//! Key-value state: the values that the last execution left, and the changes of the current one.

use crate::db::{Db, Result, column, readable, unsigned};
use crate::sql;
use crate::transaction::Transaction;
use outlast_provider::KvEntry;
use outlast_provider_kit::KvChange;
use rusqlite::Row;
use std::collections::HashMap;

/// Applies the changes of a turn, in their order.
pub(crate) fn apply(tx: &Transaction<'_>, instance: &str, changes: &[KvChange]) -> Result<()> {
    let now = column(tx.now);
    for change in changes {
        match change {
            KvChange::Set { key, value, last_updated_at_ms } => {
                tx.db.run(sql::KV_SET, (instance, key, Some(value), column(*last_updated_at_ms)))?;
            }
            KvChange::Clear { key } => {
                tx.db.run(sql::KV_SET, (instance, key, None::<&str>, now))?;
            }
            KvChange::ClearAll => {
                tx.db.run(sql::KV_CLEAR_DELTA, (instance, now))?;
                tx.db.run(sql::KV_CLEAR_STORE, (instance, now))?;
            }
        }
    }
    Ok(())
}

/// Merges the changes of an ended execution into the values with which the next one starts.
pub(crate) fn merge(db: &Db, instance: &str) -> Result<()> {
    db.run(sql::KV_MERGE_VALUES, [instance])?;
    db.run(sql::KV_MERGE_REMOVALS, [instance])?;
    db.run(sql::KV_EMPTY_DELTA, [instance])?;
    Ok(())
}

/// The values with which replay starts, or the reason why one of the rows cannot be read.
pub(crate) fn snapshot(
    db: &Db,
    instance: &str,
) -> Result<std::result::Result<HashMap<String, KvEntry>, String>> {
    let rows = db.all(sql::KV_SNAPSHOT, [instance], |row| readable(entry(row)))?;
    db.counters.kv_rows_read.add(rows.len());
    let all: std::result::Result<_, String> = rows.into_iter().collect();
    Ok(all.map_err(|reason| format!("keys of instance '{instance}': {reason}")))
}

fn entry(row: &Row<'_>) -> rusqlite::Result<(String, KvEntry)> {
    Ok((row.get(0)?, KvEntry { value: row.get(1)?, last_updated_at_ms: unsigned(row, 2)? }))
}

pub(crate) fn value(db: &Db, (instance, key): &(String, String)) -> Result<Option<String>> {
    Ok(db.one(sql::KV_VALUE, (instance, key), |row| row.get(0))?.flatten())
}

pub(crate) fn view(db: &Db, instance: &str) -> Result<HashMap<String, String>> {
    let rows = db.all(sql::KV_VIEW, [instance], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.into_iter().collect())
}
