//! Commits, abandons and renewals of turns.
//!
//! The end of a lease decides which message of the instance is ready. Fetches find instances by their ready messages.
//!
//! | event | ready afterwards |
//! |---|---|
//! | a message is stored | the message, unless its instance has a live lease, is held, or has a ready message that is visible as early |
//! | an instance is held | none |
//! | a lease covers messages | none of the covered messages |
//! | a lease or a hold is released, a lease is turned into a delay, or found expired | the first message of the instance |

use crate::db::{Db, Result, column, id_column, key_column, stored_time};
use crate::leased::{Abandon, Renew, TurnFacts};
use crate::park::FetchState;
use crate::transaction::Transaction;
use crate::watched::Committed;
use crate::{SqliteError, activity, kv, message, sql};
use outlast_model::defect::{self, Defect};
use outlast_provider::saturating_ms;
use outlast_provider_kit::pin::PinColumns;
use outlast_provider_kit::plan::{HistoryRow, duplicate_event};
use outlast_provider_kit::{CommitPlan, TurnAtFetch, Watches, invalid_token, is_final};
use rusqlite::ErrorCode;
use rusqlite::types::ValueRef;
use std::sync::Arc;

/// A turn to commit, with the token of its lease.
pub(crate) struct CommitTurn {
    pub(crate) token: String,
    pub(crate) plan: CommitPlan,
    pub(crate) watches: Arc<Watches>,
}

/// Commits a turn: releases its lease, deletes its messages, then stores the plan. Returns the time of the commit.
pub(crate) fn commit(tx: &mut Transaction<'_>, turn: &CommitTurn) -> Result<Committed<Option<u64>>> {
    let CommitTurn { token, plan, watches } = turn;
    let now = column(tx.now);
    let Some((facts, secret)) = TurnFacts::of(token) else { return refused(token) };
    let instance = facts.at_fetch.instance;
    let now = if defect::is_on(Defect::CommitAfterExpiry) { 0 } else { now };
    if tx.db.run(sql::UNLOCK_LIVE_INSTANCE, (instance, secret, now))? != 1 {
        return refused(token);
    }
    let consumed = (instance, secret, facts.covered_until());
    if facts.external_bytes > 0 {
        tx.db.run(sql::DELETE_COVERED_TEXTS, consumed)?;
    }
    tx.db.run_exactly(
        facts.at_fetch.messages,
        "consuming messages",
        sql::DELETE_COVERED_MESSAGES,
        consumed,
    )?;
    // Messages that were left behind, or that arrived after the fetch, can be fetched now.
    if !defect::is_on(Defect::LateMessagesUnseen) {
        make_first_ready(tx, instance)?;
    }
    store_plan(tx, facts, plan)?;
    Ok(Committed::of(Some(tx.now), tx, watches, instance, plan))
}

/// Stores the plan of a turn whose lease was valid.
pub(crate) fn store_plan(tx: &mut Transaction<'_>, facts: TurnFacts<'_>, plan: &CommitPlan) -> Result<()> {
    let instance = facts.at_fetch.instance;
    record_instance(tx, facts.at_fetch, plan)?;
    record_execution(tx, facts.at_fetch, plan)?;
    insert_events(tx.db, instance, plan.execution_id, &plan.history)?;
    if let Some(status) = &plan.custom_status {
        tx.db.run(sql::SET_CUSTOM_STATUS, (instance, status))?;
    }
    kv::apply(tx, instance, &plan.kv)?;
    let merges = plan.ends_execution() && !defect::is_on(Defect::KeysNotMerged);
    if merges && (facts.kv_changed || !plan.kv.is_empty()) {
        kv::merge(tx.db, instance)?;
    }
    for row in plan.activities.iter().skip(usize::from(defect::is_on(Defect::CommitLosesActivity))) {
        activity::enqueue(tx, row)?;
    }
    for activity in &plan.cancelled {
        let execution = id_column("execution id", activity.execution_id)?;
        let cancelled = (&activity.instance, execution, key_column(activity.activity_id));
        tx.db.run(sql::CANCEL_ACTIVITY, cancelled)?;
    }
    for row in plan.messages.iter().skip(usize::from(defect::is_on(Defect::CommitLosesMessage))) {
        message::store(tx, row, None)?;
    }
    Ok(())
}

