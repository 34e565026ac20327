//! Tables as rows of cells of any type.

use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, ToSql, params_from_iter};
use std::fmt;

/// A cell. Text need not be valid UTF-8.
#[derive(Clone, PartialEq)]
pub(super) enum Cell {
    Value(Value),
    Text(Vec<u8>),
}

impl Cell {
    fn of(value: ValueRef<'_>) -> Self {
        match value {
            ValueRef::Text(bytes) => Self::Text(bytes.to_vec()),
            ValueRef::Null => Self::Value(Value::Null),
            ValueRef::Integer(number) => Self::Value(Value::Integer(number)),
            ValueRef::Real(number) => Self::Value(Value::Real(number)),
            ValueRef::Blob(bytes) => Self::Value(Value::Blob(bytes.to_vec())),
        }
    }

    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(bytes) => std::str::from_utf8(bytes).ok(),
            Self::Value(_) => None,
        }
    }

    pub(super) fn number(&self) -> Option<i64> {
        match self {
            Self::Value(Value::Integer(number)) => Some(*number),
            _ => None,
        }
    }

    /// The placeholder of the cell in a statement: only a cast turns bytes into unchecked text.
    fn placeholder(&self, nth: usize) -> String {
        match self {
            Self::Text(_) => format!("CAST(?{nth} AS TEXT)"),
            Self::Value(_) => format!("?{nth}"),
        }
    }
}

impl fmt::Debug for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(bytes) => write!(f, "'{}'", bytes.escape_ascii()),
            Self::Value(value) => value.fmt(f),
        }
    }
}

impl ToSql for Cell {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Self::Text(bytes) => ToSqlOutput::Borrowed(ValueRef::Blob(bytes)),
            Self::Value(value) => ToSqlOutput::Borrowed(value.into()),
        })
    }
}

pub(super) type Row = Vec<Cell>;

/// The tables that can be damaged, with their key columns.
pub(super) const TABLES: [(&str, &[&str]); 12] = [
    ("instances", &["instance_id"]),
    ("executions", &["instance_id", "execution_id"]),
    ("history", &["instance_id", "execution_id", "event_id"]),
    ("orchestrator_queue", &["id"]),
    ("message_texts", &["message_id"]),
    ("worker_queue", &["id"]),
    ("instance_locks", &["instance_id"]),
    ("sessions", &["session_id"]),
    ("kv_store", &["instance_id", "key"]),
    ("kv_delta", &["instance_id", "key"]),
    ("dead_letters", &["id"]),
    ("outlast_migrations", &["version"]),
];

pub(super) struct Table {
    pub(super) name: &'static str,
    pub(super) columns: Vec<String>,
    pub(super) rows: Vec<Row>,
}

impl Table {
    pub(super) fn read(raw: &Connection, name: &'static str) -> Self {
        let mut statement = raw.prepare_cached(&format!("SELECT * FROM {name}")).expect("the table exists");
        let columns: Vec<String> = statement.column_names().into_iter().map(str::to_string).collect();
        let cells =
            |row: &rusqlite::Row<'_>| (0..columns.len()).map(|at| row.get_ref(at).map(Cell::of)).collect();
        let rows = statement.query_map([], cells).expect("it has no parameters");
        let rows = rows.collect::<Result<_, _>>().expect("any cell can be read");
        Self { name, columns, rows }
    }

    pub(super) fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column == name)
    }

    /// A condition that matches only this row, with parameters numbered from `first`.
    fn is_row(&self, row: &Row, first: usize) -> String {
        let conditions: Vec<String> = (self.columns.iter().zip(row).enumerate())
            .map(|(at, (column, cell))| format!("{column} IS {}", cell.placeholder(first + at)))
            .collect();
        conditions.join(" AND ")
    }

    /// Updates a cell; returns whether the schema allowed it.
    pub(super) fn set(&self, raw: &Connection, row: &Row, column: usize, cell: &Cell) -> bool {
        let (name, value) = (&self.columns[column], cell.placeholder(1));
        let sql = format!("UPDATE {} SET {name} = {value} WHERE {}", self.name, self.is_row(row, 2));
        raw.execute(&sql, params_from_iter([cell].into_iter().chain(row))).is_ok()
    }

    pub(super) fn delete(&self, raw: &Connection, row: &Row) -> bool {
        let sql = format!("DELETE FROM {} WHERE {}", self.name, self.is_row(row, 1));
        raw.execute(&sql, params_from_iter(row)).is_ok()
    }

    pub(super) fn insert(&self, raw: &Connection, row: &Row) -> bool {
        let values: Vec<String> = row.iter().enumerate().map(|(at, cell)| cell.placeholder(at + 1)).collect();
        let sql = format!("INSERT INTO {} VALUES ({})", self.name, values.join(", "));
        raw.execute(&sql, params_from_iter(row)).is_ok()
    }
}
