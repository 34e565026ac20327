//! Fetches, completions, abandons and renewals of activities.

use crate::commit::{refused, store_plan};
use crate::db::{Result, attempts, column, id_column, key_column, readable, stored_text, stored_time};
use crate::leased::{Abandon, Renew, TurnFacts};
use crate::message::{self, store_dead_letter};
use crate::park::{Ask, FetchState, MAX_LOOKUP};
use crate::session;
use crate::sql;
use crate::transaction::Transaction;
use crate::watched::Committed;
use outlast_model::defect::{self, Defect};
use outlast_provider::{
    Completion, DeadLetterQueue, FetchedWork, FusedCompletion, SessionFetchConfig, TagFilter, TurnAhead,
    WorkNotes, WorkRequest, saturating_ms,
};
use outlast_provider_kit::token::{self, Secret};
use outlast_provider_kit::{ActivityRow, CommitPlan, MessageRow, Token, TurnAtFetch, Watches, rows};
use rusqlite::Row;
use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// The conditions of a fetch of activities.
#[derive(Debug, Clone)]
pub(crate) struct ActivityAsk {
    pub(crate) max_items: usize,
    pub(crate) lock_ms: u64,
    pub(crate) session: Option<SessionFetchConfig>,
    pub(crate) tags: TagFilter,
}

impl ActivityAsk {
    pub(crate) fn of(request: &WorkRequest<'_>) -> Self {
        Self {
            max_items: request.max_items,
            lock_ms: saturating_ms(request.lock_timeout),
            session: request.session.cloned(),
            tags: request.tag_filter.clone(),
        }
    }
}

impl Ask for ActivityAsk {
    type Leases = Vec<FetchedWork>;
    type Lookup = ActivityLookup;
    const OPERATION: &'static str = "fetch_work_item";

    fn lookup(&self) -> ActivityLookup {
        ActivityLookup::new(self)
    }

    fn fits(&self, lookup: &ActivityLookup) -> bool {
        lookup.is_for(self)
    }

    fn has_passed_over(_: &ActivityLookup) -> bool {
        false
    }

    fn fetch(
        &self,
        tx: &mut Transaction<'_>,
        lookup: &mut ActivityLookup,
        waiting: usize,
        state: &mut FetchState,
    ) -> Result<Option<Vec<FetchedWork>>> {
        fetch(tx, self, lookup, waiting.saturating_mul(self.max_items).min(MAX_LOOKUP), state)
    }
}

/// Stores an activity.
pub(crate) fn enqueue(tx: &mut Transaction<'_>, row: &ActivityRow) -> Result<()> {
    tx.wakeups.poll.activities = true;
    let columns = (
        &row.work_item,
        column(tx.now),
        &row.instance_id,
        id_column("execution id", row.execution_id)?,
        key_column(row.activity_id),
        &row.session_id,
        &row.tag,
    );
    tx.db.run(sql::ENQUEUE_ACTIVITY, columns)?;
    Ok(())
}

/// An activity without a live lease.
struct FreeActivity {
    id: i64,
    text: String,
    attempts: u32,
    notes: WorkNotes,
    instance: String,
    session_id: Option<String>,
    /// Name and version of the orchestration, for logs and metrics; an activity can run without them.
    orchestration: Option<(String, String)>,
    /// The reason why a cell of the row cannot be read.
    damage: Option<String>,
}

/// The candidates of one transaction for fetches with the same tags and owner, looked up for many fetches at once.
pub(crate) struct ActivityLookup {
    tags: TagFilter,
    owner: Option<String>,
    candidates: VecDeque<FreeActivity>,
    /// Whether the table holds no further candidates.
    exhausted: bool,
}

impl ActivityLookup {
    fn new(ask: &ActivityAsk) -> Self {
        let owner = ask.session.as_ref().map(|session| session.owner_id.clone());
        Self { tags: ask.tags.clone(), owner, candidates: VecDeque::new(), exhausted: false }
    }

