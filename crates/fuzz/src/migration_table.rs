//! Stores whose table of applied migrations was changed. Opening must refuse the store and leave it unchanged, unless
//! the table lists exactly the applied migrations.

use crate::choices::Choices;
use crate::scratch::Scratch;
use outlast_provider_kit::migrations::{Applied, Migration, pending};
use outlast_sqlite::{SqliteError, SqliteOptions, SqliteProvider};
use outlast_testkit::virtual_time;
use rusqlite::Connection;
use rusqlite::types::Value;
use std::sync::OnceLock;

/// Changes the migration table of a store and opens the store; mostly checks only the rule, on tables of any length.
pub fn migration_table(data: &[u8]) {
    let mut choices = Choices::new(data);
    if choices.below(4) == 0 {
        // Opening a store takes a thousand times as long as the rule alone.
        change_and_open(&mut choices);
    } else {
        check_rule(&mut choices);
    }
}

const BUNDLED: [Migration; 4] = [
    Migration { version: 1, name: "first", sql: "one" },
    Migration { version: 2, name: "second", sql: "two" },
    Migration { version: 3, name: "third", sql: "three" },
    Migration { version: 4, name: "fourth", sql: "four" },
];

/// Checks the rule alone: the pending migrations are those that the table lacks, and the table must be a prefix of the
/// list.
fn check_rule(choices: &mut Choices<'_>) {
    let bundled = &BUNDLED[..choices.below(BUNDLED.len() + 1)];
    let mut applied: Vec<Applied> = BUNDLED
        .iter()
        .take(choices.below(BUNDLED.len() + 1))
        .map(|migration| Applied { version: migration.version, checksum: migration.checksum() })
        .collect();
    for _ in 0..choices.below(4) {
        let at = choices.below(applied.len());
        match choices.below(6) {
            0 if !applied.is_empty() => drop(applied.remove(at)),
            1 if !applied.is_empty() => applied.swap(at, 0),
            2 if !applied.is_empty() => applied[at].version = choices.number() as u32,
            3 if !applied.is_empty() => applied[at].checksum = choices.text(8),
            4 if !applied.is_empty() => applied.push(applied[at].clone()),
            _ => applied.insert(at, Applied { version: choices.number() as u32, checksum: choices.text(8) }),
        }
    }
    let is_prefix = applied.len() <= bundled.len()
        && applied.iter().zip(bundled).all(|(row, migration)| {
            (row.version, &row.checksum) == (migration.version, &migration.checksum())
        });
    match pending(bundled, &applied) {
        Ok(due) => {
            assert!(is_prefix, "{applied:?} was accepted");
            assert_eq!(due.len(), bundled.len() - applied.len());
        }
        Err(refusal) => assert!(!is_prefix, "{applied:?} was refused: {refusal}"),
    }
}

const READ: &str = "SELECT version, checksum FROM outlast_migrations ORDER BY rowid";

/// Changes the migration table of a store, and opens the store.
fn change_and_open(choices: &mut Choices<'_>) {
    let scratch = Scratch::holding(new_store());
    let raw = Connection::open(scratch.path()).expect("the file is a database");
    let before = rows(&raw);
    for _ in 0..=choices.below(3) {
        change(&raw, choices);
    }
    let (after, tables) = (rows(&raw), content(&raw));
    drop(raw);
    let opened = open_store(&scratch.url());
    let raw = Connection::open(scratch.path()).expect("the file is still a database");
    assert_eq!(content(&raw), tables, "opening changed the store");
    match opened {
        Ok(()) => assert_eq!(after, before, "the store opened with a changed migration table"),
        Err(SqliteError::Schema { .. } | SqliteError::Foreign { .. }) => {
            assert!(
                after != before || application_id(&raw) != APPLICATION_ID,
                "an unchanged store was refused"
            );
        }
        Err(error) => panic!("the error does not name the damage: {error:?}"),
    }
}

fn change(raw: &Connection, choices: &mut Choices<'_>) {
    let value = |choices: &mut Choices<'_>| match choices.below(5) {
        0 => Value::Null,
        1 => Value::Integer(choices.number()),
        2 => Value::Real(0.5),
        3 => Value::Text(choices.text(70)),
        _ => Value::Blob(choices.some(8).to_vec()),
    };
    // Constraints of columns forbid some changes.
    let _ = match choices.below(10) {
        0 => raw.execute("DELETE FROM outlast_migrations", []),
        1 => raw.execute("DROP TABLE outlast_migrations", []),
        2 => raw.execute("ALTER TABLE outlast_migrations RENAME TO migrations", []),
        3 => raw.execute("UPDATE outlast_migrations SET version = ?1", [value(choices)]),
        4 => raw.execute("UPDATE outlast_migrations SET checksum = ?1", [value(choices)]),
        5 => raw.execute(
            "UPDATE outlast_migrations SET name = ?1, applied_at = ?2",
            [value(choices), value(choices)],
        ),
        6 | 7 => raw.execute(
            "INSERT INTO outlast_migrations (version, name, checksum, applied_at) VALUES (?1, 'more', ?2, 0)",
            [value(choices), value(choices)],
        ),
        8 => raw.execute("ALTER TABLE outlast_migrations RENAME COLUMN checksum TO digest", []),
        _ => raw.pragma_update(None, "application_id", choices.number() as i32).map(|()| 1),
    };
}

/// The versions and checksums of the migration table; `None` if they cannot be read.
fn rows(raw: &Connection) -> Option<Vec<(Value, Value)>> {
    let mut statement = raw.prepare(READ).ok()?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).ok()?;
    rows.collect::<Result<_, _>>().ok()
}

/// The schema, the migration table, and one table that a repeated migration would create again.
fn content(raw: &Connection) -> Vec<Vec<Value>> {
    let mut all = vec![vec![Value::Integer(application_id(raw))]];
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

const APPLICATION_ID: i64 = 0x4F75_746C;

fn application_id(raw: &Connection) -> i64 {
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
