//! Histories: reading and appending of events, outcomes.

use crate::db::{Db, Result, column, id_column, stored_text, unsigned};
use crate::transaction::Transaction;
use crate::{SqliteError, commit, kv, sql};
use outlast_model::{Event, SystemStats, json};
use outlast_provider::{BoundedTurn, HistoryBound, InstanceOutcome, LoadedTurn, OversizedTurn};
use outlast_provider_kit::plan::HistoryRow;
use outlast_provider_kit::rows;
use rusqlite::Row;
use rusqlite::types::ValueRef;
use std::collections::HashMap;

/// An execution of an instance.
pub(crate) struct ExecutionKey {
    pub(crate) instance: String,
    pub(crate) execution_id: u64,
}

impl ExecutionKey {
    pub(crate) fn of(instance: &str, execution_id: u64) -> Self {
        Self { instance: instance.to_string(), execution_id }
    }
}

/// The highest execution id; 1 if there is none.
pub(crate) fn newest_execution(db: &Db, instance: &str) -> Result<u64> {
    let newest = db.one(sql::NEWEST_EXECUTION, [instance], highest)?.flatten();
    Ok(newest.map_or(1, |id| u64::try_from(id).unwrap_or(1)))
}

pub(crate) fn last_event_id(db: &Db, instance: &str, execution_id: u64) -> Result<u64> {
    let key = (instance, id_column("execution id", execution_id)?);
    let last = db.one(sql::LAST_EVENT, key, highest)?.flatten();
    Ok(last.map_or(0, |id| u64::try_from(id).unwrap_or(0)))
}

/// The highest id, if there is one. A damaged id that is not a number sorts after all numbers, and is read as an id that no row
/// has.
fn highest(row: &Row<'_>) -> rusqlite::Result<Option<i64>> {
    Ok(match row.get_ref(0)? {
        ValueRef::Null => None,
        ValueRef::Integer(id) => Some(id),
        _ => Some(i64::MAX),
    })
}

/// The texts of the events of an execution.
pub(crate) fn texts(db: &Db, instance: &str, execution_id: u64) -> Result<Vec<String>> {
    let texts = db.all(sql::READ_HISTORY, (instance, column(execution_id)), |row| stored_text(row, 0))?;
    db.counters.history_rows_read.add(texts.len());
    Ok(texts)
}

/// The events of an execution. An event that does not decode is an error.
pub(crate) fn read(db: &Db, key: &ExecutionKey) -> Result<Vec<Event>> {
    decoded(db, &key.instance, key.execution_id)
}

/// [`read`] for the newest execution of an instance.
pub(crate) fn read_newest(db: &Db, instance: &str) -> Result<Vec<Event>> {
    decoded(db, instance, newest_execution(db, instance)?)
}

/// Some events of an execution, after an event.
pub(crate) struct EventPage {
    pub(crate) key: ExecutionKey,
    pub(crate) after: u64,
    pub(crate) limit: usize,
}

/// The events of a page, ascending. An event that does not decode is an error.
pub(crate) fn page(db: &Db, page: &EventPage) -> Result<Vec<Event>> {
    let EventPage { key, after, limit } = page;
    let limit = i64::try_from(*limit).unwrap_or(i64::MAX);
    let wanted = (key.instance.as_str(), column(key.execution_id), column(*after), limit);
    let texts = db.all(sql::HISTORY_PAGE, wanted, |row| stored_text(row, 0))?;
    db.counters.history_rows_read.add(texts.len());
    rows::decode_history(&key.instance, key.execution_id, texts.iter().map(String::as_str))
        .map_err(|details| SqliteError::Damaged { details })
}

fn decoded(db: &Db, instance: &str, execution_id: u64) -> Result<Vec<Event>> {
    let texts = texts(db, instance, execution_id)?;
    rows::decode_history(instance, execution_id, texts.iter().map(String::as_str))
        .map_err(|details| SqliteError::Damaged { details })
}

pub(crate) fn load_turn(db: &Db, key: &ExecutionKey) -> Result<LoadedTurn> {
    let &ExecutionKey { ref instance, execution_id } = key;
    let texts = texts(db, instance, execution_id)?;
    let (kv_snapshot, damage) = match kv::snapshot(db, instance)? {
        Ok(snapshot) => (snapshot, None),
        Err(reason) => (HashMap::new(), Some(reason)),
    };
    let texts = texts.iter().map(String::as_str);
    let mut loaded = rows::decode_turn(instance, execution_id, texts, kv_snapshot);
    loaded.history_error = loaded.history_error.or(damage);
    Ok(loaded)
}

/// The longest text of an outline. A longer event is not read, and the outline does not decode: neither an input nor an output is
/// as large.
const LARGEST_OUTLINE: u64 = 64 << 20;