    fn is_for(&self, ask: &ActivityAsk) -> bool {
        self.tags == ask.tags && self.owner.as_ref() == ask.session.as_ref().map(|session| &session.owner_id)
    }

    /// The oldest candidate. One lookup reads at most `wanted` candidates.
    fn next(
        &mut self,
        tx: &Transaction<'_>,
        state: &mut FetchState,
        wanted: usize,
    ) -> Result<Option<FreeActivity>> {
        if self.candidates.is_empty() && !self.exhausted {
            self.candidates = self.oldest(tx, state, wanted)?.into();
            self.exhausted = self.candidates.len() < wanted;
        }
        Ok(self.candidates.pop_front())
    }

    /// The oldest activities with the tags and sessions of the fetch, those with an expired lease included.
    fn oldest(
        &self,
        tx: &Transaction<'_>,
        state: &mut FetchState,
        limit: usize,
    ) -> Result<Vec<FreeActivity>> {
        let now = column(tx.now);
        let owner = self.owner.as_deref();
        let mut rows = Vec::new();
        let tags = self.wanted_tags(tx)?;
        for tag in tags {
            rows.extend(tx.db.all(sql::FREE_ACTIVITIES, (now, tag, column(limit as u64), owner), free)?);
        }
        if tx.now >= state.next_lease_end.activities {
            let expired = tx.db.all(sql::EXPIRED_ACTIVITIES, (now, owner), |row| {
                // A tag that cannot be read matches no filter.
                let tag: std::result::Result<Option<String>, _> = readable(row.get(9))?;
                Ok((free(row)?, tag.is_ok_and(|tag| self.tags.matches(tag.as_deref()))))
            })?;
            rows.extend(expired.into_iter().filter(|(_, wanted)| *wanted).map(|(row, _)| row));
            let next =
                tx.db.one(sql::NEXT_ACTIVITY_LEASE_END, [i64::MIN], |row| stored_time(row, 0))?.flatten();
            state.next_lease_end.activities = next.map_or(u64::MAX, |at| u64::try_from(at).unwrap_or(0));
        }
        rows.sort_unstable_by_key(|row| row.id);
        rows.truncate(limit);
        Ok(rows)
    }

    /// The tags to look up; `None` stands for activities without a tag.
    fn wanted_tags(&self, tx: &Transaction<'_>) -> Result<Vec<Option<String>>> {
        let named = |tags: &HashSet<String>| tags.iter().cloned().map(Some).collect::<Vec<_>>();
        Ok(match &self.tags {
            TagFilter::DefaultOnly => vec![None],
            TagFilter::Tags(tags) => named(tags),
            TagFilter::DefaultAnd(tags) => [vec![None], named(tags)].concat(),
            TagFilter::Any => {
                let found = tx.db.all(sql::WAITING_TAGS, [], |row| readable(row.get::<_, String>(0)))?;
                [None].into_iter().chain(found.into_iter().flatten().map(Some)).collect()
            }
            TagFilter::None => Vec::new(),
        })
    }
}

fn free(row: &Row<'_>) -> rusqlite::Result<FreeActivity> {
    let (session_id, damage) = match readable(row.get::<_, String>(3).and_then(|_| row.get(4)))? {
        Ok(session_id) => (session_id, None),
        Err(reason) => (None, Some(reason)),
    };
    Ok(FreeActivity {
        id: row.get(0)?,
        text: stored_text(row, 1)?,
        attempts: attempts(row, 2)?.saturating_add(1),
        notes: notes(row)?,
        instance: stored_text(row, 3)?,
        session_id,
        orchestration: readable(orchestration(row))?.ok().flatten(),
        damage,
    })
}

/// The failures of the handler. A text that cannot be read is left out, because an activity can run without it.
fn notes(row: &Row<'_>) -> rusqlite::Result<WorkNotes> {
    let last_error = readable(row.get::<_, Option<String>>(8))?.ok().flatten();
    let failures = if defect::is_on(Defect::NotesNotRead) { 0 } else { attempts(row, 7)? };
    Ok(WorkNotes { failures, last_error })
}