/// Creates or updates the row of the instance.
fn record_instance(tx: &Transaction<'_>, turn: TurnAtFetch<&str>, plan: &CommitPlan) -> Result<()> {
    let execution = id_column("execution id", plan.execution_id)?;
    let now = column(tx.now);
    let metadata = &plan.metadata;
    match (&metadata.orchestration_name, &metadata.orchestration_version) {
        (Some(name), Some(version)) => {
            let row = (turn.instance, name, version, execution, &metadata.parent_instance_id, now);
            tx.db.run(sql::UPSERT_INSTANCE, row)?;
        }
        _ if (1..plan.execution_id).contains(&turn.current_execution) => {
            tx.db.run_exactly(
                1,
                "raising the execution",
                sql::RAISE_EXECUTION,
                (turn.instance, execution, now),
            )?;
        }
        _ => {}
    }
    Ok(())
}

/// Creates or updates the row of the execution.
fn record_execution(tx: &Transaction<'_>, turn: TurnAtFetch<&str>, plan: &CommitPlan) -> Result<()> {
    let instance = turn.instance;
    let execution = id_column("execution id", plan.execution_id)?;
    let now = column(tx.now);
    let metadata = &plan.metadata;
    let ended_at = metadata.status.as_deref().filter(|status| is_final(status)).map(|_| now);
    let output = metadata.status.as_ref().and(metadata.output.as_ref());
    let last_event = id_column("event id", plan.last_event_id().unwrap_or(0))?;
    let terminal = plan.terminal_event_id.map(column);
    let may_be_new = plan.execution_id != turn.current_execution;
    let pin = metadata.pinned_duroxide_version.as_ref().map(PinColumns::of);
    let pin = pin.as_ref();
    let row = (
        instance,
        execution,
        &metadata.status,
        output,
        now,
        ended_at,
        last_event,
        terminal,
        may_be_new,
        pin.map(|pin| pin.major),
        pin.map(|pin| pin.minor),
        pin.map(|pin| pin.patch),
        pin.map(|pin| &pin.pre),
    );
    tx.db.run_exactly(1, "recording an execution", sql::UPSERT_EXECUTION, row)
}

/// Inserts events, several per statement. An event id that exists is refused.
pub(crate) fn insert_events(db: &Db, instance: &str, execution_id: u64, events: &[HistoryRow]) -> Result<()> {
    let mut rest = events;
    while !rest.is_empty() {
        let (size, sql) = match rest.len() {
            8.. => (8, sql::INSERT_EIGHT_EVENTS),
            2.. => (2, sql::INSERT_TWO_EVENTS),
            _ => (1, sql::INSERT_EVENT),
        };
        let (now, later) = rest.split_at(size);
        insert_together(db, sql, instance, execution_id, now)?;
        rest = later;
    }
    Ok(())
}

fn insert_together(
    db: &Db,
    sql: &str,
    instance: &str,
    execution_id: u64,
    events: &[HistoryRow],
) -> Result<()> {
    let execution = id_column("execution id", execution_id)?;
    let mut statement = db.statement(sql)?;
    statement.raw_bind_parameter(1, instance)?;
    statement.raw_bind_parameter(2, execution)?;
    for (n, event) in events.iter().enumerate() {
        statement.raw_bind_parameter(3 + 3 * n, id_column("event id", event.event_id)?)?;
        statement.raw_bind_parameter(4 + 3 * n, event.event_type)?;
        statement.raw_bind_parameter(5 + 3 * n, &event.event_data)?;
    }
    let before = db.conn.total_changes();
    match statement.raw_execute() {
        Ok(_) => Ok(()),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => {
            // The events before the existing one were inserted; the caller rolls them back.
            let inserted = usize::try_from(db.conn.total_changes() - before).unwrap_or(0);
            let existing = events.get(inserted).or(events.first()).map_or(0, |event| event.event_id);
            Err(SqliteError::Refused(duplicate_event(existing)))
        }
        Err(error) => Err(error.into()),
    }
}

