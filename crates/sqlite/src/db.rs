//! One connection, with prepared statements and a count of the statements that ran.

use crate::SqliteError;
use crate::counters::Counters;
use rusqlite::types::ValueRef;
use rusqlite::{CachedStatement, Connection, Params, Row};
use std::sync::Arc;

pub(crate) type Result<T> = std::result::Result<T, SqliteError>;

pub(crate) struct Db {
    pub(crate) conn: Connection,
    pub(crate) counters: Arc<Counters>,
    #[cfg(feature = "test-hooks")]
    pub(crate) faults: Option<Arc<dyn crate::faults::StatementFaults>>,
    /// Dropped after `conn`. A connection that may write removes the log and its index when it is the last that closes.
    pub(crate) _closes_last: Option<Connection>,
}

impl Db {
    /// Runs a statement. A test may make it fail, before or after it took effect.
    fn pass<T>(&self, sql: &str, statement: impl FnOnce() -> Result<T>) -> Result<T> {
        #[cfg(feature = "test-hooks")]
        if let Some(faults) = &self.faults {
            return crate::faults::pass(&**faults, sql, statement);
        }
        let _ = sql;
        statement()
    }

    fn prepare(&self, sql: &str) -> rusqlite::Result<CachedStatement<'_>> {
        #[cfg(feature = "test-hooks")]
        let sql = crate::faults::mutated(sql);
        self.conn.prepare_cached(sql)
    }

    /// Runs a statement; returns the number of rows that it changed.
    pub(crate) fn run(&self, sql: &str, params: impl Params) -> Result<usize> {
        self.counters.statements.add(1);
        self.pass(sql, || Ok(self.prepare(sql)?.execute(params)?))
    }

    /// Runs a statement that must change exactly `expected` rows. Any other number means that the tables contradict each other, and
    /// the call must be rolled back.
    pub(crate) fn run_exactly(
        &self,
        expected: usize,
        what: &str,
        sql: &str,
        params: impl Params,
    ) -> Result<()> {
        match self.run(sql, params)? {
            changed if changed == expected => Ok(()),
            changed => Err(SqliteError::Damaged {
                details: format!("{what} changed {changed} rows instead of {expected}"),
            }),
        }
    }

    /// A prepared statement, for callers that bind a varying number of rows.
    pub(crate) fn statement(&self, sql: &str) -> Result<CachedStatement<'_>> {
        self.counters.statements.add(1);
        self.pass(sql, || Ok(self.prepare(sql)?))
    }

    /// The first row, if there is one.
    pub(crate) fn one<T>(
        &self,
        sql: &str,
        params: impl Params,
        map: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>> {
        self.counters.statements.add(1);
        self.pass(sql, || {
            let mut statement = self.prepare(sql)?;
            let mut rows = statement.query(params)?;
            let first = rows.next()?.map(map).transpose()?;
            // A statement that returns the rows it changes must run to its end.
            while rows.next()?.is_some() {}
            Ok(first)
        })
    }

    /// All rows.
    pub(crate) fn all<T>(
        &self,
        sql: &str,
        params: impl Params,
        map: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>> {
        self.counters.statements.add(1);
        self.pass(sql, || {
            let mut statement = self.prepare(sql)?;
            let rows = statement.query_map(params, map)?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// The first row that `pick` returns; later rows are not read.
    pub(crate) fn find<T>(
        &self,
        sql: &str,
        params: impl Params,
        mut pick: impl FnMut(&Row<'_>) -> rusqlite::Result<Option<T>>,
    ) -> Result<Option<T>> {
        self.counters.statements.add(1);
        self.pass(sql, || {
            let mut statement = self.prepare(sql)?;
            let mut rows = statement.query(params)?;
            while let Some(row) = rows.next()? {
                if let Some(picked) = pick(row)? {
                    return Ok(Some(picked));
                }
            }
            Ok(None)
        })
    }

    /// Returns some free pages to the file system; returns the number of pages that are left.
    pub(crate) fn shrink(&self) -> Result<u64> {
        let mut statement = self.conn.prepare("PRAGMA incremental_vacuum(512)")?;
        let mut rows = statement.query([])?;
        while rows.next()?.is_some() {}
        Ok(self.conn.pragma_query_value(None, "freelist_count", |row| unsigned(row, 0))?)
    }

    /// A number that changes when another connection commits.
    pub(crate) fn data_version(&self) -> Result<i64> {
        Ok(self.conn.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))?)
    }

    /// Transaction control, which is not counted.
    pub(crate) fn control(&self, sql: &str) -> Result<()> {
        self.pass(sql, || {
            self.conn.prepare_cached(sql)?.execute([])?;
            Ok(())
        })
    }
}

/// A time or a size as a column. It saturates; times and sizes are far below the limit.
pub(crate) fn column(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// An id as a column. An id that does not fit is refused.
pub(crate) fn id_column(what: &str, value: u64) -> Result<i64> {
    i64::try_from(value)
        .map_err(|_| SqliteError::Refused(format!("{what} {value} is too large to be stored")))
}

/// A number that is only compared for equality, as a column with the same bits.
pub(crate) fn key_column(value: u64) -> i64 {
    value.cast_signed()
}

/// A column that is never negative.
pub(crate) fn unsigned(row: &Row<'_>, index: usize) -> rusqlite::Result<u64> {
    Ok(u64::try_from(row.get::<_, i64>(index)?).unwrap_or(0))
}

/// A stored payload. A damaged payload becomes a text that shows it as far as possible and does not decode.
pub(crate) fn stored_text(row: &Row<'_>, index: usize) -> rusqlite::Result<String> {
    Ok(match row.get_ref(index)? {
        ValueRef::Text(bytes) => match str::from_utf8(bytes) {
            Ok(text) => text.to_string(),
            // The prefix keeps a repaired text from decoding: its content would differ from the stored one.
            Err(_) => format!("not UTF-8: {}", String::from_utf8_lossy(bytes)),
        },
        other => format!("not text: {other:?}"),
    })
}

/// A delivery count. A damaged count that is not a number is read as 0.
pub(crate) fn attempts(row: &Row<'_>, index: usize) -> rusqlite::Result<u32> {
    Ok(match row.get_ref(index)? {
        ValueRef::Integer(count) => u32::try_from(count).unwrap_or(u32::MAX),
        _ => 0,
    })
}

/// A stored time, read for scheduling only; `None` if the column holds no time.
pub(crate) fn stored_time(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<i64>> {
    Ok(match row.get_ref(index)? {
        ValueRef::Integer(at) => Some(at),
        #[allow(clippy::cast_possible_truncation, reason = "a damaged time saturates")]
        ValueRef::Real(at) => Some(at as i64),
        _ => None,
    })
}

/// Whether an error means that a cell has a wrong type: then only its row is damaged.
pub(crate) fn is_about_a_cell(error: &rusqlite::Error) -> bool {
    use rusqlite::Error;
    matches!(
        error,
        Error::InvalidColumnType(..)
            | Error::FromSqlConversionFailure(..)
            | Error::IntegralValueOutOfRange(..)
            | Error::Utf8Error(..)
    )
}

/// The value of a row, or the reason why one of its cells cannot be read.
pub(crate) fn readable<T>(read: rusqlite::Result<T>) -> rusqlite::Result<std::result::Result<T, String>> {
    match read {
        Ok(value) => Ok(Ok(value)),
        Err(error) if is_about_a_cell(&error) => Ok(Err(error.to_string())),
        Err(error) => Err(error),
    }
}
