//! Opening a database: the file, its settings, its schema.

use crate::counters::Counters;
use crate::db::{Db, Result, column};
use crate::url::{Access, Location};
use crate::{SqliteError, SqliteOptions, sql};
use outlast_provider_kit::migrations::{Applied, Migration, MigrationRefusal, pending};
use rusqlite::{Connection, OpenFlags};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Marks our files: "Outl".
const APPLICATION_ID: i64 = 0x4F75_746C;

/// Append-only: a released text never changes.
pub(crate) const MIGRATIONS: [Migration; 1] =
    [Migration { version: 1, name: "initial", sql: include_str!("../migrations/0001_initial.sql") }];

const STATEMENT_CACHE: usize = 128;

/// A connection that writes, on an up-to-date schema.
pub(crate) fn writer(location: &Location, options: &SqliteOptions, counters: &Arc<Counters>) -> Result<Db> {
    let path = path_of(location);
    let conn = match location {
        Location::Memory => Connection::open_in_memory().map_err(|error| cannot_open(path, &error))?,
        Location::File { path, access } => open_file(path, *access)?,
    };
    let db = prepare(conn, counters)?;
    refuse_foreign(&db, path)?;
    if matches!(location, Location::File { access: Access::ReadOnly, .. }) {
        check_schema(&db, path)?;
        return Ok(db);
    }
    // Takes effect on a file that is still empty; an older one of ours has it already.
    set_number(&db, path, "auto_vacuum", "INCREMENTAL", 2)?;
    let journal = if *location == Location::Memory { "memory" } else { "wal" };
    set_text(&db, path, "journal_mode", journal)?;
    let (level, number) = match location {
        Location::Memory => ("OFF", 0),
        Location::File { .. } => options.synchronous.pragma(),
    };
    set_number(&db, path, "synchronous", level, number)?;
    let pages = column(options.wal_limit_bytes / 4096).max(100);
    set_number(&db, path, "wal_autocheckpoint", &pages.to_string(), pages)?;
    let limit = column(options.wal_limit_bytes);
    set_number(&db, path, "journal_size_limit", &limit.to_string(), limit)?;
    let cache = -column(options.cache_bytes as u64 / 1024);
    set_number(&db, path, "cache_size", &cache.to_string(), cache)?;
    set_number(&db, path, "temp_store", "MEMORY", 2)?;
    migrate(&db, path, options)?;
    Ok(db)
}

/// A connection that only reads, next to a writer.
pub(crate) fn reader(path: &Path, options: &SqliteOptions, counters: &Arc<Counters>) -> Result<Db> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags).map_err(|error| cannot_open(path, &error))?;
    let db = prepare(conn, counters)?;
    let cache = -column(options.cache_bytes as u64 / 1024);
    set_number(&db, path, "cache_size", &cache.to_string(), cache)?;
    set_number(&db, path, "query_only", "ON", 1)?;
    Ok(db)
}

fn prepare(conn: Connection, counters: &Arc<Counters>) -> Result<Db> {
    conn.set_prepared_statement_cache_capacity(STATEMENT_CACHE);
    conn.busy_handler(Some(crate::threads::wait_for_lock))?;
    Ok(Db { conn, counters: Arc::clone(counters) })
}

fn open_file(path: &Path, access: Access) -> Result<Connection> {
    let mut flags = OpenFlags::SQLITE_OPEN_NO_MUTEX;
    match access {
        Access::ReadOnly => flags |= OpenFlags::SQLITE_OPEN_READ_ONLY,
        Access::Existing => flags |= OpenFlags::SQLITE_OPEN_READ_WRITE,
        Access::Create => {
            create_private(path)?;
            flags |= OpenFlags::SQLITE_OPEN_READ_WRITE;
        }
    }
    Connection::open_with_flags(path, flags).map_err(|error| cannot_open(path, &error))
}

/// Creates the file, readable by its owner only, unless it exists. SQLite gives -wal and -shm the same mode.
fn create_private(path: &Path) -> Result<()> {
    match create_new_private(path) {
        Err(SqliteError::CannotOpen { .. }) if path.exists() => Ok(()),
        created => created,
    }
}

/// Creates the file, readable by its owner only; one that exists is refused.
pub(crate) fn create_new_private(path: &Path) -> Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Ok(_) => Ok(()),
        Err(error) => Err(SqliteError::CannotOpen { path: path.to_owned(), reason: error.to_string() }),
    }
}

