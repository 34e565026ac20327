//! Exports and imports of instances. An import runs on a connection of its own, outside of the lanes, as a reset does.

use crate::PostgresError;
use crate::db::{Db, ONLY, Param, Result, cell, column, id_column, key_column, text};
use crate::text::{owned, owned_option, read};
use outlast_provider::ExportOutcome;
use outlast_provider_kit::ImportRows;
use outlast_provider_kit::pin::{PinColumns, sort_key};
use outlast_provider_kit::transfer::{ExportRow, exported, is_json_part};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

/// All rows of an instance.
pub(crate) async fn export(db: &Db, instance: &str) -> Result<ExportOutcome> {
    let id = owned(instance);
    let rows = db.all(&db.statements.export_instance, &[(&id, Type::TEXT)]).await?;
    let rows = rows.iter().map(export_row).collect::<Result<Vec<_>>>()?;
    exported(instance, rows).map_err(|details| PostgresError::Damaged { details })
}

/// Reads a row of an export.
fn export_row(row: &Row) -> Result<ExportRow> {
    let part = i64::from(cell::<i32>(row, "part")?);
    let mut export = ExportRow { part, ..ExportRow::default() };
    for ((text, name), n) in export.texts.iter_mut().zip(["t1", "t2", "t3", "t4"]).zip(0..) {
        let stored: Option<String> = cell(row, name)?;
        *text = match n == 0 && is_json_part(part) {
            true => stored,
            false => stored.map(read),
        };
    }
    for (number, name) in export.numbers.iter_mut().zip(["n1", "n2", "n3", "n4"]) {
        *number = cell(row, name)?;
    }
    Ok(export)
}

/// Stores an instance, unless its id is taken; returns whether the instance is stored.
pub(crate) async fn import(db: &Db, rows: &ImportRows) -> Result<bool> {
    let columns = Columns::of(rows)?;
    match db.one(&db.statements.import, &columns.params()).await? {
        Some(row) => cell(&row, ONLY),
        None => Err(PostgresError::Damaged { details: "import_1 answered nothing".to_string() }),
    }
}

/// Ids without an instance for which messages wait.
pub(crate) async fn unstarted(db: &Db, after: Option<&str>, limit: usize) -> Result<Vec<String>> {
    let (after, limit) = (owned(after.unwrap_or("")), column(limit as u64));
    let rows = db.all(&db.statements.list_unstarted, &[(&after, Type::TEXT), (&limit, Type::INT8)]).await?;
    rows.iter().map(|row| text(row, ONLY)).collect()
}

#[derive(Default)]
struct Instance {
    name: Option<String>,
    version: Option<String>,
    parent: Option<String>,
    custom_status: Option<String>,
    current: Option<i64>,
    status_version: Option<i64>,
    created: Option<i64>,
    updated: Option<i64>,
}

#[derive(Default)]
struct Executions {
    execution: Vec<i64>,
    status: Vec<String>,
    output: Vec<Option<String>>,
    started: Vec<i64>,
    completed: Vec<Option<i64>>,
    pin: Vec<Option<String>>,
    pin_key: Vec<Option<String>>,
    last: Vec<i64>,
    terminal: Vec<Option<i64>>,
}

#[derive(Default)]
struct Events {
    execution: Vec<i64>,
    event: Vec<i64>,
    kind: Vec<&'static str>,
    data: Vec<String>,
}

#[derive(Default)]
struct Keys {
    key: Vec<String>,
    value: Vec<Option<String>>,
    at: Vec<i64>,
}

#[derive(Default)]
struct Messages {
    item: Vec<String>,
    available: Vec<i64>,
    visible: Vec<i64>,
    attempts: Vec<i32>,
    begins: Vec<bool>,
}

#[derive(Default)]
struct Activities {
    item: Vec<String>,
    execution: Vec<i64>,
    activity: Vec<i64>,
    session: Vec<Option<String>>,
    tag: Vec<Option<String>>,
    visible: Vec<i64>,
    attempts: Vec<i32>,
    failures: Vec<i32>,
    error: Vec<Option<String>>,
}

