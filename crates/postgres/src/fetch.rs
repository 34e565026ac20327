//! Hands out a leased turn: decodes its messages on the caller's task, and settles messages that cannot be delivered.

use crate::ask::FETCH_TURN;
use crate::db::{Param, Result, column};
use crate::functions::{FATE_DEAD_LETTER, FATE_DELAYED, FATE_DROPPED};
use crate::leased::{Guarded, Leases, RawTurn};
use crate::message::{self, Decoded};
use crate::reply::Reply;
use crate::request::{Answer, Attempts, Lease, ReadTexts, Request};
use crate::shared::Shared;
use crate::text::owned;
use crate::{PostgresError, history, kv};
use outlast_provider::{FetchedTurn, LoadedTurn, saturating_ms};
use outlast_provider_kit::orphans::{self, Fate, Rowless, RowlessBatch};
use outlast_provider_kit::{LeasedTurn, ResolvedTurn, resolve, rows};
use tokio_postgres::types::Type;

/// A message that is not delivered, and the code of its action (`FATE_*`).
struct Undelivered {
    id: i64,
    fate: i32,
    /// The reason for a dead letter.
    reason: Option<String>,
}

impl Undelivered {
    fn dead_letter(id: i64, reason: &str) -> Self {
        Self { id, fate: FATE_DEAD_LETTER, reason: Some(owned(reason)) }
    }
}

/// The decision about the messages of a leased turn.
enum Decision {
    Turn(ResolvedTurn),
    /// The messages make no turn. Holds the action for each message, and the time at which delayed messages become visible.
    NoTurn(Vec<Undelivered>, Option<u64>),
}

/// Hands out a leased turn, with its history and key-value state if `with_history`. `None` if the lease ended meanwhile, or if no
/// message can be delivered.
pub(crate) async fn hand_out(
    shared: &Shared,
    mut leased: Guarded<RawTurn>,
    with_history: bool,
) -> Answer<Option<FetchedTurn>> {
    if !read_texts(shared, &mut leased).await? {
        // The lease ended meanwhile, and another fetch has leased the instance.
        drop(leased.take());
        return Ok(None);
    }
    decoded(shared, leased, with_history).await.map_err(|error| error.during(FETCH_TURN))
}

/// Reads the texts of messages that the fetch has left out. Returns whether the lease was still live.
async fn read_texts(shared: &Shared, leased: &mut Guarded<RawTurn>) -> Answer<bool> {
    let Some(raw) = leased.peek_mut() else { return Ok(true) };
    let (Some(bytes), Some(lease)) = (raw.left_out_bytes, raw.leases().pop()) else { return Ok(true) };
    let ids = raw.messages.iter().map(|message| message.id).collect();
    let (reply, texts) = Reply::channel(FETCH_TURN);
    let read = ReadTexts { lease, ids, bytes, reply, attempts: Attempts::default() };
    let mut texts = shared.ask(Request::ReadTexts(read), texts).await?;
    for message in &mut raw.messages {
        let Some(text) = texts.remove(&message.id) else { return Ok(false) };
        message.text = text;
    }
    Ok(true)
}

/// Decodes the messages of a leased turn, and reads its history and key-value state if `with_history`. Damaged messages become
/// dead letters. `None` if the lease is lost, or if no message can be delivered: then the messages are removed or delayed, and
/// the lease ends.
async fn decoded(
    shared: &Shared,
    leased: Guarded<RawTurn>,
    with_history: bool,
) -> Result<Option<FetchedTurn>> {
    let Some(raw) = leased.peek() else { return Ok(None) };
    let decoded = message::decode(&raw.instance, &raw.messages);
    let mut undelivered: Vec<Undelivered> =
        decoded.damaged.iter().map(|(id, reason)| Undelivered::dead_letter(*id, reason)).collect();
    let (resolved, visible_at) = match decide(shared, raw, &decoded).await? {
        Decision::Turn(resolved) => (Some(resolved), None),
        Decision::NoTurn(more, visible_at) => {
            undelivered.extend(more);
            (None, visible_at)
        }
    };
    let is_over = resolved.is_none();
    if (is_over || !undelivered.is_empty()) && !settle(shared, raw, &undelivered, visible_at, is_over).await?
    {
        // The lease ended meanwhile, and another fetch has leased the instance.
        drop(leased.take());
        return Ok(None);
    }
    let Some(resolved) = resolved else {
        drop(leased.take());
        return Ok(None);
    };
    let (instance, execution_id) = (&raw.instance, resolved.execution_id);
    let loaded = match (with_history, resolved.last_event_id) {
        (false, _) => None,
        (true, Some(_)) => Some(history::load_turn(&shared.db, instance, execution_id).await?),
        (true, None) => {
            let kv_snapshot = kv::snapshot(&shared.db, instance).await?;
            Some(LoadedTurn { history: Vec::new(), kv_snapshot, history_error: None })
        }
    };
    let Some(raw) = leased.take() else { return Ok(None) };
    let current_execution = raw.row.as_ref().map_or(0, |row| row.execution_id);
    let at_fetch = raw.at_fetch(current_execution, decoded.items.len());
    let turn = LeasedTurn {
        instance: raw.instance,
        resolved,
        messages: decoded.items,
        lock_token: Lease::Turn { secret: raw.secret, at_fetch }.text(),
        attempt_count: decoded.attempts,
        created_at_ms: raw.created_at,
        has_ended: raw.has_ended,
        now_ms: raw.now,
    };
    Ok(Some(turn.into_fetched(loaded, None)))
}

