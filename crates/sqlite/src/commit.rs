//! Commits, abandons and renewals of turns; enqueueing of messages.

use crate::db::{Result, column, id_column, key_column};
use crate::transaction::Transaction;
use crate::{SqliteError, activity, history, kv, message, sql};
use outlast_provider::{Completion, TurnAhead, saturating_ms};
use outlast_provider_kit::pin::PinColumns;
use outlast_provider_kit::plan::visible_at;
use outlast_provider_kit::token::{self, Secret};
use outlast_provider_kit::{CommitPlan, MessageRow, TurnAtFetch, invalid_token, is_final};
use std::fmt;
use std::time::Duration;

/// Facts that the fetch read from the rows of the instance, carried in the token. No other caller changes these rows under the
/// lease, so the commit does not read them again.
///
/// The key of the token has the text `k512.` before the text of [`TurnAtFetch`]: `k` if the current execution changed keys, and
/// the bytes in `message_texts`.
#[derive(Clone, Copy)]
pub(crate) struct TurnFacts<'a> {
    /// Whether the current execution changed keys.
    pub(crate) kv_changed: bool,
    /// The bytes of message texts in `message_texts`.
    pub(crate) external_bytes: usize,
    pub(crate) at_fetch: TurnAtFetch<&'a str>,
}

impl<'a> TurnFacts<'a> {
    /// Parses a token, with the secret that makes it valid; `None` for a text that is not a token of this store.
    fn of(token: &'a str) -> Option<(Self, Secret)> {
        let (secret, key) = token::parse(token)?;
        let (own, at_fetch) = key.split_once('.')?;
        let (kv_changed, external_bytes) = match own.strip_prefix('k') {
            Some(bytes) => (true, bytes),
            None => (false, own),
        };
        let external_bytes = external_bytes.parse().ok()?;
        Some((Self { kv_changed, external_bytes, at_fetch: TurnAtFetch::parse(at_fetch)? }, secret))
    }
}

impl fmt::Display for TurnFacts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kv_changed = if self.kv_changed { "k" } else { "" };
        write!(f, "{kv_changed}{}.{}", self.external_bytes, self.at_fetch)
    }
}

/// The instance that a turn's token locks.
pub(crate) fn instance_of(token: &str) -> Option<&str> {
    TurnFacts::of(token).map(|(facts, _)| facts.at_fetch.instance)
}

/// The bytes of message texts that the commit of a turn deletes.
pub(crate) fn bytes_to_delete(token: &str) -> usize {
    TurnFacts::of(token).map_or(0, |(facts, _)| facts.external_bytes)
}

/// Commits a turn: releases its lease, deletes its messages, then stores the plan.
pub(crate) fn commit(tx: &mut Transaction<'_>, token: &str, plan: &CommitPlan) -> Result<()> {
    let now = column(tx.now);
    let Some((facts, secret)) = TurnFacts::of(token) else { return refused(token) };
    let instance = facts.at_fetch.instance;
    if tx.db.run(sql::UNLOCK_LIVE_INSTANCE, (instance, secret, now))? != 1 {
        return refused(token);
    }
    let consumed = (instance, secret);
    if facts.external_bytes > 0 {
        tx.db.run(sql::DELETE_COVERED_TEXTS, consumed)?;
    }
    tx.db.run_exactly(
        facts.at_fetch.messages,
        "consuming messages",
        sql::DELETE_COVERED_MESSAGES,
        consumed,
    )?;
    apply(tx, facts, plan)?;
    // Messages that arrived after the fetch can be fetched now.
    tx.wakeups.poll.turns = true;
    Ok(())
}

/// Stores the plan of a turn whose lease was valid.
fn apply(tx: &mut Transaction<'_>, facts: TurnFacts<'_>, plan: &CommitPlan) -> Result<()> {
    let instance = facts.at_fetch.instance;
    record_instance(tx, facts.at_fetch, plan)?;
    record_execution(tx, facts.at_fetch, plan)?;
    history::insert(tx.db, instance, plan.execution_id, &plan.history)?;
    if let Some(status) = &plan.custom_status {
        tx.db.run(sql::SET_CUSTOM_STATUS, (instance, status))?;
    }
    kv::apply(tx, instance, &plan.kv)?;
    if plan.ends_execution() && (facts.kv_changed || !plan.kv.is_empty()) {
        kv::merge(tx.db, instance)?;
    }
    for row in &plan.activities {
        activity::enqueue(tx, row)?;
    }
    for activity in &plan.cancelled {
        let execution = id_column("execution id", activity.execution_id)?;
        let cancelled = (&activity.instance, execution, key_column(activity.activity_id));
        tx.db.run(sql::CANCEL_ACTIVITY, cancelled)?;
    }
    for row in &plan.messages {
        enqueue_message(tx, row, None)?;
    }
    Ok(())
}

