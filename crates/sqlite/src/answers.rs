//! What statements answer over rows that a test has put there: conditions whose loss other layers would make good, at the
//! price of work, and times around the moment at which they change their meaning.

use crate::db::Db;
use crate::plans::db;
use rusqlite::Params;
use rusqlite::types::Value;

mod history;
mod instances;
mod queues;
mod schema;
mod times;
mod turns;
mod work;

/// A store with these rows.
fn with(rows: &str) -> Db {
    let db = db();
    db.conn.execute_batch(rows).unwrap();
    db
}

/// These columns of an answer, as text, with `-` where nothing is.
fn answer(db: &Db, sql: &str, params: impl Params, columns: &[usize]) -> Vec<String> {
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
