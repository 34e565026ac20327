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
    Migration { version: 1, name: "first", usable_from: 1, sql: "one" },
    Migration { version: 2, name: "second", usable_from: 1, sql: "two" },
    Migration { version: 3, name: "third", usable_from: 1, sql: "three" },
    Migration { version: 4, name: "fourth", usable_from: 1, sql: "four" },
];

/// Checks the rule alone: the pending migrations are those that the table lacks, and the table must be a prefix of the
/// list.
fn check_rule(choices: &mut Choices<'_>) {
    let bundled = &BUNDLED[..choices.below(BUNDLED.len() + 1)];
    let mut applied: Vec<Applied> = BUNDLED
        .iter()
        .take(choices.below(BUNDLED.len() + 1))
        .map(|migration| Applied {
            version: migration.version,
            usable_from: migration.usable_from,
            checksum: migration.checksum(),
        })
        .collect();
    for _ in 0..choices.below(4) {
        let at = choices.below(applied.len());
        match choices.below(7) {
            0 if !applied.is_empty() => drop(applied.remove(at)),
            1 if !applied.is_empty() => applied.swap(at, 0),
            2 if !applied.is_empty() => applied[at].version = choices.number() as u32,
            3 if !applied.is_empty() => applied[at].checksum = choices.text(8),
            4 if !applied.is_empty() => applied.push(applied[at].clone()),
            5 if !applied.is_empty() => applied[at].usable_from = choices.below(7) as u32,
            _ => {
                let (version, usable_from) = (choices.number() as u32, choices.below(7) as u32);
                applied.insert(at, Applied { version, usable_from, checksum: choices.text(8) });
            }
        }
    }
    // The bundled migrations come first; migrations of later releases follow without gaps, if this release can use all of them.
    let goes_on = |(row, place): (&Applied, usize)| match bundled.get(place) {
        Some(known) => {
            (row.version, row.usable_from, &row.checksum)
                == (known.version, known.usable_from, &known.checksum())
        }
        None => row.version as usize == place + 1 && row.usable_from as usize <= bundled.len(),
    };
    let is_usable = applied.iter().zip(0..).all(goes_on);
    match pending(bundled, &applied) {
        Ok(due) => {
            assert!(is_usable, "{applied:?} was accepted");
            assert_eq!(due.len(), bundled.len().saturating_sub(applied.len()));
        }
        Err(refusal) => assert!(!is_usable, "{applied:?} was refused: {refusal}"),
    }
}

const READ: &str = "SELECT version, usable_from, checksum FROM outlast_migrations ORDER BY rowid";

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
        Ok(()) => assert!(goes_on(&before, &after), "the store opened with the migration table {after:?}"),
        Err(SqliteError::Schema { .. } | SqliteError::Foreign { .. }) => {
            assert!(
                !goes_on(&before, &after) || application_id(&raw) != APPLICATION_ID,
                "a store that can be used was refused"
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
            "INSERT INTO outlast_migrations (version, name, checksum, usable_from, applied_at)
             VALUES (?1, 'more', ?2, ?3, 0)",
            [value(choices), value(choices), value(choices)],
        ),
        8 => raw.execute("ALTER TABLE outlast_migrations RENAME COLUMN checksum TO digest", []),
        _ => raw.pragma_update(None, "application_id", choices.number() as i32).map(|()| 1),
    };
}

/// Whether the rows are those that the release wrote, or go on with migrations of later releases that it can use.
fn goes_on(before: &Option<Vec<Row>>, after: &Option<Vec<Row>>) -> bool {
    let (Some(before), Some(after)) = (before, after) else { return before == after };
    let known = before.len() as i64;
    let is_usable = |(row, version): (&Row, i64)| {
        let is_marked = matches!(row.1, Value::Integer(from) if (0..=known).contains(&from));
        row.0 == Value::Integer(version) && is_marked && matches!(row.2, Value::Text(_))
    };
    after
        .strip_prefix(before.as_slice())
        .is_some_and(|further| further.iter().zip(known + 1..).all(is_usable))
}

type Row = (Value, Value, Value);

/// The versions, marks and checksums of the migration table; `None` if they cannot be read.
fn rows(raw: &Connection) -> Option<Vec<Row>> {
    let mut statement = raw.prepare(READ).ok()?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).ok()?;
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
