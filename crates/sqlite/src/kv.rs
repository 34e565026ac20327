//! Key-value state in two tiers.

use crate::command::Cx;
use crate::db::{Db, Result, column, readable, unsigned};
use crate::sql;
use outlast_provider::KvEntry;
use outlast_provider_kit::KvChange;
use rusqlite::Row;
use std::collections::HashMap;

/// Applies a turn's changes, strictly in order.
pub(crate) fn apply(cx: &Cx<'_>, instance: &str, changes: &[KvChange]) -> Result<()> {
    let now = column(cx.now);
    for change in changes {
        match change {
            KvChange::Set { key, value, last_updated_at_ms } => {
                cx.db.run(sql::KV_SET, (instance, key, Some(value), column(*last_updated_at_ms)))?;
            }
            KvChange::Clear { key } => {
                cx.db.run(sql::KV_SET, (instance, key, None::<&str>, now))?;
            }
            KvChange::ClearAll => {
                cx.db.run(sql::KV_CLEAR_DELTA, (instance, now))?;
                cx.db.run(sql::KV_CLEAR_STORE, (instance, now))?;
            }
        }
    }
    Ok(())
}

/// The execution ended: its changes become what the next one starts from.
pub(crate) fn merge(db: &Db, instance: &str) -> Result<()> {
    db.run(sql::KV_MERGE_VALUES, [instance])?;
    db.run(sql::KV_MERGE_REMOVALS, [instance])?;
    db.run(sql::KV_EMPTY_DELTA, [instance])?;
    Ok(())
}

/// What replay starts from, or the reason why a row of it cannot be read. Never a part.
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

pub(crate) fn value(db: &Db, instance: &str, key: &str) -> Result<Option<String>> {
    Ok(db.one(sql::KV_VALUE, (instance, key), |row| row.get(0))?.flatten())
}

pub(crate) fn view(db: &Db, instance: &str) -> Result<HashMap<String, String>> {
    let rows = db.all(sql::KV_VIEW, [instance], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.into_iter().collect())
}
