//! Opening a database: the file and its settings.

use crate::counters::Counters;
use crate::db::{Db, Result, column};
use crate::threads::busy_handler;
use crate::url::{Access, Location};
use crate::{LockPatience, SqliteError, SqliteOptions, schema};
use outlast_provider_kit::migrations::SchemaState;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

const STATEMENT_CACHE: usize = 128;

/// The connection of the writer, on an up-to-date schema. It cannot write if the location is read-only.
pub(crate) fn writer(location: &Location, options: &SqliteOptions, counters: &Arc<Counters>) -> Result<Db> {
    let path = path_of(location);
    let log = Log::of(path);
    open_writer(location, path, options, counters).map_err(|error| log.explain(error).about(path))
}

/// Opens a store. Refuses a file of another program or a file that was cut off, before it writes. If the location is read-only,
/// only checks the schema; otherwise sets the options of the connection and applies migrations.
fn open_writer(
    location: &Location,
    path: &Path,
    options: &SqliteOptions,
    counters: &Arc<Counters>,
) -> Result<Db> {
    let log = Log::of(path);
    let db = match location {
        Location::Memory => {
            let conn = Connection::open_in_memory().map_err(|error| cannot_open(path, &error))?;
            prepare(conn, options, counters)?
        }
        Location::File { path, access: Access::ReadOnly } => open_to_read(path, options, counters)?,
        Location::File { path, access } => prepare(open_file(path, *access)?, options, counters)?,
    };
    let wal_is_used = *location != Location::Memory && size(&wal_path(path)) > 0;
    // A log that another program left is not moved into the file before the file is known to be a store: that would change both.
    db.conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, wal_is_used)?;
    let is_ours = schema::refuse_foreign(&db, path)?;
    if *location != Location::Memory && !wal_is_used {
        refuse_cut_off(&db, path)?;
    }
    if matches!(location, Location::File { access: Access::ReadOnly, .. }) {
        if !is_ours {
            return Err(log.empty(&db));
        }
        schema::check_schema(&db, path, options)?;
        return Ok(db);
    }
    schema::due(&db, path, options)?;
    #[cfg(feature = "test-hooks")]
    let keeps_log = options.closes_like_a_crash;
    #[cfg(not(feature = "test-hooks"))]
    let keeps_log = false;
    db.conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, keeps_log)?;
    if !is_ours {
        // An existing store has the setting already, and setting it again would write.
        patiently(options.lock_patience, || let_shrink(&db, path))?;
    }
    let journal = if *location == Location::Memory { "memory" } else { "wal" };
    patiently(options.lock_patience, || set_text(&db, path, "journal_mode", journal))?;
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
    schema::migrate(&db, path, options)?;
    Ok(db)
}

/// The schema of an existing store, for tools. Writes nothing.
pub(crate) fn schema_state(location: &Location) -> Result<SchemaState> {
    let path = path_of(location);
    let log = Log::of(path);
    let options = SqliteOptions { lock_patience: LockPatience::FiveSeconds, ..SqliteOptions::default() };
    let read = || {
        let db = open_to_read(path, &options, &Arc::default())?;
        match schema::refuse_foreign(&db, path)? {
            true => schema::state(&db, path, &options),
            false => Err(log.empty(&db)),
        }
    };
    read().map_err(|error: SqliteError| log.explain(error).about(path))
}

/// A connection that only reads, next to a writer.
pub(crate) fn reader(path: &Path, options: &SqliteOptions, counters: &Arc<Counters>) -> Result<Db> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags).map_err(|error| cannot_open(path, &error))?;
    let db = prepare(conn, options, counters)?;
    let cache = -column(options.cache_bytes as u64 / 1024);
    set_number(&db, path, "cache_size", &cache.to_string(), cache)?;
    set_number(&db, path, "query_only", "ON", 1)?;
    Ok(db)
}

