//! The facts that `outlast doctor` reads from a server: version, settings that keep commits, connections, and the rights of the role.

use crate::PostgresProvider;
use crate::db::{Db, Result, cell, text, unsigned};
use crate::text::owned;
use outlast_provider::ProviderError;
use tokio_postgres::types::Type;

/// The result of [`PostgresProvider::examine`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PostgresExamination {
    /// The version of the server as a number, such as 150004 for 15.4.
    pub server_version: u64,
    /// Whether the server recovers from another one, and so writes nothing of its own.
    pub is_standby: bool,
    /// The setting `fsync`. Without it, a crash of the machine may damage the database.
    pub fsync: bool,
    /// The setting `full_page_writes`. Without it, a crash of the machine may damage the database.
    pub full_page_writes: bool,
    /// The setting `synchronous_commit` as this role has it. With `off`, a crash of the server may lose the newest commits.
    pub synchronous_commit: String,
    /// The connections of clients to the server.
    pub connections: u64,
    /// The connections that the server gives to clients without special rights.
    pub max_connections: u64,
    /// The tables of the store that this role may read and not change.
    pub read_only_tables: Vec<String>,
    /// The number of tables of the store that this role may read and change.
    pub writable_tables: u64,
}

impl PostgresProvider {
    /// Reads the version and the settings of the server, its connections, and the rights of this role on the tables of the store.
    ///
    /// Cancellation safety: it only reads.
    pub async fn examine(&self) -> std::result::Result<PostgresExamination, ProviderError> {
        examine(&self.shared.db).await.map_err(|error| error.during("examine"))
    }
}

async fn examine(db: &Db) -> Result<PostgresExamination> {
    let schema = owned(db.schema.as_str());
    let rows = db.all(&db.statements.examine, &[(&schema, Type::TEXT)]).await?;
    let Some(row) = rows.first() else { return Ok(PostgresExamination::default()) };
    let names: String = text(row, "read_only")?;
    Ok(PostgresExamination {
        server_version: unsigned(row, "version")?,
        is_standby: cell(row, "is_standby")?,
        fsync: cell(row, "fsync")?,
        full_page_writes: cell(row, "full_page_writes")?,
        synchronous_commit: text(row, "synchronous_commit")?,
        connections: unsigned(row, "connections")?,
        max_connections: unsigned(row, "max_connections")?,
        read_only_tables: names.split_whitespace().map(str::to_string).collect(),
        writable_tables: unsigned(row, "writable")?,
    })
}
