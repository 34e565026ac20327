//! Key-value state in two tiers.

use crate::db::{Db, ONLY, Param, Result, cell, text, text_option, unsigned};
use crate::text::{owned, read};
use outlast_provider::KvEntry;
use std::collections::HashMap;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

/// The snapshot with which a replay begins.
pub(crate) async fn snapshot(db: &Db, instance: &str) -> Result<HashMap<String, KvEntry>> {
    let instance = owned(instance);
    let rows = db.all(&db.statements.kv_snapshot, &[(&instance, Type::TEXT)]).await?;
    db.counters.kv_rows_read.add(rows.len());
    let entry = |row| {
        Ok((
            text(row, "key")?,
            KvEntry { value: text(row, "value")?, last_updated_at_ms: unsigned(row, "last_updated_at_ms")? },
        ))
    };
    rows.iter().map(entry).collect()
}

/// The snapshot from the columns of `small_turn.sql`.
pub(crate) fn snapshot_of(row: &Row) -> Result<HashMap<String, KvEntry>> {
    let keys: Vec<String> = cell(row, "keys")?;
    let (values, times): (Vec<String>, Vec<i64>) = (cell(row, "vals")?, cell(row, "times")?);
    let entry = |(key, (value, at)): (String, (String, i64))| {
        let last_updated_at_ms = u64::try_from(at).unwrap_or(0);
        (read(key), KvEntry { value: read(value), last_updated_at_ms })
    };
    Ok(keys.into_iter().zip(values.into_iter().zip(times)).map(entry).collect())
}

/// The value of a key; `None` if the key is not set.
pub(crate) async fn value(db: &Db, instance: &str, key: &str) -> Result<Option<String>> {
    let (instance, key) = (owned(instance), owned(key));
    let wanted: [Param<'_>; 2] = [(&instance, Type::TEXT), (&key, Type::TEXT)];
    match db.one(&db.statements.kv_value, &wanted).await? {
        Some(row) => text_option(&row, ONLY),
        None => Ok(None),
    }
}

pub(crate) async fn view(db: &Db, instance: &str) -> Result<HashMap<String, String>> {
    let instance = owned(instance);
    let rows = db.all(&db.statements.kv_view, &[(&instance, Type::TEXT)]).await?;
    rows.iter().map(|row| Ok((text(row, "key")?, text(row, "value")?))).collect()
}

/// The number of keys, and the bytes of their values.
pub(crate) async fn stats(db: &Db, instance: &str) -> Result<(u64, u64)> {
    let instance = owned(instance);
    match db.one(&db.statements.kv_stats, &[(&instance, Type::TEXT)]).await? {
        Some(row) => Ok((unsigned(&row, "keys")?, unsigned(&row, "bytes")?)),
        None => Ok((0, 0)),
    }
}
