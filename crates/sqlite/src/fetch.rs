//! Handing out a turn.

use crate::command::Cx;
use crate::db::{Result, attempts, column, moment, readable, stored_text, unsigned};
use crate::message::{self, Tagged, Visible, bury, decode, tagged, visible};
use crate::share::LARGE_BYTES;
use crate::start::start_due;
use crate::waiting::{RawTurn, TurnAsk};
use crate::write::Seen;
use crate::{history, kv, sql};
use outlast_model::WorkItem;
use outlast_provider::{DeadLetterQueue, DispatcherCapabilityFilter};
use outlast_provider_kit::orphans;
use outlast_provider_kit::pin::{PinColumns, is_supported};
use outlast_provider_kit::token::Secret;
use outlast_provider_kit::{Context, Token, resolve, rows};
use rusqlite::Row;
use std::collections::{HashMap, HashSet, VecDeque};

/// Times before which no lease of each kind can end. They spare a look at the leases; too early is harmless.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Horizons {
    pub(crate) turn_leases: u64,
    pub(crate) work_leases: u64,
    pub(crate) large_turns: LargeTurns,
}

/// Whether fetches are given turns with large messages.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) enum LargeTurns {
    /// Always: a writer without a thread.
    #[default]
    Unlimited,
    /// In the next transaction, and only one.
    One,
    /// Not in the next transaction.
    Held {
        /// A fetch passed one over.
        was_passed_over: bool,
    },
}

impl LargeTurns {
    /// Says whether a turn with so many bytes may be handed out now.
    fn admit(&mut self, bytes: usize) -> bool {
        if bytes < LARGE_BYTES {
            return true;
        }
        match self {
            Self::Unlimited => true,
            Self::One => {
                *self = Self::Held { was_passed_over: false };
                true
            }
            Self::Held { was_passed_over } => {
                *was_passed_over = true;
                false
            }
        }
    }
}

/// An instance with waiting messages, and what is known about it.
struct Candidate {
    instance: String,
    /// When its oldest message became visible, and that message: the place in line.
    place: (i64, i64),
    /// Its oldest message, and whether it is the only one.
    oldest: Tagged,
    is_only: bool,
    /// Name, version, execution and last event, if the instance has a row; or why that cannot be read.
    row: std::result::Result<Option<Known>, String>,
    /// Whether an instance without a row has a history.
    has_history: bool,
    kv_changed: bool,
    created_at: Option<u64>,
    has_ended: bool,
}

type Known = (String, String, u64, u64);

/// The instances that fetches with one filter are offered in this transaction, looked up for many fetches at once.
pub(crate) struct Line {
    filter: Option<DispatcherCapabilityFilter>,
    waiting: VecDeque<Candidate>,
    exhausted: bool,
    /// Instances with large messages, which are not handed out in this transaction.
    passed_over: HashSet<String>,
}

impl Line {
    pub(crate) fn new(filter: Option<DispatcherCapabilityFilter>) -> Self {
        let exhausted = filter.as_ref().is_some_and(|filter| filter.supported_duroxide_versions.is_empty());
        Self { filter, waiting: VecDeque::new(), exhausted, passed_over: HashSet::new() }
    }

    pub(crate) fn is_for(&self, ask: &TurnAsk) -> bool {
        match (&self.filter, &ask.filter) {
            (Some(ours), Some(theirs)) => {
                ours.supported_duroxide_versions == theirs.supported_duroxide_versions
            }
            (ours, theirs) => ours.is_none() && theirs.is_none(),
        }
    }

    /// The longest waiting instance; looks up at most `wanted` of them at a time.
    fn next(&mut self, cx: &Cx<'_>, horizons: &mut Horizons, wanted: usize) -> Result<Option<Candidate>> {
        if self.waiting.is_empty() && !self.exhausted {
            // Each look passes over the same instances again.
            let wanted = wanted.max(self.passed_over.len());
            self.waiting = candidates(cx, self.filter.as_ref(), &self.passed_over, horizons, wanted)?.into();
            self.exhausted = self.waiting.len() < wanted;
        }
        Ok(self.waiting.pop_front())
    }

    pub(crate) fn has_passed_over(&self) -> bool {
        !self.passed_over.is_empty()
    }

    /// An instance that was taken from the line is still ready.
    fn look_again(&mut self) {
        self.waiting.clear();
        self.exhausted = false;
    }
}

/// What became of an instance that was to be handed out.
enum Claim {
    Turn(Box<RawTurn>),
    /// Its messages are gone or put off, or a fetch with another filter was faster.
    Nothing,
    /// Its messages are large, and no such turn is handed out now.
    PassedOver(String),
    /// None of its messages can be delivered, and it has more.
    Again,
}

