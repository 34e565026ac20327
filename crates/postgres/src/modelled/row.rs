//! Rows that the model answers with, in the server's binary form: the shipped code reads them as it reads those of the server.

use crate::PostgresError;
use crate::db::{Column, Result};
use crate::row::{Cells, Row};
use bytes::BytesMut;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type};

/// A row of one of the server's functions: its cells, with their types, in the order of the function's columns.
pub(crate) struct ModelledRow(Vec<(Type, Option<Vec<u8>>)>);

impl ModelledRow {
    /// A row of this many empty cells.
    pub(super) fn empty(columns: usize) -> Self {
        Self(vec![(Type::UNKNOWN, None); columns])
    }

    pub(super) fn with(mut self, column: usize, ty: Type, value: impl ToSql) -> Self {
        let mut bytes = BytesMut::new();
        let is_some = matches!(value.to_sql(&ty, &mut bytes), Ok(IsNull::No));
        if let Some(cell) = self.0.get_mut(column) {
            *cell = (ty, is_some.then(|| bytes.to_vec()));
        }
        self
    }

    pub(super) fn row(self) -> Row {
        Row::OfModel(self)
    }
}

impl Cells for ModelledRow {
    fn cell<'a, T: FromSql<'a>>(&'a self, column: impl Column) -> Result<T> {
        let damaged = |details: String| PostgresError::Damaged { details };
        let place: usize = column.to_string().parse().map_err(|_| damaged(format!("column {column}")))?;
        let (ty, value) = self.0.get(place).ok_or_else(|| damaged(format!("no column {column}")))?;
        let read = match value {
            Some(bytes) => T::from_sql(ty, bytes),
            None => T::from_sql_null(ty),
        };
        read.map_err(|error| damaged(error.to_string()))
    }
}
