//! Handing out a turn.

use crate::command::Cx;
use crate::db::{Result, attempts, column, unsigned};
use crate::waiting::{RawTurn, TurnAsk};
use crate::{kv, sql};
use outlast_model::{WorkItem, json};
use outlast_provider::DeadLetterQueue;
use outlast_provider_kit::orphans::{self, OrphanFate};
use outlast_provider_kit::pin::{PinColumns, is_admitted};
use outlast_provider_kit::{Context, Token, resolve, rows};
use rusqlite::Row;

/// Times before which no lease of each kind can end. They spare a look at the leases; too early is harmless.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Horizons {
    pub(crate) turn_leases: u64,
    pub(crate) work_leases: u64,
}

/// An instance with waiting messages, and what is known about it.
struct Candidate {
    instance: String,
    /// Since when it can be fetched, and its first message: the place in line.
    place: (i64, i64),
    /// Name, version, execution and last event, if the instance has a row.
    row: Option<(String, String, u64, u64)>,
}

/// A message under the new lease.
struct Tagged {
    id: i64,
    text: String,
    available_at: u64,
    attempts: u32,
}

/// Locks the longest waiting instance that can be handed out.
pub(crate) fn turn(
    cx: &mut Cx<'_>,
    ask: &TurnAsk,
    horizons: &mut Horizons,
    orphan_life_ms: u64,
) -> Result<Option<RawTurn>> {
    if ask.filter.as_ref().is_some_and(|filter| filter.supported_duroxide_versions.is_empty()) {
        return Ok(None);
    }
    // Every round either hands out a turn or removes or puts off the messages that it looked at.
    while let Some(candidate) = next_candidate(cx, ask, horizons)? {
        if let Some(turn) = claim(cx, ask, horizons, candidate, orphan_life_ms)? {
            return Ok(Some(turn));
        }
    }
    Ok(None)
}

fn next_candidate(cx: &Cx<'_>, ask: &TurnAsk, horizons: &mut Horizons) -> Result<Option<Candidate>> {
    let now = column(cx.now);
    let ready = cx.db.find(sql::CANDIDATE_TURNS, [now], |row| admitted(row, ask))?;
    if cx.now < horizons.turn_leases {
        return Ok(ready);
    }
    let expired = cx.db.find(sql::EXPIRED_TURNS, [now], |row| admitted(row, ask))?;
    let next_end = cx.db.one(sql::NEXT_LEASE_END, [i64::MIN], |row| row.get::<_, Option<i64>>(0))?.flatten();
    horizons.turn_leases = next_end.map_or(u64::MAX, |at| u64::try_from(at).unwrap_or(0));
    Ok([ready, expired].into_iter().flatten().min_by_key(|candidate| candidate.place))
}

/// The row as a candidate, if the filter admits the pinned version of its execution.
fn admitted(row: &Row<'_>, ask: &TurnAsk) -> rusqlite::Result<Option<Candidate>> {
    if ask.filter.is_some() {
        let pin = match row.get::<_, Option<i64>>(7)? {
            Some(major) => Some(PinColumns {
                major,
                minor: row.get(8)?,
                patch: row.get(9)?,
                pre: row.get::<_, Option<String>>(10)?.unwrap_or_default(),
            }),
            None => None,
        };
        if !is_admitted(ask.filter.as_ref(), pin.as_ref()) {
            return Ok(None);
        }
    }
    let known = match row.get::<_, Option<String>>(3)? {
        Some(name) => {
            let version = row.get::<_, Option<String>>(4)?.unwrap_or_else(|| "unknown".to_string());
            let last_event_id = row.get::<_, Option<i64>>(6)?.unwrap_or(0);
            Some((name, version, unsigned(row, 5)?, u64::try_from(last_event_id).unwrap_or(0)))
        }
        None => None,
    };
    Ok(Some(Candidate { instance: row.get(0)?, place: (row.get(1)?, row.get(2)?), row: known }))
}

/// Takes the lease, covers the visible messages with it, and works out what they mean. `None` if they mean nothing:
/// then the lease is released and the messages are gone or put off.
fn claim(
    cx: &mut Cx<'_>,
    ask: &TurnAsk,
    horizons: &mut Horizons,
    candidate: Candidate,
    orphan_life_ms: u64,
) -> Result<Option<RawTurn>> {
    let instance = candidate.instance;
    let token = Token::mint(cx.entropy, &instance).into_string();
    let locked_until = cx.now.saturating_add(ask.lock_ms);
    let lease = (&instance, &token, column(locked_until), column(cx.now));
    cx.db.run_exactly(1, "taking a lease", sql::LOCK_INSTANCE, lease)?;
    let mut tagged = tag(cx, &instance, &token, locked_until)?;
    let messages = decode(cx, &instance, &mut tagged)?;
    let resolved = match (messages.is_empty(), candidate.row) {
        (true, _) => None,
        (false, Some((name, version, execution_id, last_event_id))) => {
            Some((name, version, execution_id, last_event_id))
        }
        (false, None) => resolve_unknown(cx, &instance, &token, &messages, &tagged, orphan_life_ms)?,
    };
    let Some((orchestration_name, version, execution_id, last_event_id)) = resolved else {
        cx.db.run_exactly(1, "releasing a lease", sql::UNLOCK_INSTANCE, (&instance, &token))?;
        return Ok(None);
    };
    horizons.turn_leases = horizons.turn_leases.min(locked_until);
    cx.news.available_at(locked_until);
    let replay = match ask.with_history {
        true => Some((history_texts(cx, &instance, execution_id)?, kv::snapshot(cx.db, &instance)?)),
        false => None,
    };
    Ok(Some(RawTurn {
        orchestration_name,
        version,
        execution_id,
        messages,
        lock_token: token,
        attempt_count: tagged.iter().map(|message| message.attempts).max().unwrap_or(0),
        last_event_id,
        now: cx.now,
        replay,
        instance,
    }))
}

