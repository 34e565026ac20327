//! Holds of instances, and the audit.
//!
//! A held instance has a row in `holds`, and none of its messages is ready. Statements that store a message or commit a run-ahead
//! turn check for the row; fetches do not.

use crate::commit::{make_first_ready, refused};
use crate::db::{Db, Result, column, stored_text, unsigned};
use crate::leased::TurnFacts;
use crate::start::is_taken;
use crate::transaction::Transaction;
use crate::{SqliteError, sql};
use outlast_model::SnapshotHold;
use outlast_model::defect::{self, Defect};
use outlast_provider::{
    AuditEntry, AuditRecord, HeldCounts, HeldInstance, Hold, HoldKind, HoldOutcome, PausedOrchestration,
    ReleaseOutcome,
};
use rusqlite::Row;

/// A hold to place on an instance.
pub(crate) struct HoldInstance {
    pub(crate) instance: String,
    pub(crate) hold: Hold,
}

/// Holds an instance, unless a turn of it runs.
pub(crate) fn instance(tx: &mut Transaction<'_>, wanted: &HoldInstance) -> Result<HoldOutcome> {
    let HoldInstance { instance, hold } = wanted;
    let now = column(tx.now);
    let state = tx.db.one(sql::HOLD_STATE, (instance, now), |row| {
        let lease_end: Option<i64> = row.get(2)?;
        Ok((row.get::<_, bool>(0)?, row.get::<_, bool>(1)?, lease_end))
    })?;
    match state {
        Some((true, ..)) => return Ok(HoldOutcome::AlreadyHeld),
        Some((_, true, _)) => return Ok(HoldOutcome::Ended),
        _ if !is_taken(tx, instance)? => return Ok(HoldOutcome::NotFound),
        _ if is_cancelled(tx.db, instance)? => return Ok(HoldOutcome::Cancelled),
        Some((.., Some(until))) => {
            return Ok(HoldOutcome::InTurn { locked_until_ms: u64::try_from(until).unwrap_or(0) });
        }
        Some((.., None)) | None => {}
    }
    tx.db.run(sql::END_LEASE, (instance, now))?;
    place(tx, instance, hold)?;
    Ok(HoldOutcome::Held)
}

/// A turn to give back for a hold.
pub(crate) struct HoldTurn {
    pub(crate) token: String,
    pub(crate) hold: Hold,
}

/// Gives back a turn with its deliveries uncounted, and holds its instance.
pub(crate) fn turn(tx: &mut Transaction<'_>, held: &HoldTurn) -> Result<HoldOutcome> {
    let HoldTurn { token, hold } = held;
    let Some((facts, secret)) = TurnFacts::of(token) else { return refused(token) };
    let instance = facts.at_fetch.instance;
    let now = column(tx.now);
    if is_cancelled(tx.db, instance)? {
        // The renewal checks the token, and changes nothing.
        return match tx.db.run(sql::RENEW_INSTANCE, (instance, secret, 0, now))? {
            1 => Ok(HoldOutcome::Cancelled),
            _ => refused(token),
        };
    }
    if tx.db.run(sql::UNLOCK_LIVE_INSTANCE, (instance, secret, now))? != 1 {
        return refused(token);
    }
    // More deliveries than the column counts: the count becomes zero.
    let uncounted = (instance, secret, None::<i64>, i64::from(u32::MAX), facts.covered_until());
    tx.db.run(sql::ABANDON_MESSAGES, uncounted)?;
    place(tx, instance, hold)?;
    Ok(HoldOutcome::Held)
}

/// Whether a cancellation waits for the instance.
fn is_cancelled(db: &Db, instance: &str) -> Result<bool> {
    Ok(db.one(sql::IS_CANCELLED, [instance], |row| row.get(0))?.unwrap_or(false))
}

/// Whether the instance is held.
pub(crate) fn is_held(db: &Db, instance: &str) -> Result<bool> {
    Ok(db.one(sql::HELD_INSTANCE, [instance], |_| Ok(()))?.is_some())
}

/// Holds an imported instance since the given time, unless a cancellation waits for it.
pub(crate) fn import(tx: &Transaction<'_>, instance: &str, hold: &SnapshotHold) -> Result<()> {
    if is_cancelled(tx.db, instance)? {
        return Ok(());
    }
    let row = (instance, &hold.kind, &hold.actor, &hold.reason, column(hold.held_at_ms));
    tx.db.run_exactly(1, "holding an instance", sql::INSERT_HOLD, row)?;
    tx.db.run(sql::HOLD_MESSAGES, [instance])?;
    Ok(())
}

fn place(tx: &Transaction<'_>, instance: &str, hold: &Hold) -> Result<()> {
    let row = (instance, hold.kind.as_str(), &hold.actor, &hold.reason, column(tx.now));
    tx.db.run_exactly(1, "holding an instance", sql::INSERT_HOLD, row)?;
    if !defect::is_on(Defect::HeldTurnRuns) {
        tx.db.run(sql::HOLD_MESSAGES, [instance])?;
    }
    Ok(())
}

