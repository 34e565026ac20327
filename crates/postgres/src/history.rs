//! Reading and appending events.

use crate::db::{Db, ONLY, Param, Result, cell, column, id_column, unsigned};
use crate::deadline::within;
use crate::text::owned;
use crate::{PostgresError, kv};
use outlast_model::{Event, SystemStats, json};
use outlast_provider::{BoundedTurn, HistoryBound, LoadedTurn, OversizedTurn};
use outlast_provider_kit::plan::{HistoryRow, duplicate_event};
use outlast_provider_kit::rows;
use tokio_postgres::types::Type;

/// The highest execution id of an instance, 1 if no execution is stored.
pub(crate) async fn newest_execution(db: &Db, instance: &str) -> Result<u64> {
    let instance = owned(instance);
    let row = db.one(&db.statements.newest_execution, &[(&instance, Type::TEXT)]).await?;
    row.map_or(Ok(1), |row| unsigned(&row, ONLY))
}

/// The id of the last event of an execution, 0 if no event is stored.
pub(crate) async fn last_event_id(db: &Db, instance: &str, execution_id: u64) -> Result<u64> {
    let (instance, execution) = (owned(instance), column(execution_id));
    let key: [Param<'_>; 2] = [(&instance, Type::TEXT), (&execution, Type::INT8)];
    let row = db.one(&db.statements.last_event, &key).await?;
    row.map_or(Ok(0), |row| unsigned(&row, ONLY))
}

/// The stored events of an execution, as text.
pub(crate) async fn texts(db: &Db, instance: &str, execution_id: u64) -> Result<Vec<String>> {
    let (instance, execution) = (owned(instance), column(execution_id));
    let key: [Param<'_>; 2] = [(&instance, Type::TEXT), (&execution, Type::INT8)];
    let rows = db.all(&db.statements.read_history, &key).await?;
    db.counters.history_rows_read.add(rows.len());
    rows.iter().map(|row| cell(row, ONLY)).collect()
}

/// The events of an execution, or of the newest execution. An event that does not decode is an error.
pub(crate) async fn read(db: &Db, instance: &str, execution_id: Option<u64>) -> Result<Vec<Event>> {
    let (execution_id, texts) = match execution_id {
        Some(id) => (id, texts(db, instance, id).await?),
        None => {
            let id = owned(instance);
            let rows = db.all(&db.statements.read_newest_history, &[(&id, Type::TEXT)]).await?;
            db.counters.history_rows_read.add(rows.len());
            let newest = rows.first().map_or(Ok(1), |row| unsigned(row, "execution_id"))?;
            (newest, rows.iter().map(|row| cell(row, "event_data")).collect::<Result<Vec<String>>>()?)
        }
    };
    rows::decode_history(instance, execution_id, texts.iter().map(String::as_str))
        .map_err(|details| PostgresError::Damaged { details })
}

/// Some events of an execution after an event, ascending. An event that does not decode is an error.
pub(crate) async fn page(
    db: &Db,
    instance: &str,
    execution_id: u64,
    after: u64,
    limit: usize,
) -> Result<Vec<Event>> {
    let (id, execution, after) = (owned(instance), column(execution_id), column(after));
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let page: [Param<'_>; 4] =
        [(&id, Type::TEXT), (&execution, Type::INT8), (&after, Type::INT8), (&limit, Type::INT8)];
    let rows = db.all(&db.statements.history_page, &page).await?;
    db.counters.history_rows_read.add(rows.len());
    let texts = rows.iter().map(|row| cell::<&str>(row, "event_data")).collect::<Result<Vec<_>>>()?;
    rows::decode_history(instance, execution_id, texts).map_err(|details| PostgresError::Damaged { details })
}

pub(crate) async fn load_turn(db: &Db, instance: &str, execution_id: u64) -> Result<LoadedTurn> {
    let texts = texts(db, instance, execution_id).await?;
    let kv_snapshot = kv::snapshot(db, instance).await?;
    Ok(rows::decode_turn(instance, execution_id, texts.iter().map(String::as_str), kv_snapshot))
}

/// The largest row of an outline. The events of an outline hold an input or an output, and neither is this large.
const LARGEST_OUTLINE: i64 = 64 << 20;

/// The number of events that one read returns while it is unknown whether the history exceeds the bound.
const PAGE: i64 = 1_000;

/// The largest history, in bytes, that is read in one round trip together with its size.
const SMALL_BYTES: i64 = 1 << 20;

/// [`load_turn`] that stops at the bound. It checks the stored sizes before it reads payloads, and the decoded sizes while it
/// reads: a text with JSON escapes is stored with more bytes than it has. A small history takes one round trip.
pub(crate) async fn load_turn_within(
    db: &Db,
    instance: &str,
    execution_id: u64,
    bound: HistoryBound,
) -> Result<BoundedTurn> {
    let (id, execution) = (owned(instance), id_column("execution id", execution_id)?);
    let small: [Param<'_>; 4] =
        [(&id, Type::TEXT), (&execution, Type::INT8), (&PAGE, Type::INT8), (&SMALL_BYTES, Type::INT8)];
    let Some(row) = db.one(&db.statements.small_turn, &small).await? else {
        return Err(PostgresError::Damaged { details: "the size of a history was not answered".to_string() });
    };
    let (events, stored_bytes) = (unsigned(&row, "events")?, unsigned(&row, "bytes")?);
    let kv_snapshot = kv::snapshot_of(&row)?;
    db.counters.kv_rows_read.add(kv_snapshot.len());
    let undecodable = |reason: String, kv_snapshot| {
        let reason = rows::reason(instance, execution_id, &reason);
        BoundedTurn::Whole(LoadedTurn { history: Vec::new(), kv_snapshot, history_error: Some(reason) })
    };
    let texts: Option<Vec<&str>> = cell(&row, "texts")?;
    let read = match (bound.may_hold_stored(events, stored_bytes), texts) {
        (false, _) => Ok(None),
        (true, Some(texts)) => {
            db.counters.history_rows_read.add(texts.len());
            let mut events = Within { bound, history: Vec::new(), bytes: 0 };
            let is_over = texts.into_iter().map(|text| events.add(text)).find(|added| *added != Ok(true));
            is_over.unwrap_or(Ok(true)).map(|is_within| is_within.then_some(events.history))
        }
        (true, None) => read_within(db, &id, execution, bound).await?,
    };
    match read {
        Ok(Some(history)) => {
            return Ok(BoundedTurn::Whole(LoadedTurn { history, kv_snapshot, history_error: None }));
        }
        Ok(None) => {}
        Err(reason) => return Ok(undecodable(reason, kv_snapshot)),
    }
    let outline: [Param<'_>; 3] =
        [(&id, Type::TEXT), (&execution, Type::INT8), (&LARGEST_OUTLINE, Type::INT8)];
    let rows = db.all(&db.statements.history_outline, &outline).await?;
    db.counters.history_rows_read.add(rows.len());
    let texts = rows.iter().map(|row| cell::<&str>(row, ONLY)).collect::<Result<Vec<_>>>()?;
    match texts.into_iter().map(json::decode_event).collect::<std::result::Result<Vec<_>, _>>() {
        Ok(outline) => {
            Ok(BoundedTurn::Oversized(OversizedTurn { events, stored_bytes, outline, kv_snapshot }))
        }
        Err(error) => Ok(undecodable(error.to_string(), kv_snapshot)),
    }
}

/// The events of a history, as long as they are within a bound.
struct Within {
    bound: HistoryBound,
    history: Vec<Event>,
    bytes: usize,
}

impl Within {
    /// Adds an event. Returns false if the events exceed the bound, and an error if the event does not decode.
    fn add(&mut self, text: &str) -> std::result::Result<bool, String> {
        let event = json::decode_event(text).map_err(|error| error.to_string())?;
        self.bytes = self.bytes.saturating_add(event.text_bytes());
        self.history.push(event);
        Ok(self.bound.holds(self.history.len(), self.bytes))
    }
}

/// Reads events page by page: `None` as soon as the events exceed the bound, an error if an event does not decode.
async fn read_within(
    db: &Db,
    instance: &String,
    execution: i64,
    bound: HistoryBound,
) -> Result<std::result::Result<Option<Vec<Event>>, String>> {
    let (mut events, mut after) = (Within { bound, history: Vec::new(), bytes: 0 }, i64::MIN);
    loop {
        let page: [Param<'_>; 4] =
            [(instance, Type::TEXT), (&execution, Type::INT8), (&after, Type::INT8), (&PAGE, Type::INT8)];
        let rows = db.all(&db.statements.history_page, &page).await?;
        db.counters.history_rows_read.add(rows.len());
        for row in &rows {
            after = cell(row, "event_id")?;
            match events.add(cell(row, "event_data")?) {
                Ok(true) => {}
                Ok(false) => return Ok(Ok(None)),
                Err(reason) => return Ok(Err(reason)),
            }
        }
        if rows.len() < usize::try_from(PAGE).unwrap_or(usize::MAX) {
            return Ok(Ok(Some(events.history)));
        }
    }
}

/// The first of the given events that is already stored.
pub(crate) async fn existing(db: &Db, instance: &str, execution_id: u64, ids: &[u64]) -> Result<Option<u64>> {
    let (instance, execution) = (owned(instance), column(execution_id));
    let ids: Vec<i64> = ids.iter().map(|id| column(*id)).collect();
    let wanted: [Param<'_>; 3] =
        [(&instance, Type::TEXT), (&execution, Type::INT8), (&ids, Type::INT8_ARRAY)];
    match db.one(&db.statements.existing_event, &wanted).await? {
        Some(row) => Ok(cell::<Option<i64>>(&row, ONLY)?.and_then(|id| u64::try_from(id).ok())),
        None => Ok(None),
    }
}

/// Appends events outside of a turn.
pub(crate) async fn append(db: &Db, instance: &str, execution_id: u64, events: &[HistoryRow]) -> Result<()> {
    if events.is_empty() {
        return Ok(());
    }
    let (id, execution) = (owned(instance), id_column("execution id", execution_id)?);
    let ids =
        events.iter().map(|event| id_column("event id", event.event_id)).collect::<Result<Vec<i64>>>()?;
    let types: Vec<&str> = events.iter().map(|event| event.event_type).collect();
    let texts: Vec<&str> = events.iter().map(|event| event.event_data.as_str()).collect();
    let params: [Param<'_>; 5] = [
        (&id, Type::TEXT),
        (&execution, Type::INT8),
        (&ids, Type::INT8_ARRAY),
        (&types, Type::TEXT_ARRAY),
        (&texts, Type::TEXT_ARRAY),
    ];
    let client = db.connection().await?;
    db.counters.round_trips.add(1);
    let asked = client.query_typed(&db.statements.append, &params);
    match within(db, &client.closer(), db.deadline, asked).await {
        Ok(_) => Ok(()),
        Err(error @ (PostgresError::Silent { .. } | PostgresError::Disconnected { .. })) => {
            Err(PostgresError::Unknown { instance: instance.to_string(), details: error.to_string() })
        }
        Err(PostgresError::Other { code, .. })
            if code == tokio_postgres::error::SqlState::UNIQUE_VIOLATION.code() =>
        {
            drop(client);
            let ids: Vec<u64> = events.iter().map(|event| event.event_id).collect();
            let first = existing(db, instance, execution_id, &ids).await?;
            Err(PostgresError::Refused(duplicate_event(first.unwrap_or(0))))
        }
        Err(error) => Err(error),
    }
}

/// The sizes of an instance; `None` if the instance does not exist.
pub(crate) async fn stats(db: &Db, instance: &str) -> Result<Option<SystemStats>> {
    let id = owned(instance);
    let Some(row) = db.one(&db.statements.instance_stats, &[(&id, Type::TEXT)]).await? else {
        return Ok(None);
    };
    let first: Option<&str> = cell(&row, "first_event")?;
    let carried = first.map(|text| rows::carried_messages(instance, text)).transpose();
    let queue_pending_count = carried.map_err(|details| PostgresError::Damaged { details })?.unwrap_or(0);
    let (kv_user_key_count, kv_total_value_bytes) = kv::stats(db, instance).await?;
    Ok(Some(SystemStats {
        history_event_count: unsigned(&row, "events")?,
        history_size_bytes: unsigned(&row, "bytes")?,
        queue_pending_count,
        kv_user_key_count,
        kv_total_value_bytes,
    }))
}