fn tag(cx: &Cx<'_>, instance: &str, token: &str, locked_until: u64) -> Result<Vec<Tagged>> {
    let covered = (instance, token, column(locked_until), column(cx.now));
    let mut tagged = cx.db.all(sql::TAG_MESSAGES, covered, |row| {
        Ok(Tagged {
            id: row.get(0)?,
            text: row.get(1)?,
            available_at: unsigned(row, 2)?,
            attempts: attempts(row, 3)?,
        })
    })?;
    tagged.sort_by_key(|message| (message.available_at, message.id));
    Ok(tagged)
}

/// The messages; those that do not decode are set aside and leave `tagged`.
fn decode(cx: &Cx<'_>, instance: &str, tagged: &mut Vec<Tagged>) -> Result<Vec<WorkItem>> {
    let mut messages = Vec::with_capacity(tagged.len());
    let mut damaged = Vec::new();
    tagged.retain(|message| match json::decode_work_item(&message.text) {
        Ok(item) => {
            messages.push(item);
            true
        }
        Err(error) => {
            // The count is that of the deliveries before this one, which did not happen.
            damaged.push((message.id, message.text.clone(), error.to_string(), message.attempts.saturating_sub(1)));
            false
        }
    });
    for (id, text, reason, attempts) in damaged {
        bury(cx, DeadLetterQueue::Orchestrator, instance, &text, &reason, attempts)?;
        cx.db.run_exactly(1, "setting a message aside", sql::DELETE_MESSAGE, [id])?;
    }
    Ok(messages)
}

/// Sets a message aside.
pub(crate) fn bury(
    cx: &Cx<'_>,
    queue: DeadLetterQueue,
    instance: &str,
    text: &str,
    reason: &str,
    attempts: u32,
) -> Result<()> {
    tracing::warn!(
        target: "duroxide::providers::sqlite",
        instance, queue = queue.as_str(), reason, "a message was set aside"
    );
    cx.db.counters.dead_letters.add(1);
    cx.db.run(sql::DEAD_LETTER, (queue.as_str(), instance, text, reason, attempts, column(cx.now)))?;
    Ok(())
}

/// An instance without a row: perhaps it has a history, perhaps it starts now, perhaps it does not exist.
fn resolve_unknown(
    cx: &Cx<'_>,
    instance: &str,
    token: &str,
    messages: &[WorkItem],
    tagged: &[Tagged],
    orphan_life_ms: u64,
) -> Result<Option<(String, String, u64, u64)>> {
    let texts: Vec<String> = cx.db.all(sql::PROBE_HISTORY, [instance], |row| row.get(0))?;
    cx.db.counters.history_rows_read.add(texts.len());
    let newest = match texts.is_empty() {
        true => 1,
        false => crate::history::newest_execution(cx.db, instance)?,
    };
    let history = rows::decode_history(instance, newest, texts.iter().map(String::as_str));
    let known = history.as_ref().map(Vec::as_slice).map_err(String::as_str);
    match resolve(messages, newest, known) {
        Context::Known { name, version, execution_id, has_history } => {
            let last_event_id = match has_history {
                true => crate::history::last_event_id(cx.db, instance, execution_id)?,
                false => 0,
            };
            Ok(Some((name, version, execution_id, last_event_id)))
        }
        Context::QueueOrphan => {
            tracing::warn!(
                target: "duroxide::providers::sqlite",
                instance, messages = tagged.len(), "queue messages for an unknown instance were dropped"
            );
            let deleted = (instance, token);
            cx.db.run_exactly(tagged.len(), "dropping orphans", sql::DELETE_TAGGED_MESSAGES, deleted)?;
            Ok(None)
        }
        Context::ControlOrphan => {
            put_off(cx, instance, token, tagged, orphan_life_ms)?;
            Ok(None)
        }
    }
}

/// Messages for an instance that does not exist wait a little longer each time, and not for ever.
fn put_off(cx: &Cx<'_>, instance: &str, token: &str, tagged: &[Tagged], life_ms: u64) -> Result<()> {
    cx.db.run_exactly(tagged.len(), "putting orphans off", sql::UNTAG_MESSAGES, (instance, token))?;
    for message in tagged {
        match orphans::fate(message.available_at, cx.now, life_ms) {
            OrphanFate::RetryAt(at) => {
                cx.db.run_exactly(1, "putting an orphan off", sql::DELAY_MESSAGE, (message.id, column(at)))?;
            }
            OrphanFate::SetAside => {
                let reason = orphans::reason(instance, life_ms);
                let attempts = message.attempts.saturating_sub(1);
                bury(cx, DeadLetterQueue::Orchestrator, instance, &message.text, &reason, attempts)?;
                cx.db.run_exactly(1, "setting an orphan aside", sql::DELETE_MESSAGE, [message.id])?;
            }
        }
    }
    Ok(())
}

fn history_texts(cx: &Cx<'_>, instance: &str, execution_id: u64) -> Result<Vec<String>> {
    crate::history::texts(cx.db, instance, execution_id)
}