/// Name and version of the orchestration.
fn orchestration(row: &Row<'_>) -> rusqlite::Result<Option<(String, String)>> {
    let Some(name) = row.get(5)? else { return Ok(None) };
    Ok(Some((name, row.get::<_, Option<String>>(6)?.unwrap_or_else(|| "unknown".to_string()))))
}

/// Leases the oldest activities that the caller may take; `None` if there are none. `wanted` is the number of activities to be
/// taken from this lookup.
fn fetch(
    tx: &mut Transaction<'_>,
    ask: &ActivityAsk,
    lookup: &mut ActivityLookup,
    wanted: usize,
    state: &mut FetchState,
) -> Result<Option<Vec<FetchedWork>>> {
    let mut fetched = Vec::new();
    while fetched.len() < ask.max_items {
        let Some(row) = lookup.next(tx, state, wanted)? else { break };
        fetched.extend(lease(tx, ask, row)?);
    }
    if fetched.is_empty() {
        return Ok(None);
    }
    let locked_until = tx.now.saturating_add(ask.lock_ms);
    let next_lease_end = &mut state.next_lease_end.activities;
    *next_lease_end = (*next_lease_end).min(locked_until);
    tx.wakeups.schedule_poll(locked_until);
    Ok(Some(fetched))
}

/// Decodes an activity, claims its session and leases it. `None` if the row does not decode and became a dead letter, or if a
/// fetch with other conditions leased the activity or its session.
fn lease(tx: &mut Transaction<'_>, ask: &ActivityAsk, row: FreeActivity) -> Result<Option<FetchedWork>> {
    let decoded = match &row.damage {
        None => rows::decode_activity(&row.instance, &row.text),
        Some(reason) => Err(reason.clone()),
    };
    let item = match decoded {
        Ok(item) => item,
        Err(reason) => {
            let attempts = row.attempts.saturating_sub(1);
            store_dead_letter(tx, DeadLetterQueue::Worker, &row.instance, &row.text, &reason, attempts)?;
            tx.db.run_exactly(1, "deleting a dead letter's activity", sql::DELETE_ACTIVITY, [row.id])?;
            return Ok(None);
        }
    };
    // The token says whether the activity has a session, so that its completion reads the session only if there is one.
    let key = match row.session_id {
        Some(_) => format!("s{}", row.id),
        None => row.id.to_string(),
    };
    let token = Token::mint_for(tx.owner, tx.entropy, key);
    let locked_until = column(tx.now.saturating_add(ask.lock_ms));
    if let (Some(session_id), Some(caller)) = (&row.session_id, &ask.session)
        && !session::claim(tx, session_id, caller)?
    {
        return Ok(None);
    }
    if tx.db.run(sql::LEASE_ACTIVITY, (row.id, token.secret, locked_until, column(tx.now)))? != 1 {
        return Ok(None);
    }
    Ok(Some(FetchedWork {
        item,
        lock_token: token.text,
        attempt_count: row.attempts,
        notes: Some(row.notes),
        orchestration: row.orchestration,
        now_ms: Some(tx.now),
    }))
}

/// An activity to complete, with the token of its lease and the message for its instance.
pub(crate) struct Complete {
    pub(crate) token: String,
    pub(crate) completion: Option<MessageRow>,
}

/// Completes the activity of a call.
pub(crate) fn complete(tx: &mut Transaction<'_>, activity: &Complete) -> Result<()> {
    ack(tx, &activity.token, activity.completion.as_ref())
}

/// An activity to complete, with the run-ahead turn of its instance.
pub(crate) struct CompleteWithTurn {
    pub(crate) token: String,
    pub(crate) completion: MessageRow,
    pub(crate) ahead: TurnAhead,
    /// The commit of the run-ahead turn.
    pub(crate) plan: CommitPlan,
    pub(crate) watches: Arc<Watches>,
}