/// [`load_turn`] for a history within a bound. The bound is checked on the stored sizes before any payload is read, and again
/// while reading, because escaped JSON is longer than its text.
pub(crate) fn load_turn_within(db: &Db, (key, bound): &(ExecutionKey, HistoryBound)) -> Result<BoundedTurn> {
    let &ExecutionKey { ref instance, execution_id } = key;
    let key = (instance.as_str(), id_column("execution id", execution_id)?);
    let size = db.one(sql::HISTORY_SIZE, key, |row| Ok((unsigned(row, 0)?, unsigned(row, 1)?)))?;
    let (events, stored_bytes) = size.unwrap_or_default();
    let kv_snapshot = match kv::snapshot(db, instance)? {
        Ok(snapshot) => snapshot,
        Err(reason) => {
            let (history, kv_snapshot) = (Vec::new(), HashMap::new());
            let history_error = Some(reason);
            return Ok(BoundedTurn::Whole(LoadedTurn { history, kv_snapshot, history_error }));
        }
    };
    let undecodable = |reason: String, kv_snapshot| {
        let reason = rows::reason(instance, execution_id, &reason);
        BoundedTurn::Whole(LoadedTurn { history: Vec::new(), kv_snapshot, history_error: Some(reason) })
    };
    let read = match bound.may_hold_stored(events, stored_bytes) {
        true => read_within(db, key, *bound)?,
        false => Ok(None),
    };
    match read {
        Ok(Some(history)) => {
            return Ok(BoundedTurn::Whole(LoadedTurn { history, kv_snapshot, history_error: None }));
        }
        Ok(None) => {}
        Err(reason) => return Ok(undecodable(reason, kv_snapshot)),
    }
    let outline_key = (key.0, key.1, column(LARGEST_OUTLINE));
    let texts = db.all(sql::HISTORY_OUTLINE, outline_key, |row| stored_text(row, 0))?;
    db.counters.history_rows_read.add(texts.len());
    match texts.iter().map(|text| json::decode_event(text)).collect::<std::result::Result<Vec<_>, _>>() {
        Ok(outline) => {
            Ok(BoundedTurn::Oversized(OversizedTurn { events, stored_bytes, outline, kv_snapshot }))
        }
        Err(error) => Ok(undecodable(error.to_string(), kv_snapshot)),
    }
}

/// Reads events one by one: `None` as soon as they exceed the bound, an error for an event that does not decode.
fn read_within(
    db: &Db,
    key: (&str, i64),
    bound: HistoryBound,
) -> Result<std::result::Result<Option<Vec<Event>>, String>> {
    let (mut history, mut bytes) = (Vec::new(), 0_usize);
    let mut read = 0;
    let stopped = db.find(sql::READ_HISTORY, key, |row| {
        read += 1;
        let event = match json::decode_event(&stored_text(row, 0)?) {
            Ok(event) => event,
            Err(error) => return Ok(Some(Err(error.to_string()))),
        };
        bytes = bytes.saturating_add(event.text_bytes());
        history.push(event);
        Ok((!bound.holds(history.len(), bytes)).then_some(Ok(None)))
    })?;
    db.counters.history_rows_read.add(read);
    Ok(stopped.unwrap_or(Ok(Some(history))))
}

/// Events to append outside of a turn.
pub(crate) struct Append {
    pub(crate) key: ExecutionKey,
    pub(crate) events: Vec<HistoryRow>,
}

/// Appends events outside of a turn.
pub(crate) fn append(tx: &mut Transaction<'_>, Append { key, events }: &Append) -> Result<()> {
    let &ExecutionKey { ref instance, execution_id } = key;
    commit::insert_events(tx.db, instance, execution_id, events)?;
    if let Some(last) = events.iter().map(|event| event.event_id).max() {
        let raised = (instance, id_column("execution id", execution_id)?, id_column("event id", last)?);
        tx.db.run(sql::RAISE_LAST_EVENT, raised)?;
    }
    Ok(())
}

pub(crate) fn outcome(db: &Db, instance: &str) -> Result<Option<InstanceOutcome>> {
    db.one(sql::OUTCOME, [instance], |row| {
        let terminal: Option<String> = row.get(3)?;
        Ok(InstanceOutcome {
            execution_id: unsigned(row, 0)?,
            status: row.get(1)?,
            output: row.get(2)?,
            failure: terminal.as_deref().and_then(rows::failure),
            custom_status: row.get(4)?,
            custom_status_version: unsigned(row, 5)?,
        })
    })
}

/// The custom status of an instance and its version, if the version is above the given one.
pub(crate) fn custom_status(
    db: &Db,
    (instance, last_seen_version): &(String, u64),
) -> Result<Option<(Option<String>, u64)>> {
    let newer_than = (instance, column(*last_seen_version));
    db.one(sql::CUSTOM_STATUS, newer_than, |row| Ok((row.get(0)?, unsigned(row, 1)?)))
}

pub(crate) fn stats(db: &Db, instance: &str) -> Result<Option<SystemStats>> {
    let sizes = db.one(sql::INSTANCE_STATS, [instance], |row| Ok((unsigned(row, 0)?, unsigned(row, 1)?)))?;
    let Some((history_event_count, history_size_bytes)) = sizes else { return Ok(None) };
    let first: Option<String> = db.one(sql::FIRST_EVENT, [instance], |row| row.get(0))?;
    let carried = first.map(|text| rows::carried_messages(instance, &text)).transpose();
    let queue_pending_count = carried.map_err(|details| SqliteError::Damaged { details })?.unwrap_or(0);
    let kv = db.one(sql::KV_STATS, [instance], |row| Ok((unsigned(row, 0)?, unsigned(row, 1)?)))?;
    let (kv_user_key_count, kv_total_value_bytes) = kv.unwrap_or_default();
    Ok(Some(SystemStats {
        history_event_count,
        history_size_bytes,
        queue_pending_count,
        kv_user_key_count,
        kv_total_value_bytes,
    }))
}
