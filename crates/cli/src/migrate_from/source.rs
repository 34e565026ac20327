//! The old store. All columns are read as texts, so that both databases are read alike.

use crate::failure::Failure;
use crate::store::{Kind, Place, postgres, sqlite};
use outlast::providers::postgres::PostgresReader;
use outlast::providers::snapshot::{ExportOutcome, ExportRow, InstanceSnapshot, exported};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};
use std::sync::Mutex;

/// The newest migration in a store of `duroxide` 0.1.32.
const SQLITE_VERSION: &str = "20240112000000";
/// The newest migration in a store of `duroxide-pg` 0.1.38.
const POSTGRES_VERSION: &str = "26";

type Row = Vec<Option<String>>;

/// The statements that read one kind of database.
struct Statements {
    busy: &'static str,
    ids: &'static str,
    left_out: &'static str,
    export: &'static str,
}

const SQLITE: Statements = Statements {
    busy: include_str!("sql/sqlite_busy.sql"),
    ids: include_str!("sql/sqlite_ids.sql"),
    left_out: include_str!("sql/sqlite_left_out.sql"),
    export: include_str!("sql/sqlite_export.sql"),
};

const POSTGRES: Statements = Statements {
    busy: include_str!("sql/postgres_busy.sql"),
    ids: include_str!("sql/postgres_ids.sql"),
    left_out: include_str!("sql/postgres_left_out.sql"),
    export: include_str!("sql/postgres_export.sql"),
};

/// The old store, in a transaction that sees one moment.
pub(super) enum Source {
    Sqlite(Mutex<Connection>),
    Postgres(Box<PostgresReader>),
}

impl Source {
    pub(super) async fn open(place: &Place) -> Result<Self, Failure> {
        match Kind::of(&place.url)? {
            Kind::Sqlite => open_file(place),
            Kind::Postgres => open_database(place).await,
            Kind::Cosmos => Err(Failure::usage(
                "this command reads stores of duroxide in SQLite and PostgreSQL; a store in Cosmos DB is not supported",
            )),
        }
    }

    fn statements(&self) -> &'static Statements {
        match self {
            Self::Sqlite(_) => &SQLITE,
            Self::Postgres(_) => &POSTGRES,
        }
    }

    async fn rows(&self, sql: &str, params: &[&str]) -> Result<Vec<Row>, Failure> {
        match self {
            Self::Sqlite(file) => {
                let file = file.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                file_rows(&file, sql, params).map_err(|error| unreadable(&error.to_string()))
            }
            Self::Postgres(reader) => {
                reader.rows(sql, params).await.map_err(|error| unreadable(&error.to_string()))
            }
        }
    }

    /// Refuses a store that programs use.
    pub(super) async fn check_idle(&self, now_ms: u64) -> Result<(), Failure> {
        let rows = self.rows(self.statements().busy, &[&now_ms.to_string()]).await?;
        let (leases, timers) = (number(&rows, 0, 0), number(&rows, 0, 1));
        if leases > 0 {
            return Err(Failure::refused(format!(
                "the old store has {leases} live leases: stop the programs that use it. The leases of a killed program end after its \
                 lock timeout"
            )));
        }
        match timers {
            0 => Ok(()),
            _ => Err(Failure::new(format!(
                "the old store has {timers} rows in a table that duroxide 0.1.32 does not use. Nothing was imported"
            ))),
        }
    }

    /// The ids of all instances, parents before their children.
    pub(super) async fn ids(&self) -> Result<Vec<String>, Failure> {
        let rows = self.rows(self.statements().ids, &[]).await?;
        Ok(rows.into_iter().filter_map(|row| row.into_iter().next().flatten()).collect())
    }

    pub(super) async fn activities_without_instance(&self) -> Result<u64, Failure> {
        Ok(number(&self.rows(self.statements().left_out, &[]).await?, 0, 0))
    }

    pub(super) async fn snapshot(&self, id: &str) -> Result<InstanceSnapshot, Failure> {
        let rows = self.rows(self.statements().export, &[id]).await?;
        match exported(id, rows.into_iter().map(export_row)) {
            Ok(ExportOutcome::Exported(snapshot)) => Ok(*snapshot),
            Ok(_) => Err(unreadable(&format!("instance '{}' is gone", crate::output::plain(id)))),
            Err(reason) => Err(unreadable(&reason)),
        }
    }
}

