//! Tests of single statements over rows that the test inserts: conditions whose loss other layers would repair at a cost, and times
//! around the moment at which a condition changes.

use crate::db::Db;
use crate::plans::db;
use rusqlite::Params;
use rusqlite::types::Value;

mod activities;
mod history;
mod instances;
mod queues;
mod schema;
mod times;
mod turns;

/// A store with these rows.
fn store_with(rows: &str) -> Db {
    let db = db();
    db.conn.execute_batch(rows).unwrap();
    db
}

/// These columns of the rows that a statement returns, as text, with `-` for NULL.
fn rows_of(db: &Db, sql: &str, params: impl Params, columns: &[usize]) -> Vec<String> {
    let texts = db.all(sql, params, |row| {
        let cell = |column: &usize| {
            Ok(match row.get::<_, Value>(*column)? {
                Value::Text(text) => text,
                Value::Integer(number) => number.to_string(),
                Value::Null => "-".to_string(),
                other => format!("{other:?}"),
            })
        };
        columns.iter().map(cell).collect::<rusqlite::Result<Vec<_>>>()
    });
    texts.unwrap().iter().map(|cells| cells.join(" ")).collect()
}
