//! Resets and forks of instances. The statement runs on a connection of its own, outside of the lanes, as a hold does.

use crate::PostgresError;
use crate::db::{Db, Param, Result, cell, column, id_column, key_column, unsigned};
use crate::functions::{RESET_CHANGED, RESET_DONE, RESET_IN_TURN, RESET_NOT_FOUND, RESET_TAKEN};
use crate::text::{owned, owned_option};
use outlast_model::defect::{self, Defect};
use outlast_provider::ResetOutcome;
use outlast_provider_kit::pin::{PinColumns, sort_key};
use outlast_provider_kit::{KvChange, ResetRows};
use tokio_postgres::types::Type;

/// Begins the new execution, unless the source has changed, a turn of it runs, or the id of a fork is taken.
pub(crate) async fn instance(db: &Db, rows: &ResetRows) -> Result<ResetOutcome> {
    let columns = Columns::of(rows)?;
    let Some(row) = db.one(&db.statements.reset, &columns.params()).await? else {
        return Ok(ResetOutcome::NotFound);
    };
    match cell::<i32>(&row, "o_answer")? {
        RESET_DONE => Ok(ResetOutcome::Done),
        RESET_IN_TURN => Ok(ResetOutcome::InTurn { locked_until_ms: unsigned(&row, "o_until")? }),
        RESET_CHANGED => Ok(ResetOutcome::Changed),
        RESET_TAKEN => Ok(ResetOutcome::Taken),
        RESET_NOT_FOUND => Ok(ResetOutcome::NotFound),
        other => Err(PostgresError::Damaged { details: format!("reset_1 answered {other}") }),
    }
}

/// The end of the execution of the source.
#[derive(Default)]
struct End {
    event: Option<i64>,
    kind: Option<&'static str>,
    data: Option<String>,
    output: Option<String>,
}

#[derive(Default)]
struct Events {
    id: Vec<i64>,
    kind: Vec<&'static str>,
    data: Vec<String>,
}

#[derive(Default)]
struct Activities {
    item: Vec<String>,
    instance: Vec<String>,
    execution: Vec<i64>,
    activity: Vec<i64>,
    session: Vec<Option<String>>,
    tag: Vec<Option<String>>,
}

#[derive(Default)]
struct Cancelled {
    instance: Vec<String>,
    execution: Vec<i64>,
    activity: Vec<i64>,
}

#[derive(Default)]
struct Messages {
    instance: Vec<String>,
    item: Vec<String>,
    not_before: Vec<i64>,
    begins: Vec<bool>,
}

#[derive(Default)]
struct Keys {
    key: Vec<String>,
    value: Vec<Option<String>>,
    at: Vec<Option<i64>>,
}

/// The parameters of `reset_1`.
struct Columns {
    source: String,
    execution: i64,
    last_event: i64,
    target: String,
    end: End,
    next: i64,
    name: Option<String>,
    version: Option<String>,
    parent: Option<String>,
    pin: Option<String>,
    pin_key: Option<String>,
    custom_status: Option<String>,
    events: Events,
    activities: Activities,
    cancelled: Cancelled,
    messages: Messages,
    first: Vec<String>,
    first_at: i64,
    base: Keys,
    changed: Keys,
    audit: [String; 5],
    request: Option<String>,
}

impl Columns {
    fn of(rows: &ResetRows) -> Result<Self> {
        let (plan, audit) = (&rows.begin, &rows.audit);
        let metadata = &plan.metadata;
        let pin = metadata.pinned_duroxide_version.as_ref().map(|version| PinColumns::of(version).version());
        let texts = [&audit.actor, &audit.action, &audit.target, &audit.reason, &audit.result];
        Ok(Self {
            source: owned(&rows.source),
            execution: id_column("execution id", rows.execution_id)?,
            last_event: id_column("event id", rows.last_event_id)?,
            target: owned(&rows.target),
            end: end(rows)?,
            next: id_column("execution id", plan.execution_id)?,
            name: owned_option(metadata.orchestration_name.as_ref()),
            version: owned_option(metadata.orchestration_version.as_ref()),
            parent: owned_option(metadata.parent_instance_id.as_ref()),
            pin_key: pin.as_ref().map(sort_key),
            pin: pin.map(|version| version.to_string()),
            custom_status: owned_option(plan.custom_status.as_ref().and_then(Option::as_ref)),
            events: events(rows)?,
            activities: activities(rows)?,
            cancelled: cancelled(rows)?,
            messages: messages(rows),
            first: rows.first_messages.iter().map(|row| row.work_item.clone()).collect(),
            first_at: column(rows.first_available_ms),
            base: base_keys(rows),
            changed: changed_keys(rows),
            audit: texts.map(|text| owned(text)),
            request: owned_option(audit.request.as_ref()),
        })
    }