/// Decides whether the messages make a turn.
async fn decide(shared: &Shared, raw: &RawTurn, decoded: &Decoded) -> Result<Decision> {
    if decoded.items.is_empty() {
        return Ok(Decision::NoTurn(Vec::new(), None));
    }
    if let Some(row) = &raw.row {
        return Ok(Decision::Turn(row.clone()));
    }
    // An instance without a row may have a history, start with these messages, or not exist.
    let db = &shared.db;
    let (newest, texts) = match raw.has_history {
        true => {
            let newest = history::newest_execution(db, &raw.instance).await?;
            (newest, history::texts(db, &raw.instance, newest).await?)
        }
        false => (1, Vec::new()),
    };
    let events = rows::decode_history(&raw.instance, newest, texts.iter().map(String::as_str));
    let known = events.as_ref().map(Vec::as_slice).map_err(String::as_str);
    let context = resolve(&decoded.items, newest, known);
    let available_at: Vec<u64> = decoded.kept.iter().map(|(_, available_at)| *available_at).collect();
    let batch = RowlessBatch {
        instance: &raw.instance,
        available_at: &available_at,
        is_partial: raw.is_partial,
        now: raw.now,
        orphan_life_ms: saturating_ms(shared.config.orphan_life),
    };
    let kept = decoded.kept.iter().map(|(id, _)| *id);
    Ok(match orphans::decide(context, &batch, || Ok::<_, PostgresError>(raw.start_due))? {
        Rowless::Turn { name, version, execution_id, has_history } => {
            let last_event_id = match has_history {
                true => Some(history::last_event_id(db, &raw.instance, execution_id).await?),
                false => None,
            };
            let orchestration_name = name;
            Decision::Turn(ResolvedTurn { orchestration_name, version, execution_id, last_event_id })
        }
        Rowless::Drop => {
            tracing::warn!(
                target: "duroxide::providers::postgres",
                instance = raw.instance, messages = decoded.kept.len(),
                "queue messages for an unknown instance were dropped"
            );
            let dropped = |id| Undelivered { id, fate: FATE_DROPPED, reason: None };
            Decision::NoTurn(kept.map(dropped).collect(), None)
        }
        Rowless::Delay { until, fates } => {
            let undelivered = |(id, fate)| match fate {
                Fate::Delayed => Undelivered { id, fate: FATE_DELAYED, reason: None },
                Fate::DeadLetter(reason) => Undelivered::dead_letter(id, &reason),
            };
            Decision::NoTurn(kept.zip(fates).map(undelivered).collect(), Some(until))
        }
    })
}

/// Executes the actions for messages of a leased turn. Returns whether the lease was still live.
async fn settle(
    shared: &Shared,
    raw: &RawTurn,
    undelivered: &[Undelivered],
    visible_at: Option<u64>,
    is_over: bool,
) -> Result<bool> {
    let db = &shared.db;
    let (mut ids, mut fates, mut reasons) = (Vec::new(), Vec::new(), Vec::new());
    for message in undelivered {
        ids.push(message.id);
        fates.push(message.fate);
        reasons.push(message.reason.clone());
    }
    let dead = fates.iter().filter(|fate| **fate == FATE_DEAD_LETTER).count();
    if dead > 0 {
        // The reason may quote the message, so it goes to the table and not to the log.
        tracing::warn!(
            target: "duroxide::providers::postgres",
            instance = raw.instance, messages = dead, "messages became dead letters, see dead_letters"
        );
        db.counters.dead_letters.add(dead);
    }
    let (instance, secret) = (owned(&raw.instance), raw.secret.to_vec());
    let visible_at_column = column(visible_at.unwrap_or(0));
    // Messages that the lease does not cover wait together with the delayed messages.
    let holds_back = raw.is_partial && is_over && visible_at.is_some();
    let params: [Param<'_>; 8] = [
        (&instance, Type::TEXT),
        (&secret, Type::BYTEA),
        (&ids, Type::INT8_ARRAY),
        (&fates, Type::INT4_ARRAY),
        (&reasons, Type::TEXT_ARRAY),
        (&visible_at_column, Type::INT8),
        (&is_over, Type::BOOL),
        (&holds_back, Type::BOOL),
    ];
    let row = db.one(&db.statements.settle_turn, &params).await?;
    let is_any_delayed = fates.contains(&FATE_DELAYED);
    if let Some(at) = visible_at.filter(|_| is_any_delayed || holds_back) {
        shared.on_due_in(at.saturating_sub(raw.now));
    }
    row.map_or(Ok(false), |row| crate::db::cell(&row, crate::db::ONLY))
}