/// A file with tables and without our mark belongs to somebody else.
fn refuse_foreign(db: &Db, path: &Path) -> Result<()> {
    let foreign = |found: String| SqliteError::Foreign { path: path.to_owned(), found };
    let mark: i64 = match db.conn.pragma_query_value(None, "application_id", |row| row.get(0)) {
        Ok(mark) => mark,
        Err(error) => return Err(opening_error(path, &error)),
    };
    if mark == APPLICATION_ID {
        return Ok(());
    }
    let tables: Vec<String> = db.all(sql::TABLE_NAMES, [], |row| row.get(0))?;
    match (mark, tables.is_empty()) {
        (0, true) => Ok(()),
        (0, false) if tables.iter().any(|table| table == "_sqlx_migrations" || table == "instances") => {
            Err(foreign("it looks like a store of another durable-execution library".to_string()))
        }
        (0, false) => Err(foreign(format!("it has tables of its own, such as '{}'", tables[0]))),
        (mark, _) => Err(foreign(format!("it is marked with application id {mark:#x}"))),
    }
}

fn migrate(db: &Db, path: &Path, options: &SqliteOptions) -> Result<()> {
    // The common case needs no write lock.
    if check_schema(db, path).is_ok() {
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
    db.conn.execute_batch(sql::CREATE_LEDGER)?;
    for migration in due(db, path)? {
        db.conn.execute_batch(migration.sql)?;
        let applied_at = column(options.clock.now_ms());
        let row = (migration.version, migration.name, migration.checksum(), applied_at);
        db.run(sql::WRITE_LEDGER, row)?;
    }
    db.conn.pragma_update(None, "application_id", APPLICATION_ID)?;
    Ok(())
}

/// An up-to-date schema, or an error.
fn check_schema(db: &Db, path: &Path) -> Result<()> {
    match due(db, path)?.first() {
        None => Ok(()),
        Some(migration) => Err(SqliteError::Schema {
            path: path.to_owned(),
            refusal: MigrationRefusal::Damaged { what: format!("version {} is missing", migration.version) },
        }),
    }
}

fn due(db: &Db, path: &Path) -> Result<&'static [Migration]> {
    static BUNDLED: [Migration; 1] = MIGRATIONS;
    let ledger = db.all(sql::READ_LEDGER, [], |row| Ok(Applied { version: row.get(0)?, checksum: row.get(1)? }))?;
    pending(&BUNDLED, &ledger).map_err(|refusal| SqliteError::Schema { path: path.to_owned(), refusal })
}

fn set_text(db: &Db, path: &Path, pragma: &'static str, wanted: &str) -> Result<()> {
    let found: String = db.conn.pragma_update_and_check(None, pragma, wanted, |row| row.get(0))?;
    verified(path, pragma, wanted.to_string(), found)
}

/// Sets a pragma and reads it back: SQLite takes a value that it does not know without a word.
fn set_number(db: &Db, path: &Path, pragma: &'static str, value: &str, wanted: i64) -> Result<()> {
    db.conn.execute_batch(&format!("PRAGMA {pragma} = {value}"))?;
    let found: i64 = db.conn.pragma_query_value(None, pragma, |row| row.get(0))?;
    verified(path, pragma, wanted.to_string(), found.to_string())
}

fn verified(path: &Path, pragma: &'static str, wanted: String, found: String) -> Result<()> {
    match wanted == found {
        true => Ok(()),
        false => Err(SqliteError::Pragma { path: path.to_owned(), pragma, wanted, found }),
    }
}

fn path_of(location: &Location) -> &Path {
    match location {
        Location::Memory => Path::new(":memory:"),
        Location::File { path, .. } => path,
    }
}

fn opening_error(path: &Path, error: &rusqlite::Error) -> SqliteError {
    match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::NotADatabase) => {
            SqliteError::Foreign { path: path.to_owned(), found: "it is not a SQLite database".to_string() }
        }
        _ => cannot_open(path, error),
    }
}

fn cannot_open(path: &Path, error: &rusqlite::Error) -> SqliteError {
    SqliteError::CannotOpen { path: path.to_owned(), reason: error.to_string() }
}

/// How long a statement waits for another process before it is called busy.
pub(crate) const LOCK_PATIENCE: Duration = Duration::from_secs(60);