#[derive(Default)]
struct Held {
    kind: Option<String>,
    actor: Option<String>,
    reason: Option<String>,
    at: Option<i64>,
}

/// The parameters of `import_1`, and the keys of messages.
struct Columns {
    id: String,
    instance: Instance,
    executions: Executions,
    events: Events,
    keys: Keys,
    changed: Keys,
    messages: Messages,
    activities: Activities,
    held: Held,
    audit: [String; 5],
    request: Option<String>,
    message_keys: Vec<String>,
}

impl Columns {
    fn of(rows: &ImportRows) -> Result<Self> {
        let audit = &rows.audit;
        let texts = [&audit.actor, &audit.action, &audit.target, &audit.reason, &audit.result];
        let (executions, events) = executions(rows)?;
        Ok(Self {
            id: owned(&rows.instance),
            instance: instance(rows)?,
            executions,
            events,
            keys: keys(rows.keys.iter().map(|key| (&key.key, Some(&key.value), key.last_updated_at_ms))),
            changed: keys(
                rows.changed_keys.iter().map(|key| (&key.key, key.value.as_ref(), key.last_updated_at_ms)),
            ),
            messages: messages(rows),
            activities: activities(rows)?,
            held: rows.hold.as_ref().map_or_else(Held::default, |hold| Held {
                kind: Some(owned(&hold.kind)),
                actor: Some(owned(&hold.actor)),
                reason: Some(owned(&hold.reason)),
                at: Some(column(hold.held_at_ms)),
            }),
            audit: texts.map(|text| owned(text)),
            request: owned_option(audit.request.as_ref()),
            message_keys: rows.message_keys.iter().map(|key| owned(key)).collect(),
        })
    }

    fn params(&self) -> Vec<Param<'_>> {
        let (instance, executions, events) = (&self.instance, &self.executions, &self.events);
        let (messages, activities, held) = (&self.messages, &self.activities, &self.held);
        let [actor, action, target, reason, result] = &self.audit;
        let mut params: Vec<Param<'_>> = vec![
            (&self.id, Type::TEXT),
            (&instance.name, Type::TEXT),
            (&instance.version, Type::TEXT),
            (&instance.parent, Type::TEXT),
            (&instance.custom_status, Type::TEXT),
            (&instance.current, Type::INT8),
            (&instance.status_version, Type::INT8),
            (&instance.created, Type::INT8),
            (&instance.updated, Type::INT8),
            (&executions.execution, Type::INT8_ARRAY),
            (&executions.status, Type::TEXT_ARRAY),
            (&executions.output, Type::TEXT_ARRAY),
            (&executions.started, Type::INT8_ARRAY),
            (&executions.completed, Type::INT8_ARRAY),
            (&executions.pin, Type::TEXT_ARRAY),
            (&executions.pin_key, Type::TEXT_ARRAY),
            (&executions.last, Type::INT8_ARRAY),
            (&executions.terminal, Type::INT8_ARRAY),
            (&events.execution, Type::INT8_ARRAY),
            (&events.event, Type::INT8_ARRAY),
            (&events.kind, Type::TEXT_ARRAY),
            (&events.data, Type::TEXT_ARRAY),
        ];
        for keys in [&self.keys, &self.changed] {
            params.extend::<[Param<'_>; 3]>([
                (&keys.key, Type::TEXT_ARRAY),
                (&keys.value, Type::TEXT_ARRAY),
                (&keys.at, Type::INT8_ARRAY),
            ]);
        }
        params.extend::<[Param<'_>; 5]>([
            (&messages.item, Type::TEXT_ARRAY),
            (&messages.available, Type::INT8_ARRAY),
            (&messages.visible, Type::INT8_ARRAY),
            (&messages.attempts, Type::INT4_ARRAY),
            (&messages.begins, Type::BOOL_ARRAY),
        ]);
        params.extend::<[Param<'_>; 9]>([
            (&activities.item, Type::TEXT_ARRAY),
            (&activities.execution, Type::INT8_ARRAY),
            (&activities.activity, Type::INT8_ARRAY),
            (&activities.session, Type::TEXT_ARRAY),
            (&activities.tag, Type::TEXT_ARRAY),
            (&activities.visible, Type::INT8_ARRAY),
            (&activities.attempts, Type::INT4_ARRAY),
            (&activities.failures, Type::INT4_ARRAY),
            (&activities.error, Type::TEXT_ARRAY),
        ]);
        params.extend::<[Param<'_>; 11]>([
            (&held.kind, Type::TEXT),
            (&held.actor, Type::TEXT),
            (&held.reason, Type::TEXT),
            (&held.at, Type::INT8),
            (actor, Type::TEXT),
            (action, Type::TEXT),
            (target, Type::TEXT),
            (reason, Type::TEXT),
            (&self.request, Type::TEXT),
            (result, Type::TEXT),
            (&self.message_keys, Type::TEXT_ARRAY),
        ]);
        params
    }
}