/// Locks the longest waiting instance that can be handed out. `wanted`: how many fetches are to be served from this
/// line.
pub(crate) fn turn(
    cx: &mut Cx<'_>,
    ask: &TurnAsk,
    line: &mut Line,
    wanted: usize,
    horizons: &mut Horizons,
) -> Result<Option<RawTurn>> {
    // Every round either hands out a turn or removes or puts off the messages that it looked at.
    while let Some(candidate) = line.next(cx, horizons, wanted)? {
        match claim(cx, ask, horizons, candidate)? {
            Claim::Turn(turn) => return Ok(Some(*turn)),
            Claim::Again => line.look_again(),
            Claim::PassedOver(instance) => _ = line.passed_over.insert(instance),
            Claim::Nothing => {}
        }
    }
    Ok(None)
}

/// The longest waiting instances that the filter admits.
fn candidates(
    cx: &Cx<'_>,
    filter: Option<&DispatcherCapabilityFilter>,
    passed_over: &HashSet<String>,
    horizons: &mut Horizons,
    limit: usize,
) -> Result<Vec<Candidate>> {
    let now = column(cx.now);
    let mut found = admitted(cx, sql::CANDIDATE_TURNS, now, filter, passed_over, limit)?;
    if cx.now >= horizons.turn_leases {
        found.extend(admitted(cx, sql::EXPIRED_TURNS, now, filter, passed_over, limit)?);
        found.sort_by_key(|candidate| candidate.place);
        found.truncate(limit);
        let next_end = cx.db.one(sql::NEXT_LEASE_END, [i64::MIN], |row| moment(row, 0))?.flatten();
        horizons.turn_leases = next_end.map_or(u64::MAX, |at| u64::try_from(at).unwrap_or(0));
    }
    Ok(found)
}

fn admitted(
    cx: &Cx<'_>,
    sql: &str,
    now: i64,
    filter: Option<&DispatcherCapabilityFilter>,
    passed_over: &HashSet<String>,
    limit: usize,
) -> Result<Vec<Candidate>> {
    let mut found: Vec<Candidate> = Vec::new();
    let mut seen = HashSet::new();
    let mut nameless = Vec::new();
    cx.db.find(sql, [now], |row| {
        let Ok(instance) = row.get_ref(0)?.as_str() else {
            let message = tagged(row, ORDER_OF_CANDIDATE)?;
            nameless.push((stored_text(row, 0)?, message, attempts(row, 5)?));
            return Ok(None);
        };
        // Whoever gets it is told that its pin cannot be read.
        let is_supported = readable(pin(row))?.map_or(true, |pin| is_supported(filter, pin.as_ref()));
        if !seen.contains(instance) && !passed_over.contains(instance) && is_supported {
            seen.insert(instance.to_string());
            found.push(candidate(row)?);
        }
        Ok((found.len() == limit).then_some(()))
    })?;
    for (instance, mut message, attempts) in nameless {
        message::read_texts(cx.db, std::slice::from_mut(&mut message))?;
        let reason = "its instance cannot be read";
        bury(cx, DeadLetterQueue::Orchestrator, &instance, &message.text, reason, attempts)?;
        message::delete(cx.db, message.id)?;
    }
    Ok(found)
}

/// The pinned version of the instance's current execution.
fn pin(row: &Row<'_>) -> rusqlite::Result<Option<PinColumns>> {
    let Some(major) = row.get(10)? else { return Ok(None) };
    let pre = row.get::<_, Option<String>>(13)?.unwrap_or_default();
    Ok(Some(PinColumns { major, minor: row.get(11)?, patch: row.get(12)?, pre }))
}

/// Columns of the oldest message of a candidate.
const ORDER_OF_CANDIDATE: [usize; 5] = [2, 3, 4, 5, 19];

fn candidate(row: &Row<'_>) -> rusqlite::Result<Candidate> {
    let oldest = tagged(row, ORDER_OF_CANDIDATE)?;
    Ok(Candidate {
        instance: row.get(0)?,
        place: (moment(row, 1)?.unwrap_or(i64::MAX), oldest.id),
        oldest,
        is_only: row.get::<_, i64>(14)? == 1,
        row: readable(pin(row).and_then(|_| known(row)))?,
        has_history: row.get(15)?,
        kv_changed: row.get(16)?,
        created_at: moment(row, 17)?.and_then(|ms| u64::try_from(ms).ok()),
        has_ended: row.get::<_, Option<bool>>(18)?.unwrap_or(false),
    })
}

fn known(row: &Row<'_>) -> rusqlite::Result<Option<Known>> {
    let Some(name) = row.get::<_, Option<String>>(6)? else { return Ok(None) };
    let version = row.get::<_, Option<String>>(7)?.unwrap_or_else(|| "unknown".to_string());
    let last_event_id = row.get::<_, Option<i64>>(9)?.unwrap_or(0);
    Ok(Some((name, version, unsigned(row, 8)?, u64::try_from(last_event_id).unwrap_or(0))))
}