/// Gives a turn back. The token of an expired lease is accepted until another fetch leases the instance.
pub(crate) fn abandon(tx: &mut Transaction<'_>, abandoned: &Abandon) -> Result<()> {
    let &Abandon { ref token, delay, ignore_attempt } = abandoned;
    let Some((facts, secret)) = TurnFacts::of(token) else { return refused(token) };
    let TurnAtFetch { instance, is_partial, .. } = facts.at_fetch;
    let visible_at = delay.map(|delay| tx.now.saturating_add(saturating_ms(delay)));
    // The messages that the lease does not cover must not be delivered before the delayed ones.
    let released = match visible_at.filter(|_| is_partial) {
        Some(at) => tx.db.run(sql::DELAY_INSTANCE, (instance, secret, column(at)))?,
        None => tx.db.run(sql::UNLOCK_INSTANCE, (instance, secret))?,
    };
    if released != 1 {
        return refused(token);
    }
    let covered_until = facts.covered_until();
    let columns = (instance, secret, visible_at.map(column), i64::from(ignore_attempt), covered_until);
    tx.db.run(sql::ABANDON_MESSAGES, columns)?;
    make_first_ready(tx, instance)?;
    if let Some(at) = visible_at {
        tx.wakeups.schedule_poll(at);
    }
    Ok(())
}

/// Extends the lease of a turn.
pub(crate) fn renew(tx: &mut Transaction<'_>, renewed: &Renew) -> Result<()> {
    let &Renew { ref token, extend_for } = renewed;
    let Some((facts, secret)) = TurnFacts::of(token) else { return refused(token) };
    let instance = facts.at_fetch.instance;
    let until = column(tx.now.saturating_add(saturating_ms(extend_for)));
    if tx.db.run(sql::RENEW_INSTANCE, (instance, secret, until, column(tx.now)))? != 1 {
        return refused(token);
    }
    tx.db.run(sql::RENEW_MESSAGES, (instance, secret, until, facts.covered_until()))?;
    Ok(())
}

/// The error for a token without a live lease.
pub(crate) fn refused<T>(token: &str) -> Result<T> {
    Err(SqliteError::Refused(invalid_token(token)))
}

/// A message that may be the first of its instance.
struct First {
    /// The time at which the message becomes visible, and its id.
    order: (i64, i64),
    is_ready: bool,
}

/// Makes the first message of an instance ready: the one that is visible first, and among equals the one that was stored first. The
/// parked fetches are polled when it is visible.
pub(crate) fn make_first_ready(tx: &mut Transaction<'_>, instance: &str) -> Result<()> {
    let mut first: Option<First> = None;
    tx.db.find(sql::MESSAGES_IN_ORDER, [instance], |row| {
        let id = row.get(0)?;
        let [visible_at, available_at] =
            [stored_time(row, 1)?, stored_time(row, 2)?].map(|at| at.unwrap_or(i64::MAX));
        // No message is visible before it is available, so no message from here on is visible earlier.
        if first.as_ref().is_some_and(|first| first.order < (available_at, id)) {
            return Ok(Some(()));
        }
        if first.as_ref().is_none_or(|first| (visible_at, id) < first.order) {
            let is_ready = matches!(row.get_ref(3)?, ValueRef::Integer(1));
            first = Some(First { order: (visible_at, id), is_ready });
        }
        Ok(None)
    })?;
    let Some(First { order: (visible_at, id), is_ready }) = first else { return Ok(()) };
    if !is_ready {
        tx.db.run_exactly(1, "making a message ready", sql::MAKE_READY, [id])?;
    }
    tx.wakeups.on_message(u64::try_from(visible_at).unwrap_or(0), tx.now);
    Ok(())
}

/// Makes the first messages of instances ready whose lease has expired. Without expired leases no table is read.
pub(crate) fn find_expired_leases(tx: &mut Transaction<'_>, state: &mut FetchState) -> Result<()> {
    if tx.now < state.next_lease_end.turns || defect::is_on(Defect::ExpiredTurnsUnseen) {
        return Ok(());
    }
    let now = column(tx.now);
    let instances = tx.db.all(sql::EXPIRED_LEASES, [now], |row| {
        Ok(row.get_ref(0)?.as_str().map(str::to_string).unwrap_or_default())
    })?;
    for instance in instances {
        make_first_ready(tx, &instance)?;
    }
    let next_end = tx.db.one(sql::NEXT_LEASE_END, [now], |row| stored_time(row, 0))?.flatten();
    state.next_lease_end.turns = next_end.map_or(u64::MAX, |at| u64::try_from(at).unwrap_or(0));
    Ok(())
}

#[cfg(test)]
mod ready_tests;
