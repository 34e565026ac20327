//! Commits, abandons and renewals of turns.

use crate::db::{Result, column, id_column, key_column};
use crate::leased::{Abandon, Renew};
use crate::transaction::Transaction;
use crate::{SqliteError, activity, history, kv, message, ready, sql};
use outlast_provider::saturating_ms;
use outlast_provider_kit::pin::PinColumns;
use outlast_provider_kit::token::{self, Secret};
use outlast_provider_kit::{CommitPlan, TurnAtFetch, invalid_token, is_final};
use std::fmt;

/// Facts that the fetch read from the rows of the instance, carried in the token. No other caller changes these rows under the
/// lease, so the commit does not read them again.
///
/// The key of the token has the text `k512-1700.` before the text of [`TurnAtFetch`]: `k` if the current execution changed keys,
/// the bytes in `message_texts`, and the end of the covered messages if the fetch left messages behind.
#[derive(Clone, Copy)]
pub(crate) struct TurnFacts<'a> {
    /// Whether the current execution changed keys.
    pub(crate) kv_changed: bool,
    /// The bytes of message texts in `message_texts`.
    pub(crate) external_bytes: usize,
    /// When the last covered message became available, if the fetch left messages behind.
    pub(crate) covered_until: Option<u64>,
    pub(crate) at_fetch: TurnAtFetch<&'a str>,
}

impl<'a> TurnFacts<'a> {
    /// Parses a token, with the secret that makes it valid; `None` for a text that is not a token of this store.
    pub(crate) fn of(token: &'a str) -> Option<(Self, Secret)> {
        let (secret, key) = token::parse(token)?;
        let (own, at_fetch) = key.split_once('.')?;
        let (kv_changed, external_bytes) = match own.strip_prefix('k') {
            Some(bytes) => (true, bytes),
            None => (false, own),
        };
        let (external_bytes, covered_until) = match external_bytes.split_once('-') {
            Some((bytes, until)) => (bytes, Some(until.parse().ok()?)),
            None => (external_bytes, None),
        };
        let external_bytes = external_bytes.parse().ok()?;
        let at_fetch = TurnAtFetch::parse(at_fetch)?;
        Some((Self { kv_changed, external_bytes, covered_until, at_fetch }, secret))
    }

    /// No covered message became available after this time, so a statement need not read the messages behind them.
    pub(crate) fn covered_until(&self) -> i64 {
        self.covered_until.map_or(i64::MAX, column)
    }
}

impl fmt::Display for TurnFacts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kv_changed = if self.kv_changed { "k" } else { "" };
        write!(f, "{kv_changed}{}", self.external_bytes)?;
        if let Some(until) = self.covered_until {
            write!(f, "-{until}")?;
        }
        write!(f, ".{}", self.at_fetch)
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

/// A turn to commit, with the token of its lease.
pub(crate) struct CommitTurn {
    pub(crate) token: String,
    pub(crate) plan: CommitPlan,
}

/// Commits a turn: releases its lease, deletes its messages, then stores the plan. Returns the time of the commit.
pub(crate) fn commit(tx: &mut Transaction<'_>, turn: &CommitTurn) -> Result<Option<u64>> {
    let CommitTurn { token, plan } = turn;
    let now = column(tx.now);
    let Some((facts, secret)) = TurnFacts::of(token) else { return refused(token) };
    let instance = facts.at_fetch.instance;
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
    ready::make_first_ready(tx, instance)?;
    store_plan(tx, facts, plan)?;
    Ok(Some(tx.now))
}

/// Stores the plan of a turn whose lease was valid.
pub(crate) fn store_plan(tx: &mut Transaction<'_>, facts: TurnFacts<'_>, plan: &CommitPlan) -> Result<()> {
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
    ready::make_first_ready(tx, instance)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_provider::OsEntropy;
    use outlast_provider_kit::Token;

    #[test]
    fn facts_round_trip_through_the_token() {
        for (kv_changed, external_bytes, covered_until) in
            [(false, 0, None), (false, 512, Some(1_700)), (true, 0, Some(0)), (true, 70_000, None)]
        {
            let (current_execution, messages, is_partial) = (3, 7, true);
            let at_fetch = TurnAtFetch { current_execution, messages, is_partial, instance: "k1.2.a" };
            let token =
                Token::mint(&OsEntropy, TurnFacts { kv_changed, external_bytes, covered_until, at_fetch });
            let (facts, secret) = TurnFacts::of(&token.text).unwrap();
            assert_eq!((facts.kv_changed, facts.external_bytes), (kv_changed, external_bytes));
            assert_eq!(facts.covered_until, covered_until);
            assert_eq!((facts.at_fetch, secret), (at_fetch, token.secret));
        }
    }
}