/// Takes the lease, covers with it as many of the visible messages as a fetch takes, and works out what they mean. If they mean
/// nothing, the lease is released and the messages are gone or put off.
fn claim(cx: &mut Cx<'_>, ask: &TurnAsk, horizons: &mut Horizons, candidate: Candidate) -> Result<Claim> {
    let instance = candidate.instance;
    let only = candidate.is_only.then_some(candidate.oldest.id);
    let Visible { messages: mut covered, is_partial } = match only {
        Some(_) => Visible { messages: vec![candidate.oldest], is_partial: false },
        None => visible(cx, &instance, ask.bound)?,
    };
    if !horizons.large_turns.admit(covered.iter().map(Tagged::bytes).fold(0, usize::saturating_add)) {
        return Ok(Claim::PassedOver(instance));
    }
    // A damaged length may be zero, and the text is there.
    let apart_bytes = covered
        .iter()
        .filter_map(|message| message.apart_bytes)
        .fold(0_usize, |all, bytes| all.saturating_add(bytes.max(1)));
    message::read_texts(cx.db, &mut covered)?;
    let ids: Vec<i64> = covered.iter().map(|message| message.id).collect();
    let total = covered.len();
    let (messages, damaged) = decode(&instance, &mut covered);
    let (known, damage) = match candidate.row {
        Ok(known) => (known, None),
        // What is left of it, so that somebody is told.
        Err(reason) => {
            let newest = history::newest_execution(cx.db, &instance)?;
            let reason = format!("rows of instance '{instance}': {reason}");
            (Some((String::new(), String::new(), newest, 0)), Some(reason))
        }
    };
    let seen = Seen {
        current_execution: known.as_ref().map_or(0, |(_, _, execution_id, _)| *execution_id),
        kv_changed: candidate.kv_changed,
        messages: covered.len(),
        is_partial,
        apart_bytes,
        instance: &instance,
    };
    let token = Token::mint(cx.entropy, seen);
    let locked_until = cx.now.saturating_add(ask.lock_ms);
    let lease = (&instance, token.secret, column(locked_until), column(cx.now));
    if is_partial {
        cx.db.run(sql::UNCOVER_MESSAGES, (&instance, column(cx.now)))?;
    }
    if cx.db.run(sql::LOCK_INSTANCE, lease)? != 1 {
        return Ok(Claim::Nothing);
    }
    match (only, is_partial) {
        (Some(_), _) | (_, true) => {
            for id in ids {
                let row = (id, token.secret, column(locked_until));
                cx.db.run_exactly(1, "covering a message", sql::TAG_MESSAGE, row)?;
            }
        }
        (None, false) => {
            let rows = (&instance, token.secret, column(locked_until), column(cx.now));
            cx.db.run_exactly(total, "covering messages", sql::TAG_MESSAGES, rows)?;
        }
    }
    for (message, reason) in damaged {
        let attempts = message.attempts.saturating_sub(1);
        bury(cx, DeadLetterQueue::Orchestrator, &instance, &message.text, &reason, attempts)?;
        message::delete(cx.db, message.id)?;
    }
    let resolved = match (messages.is_empty(), known) {
        (true, _) => None,
        (false, Some((name, version, execution_id, last_event_id))) => {
            Some((name, version, execution_id, Some(last_event_id)))
        }
        (false, None) => {
            let unknown = Unknown {
                instance: &instance,
                secret: token.secret,
                messages: &messages,
                tagged: &covered,
                is_partial,
                has_history: candidate.has_history,
            };
            match resolve_unknown(cx, &unknown, ask.orphan_life_ms)? {
                Meaning::Turn(resolved) => Some(resolved),
                Meaning::Nothing => None,
                Meaning::Rests { until } if is_partial => {
                    // What was left behind stays together with what was put off.
                    let rest = (&instance, token.secret, column(until));
                    cx.db.run_exactly(1, "letting an instance rest", sql::REST_INSTANCE, rest)?;
                    return Ok(Claim::Nothing);
                }
                Meaning::Rests { .. } => None,
            }
        }
    };
    let Some((orchestration_name, version, execution_id, last_event_id)) = resolved else {
        cx.db.run_exactly(1, "releasing a lease", sql::UNLOCK_INSTANCE, (&instance, token.secret))?;
        return Ok(if is_partial { Claim::Again } else { Claim::Nothing });
    };
    horizons.turn_leases = horizons.turn_leases.min(locked_until);
    cx.news.available_at(locked_until);
    let (replay, damage) = match ask.with_history && damage.is_none() {
        true => {
            let texts = match last_event_id {
                Some(_) => history::texts(cx.db, &instance, execution_id)?,
                None => Vec::new(),
            };
            match kv::snapshot(cx.db, &instance)? {
                Ok(snapshot) => (Some((texts, snapshot)), None),
                Err(reason) => (Some((texts, HashMap::new())), Some(reason)),
            }
        }
        false => (None, damage),
    };
    Ok(Claim::Turn(Box::new(RawTurn {
        orchestration_name,
        version,
        execution_id,
        messages,
        lock_token: token.text,
        attempt_count: covered.iter().map(|message| message.attempts).max().unwrap_or(0),
        last_event_id: last_event_id.unwrap_or(0),
        created_at: candidate.created_at,
        has_ended: candidate.has_ended,
        now: cx.now,
        replay,
        damage,
        instance,
    })))
}

