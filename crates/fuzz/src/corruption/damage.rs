//! Damage: one cell changed, or one row removed or doubled.

use super::table::{Cell, Row, TABLES, Table};
use crate::bytes::Bytes;
use rusqlite::Connection;
use rusqlite::types::Value;
use std::fmt;

/// What happened to a row. It is gone if `after` is `None`, and new if `before` is.
pub(super) struct Damage {
    pub(super) table: &'static str,
    pub(super) columns: Vec<String>,
    pub(super) before: Option<Row>,
    pub(super) after: Option<Row>,
}

impl Damage {
    /// A cell before and after.
    pub(super) fn cells(&self, column: &str) -> [Option<&Cell>; 2] {
        let at = self.columns.iter().position(|name| name == column);
        [&self.before, &self.after].map(|row| row.as_ref()?.get(at?))
    }
}

/// What is different, column by column.
impl fmt::Debug for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.table)?;
        for column in &self.columns {
            match self.cells(column) {
                [Some(before), Some(after)] if before == after => {}
                [Some(before), Some(after)] => write!(f, " {column} {before:?} -> {after:?}")?,
                [Some(gone), None] => write!(f, " -{column} {gone:?}")?,
                [None, Some(new)] => write!(f, " +{column} {new:?}")?,
                [None, None] => {}
            }
        }
        Ok(())
    }
}

/// Does what the input says, as far as the schema lets it.
pub(super) fn inflict(raw: &Connection, bytes: &mut Bytes<'_>) -> Option<Damage> {
    let (name, key) = bytes.pick(&TABLES);
    let table = Table::read(raw, name);
    let at = bytes.below(table.rows.len());
    let row = table.rows.get(at)?.clone();
    let (before, after) = match bytes.below(8) {
        0 => (Some(row.clone()), table.delete(raw, &row).then_some(None)?),
        1 => {
            let double = doubled(&table, &row, key, bytes);
            (None, table.insert(raw, &double).then_some(Some(double))?)
        }
        how => {
            let column = bytes.below(table.columns.len());
            let cell = match how {
                2 => other_cell(&table, column, bytes),
                3 => any_cell(bytes),
                _ => edited(&row[column], bytes),
            };
            if !table.set(raw, &row, column, &cell) {
                return None;
            }
            (Some(row.clone()), Some(stored(raw, &table, &row, column, cell)?))
        }
    };
    (before != after).then_some(Damage { table: name, columns: table.columns, before, after })
}

/// The row as the database has it now: a column may have made a number of a text.
fn stored(raw: &Connection, table: &Table, row: &Row, column: usize, cell: Cell) -> Option<Row> {
    let now = Table::read(raw, table.name);
    let is_new = |candidate: &&Row| !table.rows.contains(candidate);
    now.rows.iter().find(is_new).cloned().or_else(|| {
        let mut same = row.clone();
        same[column] = cell;
        now.rows.contains(&same).then_some(same)
    })
}

/// A copy of a row under another key.
fn doubled(table: &Table, row: &Row, key: &[&str], bytes: &mut Bytes<'_>) -> Row {
    let mut double = row.clone();
    let column = table.column(bytes.pick(key)).unwrap_or(0);
    double[column] = match (&row[column], bytes.below(4)) {
        (_, 0) => other_cell(table, column, bytes),
        (Cell::Value(Value::Integer(number)), 1) => Cell::Value(Value::Integer(number.wrapping_sub(1))),
        (Cell::Value(Value::Integer(number)), _) => Cell::Value(Value::Integer(number.wrapping_add(1))),
        (Cell::Text(text), _) => Cell::Text([text, b"2".as_slice()].concat()),
        (other, _) => other.clone(),
    };
    double
}

/// What another row has in the same column.
fn other_cell(table: &Table, column: usize, bytes: &mut Bytes<'_>) -> Cell {
    table.rows[bytes.below(table.rows.len())][column].clone()
}

fn any_cell(bytes: &mut Bytes<'_>) -> Cell {
    match bytes.below(6) {
        0 => Cell::Value(Value::Null),
        1 => Cell::Value(Value::Integer(bytes.number())),
        2 => Cell::Value(Value::Real(f64::from(bytes.byte()) + 0.5)),
        3 => Cell::Value(Value::Blob(bytes.some(24).to_vec())),
        4 => Cell::Text(Vec::new()),
        _ => Cell::Text(bytes.some(64).to_vec()),
    }
}

/// A small change, as a disk or a careless hand makes it.
fn edited(cell: &Cell, bytes: &mut Bytes<'_>) -> Cell {
    match cell {
        Cell::Text(text) => Cell::Text(edited_bytes(text.clone(), bytes)),
        Cell::Value(Value::Blob(blob)) => Cell::Value(Value::Blob(edited_bytes(blob.clone(), bytes))),
        Cell::Value(Value::Integer(number)) => {
            let bit = bytes.below(64);
            Cell::Value(Value::Integer(match bytes.below(4) {
                0 => number ^ (1 << bit),
                1 => number.wrapping_add(1),
                2 => number.wrapping_sub(1),
                _ => -number.wrapping_abs(),
            }))
        }
        Cell::Value(_) => any_cell(bytes),
    }
}

fn edited_bytes(mut text: Vec<u8>, bytes: &mut Bytes<'_>) -> Vec<u8> {
    if text.is_empty() {
        return bytes.some(8).to_vec();
    }
    let at = bytes.below(text.len());
    match bytes.below(6) {
        0 => text[at] ^= 1 << bytes.below(8),
        1 => text.truncate(at),
        2 => drop(text.drain(..at)),
        3 => text[at] = bytes.byte(),
        4 => text.insert(at, bytes.byte()),
        _ => drop(text.drain(at..(at + 1 + bytes.below(32)).min(text.len()))),
    }
    text
}
