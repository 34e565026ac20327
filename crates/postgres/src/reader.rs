//! Reads of the tables of other programs, for tools that migrate their rows to a store.

use crate::db::{Db, Param, Result, cell};
use crate::deadline::within;
use crate::{PostgresError, ProviderConfig};
use deadpool::managed::Object;
use std::sync::Arc;
use tokio_postgres::types::Type;

/// A read-only transaction that sees one snapshot of a database. The transaction ends when this value is dropped.
pub struct PostgresReader {
    db: Db,
    client: Object<crate::connect::Opener>,
}

impl PostgresReader {
    /// Connects, and begins the transaction. Neither a schema nor a table need exist.
    ///
    /// Cancellation safety: a dropped call closes the connection.
    pub async fn begin(config: ProviderConfig) -> std::result::Result<Self, PostgresError> {
        let db = Db::new(&config, Arc::default())?;
        let client = db.connection().await?;
        let begin = client.batch_execute(include_str!("sql/begin_reader.sql"));
        within(&db, &client.closer(), db.deadline, begin).await?;
        Ok(Self { db, client })
    }

    /// The rows of a statement whose columns are all texts. `{schema}` in the statement is the schema of the configuration.
    ///
    /// Cancellation safety: a dropped call closes the connection.
    pub async fn rows(
        &self,
        sql: &str,
        params: &[&str],
    ) -> std::result::Result<Vec<Vec<Option<String>>>, PostgresError> {
        let sql = self.db.schema.put_into(sql);
        let params: Vec<Param<'_>> = params.iter().map(|text| (text as _, Type::TEXT)).collect();
        let asked = self.client.query_typed(&sql, &params);
        let rows = within(&self.db, &self.client.closer(), self.db.long_deadline, asked).await?;
        rows.iter().map(|row| (0..row.len()).map(|n| cell(row, n)).collect::<Result<_>>()).collect()
    }
}