/// Ends the hold of an instance. Its first message is ready again.
pub(crate) fn release(tx: &mut Transaction<'_>, instance: &str) -> Result<ReleaseOutcome> {
    if tx.db.run(sql::DELETE_HOLD, [instance])? == 0 {
        return Ok(ReleaseOutcome::NotHeld);
    }
    if !defect::is_on(Defect::ReleaseFindsNothing) {
        make_first_ready(tx, instance)?;
    }
    Ok(ReleaseOutcome::Released)
}

pub(crate) fn of_instance(db: &Db, instance: &str) -> Result<Option<HeldInstance>> {
    db.one(sql::HELD_INSTANCE, [instance], |row| Ok(held(row)))?.transpose()
}

/// A page of held instances.
pub(crate) struct HeldPage {
    pub(crate) after: Option<String>,
    pub(crate) limit: usize,
}

pub(crate) fn list(db: &Db, page: &HeldPage) -> Result<Vec<HeldInstance>> {
    let after = page.after.as_deref().unwrap_or("");
    let rows = db.all(sql::LIST_HELD, (after, column(page.limit as u64)), |row| Ok(held(row)))?;
    rows.into_iter().collect()
}

fn held(row: &Row<'_>) -> Result<HeldInstance> {
    let (instance_id, kind) = (stored_text(row, 0)?, stored_text(row, 1)?);
    let Some(kind) = HoldKind::from_text(&kind) else {
        let message = format!("the hold of instance '{instance_id}' has the unknown kind '{kind}'");
        return Err(SqliteError::Other(message));
    };
    let hold = Hold { kind, actor: stored_text(row, 2)?, reason: stored_text(row, 3)? };
    Ok(HeldInstance { instance_id, hold, held_at_ms: unsigned(row, 4)? })
}

pub(crate) fn count(db: &Db) -> Result<HeldCounts> {
    let counts = db.one(sql::COUNT_HELD, [], |row| {
        Ok(HeldCounts { instances: unsigned(row, 0)?, messages: unsigned(row, 1)? })
    })?;
    Ok(counts.unwrap_or_default())
}

/// An orchestration to pause.
pub(crate) struct PauseOrchestration {
    pub(crate) orchestration: String,
    pub(crate) actor: String,
    pub(crate) reason: String,
}

/// Adds an orchestration to the paused ones.
pub(crate) fn pause(tx: &mut Transaction<'_>, wanted: &PauseOrchestration) -> Result<HoldOutcome> {
    let row = (&wanted.orchestration, &wanted.actor, &wanted.reason, column(tx.now));
    match tx.db.run(sql::PAUSE_ORCHESTRATION, row)? {
        0 => Ok(HoldOutcome::AlreadyHeld),
        _ => Ok(HoldOutcome::Held),
    }
}

/// Removes an orchestration from the paused ones.
pub(crate) fn resume(tx: &mut Transaction<'_>, orchestration: &str) -> Result<ReleaseOutcome> {
    match tx.db.run(sql::RESUME_ORCHESTRATION, [orchestration])? {
        0 => Ok(ReleaseOutcome::NotHeld),
        _ => Ok(ReleaseOutcome::Released),
    }
}

pub(crate) fn paused(db: &Db) -> Result<Vec<PausedOrchestration>> {
    db.all(sql::PAUSED_ORCHESTRATIONS, [], |row| {
        Ok(PausedOrchestration {
            orchestration: stored_text(row, 0)?,
            actor: stored_text(row, 1)?,
            reason: stored_text(row, 2)?,
            paused_at_ms: unsigned(row, 3)?,
        })
    })
}

/// Records a change in the audit.
pub(crate) fn append_audit(tx: &mut Transaction<'_>, entry: &AuditEntry) -> Result<bool> {
    let AuditEntry { actor, action, target, reason, request, result } = entry;
    let row = (column(tx.now), actor, action, target, reason, request, result);
    if defect::is_on(Defect::RecordLost) {
        return Ok(true);
    }
    tx.db.run_exactly(1, "recording a change", sql::APPEND_AUDIT, row)?;
    if defect::is_on(Defect::RecordTwice) {
        tx.db.run_exactly(1, "recording a change", sql::APPEND_AUDIT, row)?;
    }
    Ok(true)
}

/// A page of the audit.
pub(crate) struct AuditPage {
    pub(crate) before: Option<u64>,
    pub(crate) limit: usize,
}

pub(crate) fn audit(db: &Db, page: &AuditPage) -> Result<Vec<AuditRecord>> {
    let wanted = (page.before.map_or(i64::MAX, column), column(page.limit as u64));
    db.all(sql::AUDIT_PAGE, wanted, |row| {
        let entry = AuditEntry {
            actor: stored_text(row, 2)?,
            action: stored_text(row, 3)?,
            target: stored_text(row, 4)?,
            reason: stored_text(row, 5)?,
            request: row.get(6)?,
            result: stored_text(row, 7)?,
        };
        Ok(AuditRecord { id: unsigned(row, 0)?, at_ms: unsigned(row, 1)?, entry })
    })
}
