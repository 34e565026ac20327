//! Damage: one cell is changed, or one row is removed or duplicated.

use super::table::{Cell, Row, TABLES, Table};
use crate::choices::Choices;
use rusqlite::Connection;
use rusqlite::types::Value;
use std::fmt;

/// A damaged row. `after` is `None` for a removed row, and `before` for an added one.
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

/// Prints the differences column by column.
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

/// Applies the damage that the input chooses, if the schema allows it.
pub(super) fn apply_damage(raw: &Connection, choices: &mut Choices<'_>) -> Option<Damage> {
    let (name, key) = choices.pick(&TABLES);
    let table = Table::read(raw, name);
    let at = choices.below(table.rows.len());
    let row = table.rows.get(at)?.clone();
    let (before, after) = match choices.below(8) {
        0 => (Some(row.clone()), table.delete(raw, &row).then_some(None)?),
        1 => {
            let duplicate = duplicate_of(&table, &row, key, choices);
            (None, table.insert(raw, &duplicate).then_some(Some(duplicate))?)
        }
        how => {
            let column = choices.below(table.columns.len());
            let cell = match how {
                2 => other_cell(&table, column, choices),
                3 => any_cell(choices),
                _ => edited(&row[column], choices),
            };
            if !table.set(raw, &row, column, &cell) {
                return None;
            }
            (Some(row.clone()), Some(stored(raw, &table, &row, column, cell)?))
        }
    };
    (before != after).then_some(Damage { table: name, columns: table.columns, before, after })
}

/// The row as the database has it now; a column may have converted a text to a number.
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
fn duplicate_of(table: &Table, row: &Row, key: &[&str], choices: &mut Choices<'_>) -> Row {
    let mut duplicate = row.clone();
    let column = table.column(choices.pick(key)).unwrap_or(0);
    duplicate[column] = match (&row[column], choices.below(4)) {
        (_, 0) => other_cell(table, column, choices),
        (Cell::Value(Value::Integer(number)), 1) => Cell::Value(Value::Integer(number.wrapping_sub(1))),
        (Cell::Value(Value::Integer(number)), _) => Cell::Value(Value::Integer(number.wrapping_add(1))),
        (Cell::Text(text), _) => Cell::Text([text, b"2".as_slice()].concat()),
        (other, _) => other.clone(),
    };
    duplicate
}

/// The cell of another row in the same column.
fn other_cell(table: &Table, column: usize, choices: &mut Choices<'_>) -> Cell {
    table.rows[choices.below(table.rows.len())][column].clone()
}

fn any_cell(choices: &mut Choices<'_>) -> Cell {
    match choices.below(6) {
        0 => Cell::Value(Value::Null),
        1 => Cell::Value(Value::Integer(choices.number())),
        2 => Cell::Value(Value::Real(f64::from(choices.byte()) + 0.5)),
        3 => Cell::Value(Value::Blob(choices.some(24).to_vec())),
        4 => Cell::Text(Vec::new()),
        _ => Cell::Text(choices.some(64).to_vec()),
    }
}

/// A small change of a cell.
fn edited(cell: &Cell, choices: &mut Choices<'_>) -> Cell {
    match cell {
        Cell::Text(text) => Cell::Text(edited_bytes(text.clone(), choices)),
        Cell::Value(Value::Blob(blob)) => Cell::Value(Value::Blob(edited_bytes(blob.clone(), choices))),
        Cell::Value(Value::Integer(number)) => {
            let bit = choices.below(64);
            Cell::Value(Value::Integer(match choices.below(4) {
                0 => number ^ (1 << bit),
                1 => number.wrapping_add(1),
                2 => number.wrapping_sub(1),
                _ => -number.wrapping_abs(),
            }))
        }
        Cell::Value(_) => any_cell(choices),
    }
}

fn edited_bytes(mut text: Vec<u8>, choices: &mut Choices<'_>) -> Vec<u8> {
    if text.is_empty() {
        return choices.some(8).to_vec();
    }
    let at = choices.below(text.len());
    match choices.below(6) {
        0 => text[at] ^= 1 << choices.below(8),
        1 => text.truncate(at),
        2 => drop(text.drain(..at)),
        3 => text[at] = choices.byte(),
        4 => text.insert(at, choices.byte()),
        _ => drop(text.drain(at..(at + 1 + choices.below(32)).min(text.len()))),
    }
    text
}