fn prepare(conn: Connection, options: &SqliteOptions, counters: &Arc<Counters>) -> Result<Db> {
    conn.set_prepared_statement_cache_capacity(STATEMENT_CACHE);
    conn.busy_handler(Some(busy_handler(options.lock_patience)))?;
    Ok(Db {
        conn,
        counters: Arc::clone(counters),
        #[cfg(feature = "test-hooks")]
        faults: options.faults.clone(),
        _closes_last: None,
    })
}

/// A connection that cannot write.
fn open_to_read(path: &Path, options: &SqliteOptions, counters: &Arc<Counters>) -> Result<Db> {
    let _closes_last = closes_last(path, options)?;
    Ok(Db { _closes_last, ..prepare(open_file(path, Access::ReadOnly)?, options, counters)? })
}

/// Held while a file is created. When a process closes any descriptor of a file, the system drops all locks of the process on that
/// file. The descriptor that creates the file must therefore be closed before this process opens the database.
static CREATING: Mutex<()> = Mutex::new(());

fn open_file(path: &Path, access: Access) -> Result<Connection> {
    let mut flags = OpenFlags::SQLITE_OPEN_NO_MUTEX;
    match access {
        Access::ReadOnly => flags |= OpenFlags::SQLITE_OPEN_READ_ONLY,
        Access::Existing | Access::Create => flags |= OpenFlags::SQLITE_OPEN_READ_WRITE,
    }
    if access == Access::Create {
        create_private(path)?;
    }
    // SQLite treats a file of one byte as empty, and would overwrite it.
    if (1..SMALLEST_DATABASE).contains(&size(path)) {
        return Err(not_a_database(path));
    }
    let _no_creation = CREATING.lock().unwrap_or_else(PoisonError::into_inner);
    Connection::open_with_flags(path, flags).map_err(|error| cannot_open(path, &error))
}

/// A connection that removes the log and its index beside a file that had neither: a read-only connection makes them, and cannot remove
/// them. It writes nothing, because the log is empty. `None` for other files: emptying a log would change the file.
///
/// # Errors
///
/// [`SqliteError::Busy`] only: the next connection would wait for the same lock. It meets all other errors too.
fn closes_last(path: &Path, options: &SqliteOptions) -> Result<Option<Connection>> {
    if Log::of(path).is_there || journal_path(path).exists() || size(path) < SMALLEST_DATABASE {
        return Ok(None);
    }
    let flags = OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_READ_WRITE;
    let no_creation = CREATING.lock().unwrap_or_else(PoisonError::into_inner);
    let Ok(conn) = Connection::open_with_flags(path, flags) else { return Ok(None) };
    drop(no_creation);
    conn.busy_handler(Some(busy_handler(options.lock_patience)))?;
    // The first read opens the log.
    let read: rusqlite::Result<i64> = conn.pragma_query_value(None, "schema_version", |row| row.get(0));
    match read.map_err(SqliteError::from) {
        Ok(_) => Ok(Some(conn)),
        Err(busy @ SqliteError::Busy { .. }) => Err(busy),
        Err(_) => Ok(None),
    }
}

/// Creates the file, readable by its owner only, unless it exists. SQLite gives -wal and -shm the same mode.
fn create_private(path: &Path) -> Result<()> {
    match create_new_private(path) {
        Err(SqliteError::CannotOpen { .. }) if path.exists() => Ok(()),
        created => created,
    }
}

/// Creates the file, readable by its owner only. An existing file is an error.
pub(crate) fn create_new_private(path: &Path) -> Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let _no_opening = CREATING.lock().unwrap_or_else(PoisonError::into_inner);
    match options.open(path) {
        Ok(file) => {
            drop(file);
            Ok(())
        }
        Err(error) => Err(SqliteError::CannotOpen { path: path.to_owned(), reason: error.to_string() }),
    }
}

