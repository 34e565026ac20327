//! Committing a turn, giving it back, keeping its lease; enqueueing.

use crate::command::Cx;
use crate::db::{Result, column, id_column, key_column};
use crate::{SqliteError, history, kv, message, sql, work};
use outlast_provider::{Completion, TurnAhead, saturating_ms};
use outlast_provider_kit::pin::PinColumns;
use outlast_provider_kit::plan::visible_at;
use outlast_provider_kit::token::{self, Secret};
use outlast_provider_kit::{ActivityRow, CommitPlan, MessageRow, invalid_token, is_final};
use std::fmt;
use std::time::Duration;

/// What the fetch saw, carried in the token. While the lease lasts nobody else can change it, so the commit need not
/// look again.
#[derive(Clone, Copy)]
pub(crate) struct Seen<'a> {
    /// The instance's current execution, 0 if it has no row.
    pub(crate) current_execution: u64,
    /// Whether the current execution changed keys.
    pub(crate) kv_changed: bool,
    /// How many messages the lease covers.
    pub(crate) messages: usize,
    /// Visible messages were left behind, since there were more than a fetch takes.
    pub(crate) is_partial: bool,
    /// Bytes of the messages' texts that are stored apart.
    pub(crate) apart_bytes: usize,
    pub(crate) instance: &'a str,
}

impl<'a> Seen<'a> {
    /// With the secret that makes the token valid; `None` for a text that is no token of ours.
    fn of(token: &'a str) -> Option<(Self, Secret)> {
        let (secret, key) = token::parse(token)?;
        let (seen, rest) = key.split_once('.')?;
        let (messages, instance) = rest.split_once('.')?;
        let (execution, kv_changed) = flag(seen, 'k');
        let (messages, apart_bytes) = messages.split_once('a').unwrap_or((messages, "0"));
        let (messages, is_partial) = flag(messages, 'p');
        let seen = Self {
            current_execution: execution.parse().ok()?,
            kv_changed,
            messages: messages.parse().ok()?,
            is_partial,
            apart_bytes: apart_bytes.parse().ok()?,
            instance,
        };
        Some((seen, secret))
    }
}

/// Takes a flag off the end of a text; says whether it was there.
fn flag(text: &str, letter: char) -> (&str, bool) {
    text.strip_suffix(letter).map_or((text, false), |rest| (rest, true))
}

impl fmt::Display for Seen<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kv_changed = if self.kv_changed { "k" } else { "" };
        let partial = if self.is_partial { "p" } else { "" };
        write!(f, "{}{kv_changed}.{}{partial}", self.current_execution, self.messages)?;
        if self.apart_bytes > 0 {
            write!(f, "a{}", self.apart_bytes)?;
        }
        write!(f, ".{}", self.instance)
    }
}

/// The instance that a turn's token locks.
pub(crate) fn instance_of(token: &str) -> Option<&str> {
    Seen::of(token).map(|(seen, _)| seen.instance)
}

/// The bytes that a commit deletes with the messages of the turn.
pub(crate) fn bytes_to_delete(token: &str) -> usize {
    Seen::of(token).map_or(0, |(seen, _)| seen.apart_bytes)
}

/// Commits a turn: the fence first, then everything that the plan says.
pub(crate) fn commit(cx: &mut Cx<'_>, token: &str, plan: &CommitPlan) -> Result<()> {
    let now = column(cx.now);
    let Some((seen, secret)) = Seen::of(token) else { return refused(token) };
    let instance = seen.instance;
    if cx.db.run(sql::UNLOCK_LIVE_INSTANCE, (instance, secret, now))? != 1 {
        return refused(token);
    }
    let consumed = (instance, secret);
    if seen.apart_bytes > 0 {
        cx.db.run(sql::DELETE_TAGGED_TEXTS, consumed)?;
    }
    cx.db.run_exactly(seen.messages, "consuming messages", sql::DELETE_TAGGED_MESSAGES, consumed)?;
    apply(cx, seen, plan)?;
    // Messages that came after the fetch can be fetched now.
    cx.news.turns = true;
    Ok(())
}

/// Everything that a turn writes, once its fence has let it pass.
fn apply(cx: &mut Cx<'_>, seen: Seen<'_>, plan: &CommitPlan) -> Result<()> {
    let instance = seen.instance;
    record_instance(cx, seen, plan)?;
    record_execution(cx, seen, plan)?;
    history::insert(cx.db, instance, plan.execution_id, &plan.history)?;
    if let Some(status) = &plan.custom_status {
        cx.db.run(sql::SET_CUSTOM_STATUS, (instance, status))?;
    }
    kv::apply(cx, instance, &plan.kv)?;
    if plan.ends_execution() && (seen.kv_changed || !plan.kv.is_empty()) {
        kv::merge(cx.db, instance)?;
    }
    for row in &plan.activities {
        enqueue_work(cx, row)?;
    }
    for activity in &plan.cancelled {
        let execution = id_column("execution id", activity.execution_id)?;
        let cancelled = (&activity.instance, execution, key_column(activity.activity_id));
        cx.db.run(sql::CANCEL_ACTIVITY, cancelled)?;
    }
    for row in &plan.messages {
        enqueue_message(cx, row, None)?;
    }
    Ok(())
}

