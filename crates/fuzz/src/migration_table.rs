//! A ledger of migrations that was tampered with: the store is refused and left as it is, or the ledger says what it must.

use crate::bytes::Bytes;
use crate::scratch::Scratch;
use outlast_provider_kit::migrations::{Applied, Migration, pending};
use outlast_sqlite::{SqliteError, SqliteOptions, SqliteProvider};
use outlast_testkit::virtual_time;
use rusqlite::Connection;
use rusqlite::types::Value;
use std::sync::OnceLock;

/// Changes the ledger of a store and opens it; also decides about ledgers of any length.
pub fn migration_ledger(data: &[u8]) {
    let mut bytes = Bytes::new(data);
    if bytes.below(4) == 0 {
        // Opening costs a thousand times as much.
        opened(&mut bytes);
    } else {
        decided(&mut bytes);
    }
}

const BUNDLED: [Migration; 4] = [
    Migration { version: 1, name: "first", sql: "one" },
    Migration { version: 2, name: "second", sql: "two" },
    Migration { version: 3, name: "third", sql: "three" },
    Migration { version: 4, name: "fourth", sql: "four" },
];

/// The rule alone: what is to be applied is what the ledger lacks, and only if it has the beginning of the list.
fn decided(bytes: &mut Bytes<'_>) {
    let bundled = &BUNDLED[..bytes.below(BUNDLED.len() + 1)];
    let mut ledger: Vec<Applied> = BUNDLED
        .iter()
        .take(bytes.below(BUNDLED.len() + 1))
        .map(|migration| Applied { version: migration.version, checksum: migration.checksum() })
        .collect();
    for _ in 0..bytes.below(4) {
        let at = bytes.below(ledger.len());
        match bytes.below(6) {
            0 if !ledger.is_empty() => drop(ledger.remove(at)),
            1 if !ledger.is_empty() => ledger.swap(at, 0),
            2 if !ledger.is_empty() => ledger[at].version = bytes.number() as u32,
            3 if !ledger.is_empty() => ledger[at].checksum = bytes.text(8),
            4 if !ledger.is_empty() => ledger.push(ledger[at].clone()),
            _ => ledger.insert(at, Applied { version: bytes.number() as u32, checksum: bytes.text(8) }),
        }
    }
    let is_prefix = ledger.len() <= bundled.len()
        && ledger.iter().zip(bundled).all(|(applied, migration)| {
            (applied.version, &applied.checksum) == (migration.version, &migration.checksum())
        });
    match pending(bundled, &ledger) {
        Ok(due) => {
            assert!(is_prefix, "{ledger:?} was accepted");
            assert_eq!(due.len(), bundled.len() - ledger.len());
        }
        Err(refusal) => assert!(!is_prefix, "{ledger:?} was refused: {refusal}"),
    }
}

const READ: &str = "SELECT version, checksum FROM outlast_migrations ORDER BY rowid";

/// A whole store: its ledger is changed row by row, and then it is opened.
fn opened(bytes: &mut Bytes<'_>) {
    let scratch = Scratch::holding(new_store());
    let raw = Connection::open(scratch.path()).expect("it is a database");
    let before = rows(&raw);
    for _ in 0..=bytes.below(3) {
        change(&raw, bytes);
    }
    let (after, tables) = (rows(&raw), content(&raw));
    drop(raw);
    let opened = open_store(&scratch.url());
    let raw = Connection::open(scratch.path()).expect("it is still a database");
    assert_eq!(content(&raw), tables, "opening changed it");
    match opened {
        Ok(()) => assert_eq!(after, before, "it was opened with another ledger"),
        Err(SqliteError::Schema { .. } | SqliteError::Foreign { .. }) => {
            assert!(after != before || mark(&raw) != MARK, "it was refused as it was made");
        }
        Err(error) => panic!("not the kind of error that says what is wrong: {error:?}"),
    }
}

fn change(raw: &Connection, bytes: &mut Bytes<'_>) {
    let value = |bytes: &mut Bytes<'_>| match bytes.below(5) {
        0 => Value::Null,
        1 => Value::Integer(bytes.number()),
        2 => Value::Real(0.5),
        3 => Value::Text(bytes.text(70)),
        _ => Value::Blob(bytes.some(8).to_vec()),
    };
    // Not every change is possible: columns have constraints.
    let _ = match bytes.below(10) {
        0 => raw.execute("DELETE FROM outlast_migrations", []),
        1 => raw.execute("DROP TABLE outlast_migrations", []),
        2 => raw.execute("ALTER TABLE outlast_migrations RENAME TO migrations", []),
        3 => raw.execute("UPDATE outlast_migrations SET version = ?1", [value(bytes)]),
        4 => raw.execute("UPDATE outlast_migrations SET checksum = ?1", [value(bytes)]),
        5 => raw.execute(
            "UPDATE outlast_migrations SET name = ?1, applied_at = ?2",
            [value(bytes), value(bytes)],
        ),
        6 | 7 => raw.execute(
            "INSERT INTO outlast_migrations (version, name, checksum, applied_at) VALUES (?1, 'more', ?2, 0)",
            [value(bytes), value(bytes)],
        ),
        8 => raw.execute("ALTER TABLE outlast_migrations RENAME COLUMN checksum TO digest", []),
        _ => raw.pragma_update(None, "application_id", bytes.number() as i32).map(|()| 1),
    };
}

/// The part of the ledger that counts, or why it cannot be read.
fn rows(raw: &Connection) -> Option<Vec<(Value, Value)>> {
    let mut statement = raw.prepare(READ).ok()?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).ok()?;
    rows.collect::<Result<_, _>>().ok()
}

/// The schema and the rows of the ledger, and of one table that a migration would make again.
fn content(raw: &Connection) -> Vec<Vec<Value>> {
    let mut all = vec![vec![Value::Integer(mark(raw))]];
    for sql in [
        "SELECT name, sql FROM sqlite_schema ORDER BY name",
        "SELECT * FROM outlast_migrations",
        "SELECT * FROM instances",
    ] {
        let Ok(mut statement) = raw.prepare(sql) else { continue };
        let columns = statement.column_count();
        let rows = statement.query_map([], |row| (0..columns).map(|column| row.get(column)).collect());
        all.extend(rows.expect("no parameters").map(|row| row.expect("any value can be read")));
    }
    all
}

const MARK: i64 = 0x4F75_746C;

fn mark(raw: &Connection) -> i64 {
    raw.pragma_query_value(None, "application_id", |row| row.get(0)).expect("every database has one")
}

fn open_store(url: &str) -> Result<(), SqliteError> {
    let options = SqliteOptions { inline: true, ..SqliteOptions::default() };
    virtual_time::run(SqliteProvider::new(url, Some(options))).map(drop)
}

fn new_store() -> &'static [u8] {
    static MADE: OnceLock<Vec<u8>> = OnceLock::new();
    MADE.get_or_init(|| {
        let scratch = Scratch::new();
        open_store(&scratch.url()).expect("a new store can be made");
        scratch.content()
    })
}