fn unreadable(reason: &str) -> Failure {
    Failure::new(format!("the old store cannot be read: {reason}. Nothing was imported"))
}

fn number(rows: &[Row], row: usize, column: usize) -> u64 {
    let text = rows.get(row).and_then(|row| row.get(column)).and_then(Option::as_deref);
    text.and_then(|text| text.parse().ok()).unwrap_or(0)
}

fn export_row(row: Row) -> ExportRow {
    let mut columns = row.into_iter();
    let mut next = || columns.next().flatten();
    let part = next().and_then(|part| part.parse().ok()).unwrap_or(-1);
    let texts = [next(), next(), next(), next()];
    let numbers = [next(), next(), next(), next()].map(|number| number.and_then(|text| text.parse().ok()));
    ExportRow { part, texts, numbers }
}

fn open_file(place: &Place) -> Result<Source, Failure> {
    let path = sqlite::path(&place.url)?;
    if !path.exists() {
        return Err(Failure::new(format!(
            "there is no store at '{}': check the path after --store",
            path.display()
        )));
    }
    let opened = Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_ONLY).and_then(|file| {
        file.execute_batch(include_str!("sql/sqlite_begin.sql"))?;
        Ok(file)
    });
    let file = opened.map_err(|error| unreadable(&error.to_string()))?;
    let version = file_rows(&file, include_str!("sql/sqlite_version.sql"), &[]);
    let version =
        version.ok().and_then(|rows| rows.into_iter().next()).and_then(|row| row.into_iter().next()?);
    check_version(&place.to_string(), version.as_deref(), SQLITE_VERSION, "duroxide 0.1.32")?;
    Ok(Source::Sqlite(Mutex::new(file)))
}

async fn open_database(place: &Place) -> Result<Source, Failure> {
    let reader = PostgresReader::begin(postgres::config(place)?.pool_size(2).listen(false)).await;
    let reader = reader.map_err(|error| postgres::failure(&error))?;
    let source = Source::Postgres(Box::new(reader));
    let there = source.rows(include_str!("sql/postgres_is_there.sql"), &[]).await?;
    let is_there = there.first().and_then(|row| row.first()).is_some_and(Option::is_some);
    let version = match is_there {
        true => source.rows(include_str!("sql/postgres_version.sql"), &[]).await?,
        false => Vec::new(),
    };
    let version = version.first().and_then(|row| row.first()).and_then(Option::as_deref);
    check_version(&place.to_string(), version, POSTGRES_VERSION, "duroxide-pg 0.1.38")?;
    Ok(source)
}

/// Refuses a store of another program, and of another release: its tables are not known.
fn check_version(place: &str, found: Option<&str>, known: &str, release: &str) -> Result<(), Failure> {
    match found {
        Some(found) if found == known => Ok(()),
        Some(found) => Err(Failure::refused(format!(
            "{place} has the schema version {found} of another release, and {release} has {known}: open it once with {release}, \
             which brings an older schema up to date"
        ))),
        None => Err(Failure::refused(format!("{place} is no store of {release}"))),
    }
}

fn file_rows(file: &Connection, sql: &str, params: &[&str]) -> rusqlite::Result<Vec<Row>> {
    let mut statement = file.prepare_cached(sql)?;
    let columns = statement.column_count();
    let rows = statement.query_map(rusqlite::params_from_iter(params), |row| {
        (0..columns).map(|n| Ok(text(row.get_ref(n)?))).collect::<rusqlite::Result<Row>>()
    })?;
    rows.collect()
}

/// A value as text. A text that is not UTF-8 does not decode later, with the instance that has it.
fn text(value: ValueRef<'_>) -> Option<String> {
    match value {
        ValueRef::Null => None,
        ValueRef::Integer(number) => Some(number.to_string()),
        ValueRef::Real(number) => Some(number.to_string()),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
    }
}