/// Completes an activity with the turn that follows from its outcome, if the instance is where the runner of the turn thought;
/// else with its outcome alone.
pub(crate) fn complete_with_turn(
    cx: &mut Cx<'_>,
    token: &str,
    completion: &MessageRow,
    ahead: &TurnAhead,
    plan: &CommitPlan,
) -> Result<Completion> {
    let instance = completion.instance_id.as_str();
    let stands = (
        instance,
        id_column("execution id", plan.execution_id)?,
        id_column("event id", ahead.after_event_id)?,
        column(cx.now),
    );
    let kv_changed = match ahead.is_of_now(cx.now) {
        true => cx.db.one(sql::UNDISTURBED, stands, |row| row.get(0))?,
        false => None,
    };
    let Some(kv_changed) = kv_changed else {
        work::ack(cx, token, Some(completion))?;
        return Ok(Completion::Queued);
    };
    work::ack(cx, token, None)?;
    let seen = Seen {
        current_execution: plan.execution_id,
        kv_changed,
        messages: 0,
        is_partial: false,
        apart_bytes: 0,
        instance,
    };
    apply(cx, seen, plan)?;
    Ok(Completion::WithTurn { at_ms: cx.now })
}

fn record_instance(cx: &Cx<'_>, seen: Seen<'_>, plan: &CommitPlan) -> Result<()> {
    let execution = id_column("execution id", plan.execution_id)?;
    let now = column(cx.now);
    let metadata = &plan.metadata;
    match (&metadata.orchestration_name, &metadata.orchestration_version) {
        (Some(name), Some(version)) => {
            let row = (seen.instance, name, version, execution, &metadata.parent_instance_id, now);
            cx.db.run(sql::UPSERT_INSTANCE, row)?;
        }
        _ if (1..plan.execution_id).contains(&seen.current_execution) => {
            cx.db.run_exactly(
                1,
                "raising the execution",
                sql::RAISE_EXECUTION,
                (seen.instance, execution, now),
            )?;
        }
        _ => {}
    }
    Ok(())
}

/// Creates or updates the execution.
fn record_execution(cx: &Cx<'_>, seen: Seen<'_>, plan: &CommitPlan) -> Result<()> {
    let instance = seen.instance;
    let execution = id_column("execution id", plan.execution_id)?;
    let now = column(cx.now);
    let metadata = &plan.metadata;
    let ended_at = metadata.status.as_deref().filter(|status| is_final(status)).map(|_| now);
    let output = metadata.status.as_ref().and(metadata.output.as_ref());
    let last_event = id_column("event id", plan.last_event_id().unwrap_or(0))?;
    let terminal = plan.terminal_event_id.map(column);
    let may_be_new = plan.execution_id != seen.current_execution;
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
    cx.db.run_exactly(1, "recording an execution", sql::UPSERT_EXECUTION, row)
}

pub(crate) fn enqueue_message(cx: &mut Cx<'_>, row: &MessageRow, delay: Option<Duration>) -> Result<()> {
    let visible_at = visible_at(row, cx.now, delay);
    cx.news.message_at(visible_at, cx.now);
    message::insert(cx.db, row, visible_at)
}

/// Enqueues a message if fewer than `most` wait for its instance; says whether it did.
pub(crate) fn enqueue_within(cx: &mut Cx<'_>, row: &MessageRow, most: usize) -> Result<bool> {
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let waiting: i64 =
        cx.db.one(sql::COUNT_WAITING, (&row.instance_id, most), |row| row.get(0))?.unwrap_or(0);
    if waiting >= most {
        return Ok(false);
    }
    enqueue_message(cx, row, None)?;
    Ok(true)
}

pub(crate) fn enqueue_work(cx: &mut Cx<'_>, row: &ActivityRow) -> Result<()> {
    cx.news.work = true;
    let columns = (
        &row.work_item,
        column(cx.now),
        &row.instance_id,
        id_column("execution id", row.execution_id)?,
        key_column(row.activity_id),
        &row.session_id,
        &row.tag,
    );
    cx.db.run(sql::ENQUEUE_WORK, columns)?;
    Ok(())
}

/// Gives a turn back. A token whose lease is over but that nobody replaced is still good for this.
pub(crate) fn abandon(
    cx: &mut Cx<'_>,
    token: &str,
    delay: Option<Duration>,
    ignore_attempt: bool,
) -> Result<()> {
    let Some((Seen { instance, is_partial, .. }, secret)) = Seen::of(token) else { return refused(token) };
    let visible_at = delay.map(|delay| cx.now.saturating_add(saturating_ms(delay)));
    // What was left behind must not overtake what comes back later.
    let released = match visible_at.filter(|_| is_partial) {
        Some(at) => cx.db.run(sql::REST_INSTANCE, (instance, secret, column(at)))?,
        None => cx.db.run(sql::UNLOCK_INSTANCE, (instance, secret))?,
    };
    if released != 1 {
        return refused(token);
    }
    let given_back = (instance, secret, visible_at.map(column), i64::from(ignore_attempt));
    cx.db.run(sql::ABANDON_MESSAGES, given_back)?;
    cx.news.turns = true;
    if let Some(at) = visible_at {
        cx.news.available_at(at);
    }
    Ok(())
}

pub(crate) fn renew(cx: &mut Cx<'_>, token: &str, extend_for: Duration) -> Result<()> {
    let Some((Seen { instance, .. }, secret)) = Seen::of(token) else { return refused(token) };
    let until = column(cx.now.saturating_add(saturating_ms(extend_for)));
    if cx.db.run(sql::RENEW_INSTANCE, (instance, secret, until, column(cx.now)))? != 1 {
        return refused(token);
    }
    cx.db.run(sql::RENEW_MESSAGES, (instance, secret, until))?;
    Ok(())
}

pub(crate) fn refused<T>(token: &str) -> Result<T> {
    Err(SqliteError::Refused(invalid_token(token)))
}