    fn params(&self) -> Vec<Param<'_>> {
        let (end, events, activities) = (&self.end, &self.events, &self.activities);
        let [actor, action, audited, reason, result] = &self.audit;
        let mut params: Vec<Param<'_>> = vec![
            (&self.source, Type::TEXT),
            (&self.execution, Type::INT8),
            (&self.last_event, Type::INT8),
            (&self.target, Type::TEXT),
            (&end.event, Type::INT8),
            (&end.kind, Type::TEXT),
            (&end.data, Type::TEXT),
            (&end.output, Type::TEXT),
            (&self.next, Type::INT8),
            (&self.name, Type::TEXT),
            (&self.version, Type::TEXT),
            (&self.parent, Type::TEXT),
            (&self.pin, Type::TEXT),
            (&self.pin_key, Type::TEXT),
            (&self.custom_status, Type::TEXT),
            (&events.id, Type::INT8_ARRAY),
            (&events.kind, Type::TEXT_ARRAY),
            (&events.data, Type::TEXT_ARRAY),
            (&activities.item, Type::TEXT_ARRAY),
            (&activities.instance, Type::TEXT_ARRAY),
            (&activities.execution, Type::INT8_ARRAY),
            (&activities.activity, Type::INT8_ARRAY),
            (&activities.session, Type::TEXT_ARRAY),
            (&activities.tag, Type::TEXT_ARRAY),
        ];
        params.extend::<[Param<'_>; 7]>([
            (&self.cancelled.instance, Type::TEXT_ARRAY),
            (&self.cancelled.execution, Type::INT8_ARRAY),
            (&self.cancelled.activity, Type::INT8_ARRAY),
            (&self.messages.instance, Type::TEXT_ARRAY),
            (&self.messages.item, Type::TEXT_ARRAY),
            (&self.messages.not_before, Type::INT8_ARRAY),
            (&self.messages.begins, Type::BOOL_ARRAY),
        ]);
        params.extend::<[Param<'_>; 2]>([(&self.first, Type::TEXT_ARRAY), (&self.first_at, Type::INT8)]);
        for keys in [&self.base, &self.changed] {
            params.extend::<[Param<'_>; 3]>([
                (&keys.key, Type::TEXT_ARRAY),
                (&keys.value, Type::TEXT_ARRAY),
                (&keys.at, Type::INT8_ARRAY),
            ]);
        }
        params.extend::<[Param<'_>; 6]>([
            (actor, Type::TEXT),
            (action, Type::TEXT),
            (audited, Type::TEXT),
            (reason, Type::TEXT),
            (&self.request, Type::TEXT),
            (result, Type::TEXT),
        ]);
        params
    }
}

fn end(rows: &ResetRows) -> Result<End> {
    let Some(plan) = &rows.end else { return Ok(End::default()) };
    let Some(row) = plan.history.first() else { return Ok(End::default()) };
    Ok(End {
        event: Some(id_column("event id", row.event_id)?),
        kind: Some(row.event_type),
        data: Some(row.event_data.clone()),
        output: owned_option(plan.metadata.output.as_ref()),
    })
}

fn events(rows: &ResetRows) -> Result<Events> {
    let mut events = Events::default();
    for row in &rows.begin.history {
        events.id.push(id_column("event id", row.event_id)?);
        events.kind.push(row.event_type);
        events.data.push(row.event_data.clone());
    }
    Ok(events)
}

fn activities(rows: &ResetRows) -> Result<Activities> {
    let mut activities = Activities::default();
    for row in &rows.begin.activities {
        activities.item.push(row.work_item.clone());
        activities.instance.push(owned(&row.instance_id));
        activities.execution.push(id_column("execution id", row.execution_id)?);
        activities.activity.push(key_column(row.activity_id));
        activities.session.push(owned_option(row.session_id.as_ref()));
        activities.tag.push(owned_option(row.tag.as_ref()));
    }
    Ok(activities)
}

fn cancelled(rows: &ResetRows) -> Result<Cancelled> {
    let mut cancelled = Cancelled::default();
    if defect::is_on(Defect::ResetLeavesActivities) {
        return Ok(cancelled);
    }
    for activity in &rows.begin.cancelled {
        cancelled.instance.push(owned(&activity.instance));
        cancelled.execution.push(id_column("execution id", activity.execution_id)?);
        cancelled.activity.push(key_column(activity.activity_id));
    }
    Ok(cancelled)
}

fn messages(rows: &ResetRows) -> Messages {
    let mut messages = Messages::default();
    for row in &rows.begin.messages {
        messages.instance.push(owned(&row.instance_id));
        messages.item.push(row.work_item.clone());
        messages.not_before.push(column(row.not_before));
        messages.begins.push(row.begins);
    }
    messages
}

/// The keys with their values before the copied events.
fn base_keys(rows: &ResetRows) -> Keys {
    let mut keys = Keys::default();
    for change in &rows.keys {
        if let KvChange::Set { key, value, last_updated_at_ms } = change {
            keys.key.push(owned(key));
            keys.value.push(Some(owned(value)));
            keys.at.push(Some(column(*last_updated_at_ms)));
        }
    }
    keys
}

/// The changes of the copied events. A key that is removed has the time of the reset.
fn changed_keys(rows: &ResetRows) -> Keys {
    let mut keys = Keys::default();
    for (key, change) in rows.changed_keys() {
        keys.key.push(owned(key));
        keys.value.push(change.map(|(value, _)| owned(value)));
        keys.at.push(change.map(|(_, at)| column(at)));
    }
    keys
}
