//! Committing a turn, giving it back, keeping its lease; enqueueing.

use crate::command::Cx;
use crate::db::{Result, column, id_column};
use crate::{SqliteError, history, kv, sql};
use outlast_provider::saturating_ms;
use outlast_provider_kit::pin::PinColumns;
use outlast_provider_kit::plan::visible_at;
use outlast_provider_kit::{CommitPlan, MessageRow, WorkRow, invalid_token, is_final, key_of};
use std::time::Duration;

/// Commits a turn: the fence first, then everything that the plan says.
pub(crate) fn commit(cx: &mut Cx<'_>, token: &str, plan: &CommitPlan) -> Result<()> {
    let now = column(cx.now);
    let Some(instance) = key_of(token) else { return refused(token) };
    if cx.db.run(sql::UNLOCK_LIVE_INSTANCE, (instance, token, now))? != 1 {
        return refused(token);
    }
    cx.db.run(sql::DELETE_TAGGED_MESSAGES, (instance, token))?;
    record_instance(cx, instance, plan)?;
    let kv_dirty = record_execution(cx, instance, plan)?;
    history::insert(cx.db, instance, plan.execution_id, &plan.history)?;
    if let Some(status) = &plan.custom_status {
        cx.db.run(sql::SET_CUSTOM_STATUS, (instance, status))?;
    }
    kv::apply(cx, instance, &plan.kv)?;
    if plan.ends_execution() && kv_dirty {
        kv::merge(cx.db, instance)?;
    }
    for row in &plan.work {
        enqueue_work(cx, row)?;
    }
    for activity in &plan.cancelled {
        let execution = id_column("execution id", activity.execution_id)?;
        let id = id_column("activity id", activity.activity_id)?;
        cx.db.run(sql::CANCEL_ACTIVITY, (&activity.instance, execution, id))?;
    }
    for row in &plan.messages {
        enqueue_message(cx, row, None)?;
    }
    // Messages that came after the fetch can be fetched now.
    cx.news.turns = true;
    Ok(())
}

fn record_instance(cx: &Cx<'_>, instance: &str, plan: &CommitPlan) -> Result<()> {
    let execution = id_column("execution id", plan.execution_id)?;
    let now = column(cx.now);
    let metadata = &plan.metadata;
    match (&metadata.orchestration_name, &metadata.orchestration_version) {
        (Some(name), Some(version)) => {
            let row = (instance, name, version, execution, &metadata.parent_instance_id, now);
            cx.db.run(sql::UPSERT_INSTANCE, row)?;
        }
        _ => {
            cx.db.run(sql::TOUCH_INSTANCE, (instance, execution, now))?;
        }
    }
    Ok(())
}

/// Creates or updates the execution; says whether key-value changes wait to be merged.
fn record_execution(cx: &Cx<'_>, instance: &str, plan: &CommitPlan) -> Result<bool> {
    let execution = id_column("execution id", plan.execution_id)?;
    let now = column(cx.now);
    let metadata = &plan.metadata;
    let ended_at = metadata.status.as_deref().filter(|status| is_final(status)).map(|_| now);
    let output = metadata.status.as_ref().and(metadata.output.as_ref());
    let last_event = id_column("event id", plan.last_event_id().unwrap_or(0))?;
    let terminal = plan.terminal_event_id.map(column);
    let row = (
        instance,
        execution,
        &metadata.status,
        output,
        now,
        ended_at,
        last_event,
        terminal,
        !plan.kv.is_empty(),
    );
    let dirty = cx.db.one(sql::UPSERT_EXECUTION, row, |row| row.get::<_, bool>(0))?;
    if let Some(pin) = metadata.pinned_duroxide_version.as_ref().map(PinColumns::of) {
        let pinned = (instance, execution, pin.major, pin.minor, pin.patch, pin.pre);
        cx.db.run_exactly(1, "pinning a version", sql::PIN_EXECUTION, pinned)?;
    }
    dirty.ok_or_else(|| SqliteError::Damaged { details: "an execution was not stored".to_string() })
}

pub(crate) fn enqueue_message(cx: &mut Cx<'_>, row: &MessageRow, delay: Option<Duration>) -> Result<()> {
    let visible_at = visible_at(row, cx.now, delay);
    cx.news.message_at(visible_at, cx.now);
    cx.db.run(sql::ENQUEUE_MESSAGE, (&row.instance_id, &row.work_item, column(visible_at)))?;
    Ok(())
}

pub(crate) fn enqueue_work(cx: &mut Cx<'_>, row: &WorkRow) -> Result<()> {
    cx.news.work = true;
    let columns = (
        &row.work_item,
        column(cx.now),
        &row.instance_id,
        id_column("execution id", row.execution_id)?,
        id_column("activity id", row.activity_id)?,
        &row.session_id,
        &row.tag,
    );
    cx.db.run(sql::ENQUEUE_WORK, columns)?;
    Ok(())
}

/// Gives a turn back. A token whose lease is over but that nobody replaced is still good for this.
pub(crate) fn abandon(cx: &mut Cx<'_>, token: &str, delay: Option<Duration>, ignore_attempt: bool) -> Result<()> {
    let Some(instance) = key_of(token) else { return refused(token) };
    if cx.db.run(sql::UNLOCK_INSTANCE, (instance, token))? != 1 {
        return refused(token);
    }
    let visible_at = delay.map(|delay| cx.now.saturating_add(saturating_ms(delay)));
    let given_back = (instance, token, visible_at.map(column), i64::from(ignore_attempt));
    cx.db.run(sql::ABANDON_MESSAGES, given_back)?;
    cx.news.turns = true;
    if let Some(at) = visible_at {
        cx.news.available_at(at);
    }
    Ok(())
}

pub(crate) fn renew(cx: &mut Cx<'_>, token: &str, extend_for: Duration) -> Result<()> {
    let Some(instance) = key_of(token) else { return refused(token) };
    let until = column(cx.now.saturating_add(saturating_ms(extend_for)));
    if cx.db.run(sql::RENEW_INSTANCE, (instance, token, until, column(cx.now)))? != 1 {
        return refused(token);
    }
    cx.db.run(sql::RENEW_MESSAGES, (instance, token, until))?;
    Ok(())
}

pub(crate) fn refused<T>(token: &str) -> Result<T> {
    Err(SqliteError::Refused(invalid_token(token)))
}
