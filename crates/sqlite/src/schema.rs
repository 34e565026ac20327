//! The check that a file is a store, and its migrations.

use crate::db::{Db, Result, column};
use crate::open::{cannot_open, not_a_database};
use crate::{SqliteError, SqliteOptions, sql};
use outlast_model::defect::{self, Defect};
use outlast_provider_kit::migrations::{Applied, Migration, MigrationRefusal, SchemaState, pending};
use rusqlite::ErrorCode;
use std::path::Path;

/// The application id of a store: "Outl".
const APPLICATION_ID: i64 = 0x4F75_746C;

/// Append-only: a released migration never changes.
const MIGRATIONS: [Migration; 1] = [Migration {
    version: 1,
    name: "initial",
    usable_from: 1,
    sql: include_str!("../migrations/0001_initial.sql"),
}];

/// The migrations of this release.
fn bundled(options: &SqliteOptions) -> Vec<Migration> {
    MIGRATIONS.iter().chain(options.further_migrations()).copied().collect()
}

/// Whether the file is a store; if not, it must be empty. A file with a schema and without the application id is refused.
pub(crate) fn refuse_foreign(db: &Db, path: &Path) -> Result<bool> {
    let foreign = |found: String| SqliteError::Foreign { path: path.to_owned(), found };
    // One transaction for both reads: between them another process could initialise the empty file.
    let transaction = db.conn.unchecked_transaction()?;
    let mark = mark(db).map_err(|error| opening_error(path, error))?;
    let first: Option<String> = db.one(sql::FIRST_SCHEMA_NAME, [], |row| row.get(0))?;
    transaction.finish()?;
    match (mark, first) {
        (APPLICATION_ID, _) => Ok(true),
        (0, None) => Ok(false),
        (0, Some(name)) if name == "_sqlx_migrations" || name == "instances" => {
            Err(foreign("it looks like a store of another durable-execution library".to_string()))
        }
        (0, Some(name)) => Err(foreign(format!("it has a schema of its own, such as '{name}'"))),
        (mark, _) => Err(foreign(format!("it is marked with application id {mark:#x}"))),
    }
}

/// The application id of the file; 0 if there is none.
fn mark(db: &Db) -> rusqlite::Result<i64> {
    db.conn.pragma_query_value(None, "application_id", |row| row.get(0))
}

pub(crate) fn migrate(db: &Db, path: &Path, options: &SqliteOptions) -> Result<()> {
    // Without pending migrations no write lock is needed.
    if due(db, path, options)?.is_empty() && !defect::is_on(Defect::OpeningTakesLock) {
        return Ok(());
    }
    db.control("BEGIN IMMEDIATE")?;
    let migrated = apply_pending(db, path, options);
    match migrated {
        Ok(()) => db.control("COMMIT"),
        Err(error) => {
            db.control("ROLLBACK")?;
            Err(error)
        }
    }
}

fn apply_pending(db: &Db, path: &Path, options: &SqliteOptions) -> Result<()> {
    // Another process may have applied the migrations, so they are read again under the lock.
    for migration in due(db, path, options)? {
        db.conn.execute_batch(sql::CREATE_LEDGER)?;
        db.conn.execute_batch(migration.sql).map_err(|error| not_applied(path, &migration, error))?;
        let applied_at = column(options.clock.now_ms());
        let Migration { version, name, usable_from, .. } = migration;
        let row = (version, name, migration.checksum(), usable_from, applied_at);
        db.run(sql::WRITE_LEDGER, row)?;
        db.conn.pragma_update(None, "application_id", APPLICATION_ID)?;
    }
    Ok(())
}

fn not_applied(path: &Path, migration: &Migration, error: rusqlite::Error) -> SqliteError {
    let version = migration.version;
    match error {
        // The statement is invalid, so the tables differ from the ledger. The text of this error has the whole migration.
        rusqlite::Error::SqlInputError { msg, .. } => {
            damaged(path, format!("version {version} cannot be applied: {msg}"))
        }
        error if error.sqlite_error_code() == Some(ErrorCode::Unknown) => {
            damaged(path, format!("version {version} cannot be applied: {error}"))
        }
        error => error.into(),
    }
}

/// Fails unless all migrations were applied.
pub(crate) fn check_schema(db: &Db, path: &Path, options: &SqliteOptions) -> Result<()> {
    let SchemaState { applied: found, known, due, .. } = state(db, path, options)?;
    match due.first() {
        None => Ok(()),
        Some((1, _)) => Err(damaged(path, "version 1 is missing".to_string())),
        Some(_) => Err(SqliteError::Schema {
            path: path.to_owned(),
            refusal: MigrationRefusal::Older { found, known },
        }),
    }
}

/// The schema of a store or an empty file beside that of this release.
pub(crate) fn state(db: &Db, path: &Path, options: &SqliteOptions) -> Result<SchemaState> {
    let (bundled, applied) = (bundled(options), applied(db, path)?);
    Ok(SchemaState::of(&bundled, &applied, pending_on(path, &bundled, &applied)?))
}

/// The migrations to apply to a store or an empty file.
pub(crate) fn due(db: &Db, path: &Path, options: &SqliteOptions) -> Result<Vec<Migration>> {
    let (bundled, applied) = (bundled(options), applied(db, path)?);
    Ok(pending_on(path, &bundled, &applied)?.to_vec())
}

fn pending_on<'a>(path: &Path, bundled: &'a [Migration], applied: &[Applied]) -> Result<&'a [Migration]> {
    pending(bundled, applied).map_err(|refusal| SqliteError::Schema { path: path.to_owned(), refusal })
}

/// The migration table. That of an empty file is empty, that of a store is not.
fn applied(db: &Db, path: &Path) -> Result<Vec<Applied>> {
    if mark(db)? != APPLICATION_ID {
        return Ok(Vec::new());
    }
    let read = db.all(sql::READ_LEDGER, [], |row| {
        Ok(Applied { version: row.get(0)?, usable_from: row.get(1)?, checksum: row.get(2)? })
    });
    let ledger = read.map_err(|error| match error {
        SqliteError::Other(reason) => damaged(path, format!("it cannot be read: {reason}")),
        error => error,
    })?;
    match ledger.is_empty() {
        true => Err(damaged(path, "version 1 is missing".to_string())),
        false => Ok(ledger),
    }
}

fn damaged(path: &Path, what: String) -> SqliteError {
    SqliteError::Schema { path: path.to_owned(), refusal: MigrationRefusal::Damaged { what } }
}

fn opening_error(path: &Path, error: rusqlite::Error) -> SqliteError {
    match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => not_a_database(path),
        Some(ErrorCode::CannotOpen) => cannot_open(path, &error),
        _ => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What was released: version, oldest version whose releases can use it, checksum, release.
    const RELEASED: [(u32, u32, &str, &str); 1] =
        [(1, 1, "abbe30dcf7ae670018019d65b8e7fa702e84cae40489ba536d91ef1d76161b92", "0.2.0")];

    #[test]
    fn released_migrations_never_change() {
        for (version, usable_from, checksum, release) in RELEASED {
            let found = MIGRATIONS.iter().find(|migration| migration.version == version);
            let found = found.map(|migration| (migration.usable_from, migration.checksum()));
            assert_eq!(
                found,
                Some((usable_from, checksum.to_string())),
                "migration {version} was released with {release} and must not change; add a new one"
            );
        }
        assert_eq!(MIGRATIONS.len(), RELEASED.len(), "a migration that is released gets a row of `RELEASED`");
    }
}
