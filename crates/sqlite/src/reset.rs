//! Resets and forks of instances.

use crate::commit::{make_first_ready, store_plan};
use crate::db::{Result, column};
use crate::leased::TurnFacts;
use crate::start::is_taken;
use crate::transaction::Transaction;
use crate::{history, hold, kv, list, message, sql};
use outlast_provider::ResetOutcome;
use outlast_provider_kit::{ResetRows, TurnAtFetch};

/// Begins the new execution, unless the source has changed, a turn of it runs, or the id of a fork is taken.
pub(crate) fn instance(tx: &mut Transaction<'_>, rows: &ResetRows) -> Result<ResetOutcome> {
    let now = column(tx.now);
    if list::parent(tx.db, &rows.source)?.is_none() {
        return Ok(ResetOutcome::NotFound);
    }
    let state = tx.db.one(sql::HOLD_STATE, (&rows.source, now), |row| {
        Ok((row.get::<_, bool>(0)?, row.get::<_, Option<i64>>(2)?))
    })?;
    let (is_held, lease_end) = state.unwrap_or((false, None));
    if let Some(until) = lease_end.filter(|_| !rows.is_fork()) {
        return Ok(ResetOutcome::InTurn { locked_until_ms: u64::try_from(until).unwrap_or(0) });
    }
    if !is_current(tx, rows)? {
        return Ok(ResetOutcome::Changed);
    }
    if rows.is_fork() {
        if is_taken(tx, &rows.target)? {
            return Ok(ResetOutcome::Taken);
        }
    } else if !is_held {
        end_lease(tx, &rows.source)?;
    }
    apply(tx, rows)?;
    Ok(ResetOutcome::Done)
}

/// Whether the newest execution of the source ends with the event that the plan was made with.
fn is_current(tx: &Transaction<'_>, rows: &ResetRows) -> Result<bool> {
    Ok(history::newest_execution(tx.db, &rows.source)? == rows.execution_id
        && history::last_event_id(tx.db, &rows.source, rows.execution_id)? == rows.last_event_id)
}

/// Ends a lease that is over, and frees its messages.
fn end_lease(tx: &mut Transaction<'_>, instance: &str) -> Result<()> {
    let now = column(tx.now);
    tx.db.run(sql::UNCOVER_MESSAGES, (instance, now))?;
    if tx.db.run(sql::END_LEASE, (instance, now))? > 0 {
        make_first_ready(tx, instance)?;
    }
    Ok(())
}

fn apply(tx: &mut Transaction<'_>, rows: &ResetRows) -> Result<()> {
    let target = rows.target.as_str();
    if let Some(end) = &rows.end {
        store_plan(tx, facts(&rows.source, end.execution_id), end)?;
    }
    tx.db.run(sql::DELETE_INSTANCE_KV_STORE, [target])?;
    tx.db.run(sql::DELETE_INSTANCE_KV_DELTA, [target])?;
    if !rows.keys.is_empty() {
        kv::apply(tx, target, &rows.keys)?;
        kv::merge(tx.db, target)?;
    }
    if !rows.first_messages.is_empty() {
        let available_at = message::first_available(tx, target, rows.first_available_ms)?;
        for row in &rows.first_messages {
            message::store_first(tx, row, available_at)?;
        }
    }
    let current_execution = if rows.is_fork() { 0 } else { rows.execution_id };
    store_plan(tx, facts(target, current_execution), &rows.begin)?;
    hold::append_audit(tx, &rows.audit)?;
    Ok(())
}

/// The facts of a turn without messages. Its end merges no keys.
fn facts(instance: &str, current_execution: u64) -> TurnFacts<'_> {
    let at_fetch = TurnAtFetch { current_execution, messages: 0, is_partial: false, instance };
    TurnFacts { kv_changed: false, external_bytes: 0, covered_until: None, at_fetch }
}
