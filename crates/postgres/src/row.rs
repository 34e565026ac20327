//! A row of an answer: of the server, or of its model in simulated worlds.

use crate::PostgresError;
use crate::db::{Column, Result};
#[cfg(feature = "test-hooks")]
use crate::modelled::ModelledRow;
use tokio_postgres::types::FromSql;

/// A row whose cells [`cell`](crate::db::cell) reads.
pub(crate) trait Cells {
    fn cell<'a, T: FromSql<'a>>(&'a self, column: impl Column) -> Result<T>;
}

impl Cells for tokio_postgres::Row {
    fn cell<'a, T: FromSql<'a>>(&'a self, column: impl Column) -> Result<T> {
        self.try_get(column).map_err(|error| PostgresError::Damaged { details: error.to_string() })
    }
}

/// A row of a transaction of a lane.
pub(crate) enum Row {
    OfServer(tokio_postgres::Row),
    #[cfg(feature = "test-hooks")]
    OfModel(ModelledRow),
}

impl Cells for Row {
    fn cell<'a, T: FromSql<'a>>(&'a self, column: impl Column) -> Result<T> {
        match self {
            Self::OfServer(row) => row.cell(column),
            #[cfg(feature = "test-hooks")]
            Self::OfModel(row) => row.cell(column),
        }
    }
}
