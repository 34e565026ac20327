//! Starts of instances with a policy.

use crate::commit::store_plan;
use crate::db::{Result, stored_text, stored_time};
use crate::leased::TurnFacts;
use crate::message::{self, begins_an_execution};
use crate::transaction::Transaction;
use crate::{history, sql};
use outlast_model::defect::{self, Defect};
use outlast_provider::{EagerStart, StartOutcome, StartPolicy, TurnAhead};
use outlast_provider_kit::{CommitPlan, MessageRow, TurnAtFetch};
use std::time::Duration;

/// A start with its rows.
pub(crate) struct StartPlan {
    pub(crate) start: MessageRow,
    pub(crate) messages: Vec<MessageRow>,
    pub(crate) delay: Option<Duration>,
    pub(crate) policy: StartPolicy,
}

/// Stores the start and its messages, according to the policy.
pub(crate) fn start(tx: &mut Transaction<'_>, plan: &StartPlan) -> Result<StartOutcome> {
    let instance = &plan.start.instance_id;
    let taken = is_taken(tx, instance)?;
    let outcome = match taken {
        true => {
            let status = history::outcome(tx.db, instance)?.map(|outcome| outcome.status);
            StartOutcome::AlreadyExists { status }
        }
        false => {
            message::store(tx, &plan.start, plan.delay)?;
            StartOutcome::Started
        }
    };
    if !taken || plan.policy == StartPolicy::UseExisting {
        // The delay is that of the start, so messages to an existing instance are not delayed.
        let delay = plan.delay.filter(|_| !taken);
        for message in &plan.messages {
            message::store(tx, message, delay)?;
        }
    }
    Ok(outcome)
}

/// The start of an instance with its first turn.
pub(crate) struct StartWithTurn {
    pub(crate) instance: String,
    pub(crate) ahead: TurnAhead,
    /// The commit of the first turn.
    pub(crate) plan: CommitPlan,
}

/// Commits the first turn of an instance that the store does not know; otherwise writes nothing.
pub(crate) fn start_with_turn(tx: &mut Transaction<'_>, call: &StartWithTurn) -> Result<EagerStart> {
    let StartWithTurn { instance, ahead, plan } = call;
    let instance = instance.as_str();
    let follows = ahead.after_event_id == 0 && ahead.is_of_now(tx.now);
    let is_known = tx.db.one(sql::IS_KNOWN, [instance], |row| row.get(0))?.unwrap_or(true);
    if !follows || is_known && !defect::is_on(Defect::StartIgnoresMessages) {
        return Ok(EagerStart::Unchanged);
    }
    let at_fetch = TurnAtFetch { current_execution: 0, messages: 0, is_partial: false, instance };
    let facts = TurnFacts { kv_changed: false, external_bytes: 0, covered_until: None, at_fetch };
    store_plan(tx, facts, plan)?;
    Ok(EagerStart::WithTurn { at_ms: tx.now })
}

/// Whether a row with this instance id exists, or a start of the instance waits.
pub(crate) fn is_taken(tx: &Transaction<'_>, instance: &str) -> Result<bool> {
    if tx.db.one(sql::IS_TAKEN, [instance], |row| row.get(0))?.unwrap_or(false) {
        return Ok(true);
    }
    Ok(start_due(tx, instance)?.is_some())
}

/// When the start of an instance becomes visible, if one waits.
pub(crate) fn start_due(tx: &Transaction<'_>, instance: &str) -> Result<Option<u64>> {
    let mut due: Option<u64> = None;
    tx.db.find(sql::WAITING_MESSAGES, [instance], |row| {
        if begins_an_execution(&stored_text(row, 0)?) {
            let visible_at = stored_time(row, 1)?.map_or(u64::MAX, |at| u64::try_from(at).unwrap_or(0));
            due = Some(due.map_or(visible_at, |due| due.min(visible_at)));
        }
        Ok(None::<()>)
    })?;
    Ok(due)
}
