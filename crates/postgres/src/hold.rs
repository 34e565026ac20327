//! Holds of instances, and the audit.
//!
//! The statements run on connections of their own, outside of the lanes: a hold waits for commits of its instance.

use crate::PostgresError;
use crate::db::{Db, ONLY, Param, Result, cell, column, text, text_option, unsigned};
use crate::functions::{HOLD_ALREADY, HOLD_CANCELLED, HOLD_DONE, HOLD_ENDED, HOLD_IN_TURN, HOLD_NOT_FOUND};
use crate::shared::Shared;
use crate::text::{owned, owned_option};
use outlast_model::defect::{self, Defect};
use outlast_provider::{
    AuditEntry, AuditRecord, HeldCounts, HeldInstance, Hold, HoldKind, HoldOutcome, PausedOrchestration,
};
use outlast_provider_kit::token::Secret;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

/// Holds an instance, unless a turn of it runs.
pub(crate) async fn instance(db: &Db, instance: &str, hold: &Hold) -> Result<HoldOutcome> {
    let (instance, actor, reason) = (owned(instance), owned(&hold.actor), owned(&hold.reason));
    let kind = hold.kind.as_str();
    let wanted: [Param<'_>; 4] =
        [(&instance, Type::TEXT), (&kind, Type::TEXT), (&actor, Type::TEXT), (&reason, Type::TEXT)];
    let Some(row) = db.one(&db.statements.hold, &wanted).await? else { return Ok(HoldOutcome::NotFound) };
    match cell::<i32>(&row, "o_answer")? {
        HOLD_DONE => Ok(HoldOutcome::Held),
        HOLD_ALREADY => Ok(HoldOutcome::AlreadyHeld),
        HOLD_IN_TURN => Ok(HoldOutcome::InTurn { locked_until_ms: unsigned(&row, "o_until")? }),
        HOLD_CANCELLED => Ok(HoldOutcome::Cancelled),
        HOLD_ENDED => Ok(HoldOutcome::Ended),
        HOLD_NOT_FOUND => Ok(HoldOutcome::NotFound),
        other => Err(PostgresError::Damaged { details: format!("hold_1 answered {other}") }),
    }
}

/// Gives back a turn with its deliveries uncounted, and holds its instance. `None` if the caller had no lease.
pub(crate) async fn turn(
    db: &Db,
    instance: &str,
    secret: &Secret,
    hold: &Hold,
) -> Result<Option<HoldOutcome>> {
    let (instance, actor, reason) = (owned(instance), owned(&hold.actor), owned(&hold.reason));
    let (secret, kind) = (secret.as_slice(), hold.kind.as_str());
    let wanted: [Param<'_>; 5] = [
        (&instance, Type::TEXT),
        (&secret, Type::BYTEA),
        (&kind, Type::TEXT),
        (&actor, Type::TEXT),
        (&reason, Type::TEXT),
    ];
    let row = db.one(&db.statements.hold_turn, &wanted).await?;
    let answer = row.map_or(Ok(None), |row| cell::<Option<i32>>(&row, ONLY))?;
    Ok(answer.map(|answer| match answer {
        HOLD_CANCELLED => HoldOutcome::Cancelled,
        _ => HoldOutcome::Held,
    }))
}

/// Ends the hold of an instance; returns whether it was held.
pub(crate) async fn release(db: &Db, instance: &str) -> Result<bool> {
    let instance = owned(instance);
    let row = db.one(&db.statements.release, &[(&instance, Type::TEXT)]).await?;
    row.map_or(Ok(false), |row| cell(&row, ONLY))
}

/// Notifies another process that a turn may be fetchable, and with `activities` that an activity may be fetchable too.
pub(crate) async fn notify(shared: &Shared, activities: bool) -> Result<()> {
    let (channel, turns, ended) = (shared.db.schema.channel(), true, Vec::<String>::new());
    let notification: [Param<'_>; 5] = [
        (&channel, Type::TEXT),
        (&shared.id, Type::TEXT),
        (&turns, Type::BOOL),
        (&activities, Type::BOOL),
        (&ended, Type::TEXT_ARRAY),
    ];
    shared.db.all(&shared.db.statements.notify, &notification).await.map(drop)
}

/// The hold of an instance; `None` if the instance is not held.
pub(crate) async fn of_instance(db: &Db, instance: &str) -> Result<Option<HeldInstance>> {
    let instance = owned(instance);
    let row = db.one(&db.statements.held_instance, &[(&instance, Type::TEXT)]).await?;
    row.map(|row| held(&row)).transpose()
}

/// A page of held instances, by id, after the given id.
pub(crate) async fn list(db: &Db, after: Option<&str>, limit: usize) -> Result<Vec<HeldInstance>> {
    let (after, limit) = (owned(after.unwrap_or("")), column(limit as u64));
    let wanted: [Param<'_>; 2] = [(&after, Type::TEXT), (&limit, Type::INT8)];
    db.all(&db.statements.list_held, &wanted).await?.iter().map(held).collect()
}

/// Reads a held instance from its row. A kind that this version does not know is an error.
fn held(row: &Row) -> Result<HeldInstance> {
    let (instance_id, kind) = (text(row, "instance_id")?, text(row, "kind")?);
    let Some(kind) = HoldKind::from_text(&kind) else {
        let details = format!("the hold of instance '{instance_id}' has the unknown kind '{kind}'");
        return Err(PostgresError::Damaged { details });
    };
    let hold = Hold { kind, actor: text(row, "actor")?, reason: text(row, "reason")? };
    Ok(HeldInstance { instance_id, hold, held_at_ms: unsigned(row, "held_at")? })
}

/// The number of held instances, and of the messages that wait for them.
pub(crate) async fn count(db: &Db) -> Result<HeldCounts> {
    let Some(row) = db.one(&db.statements.count_held, &[]).await? else { return Ok(HeldCounts::default()) };
    Ok(HeldCounts { instances: unsigned(&row, "instances")?, messages: unsigned(&row, "messages")? })
}

/// Stores that an orchestration is paused; returns whether it was not paused. Runtimes read this set and hold the instances;
/// fetches do not read it.
pub(crate) async fn pause(db: &Db, orchestration: &str, actor: &str, reason: &str) -> Result<bool> {
    let [orchestration, actor, reason] = [orchestration, actor, reason].map(owned);
    let wanted: [Param<'_>; 3] = [(&orchestration, Type::TEXT), (&actor, Type::TEXT), (&reason, Type::TEXT)];
    Ok(db.one(&db.statements.pause_orchestration, &wanted).await?.is_some())
}

/// Removes an orchestration from the set of paused orchestrations; returns whether it was paused.
pub(crate) async fn resume(db: &Db, orchestration: &str) -> Result<bool> {
    let orchestration = owned(orchestration);
    Ok(db.one(&db.statements.resume_orchestration, &[(&orchestration, Type::TEXT)]).await?.is_some())
}

/// The paused orchestrations, with actor, reason and time.
pub(crate) async fn paused(db: &Db) -> Result<Vec<PausedOrchestration>> {
    let paused = |row: &Row| {
        Ok(PausedOrchestration {
            orchestration: text(row, "orchestration")?,
            actor: text(row, "actor")?,
            reason: text(row, "reason")?,
            paused_at_ms: unsigned(row, "paused_at")?,
        })
    };
    db.all(&db.statements.paused_orchestrations, &[]).await?.iter().map(paused).collect()
}

/// Records a change in the audit; returns true, because this store keeps an audit.
pub(crate) async fn append_audit(db: &Db, entry: &AuditEntry) -> Result<bool> {
    let AuditEntry { actor, action, target, reason, request, result } = entry;
    let texts = [actor, action, target, reason, result].map(|text| owned(text));
    let [actor, action, target, reason, result] = &texts;
    let request = request.as_ref().filter(|_| !defect::is_on(Defect::RecordWithoutRequest));
    let request = owned_option(request);
    let wanted: [Param<'_>; 6] = [
        (actor, Type::TEXT),
        (action, Type::TEXT),
        (target, Type::TEXT),
        (reason, Type::TEXT),
        (&request, Type::TEXT),
        (result, Type::TEXT),
    ];
    Ok(db.one(&db.statements.append_audit, &wanted).await?.is_some())
}

/// A page of the audit, newest entry first, with entries older than `before`.
pub(crate) async fn audit(db: &Db, before: Option<u64>, limit: usize) -> Result<Vec<AuditRecord>> {
    let (before, limit) = (before.map_or(i64::MAX, column), column(limit as u64));
    let wanted: [Param<'_>; 2] = [(&before, Type::INT8), (&limit, Type::INT8)];
    let record = |row: &Row| {
        let entry = AuditEntry {
            actor: text(row, "actor")?,
            action: text(row, "action")?,
            target: text(row, "target")?,
            reason: text(row, "reason")?,
            request: text_option(row, "request")?,
            result: text(row, "result")?,
        };
        Ok(AuditRecord { id: unsigned(row, "id")?, at_ms: unsigned(row, "at")?, entry })
    };
    db.all(&db.statements.audit_page, &wanted).await?.iter().map(record).collect()
}