/// Name, version, execution and last event; no last event means that no stored history belongs to the turn.
type Resolved = (String, String, u64, Option<u64>);

/// An instance without a row, under a lease that covers some messages.
struct Unknown<'a> {
    instance: &'a str,
    secret: Secret,
    messages: &'a [WorkItem],
    tagged: &'a [Tagged],
    is_partial: bool,
    has_history: bool,
}

/// What the messages of an instance without a row mean.
enum Meaning {
    Turn(Resolved),
    /// They are dropped.
    Nothing,
    /// They are put off.
    Rests {
        until: u64,
    },
}

/// An instance without a row: perhaps it has a history, perhaps it starts now, perhaps it does not exist.
fn resolve_unknown(cx: &mut Cx<'_>, unknown: &Unknown<'_>, orphan_life_ms: u64) -> Result<Meaning> {
    let &Unknown { instance, secret, messages, tagged, is_partial, has_history } = unknown;
    let (newest, texts) = match has_history {
        true => {
            let newest = history::newest_execution(cx.db, instance)?;
            (newest, history::texts(cx.db, instance, newest)?)
        }
        false => (1, Vec::new()),
    };
    let events = rows::decode_history(instance, newest, texts.iter().map(String::as_str));
    let known = events.as_ref().map(Vec::as_slice).map_err(String::as_str);
    let is_droppable = match resolve(messages, newest, known) {
        Context::Known { name, version, execution_id, has_history } => {
            let last_event_id = match has_history {
                true => Some(history::last_event_id(cx.db, instance, execution_id)?),
                false => None,
            };
            return Ok(Meaning::Turn((name, version, execution_id, last_event_id)));
        }
        // What was left behind may be a message for which the others are kept.
        Context::QueueOrphan => !is_partial,
        Context::ControlOrphan => false,
    };
    // Its start was delayed or given back: what came meanwhile is delivered with it, in order.
    if let Some(due) = start_due(cx, instance)? {
        cx.db.run_exactly(tagged.len(), "putting messages off", sql::UNTAG_MESSAGES, (instance, secret))?;
        // Not before: the start itself was not visible.
        let again_at = due.max(cx.now.saturating_add(1));
        cx.news.available_at(again_at);
        for message in tagged {
            let row = (message.id, column(again_at));
            cx.db.run_exactly(1, "putting a message off", sql::DELAY_MESSAGE, row)?;
        }
        return Ok(Meaning::Rests { until: again_at });
    }
    if is_droppable {
        tracing::warn!(
            target: "duroxide::providers::sqlite",
            instance, messages = tagged.len(), "queue messages for an unknown instance were dropped"
        );
        let deleted = (instance, secret);
        cx.db.run(sql::DELETE_TAGGED_TEXTS, deleted)?;
        cx.db.run_exactly(tagged.len(), "dropping orphans", sql::DELETE_TAGGED_MESSAGES, deleted)?;
        return Ok(Meaning::Nothing);
    }
    let until = put_off(cx, instance, secret, tagged, orphan_life_ms)?;
    Ok(Meaning::Rests { until })
}

/// Messages for an instance that does not exist wait a little longer each time, and not for ever. Returns until when.
fn put_off(cx: &mut Cx<'_>, instance: &str, secret: Secret, tagged: &[Tagged], life_ms: u64) -> Result<u64> {
    cx.db.run_exactly(tagged.len(), "putting orphans off", sql::UNTAG_MESSAGES, (instance, secret))?;
    let oldest = tagged.iter().map(|message| message.available_at).min().unwrap_or(cx.now);
    let again_at = orphans::retry_at(oldest, cx.now);
    cx.news.available_at(again_at);
    for message in tagged {
        if orphans::has_expired(message.available_at, cx.now, life_ms) {
            let reason = orphans::reason(instance, life_ms);
            let attempts = message.attempts.saturating_sub(1);
            bury(cx, DeadLetterQueue::Orchestrator, instance, &message.text, &reason, attempts)?;
            message::delete(cx.db, message.id)?;
        } else {
            cx.db.run_exactly(
                1,
                "putting an orphan off",
                sql::DELAY_MESSAGE,
                (message.id, column(again_at)),
            )?;
        }
    }
    Ok(again_at)
}