/// Completes an activity and commits the run-ahead turn, if the instance is at the position that the turn assumes; otherwise
/// stores the completion as a message.
pub(crate) fn complete_with_turn(
    tx: &mut Transaction<'_>,
    activity: &CompleteWithTurn,
) -> Result<Committed<Completion>> {
    let CompleteWithTurn { token, completion, ahead, plan, watches } = activity;
    let instance = completion.instance_id.as_str();
    let Some(kv_changed) = can_run_ahead(tx, instance, ahead, plan)? else {
        ack(tx, token, Some(completion))?;
        return Ok(Committed::without_turn(Completion::Queued));
    };
    ack(tx, token, Some(completion).filter(|_| defect::is_on(Defect::AheadQueuesOutcome)))?;
    store_ahead(tx, instance, kv_changed, plan)?;
    let answer = Completion::WithTurn { at_ms: tx.now };
    Ok(Committed::of(answer, tx, watches, instance, plan))
}

/// Activities of one instance to complete, with the run-ahead turn of all their outcomes.
pub(crate) struct CompleteAllWithTurn {
    pub(crate) tokens: Vec<String>,
    pub(crate) instance: String,
    pub(crate) ahead: TurnAhead,
    /// The commit of the run-ahead turn.
    pub(crate) plan: CommitPlan,
    pub(crate) watches: Arc<Watches>,
}

/// Completes activities and commits the run-ahead turn, if all leases hold and the instance is at the position that the turn
/// assumes; otherwise writes nothing.
pub(crate) fn complete_all_with_turn(
    tx: &mut Transaction<'_>,
    call: &CompleteAllWithTurn,
) -> Result<Committed<FusedCompletion>> {
    let CompleteAllWithTurn { tokens, instance, ahead, plan, watches } = call;
    // The leases are checked before the first write, because a refusal after a write costs a savepoint.
    let Some(kv_changed) = can_run_ahead(tx, instance, ahead, plan)? else {
        return Ok(Committed::without_turn(FusedCompletion::Unchanged));
    };
    let mut held = HashSet::new();
    for token in tokens {
        let holds = match row_of(token) {
            Some((id, _, secret)) => {
                let lease = (id, secret, column(tx.now));
                held.insert(id) && tx.db.one(sql::HOLDS_ACTIVITY, lease, |_| Ok(()))?.is_some()
            }
            None => false,
        };
        if !holds {
            return Ok(Committed::without_turn(FusedCompletion::Unchanged));
        }
    }
    for token in tokens {
        ack(tx, token, None)?;
    }
    store_ahead(tx, instance, kv_changed, plan)?;
    let answer = FusedCompletion::WithTurn { at_ms: tx.now };
    Ok(Committed::of(answer, tx, watches, instance, plan))
}

/// Whether a turn can be committed that ran ahead: then, whether the instance has changed keys.
fn can_run_ahead(
    tx: &Transaction<'_>,
    instance: &str,
    ahead: &TurnAhead,
    plan: &CommitPlan,
) -> Result<Option<bool>> {
    let position = (
        instance,
        id_column("execution id", plan.execution_id)?,
        id_column("event id", ahead.after_event_id)?,
        column(tx.now),
    );
    match ahead.is_of_now(tx.now) {
        _ if defect::is_on(Defect::AheadWithoutPosition) => Ok(Some(true)),
        true => tx.db.one(sql::CAN_RUN_AHEAD, position, |row| row.get(0)),
        false => Ok(None),
    }
}

/// Commits a turn that ran ahead.
fn store_ahead(tx: &mut Transaction<'_>, instance: &str, kv_changed: bool, plan: &CommitPlan) -> Result<()> {
    let (current_execution, messages, is_partial) = (plan.execution_id, 0, false);
    let at_fetch = TurnAtFetch { current_execution, messages, is_partial, instance };
    let facts = TurnFacts { kv_changed, external_bytes: 0, covered_until: None, at_fetch };
    store_plan(tx, facts, plan)
}