fn instance(rows: &ImportRows) -> Result<Instance> {
    let Some(row) = &rows.row else { return Ok(Instance::default()) };
    Ok(Instance {
        name: Some(owned(&row.orchestration_name)),
        version: Some(owned(&row.orchestration_version)),
        parent: owned_option(row.parent_instance_id.as_ref()),
        custom_status: owned_option(row.custom_status.as_ref()),
        current: Some(id_column("execution id", row.current_execution_id)?),
        status_version: Some(column(row.custom_status_version)),
        created: Some(column(row.created_at)),
        updated: Some(column(row.updated_at)),
    })
}

fn executions(rows: &ImportRows) -> Result<(Executions, Events)> {
    let (mut executions, mut events) = (Executions::default(), Events::default());
    for row in &rows.executions {
        let execution = id_column("execution id", row.execution_id)?;
        let pin = row.pin.as_ref().map(|version| PinColumns::of(version).version());
        executions.execution.push(execution);
        executions.status.push(owned(&row.status));
        executions.output.push(owned_option(row.output.as_ref()));
        executions.started.push(column(row.started_at));
        executions.completed.push(row.completed_at.map(column));
        executions.pin_key.push(pin.as_ref().map(sort_key));
        executions.pin.push(pin.map(|version| version.to_string()));
        executions.last.push(id_column("event id", row.last_event_id())?);
        executions.terminal.push(row.terminal_event_id.map(column));
        for event in &row.history {
            events.execution.push(execution);
            events.event.push(id_column("event id", event.event_id)?);
            events.kind.push(event.event_type);
            events.data.push(event.event_data.clone());
        }
    }
    Ok((executions, events))
}

fn keys<'a>(pairs: impl Iterator<Item = (&'a String, Option<&'a String>, u64)>) -> Keys {
    let mut keys = Keys::default();
    for (key, value, at) in pairs {
        keys.key.push(owned(key));
        keys.value.push(owned_option(value));
        keys.at.push(column(at));
    }
    keys
}

fn messages(rows: &ImportRows) -> Messages {
    let mut messages = Messages::default();
    for message in &rows.messages {
        messages.item.push(message.row.work_item.clone());
        messages.available.push(column(message.available_at));
        messages.visible.push(column(message.visible_at));
        messages.attempts.push(count(message.attempt_count));
        messages.begins.push(message.row.begins);
    }
    messages
}

fn activities(rows: &ImportRows) -> Result<Activities> {
    let mut activities = Activities::default();
    for activity in &rows.activities {
        let row = &activity.row;
        activities.item.push(row.work_item.clone());
        activities.execution.push(id_column("execution id", row.execution_id)?);
        activities.activity.push(key_column(row.activity_id));
        activities.session.push(owned_option(row.session_id.as_ref()));
        activities.tag.push(owned_option(row.tag.as_ref()));
        activities.visible.push(column(activity.visible_at));
        activities.attempts.push(count(activity.attempt_count));
        activities.failures.push(count(activity.failures));
        activities.error.push(owned_option(activity.last_error.as_ref()));
    }
    Ok(activities)
}

/// A number of deliveries, at most the largest that a column can hold.
fn count(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}