/// Refuses a file whose last page is incomplete. SQLite notices missing pages, but not this.
fn refuse_cut_off(db: &Db, path: &Path) -> Result<()> {
    let page: i64 = db.conn.pragma_query_value(None, "page_size", |row| row.get(0))?;
    match size(path) % page.unsigned_abs().max(1) {
        0 => Ok(()),
        _ => Err(SqliteError::Damaged { details: "the end of the file is missing".to_string() }),
    }
}

/// Repeats a step that fails with "busy". SQLite returns "busy" without waiting where a wait could deadlock: when several
/// connections initialise one new file.
fn patiently(patience: LockPatience, step: impl Fn() -> Result<()>) -> Result<()> {
    let waits = busy_handler(patience);
    let mut attempt = 0;
    loop {
        match step() {
            Err(SqliteError::Busy { .. }) if attempt < 5_000 && waits(attempt) => attempt += 1,
            done => return done,
        }
    }
}

/// Sets `auto_vacuum`. The setting takes effect on an empty file, or after a `VACUUM`, which is cheap without tables.
fn let_shrink(db: &Db, path: &Path) -> Result<()> {
    match set_number(db, path, "auto_vacuum", "INCREMENTAL", 2) {
        Err(SqliteError::Pragma { .. }) => {
            db.control("VACUUM")?;
            set_number(db, path, "auto_vacuum", "INCREMENTAL", 2)
        }
        set => set,
    }
}

fn set_text(db: &Db, path: &Path, pragma: &'static str, wanted: &str) -> Result<()> {
    set(db, pragma, wanted)?;
    let found: String = db.conn.pragma_query_value(None, pragma, |row| row.get(0))?;
    verified(path, pragma, wanted.to_string(), found)
}

fn set_number(db: &Db, path: &Path, pragma: &'static str, value: &str, wanted: i64) -> Result<()> {
    set(db, pragma, value)?;
    let found: i64 = db.conn.pragma_query_value(None, pragma, |row| row.get(0))?;
    verified(path, pragma, wanted.to_string(), found.to_string())
}

/// Sets a pragma. The caller reads it back, because SQLite accepts an unknown value without an error, and because the statement
/// returns its row before the setting takes effect.
fn set(db: &Db, pragma: &str, value: &str) -> Result<()> {
    let mut statement = db.conn.prepare(&format!("PRAGMA {pragma} = {value}"))?;
    let mut rows = statement.query([])?;
    while rows.next()?.is_some() {}
    Ok(())
}

fn verified(path: &Path, pragma: &'static str, wanted: String, found: String) -> Result<()> {
    match wanted == found {
        true => Ok(()),
        false => Err(SqliteError::Pragma { path: path.to_owned(), pragma, wanted, found }),
    }
}

/// A database has at least one page.
const SMALLEST_DATABASE: u64 = 512;

/// The write-ahead log of a database.
pub(crate) fn wal_path(path: &Path) -> PathBuf {
    beside(path, "-wal")
}