/// Deletes an activity under its lease, then stores the completion.
fn ack(tx: &mut Transaction<'_>, token: &str, completion: Option<&MessageRow>) -> Result<()> {
    let Some((id, has_session, secret)) = row_of(token) else { return refused(token) };
    let session_id = if has_session { session_of(tx, id)? } else { None };
    let deleted = tx.db.run(sql::DELETE_LEASED_ACTIVITY, (id, secret, column(tx.now)))?;
    if deleted != 1 && !defect::is_on(Defect::CompletionWithoutLease) {
        return refused(token);
    }
    if let Some(row) = completion {
        message::store(tx, row, None)?;
    }
    session::stamp(tx, session_id.as_deref())
}

/// Extends the lease of an activity.
pub(crate) fn renew(tx: &mut Transaction<'_>, renewed: &Renew) -> Result<()> {
    let &Renew { ref token, extend_for } = renewed;
    let Some((id, has_session, secret)) = row_of(token) else { return refused(token) };
    let until = column(tx.now.saturating_add(saturating_ms(extend_for)));
    let renewed = tx.db.run(sql::RENEW_ACTIVITY, (id, secret, until, column(tx.now)))?;
    if renewed != 1 && !defect::is_on(Defect::RenewalWithoutLease) {
        return refused(token);
    }
    let session_id = if has_session { session_of(tx, id)? } else { None };
    session::stamp(tx, session_id.as_deref())
}

fn session_of(tx: &Transaction<'_>, id: i64) -> Result<Option<String>> {
    Ok(tx.db.one(sql::SESSION_OF_ACTIVITY, [id], |row| row.get(0))?.flatten())
}

/// Gives an activity back. The token of an expired lease is accepted until another fetch leases the activity.
pub(crate) fn abandon(tx: &mut Transaction<'_>, abandoned: &Abandon) -> Result<()> {
    let &Abandon { ref token, delay, ignore_attempt } = abandoned;
    let Some((id, _, secret)) = row_of(token) else { return refused(token) };
    let delay_ms = delay.map_or(0, saturating_ms);
    let (visible_at, delayed) = (tx.now.saturating_add(delay_ms), delay_ms != 0);
    let columns = (id, secret, column(visible_at), delayed, i64::from(ignore_attempt));
    if tx.db.run(sql::ABANDON_ACTIVITY, columns)? != 1 {
        return refused(token);
    }
    schedule(tx, visible_at, delayed);
    Ok(())
}

/// An activity to give back whose handler has failed.
pub(crate) struct AbandonNoted {
    pub(crate) token: String,
    pub(crate) delay: Option<Duration>,
    pub(crate) error: String,
}

/// Gives an activity back and keeps the failure of its handler. A token is accepted as by [`abandon`].
pub(crate) fn abandon_noted(tx: &mut Transaction<'_>, noted: &AbandonNoted) -> Result<()> {
    let AbandonNoted { token, delay, error } = noted;
    let Some((id, _, secret)) = row_of(token) else { return refused(token) };
    let delay_ms = delay.map_or(0, saturating_ms);
    let (visible_at, delayed) = (tx.now.saturating_add(delay_ms), delay_ms != 0);
    if tx.db.run(sql::ABANDON_NOTED, (id, secret, column(visible_at), delayed, error))? != 1 {
        return refused(token);
    }
    schedule(tx, visible_at, delayed);
    Ok(())
}

/// Wakes fetches for an activity that was given back.
fn schedule(tx: &mut Transaction<'_>, visible_at: u64, delayed: bool) {
    match delayed {
        true => tx.wakeups.schedule_poll(visible_at),
        false => tx.wakeups.poll.activities = true,
    }
}

/// The row that a token leases, whether it belongs to a session, and the secret that makes the token valid.
fn row_of(token: &str) -> Option<(i64, bool, Secret)> {
    let (secret, key) = token::parse(token)?;
    match key.strip_prefix('s') {
        Some(id) => Some((id.parse().ok()?, true, secret)),
        None => Some((key.parse().ok()?, false, secret)),
    }
}