/// Completes an activity and commits the run-ahead turn, if the instance is at the position that the turn assumes; otherwise
/// stores the completion as a message.
pub(crate) fn complete_with_turn(
    tx: &mut Transaction<'_>,
    token: &str,
    completion: &MessageRow,
    ahead: &TurnAhead,
    plan: &CommitPlan,
) -> Result<Completion> {
    let instance = completion.instance_id.as_str();
    let position = (
        instance,
        id_column("execution id", plan.execution_id)?,
        id_column("event id", ahead.after_event_id)?,
        column(tx.now),
    );
    let kv_changed = match ahead.is_of_now(tx.now) {
        true => tx.db.one(sql::CAN_RUN_AHEAD, position, |row| row.get(0))?,
        false => None,
    };
    let Some(kv_changed) = kv_changed else {
        activity::ack(tx, token, Some(completion))?;
        return Ok(Completion::Queued);
    };
    activity::ack(tx, token, None)?;
    let (current_execution, messages, is_partial) = (plan.execution_id, 0, false);
    let at_fetch = TurnAtFetch { current_execution, messages, is_partial, instance };
    let facts = TurnFacts { kv_changed, external_bytes: 0, at_fetch };
    apply(tx, facts, plan)?;
    Ok(Completion::WithTurn { at_ms: tx.now })
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

/// Stores a message.
pub(crate) fn enqueue_message(
    tx: &mut Transaction<'_>,
    row: &MessageRow,
    delay: Option<Duration>,
) -> Result<()> {
    let visible_at = visible_at(row, tx.now, delay);
    tx.wakeups.on_message(visible_at, tx.now);
    message::insert(tx.db, row, visible_at)
}

/// Stores a message if fewer than `most` messages wait for its instance; returns whether it did.
pub(crate) fn enqueue_within(tx: &mut Transaction<'_>, row: &MessageRow, most: usize) -> Result<bool> {
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let waiting: i64 =
        tx.db.one(sql::COUNT_WAITING, (&row.instance_id, most), |row| row.get(0))?.unwrap_or(0);
    if waiting >= most {
        return Ok(false);
    }
    enqueue_message(tx, row, None)?;
    Ok(true)
}

/// Gives a turn back. The token of an expired lease is accepted until another fetch leases the instance.
pub(crate) fn abandon(
    tx: &mut Transaction<'_>,
    token: &str,
    delay: Option<Duration>,
    ignore_attempt: bool,
) -> Result<()> {
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
    let columns = (instance, secret, visible_at.map(column), i64::from(ignore_attempt));
    tx.db.run(sql::ABANDON_MESSAGES, columns)?;
    tx.wakeups.poll.turns = true;
    if let Some(at) = visible_at {
        tx.wakeups.schedule_poll(at);
    }
    Ok(())
}

/// Extends the lease of a turn.
pub(crate) fn renew(tx: &mut Transaction<'_>, token: &str, extend_for: Duration) -> Result<()> {
    let Some((facts, secret)) = TurnFacts::of(token) else { return refused(token) };
    let instance = facts.at_fetch.instance;
    let until = column(tx.now.saturating_add(saturating_ms(extend_for)));
    if tx.db.run(sql::RENEW_INSTANCE, (instance, secret, until, column(tx.now)))? != 1 {
        return refused(token);
    }
    tx.db.run(sql::RENEW_MESSAGES, (instance, secret, until))?;
    Ok(())
}

/// The error for a token without a live lease.
pub(crate) fn refused<T>(token: &str) -> Result<T> {
    Err(SqliteError::Refused(invalid_token(token)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_provider::OsEntropy;
    use outlast_provider_kit::Token;

    #[test]
    fn facts_round_trip_through_the_token() {
        for (kv_changed, external_bytes) in [(false, 0), (false, 512), (true, 0), (true, 70_000)] {
            let (current_execution, messages, is_partial) = (3, 7, true);
            let at_fetch = TurnAtFetch { current_execution, messages, is_partial, instance: "k1.2.a" };
            let token = Token::mint(&OsEntropy, TurnFacts { kv_changed, external_bytes, at_fetch });
            let (facts, secret) = TurnFacts::of(&token.text).unwrap();
            assert_eq!((facts.kv_changed, facts.external_bytes), (kv_changed, external_bytes));
            assert_eq!((facts.at_fetch, secret), (at_fetch, token.secret));
        }
    }
}