/// The rollback journal of a database that has no write-ahead log.
fn journal_path(path: &Path) -> PathBuf {
    beside(path, "-journal")
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Whether a file had its write-ahead log when it was opened. A copy of a store in use is empty or damaged without it. A store that was
/// closed has none, so the log is named in errors only.
struct Log {
    path: PathBuf,
    is_there: bool,
}

impl Log {
    fn of(path: &Path) -> Self {
        Self { path: path.to_owned(), is_there: wal_path(path).exists() }
    }

    /// The error for a file without tables.
    fn empty(&self, db: &Db) -> SqliteError {
        let mode: rusqlite::Result<String> =
            db.conn.pragma_query_value(None, "journal_mode", |row| row.get(0));
        let found = match mode.is_ok_and(|mode| mode == "wal") && !self.is_there {
            true => format!("it is empty, and its log is missing: {}", self.advice()),
            false => "it is empty".to_string(),
        };
        SqliteError::Foreign { path: self.path.clone(), found }
    }

    /// Adds the missing log to the error of a damaged file.
    fn explain(&self, error: SqliteError) -> SqliteError {
        match error {
            SqliteError::Damaged { details } if !self.is_there => {
                SqliteError::Damaged { details: format!("{details}; {}", self.advice()) }
            }
            other => other,
        }
    }

    fn advice(&self) -> String {
        let log = wal_path(&self.path);
        format!("a copy of a store in use needs its file '{}'", log.file_name().unwrap_or_default().display())
    }
}

/// The length of a file, without opening it, see [`CREATING`].
fn size(path: &Path) -> u64 {
    path.metadata().map_or(0, |metadata| metadata.len())
}

fn path_of(location: &Location) -> &Path {
    match location {
        Location::Memory => Path::new(":memory:"),
        Location::File { path, .. } => path,
    }
}

pub(crate) fn not_a_database(path: &Path) -> SqliteError {
    SqliteError::Foreign { path: path.to_owned(), found: "it is not a SQLite database".to_string() }
}

pub(crate) fn cannot_open(path: &Path, error: &rusqlite::Error) -> SqliteError {
    SqliteError::CannotOpen { path: path.to_owned(), reason: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Synchronous;

    fn file(path: &Path) -> Location {
        Location::File { path: path.to_owned(), access: Access::Create }
    }

    fn pragma(db: &Db, name: &str) -> String {
        let text = |row: &rusqlite::Row<'_>| {
            Ok(match row.get_ref(0)? {
                rusqlite::types::ValueRef::Integer(number) => number.to_string(),
                other => other.as_str()?.to_string(),
            })
        };
        db.conn.pragma_query_value(None, name, text).unwrap()
    }

    #[test]
    fn opening_applies_every_setting() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        for (synchronous, number) in [(Synchronous::Full, "2"), (Synchronous::Normal, "1")] {
            let options = SqliteOptions {
                synchronous,
                cache_bytes: 3 << 20,
                wal_limit_bytes: 5 << 20,
                ..SqliteOptions::default()
            };
            let db = writer(&file(&path), &options, &Arc::default()).unwrap();
            let expected = [
                ("journal_mode", "wal"),
                ("synchronous", number),
                ("auto_vacuum", "2"),
                ("wal_autocheckpoint", "1280"),
                ("journal_size_limit", "5242880"),
                ("cache_size", "-3072"),
                ("temp_store", "2"),
                ("application_id", "1333097580"),
            ];
            for (name, value) in expected {
                assert_eq!(pragma(&db, name), value, "{name}");
            }
            let reader = reader(&path, &options, &Arc::default()).unwrap();
            assert_eq!(
                (pragma(&reader, "query_only"), pragma(&reader, "cache_size")),
                ("1".into(), "-3072".into())
            );
        }
    }

    #[test]
    fn opening_fails_if_a_setting_does_not_take_effect() {
        let path = Path::new("here.db");
        let db = writer(&Location::Memory, &SqliteOptions::default(), &Arc::default()).unwrap();
        let refused = [
            // A store in memory has no log; an unknown value means NORMAL; an existing schema fixes the page size.
            set_text(&db, path, "journal_mode", "wal"),
            set_number(&db, path, "synchronous", "WAL", 2),
            set_number(&db, path, "page_size", "8192", 8192),
        ];
        for (result, pragma) in refused.into_iter().zip(["journal_mode", "synchronous", "page_size"]) {
            let error = result.unwrap_err();
            assert!(matches!(error, SqliteError::Pragma { .. }), "{error:?}");
            let text = error.to_string();
            assert!(text.contains("here.db") && text.contains(pragma), "{text}");
        }
    }

    #[test]
    fn opening_an_existing_store_writes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        let options = SqliteOptions::default();
        drop(writer(&file(&path), &options, &Arc::default()).unwrap());
        let before = std::fs::read(&path).unwrap();
        let db = writer(&file(&path), &options, &Arc::default()).unwrap();
        assert_eq!(size(&wal_path(&path)), 0);
        drop(db);
        assert!(std::fs::read(&path).unwrap() == before);
    }
}
