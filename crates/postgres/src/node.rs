//! Reports of nodes.
//!
//! The column has the type `jsonb`, which holds no NUL character: the texts of a report are stored as [`crate::text`] stores texts.

use crate::PostgresError;
use crate::db::{Db, Param, Result, column, span, text, unsigned};
use crate::text::{owned, read};
use outlast_provider::NodeRecord;
use outlast_provider_kit::{NodeRow, node_record};
use serde_json::Value;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

/// Stores the report of a node in place of its earlier one.
pub(crate) async fn announce(db: &Db, row: &NodeRow) -> Result<bool> {
    let (node_id, report) = (owned(&row.node_id), mapped(&row.report, &owned)?);
    let (live, kept) = (span(row.expires_at(0)), span(row.kept_until(0)));
    let wanted: [Param<'_>; 4] =
        [(&node_id, Type::TEXT), (&report, Type::TEXT), (&live, Type::INT8), (&kept, Type::INT8)];
    Ok(!db.all_prepared(&db.statements.announce_node, &wanted).await?.is_empty())
}

/// Deletes the report of a node; returns whether there was one.
pub(crate) async fn remove(db: &Db, node_id: &str) -> Result<bool> {
    let node_id = owned(node_id);
    Ok(db.one(&db.statements.remove_node, &[(&node_id, Type::TEXT)]).await?.is_some())
}

/// A page of node reports, by ascending node id, after the given id.
pub(crate) async fn list(db: &Db, after: Option<&str>, limit: usize) -> Result<Vec<NodeRecord>> {
    let (after, limit) = (owned(after.unwrap_or("")), column(limit as u64));
    let wanted: [Param<'_>; 2] = [(&after, Type::TEXT), (&limit, Type::INT8)];
    let record = |row: &Row| {
        let (node_id, now) = (text(row, "node_id")?, unsigned(row, "now")?);
        let report = mapped(row.try_get("report")?, &|text| read(text.to_string()))?;
        Ok(node_record(&node_id, &report, unsigned(row, "seen_at")?, unsigned(row, "expires_at")?, now))
    };
    db.all(&db.statements.list_nodes, &wanted).await?.iter().map(record).collect()
}

/// Deletes reports that are kept no longer; returns their number.
pub(crate) async fn sweep(db: &Db, limit: usize) -> Result<u64> {
    let limit = column(limit as u64);
    Ok(db.all(&db.statements.sweep_nodes, &[(&limit, Type::INT8)]).await?.len() as u64)
}

/// A JSON text with every text in it mapped.
fn mapped(json: &str, map: &dyn Fn(&str) -> String) -> Result<String> {
    let damaged = |error| PostgresError::Damaged { details: format!("the report of a node: {error}") };
    let mut value: Value = serde_json::from_str(json).map_err(damaged)?;
    map_texts(&mut value, map);
    Ok(value.to_string())
}

/// Replaces every text in a JSON value, except the names of fields.
fn map_texts(value: &mut Value, map: &dyn Fn(&str) -> String) {
    match value {
        Value::String(text) => *text = map(text),
        Value::Array(values) => values.iter_mut().for_each(|value| map_texts(value, map)),
        Value::Object(fields) => fields.values_mut().for_each(|value| map_texts(value, map)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_of_a_report_is_stored_without_nul_and_read_back() {
        let json =
            r#"{"build":"a\u0000b","leases":[{"activity":[1,18446744073709551615],"instance":"\u0001"}]}"#;
        let stored = mapped(json, &owned).unwrap();
        assert!(!stored.contains(r"\u0000"), "{stored}");
        assert_eq!(mapped(&stored, &|text| read(text.to_string())).unwrap(), json);
    }
}
