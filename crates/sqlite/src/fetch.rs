//! Fetches of turns.

use crate::SqliteOptions;
use crate::commit::{find_expired_leases, make_first_ready};
use crate::db::{Result, attempts, column, readable, stored_text, stored_time, unsigned};
use crate::leased::{RawTurn, TurnFacts};
use crate::message::{self, CoveredMessage, Visible, covered_message, decode, store_dead_letter, visible};
use crate::park::{Ask, FetchState, MAX_LOOKUP};
use crate::start::start_due;
use crate::transaction::Transaction;
use crate::{history, kv, sql};
use outlast_model::WorkItem;
use outlast_model::defect::{self, Defect};
use outlast_provider::{
    DeadLetterQueue, DispatcherCapabilityFilter, MessageBound, TurnRequest, saturating_ms,
};
use outlast_provider_kit::orphans::{self, Fate, Rowless, RowlessBatch};
use outlast_provider_kit::pin::{PinColumns, is_supported};
use outlast_provider_kit::token::Secret;
use outlast_provider_kit::{LeasedTurn, ResolvedTurn, Token, TurnAtFetch, resolve, rows};
use rusqlite::Row;
use std::collections::{HashMap, HashSet, VecDeque};

/// The conditions of a fetch of one turn.
#[derive(Debug, Clone)]
pub(crate) struct TurnAsk {
    pub(crate) lock_ms: u64,
    pub(crate) filter: Option<DispatcherCapabilityFilter>,
    pub(crate) with_history: bool,
    /// How long a message for an instance that never starts is kept.
    pub(crate) orphan_life_ms: u64,
    pub(crate) bound: MessageBound,
}

impl TurnAsk {
    pub(crate) fn of(request: &TurnRequest<'_>, options: &SqliteOptions) -> Self {
        Self {
            lock_ms: saturating_ms(request.lock_timeout),
            filter: request.filter.cloned(),
            with_history: request.with_history,
            orphan_life_ms: saturating_ms(options.orphan_life),
            bound: options.message_bound,
        }
    }
}

impl Ask for TurnAsk {
    type Leases = RawTurn;
    type Lookup = TurnLookup;
    const OPERATION: &'static str = "fetch_orchestration_item";

    fn lookup(&self) -> TurnLookup {
        TurnLookup::new(self.filter.clone())
    }

    fn fits(&self, lookup: &TurnLookup) -> bool {
        lookup.is_for(self)
    }

    fn has_passed_over(lookup: &TurnLookup) -> bool {
        !lookup.passed_over.is_empty()
    }

    fn fetch(
        &self,
        tx: &mut Transaction<'_>,
        lookup: &mut TurnLookup,
        waiting: usize,
        state: &mut FetchState,
    ) -> Result<Option<RawTurn>> {
        turn(tx, self, lookup, waiting.min(MAX_LOOKUP), state)
    }
}

/// An instance with due messages, and the columns of its rows.
struct Candidate {
    instance: String,
    oldest: CoveredMessage,
    /// Whether the instance has no other message.
    is_only: bool,
    /// The current execution, if the instance has a row; or the reason why the row cannot be read.
    row: std::result::Result<Option<ResolvedTurn>, String>,
    /// Whether an instance without a row has a history.
    has_history: bool,
    kv_changed: bool,
    created_at: Option<u64>,
    has_ended: bool,
}

/// The candidates of one transaction for fetches with one filter, looked up for many fetches at once.
pub(crate) struct TurnLookup {
    filter: Option<DispatcherCapabilityFilter>,
    candidates: VecDeque<Candidate>,
    /// Whether the tables hold no further candidates.
    exhausted: bool,
    /// Instances with large messages that this transaction does not hand out.
    passed_over: HashSet<String>,
}

impl TurnLookup {
    fn new(filter: Option<DispatcherCapabilityFilter>) -> Self {
        let exhausted = filter.as_ref().is_some_and(|filter| filter.supported_duroxide_versions.is_empty());
        Self { filter, candidates: VecDeque::new(), exhausted, passed_over: HashSet::new() }
    }

    fn is_for(&self, ask: &TurnAsk) -> bool {
        match (&self.filter, &ask.filter) {
            (Some(ours), Some(theirs)) => {
                ours.supported_duroxide_versions == theirs.supported_duroxide_versions
            }
            (ours, theirs) => ours.is_none() && theirs.is_none(),
        }
    }

    /// The candidate whose oldest message became visible first. One statement looks up at most `wanted` candidates.
    fn next(
        &mut self,
        tx: &mut Transaction<'_>,
        state: &mut FetchState,
        wanted: usize,
    ) -> Result<Option<Candidate>> {
        if self.candidates.is_empty() && !self.exhausted {
            // Each lookup reads the instances that were passed over again.
            let wanted = wanted.max(self.passed_over.len());
            find_expired_leases(tx, state)?;
            self.candidates = candidates(tx, self.filter.as_ref(), &self.passed_over, wanted)?.into();
            self.exhausted = self.candidates.len() < wanted;
        }
        Ok(self.candidates.pop_front())
    }

    /// Discards the candidates, because an instance that was taken from them still has due messages.
    fn restart(&mut self) {
        self.candidates.clear();
        self.exhausted = false;
    }
}

/// The result of an attempt to lease an instance.
enum Claim {
    Turn(Box<RawTurn>),
    /// The messages were deleted or delayed, or a fetch with another filter leased the instance.
    Nothing,
    /// The messages are large, and this transaction hands out no large turn.
    PassedOver(String),
    /// None of the covered messages can be delivered, and the instance has more messages.
    Again,
}

/// Leases the first candidate that can be handed out. `wanted` is the number of fetches to be served from this lookup.
fn turn(
    tx: &mut Transaction<'_>,
    ask: &TurnAsk,
    lookup: &mut TurnLookup,
    wanted: usize,
    state: &mut FetchState,
) -> Result<Option<RawTurn>> {
    // Every round hands out a turn, or deletes, delays or passes over the messages of its candidate.
    while let Some(candidate) = lookup.next(tx, state, wanted)? {
        match claim(tx, ask, state, candidate)? {
            Claim::Turn(turn) => return Ok(Some(*turn)),
            Claim::Again => lookup.restart(),
            Claim::PassedOver(instance) => _ = lookup.passed_over.insert(instance),
            Claim::Nothing => {}
        }
    }
    Ok(None)
}

/// The instances that the filter selects, those whose oldest message became visible first in front. Messages whose instance cannot
/// be read become dead letters.
fn candidates(
    tx: &Transaction<'_>,
    filter: Option<&DispatcherCapabilityFilter>,
    passed_over: &HashSet<String>,
    limit: usize,
) -> Result<Vec<Candidate>> {
    let mut found: Vec<Candidate> = Vec::new();
    let mut seen = HashSet::new();
    let mut unreadable = Vec::new();
    tx.db.find(sql::CANDIDATE_TURNS, [column(tx.now)], |row| {
        let Ok(instance) = row.get_ref(0)?.as_str() else {
            let message = covered_message(row, OLDEST_MESSAGE)?;
            unreadable.push((stored_text(row, 0)?, message, attempts(row, 5)?));
            return Ok(None);
        };
        // An unreadable pin does not exclude the instance: the turn then reports the damage.
        let is_supported = readable(pin(row))?.map_or(true, |pin| is_supported(filter, pin.as_ref()));
        if !seen.contains(instance) && !passed_over.contains(instance) && is_supported {
            seen.insert(instance.to_string());
            found.push(candidate(row)?);
        }
        Ok((found.len() == limit).then_some(()))
    })?;
    for (instance, mut message, attempts) in unreadable {
        message::read_texts(tx.db, std::slice::from_mut(&mut message))?;
        let reason = "its instance cannot be read";
        store_dead_letter(tx, DeadLetterQueue::Orchestrator, &instance, &message.text, reason, attempts)?;
        message::delete(tx.db, message.id)?;
    }
    Ok(found)
}

/// The pinned version of the instance's current execution.
fn pin(row: &Row<'_>) -> rusqlite::Result<Option<PinColumns>> {
    let Some(major) = row.get(10)? else { return Ok(None) };
    let pre = row.get::<_, Option<String>>(13)?.unwrap_or_default();
    Ok(Some(PinColumns { major, minor: row.get(11)?, patch: row.get(12)?, pre }))
}

/// The columns of the oldest message of a candidate.
const OLDEST_MESSAGE: [usize; 5] = [2, 3, 4, 5, 19];

fn candidate(row: &Row<'_>) -> rusqlite::Result<Candidate> {
    Ok(Candidate {
        instance: row.get(0)?,
        oldest: covered_message(row, OLDEST_MESSAGE)?,
        is_only: row.get::<_, i64>(14)? == 1,
        row: readable(pin(row).and_then(|_| known(row)))?,
        has_history: row.get(15)?,
        kv_changed: row.get(16)?,
        created_at: stored_time(row, 17)?.and_then(|ms| u64::try_from(ms).ok()),
        has_ended: row.get::<_, Option<bool>>(18)?.unwrap_or(false),
    })
}

/// The current execution of the instance; `None` if it has no row.
fn known(row: &Row<'_>) -> rusqlite::Result<Option<ResolvedTurn>> {
    let Some(orchestration_name) = row.get::<_, Option<String>>(6)? else { return Ok(None) };
    let version = row.get::<_, Option<String>>(7)?.unwrap_or_else(|| "unknown".to_string());
    let last_event_id = row.get::<_, Option<i64>>(9)?.unwrap_or(0);
    Ok(Some(ResolvedTurn {
        orchestration_name,
        version,
        execution_id: unsigned(row, 8)?,
        last_event_id: Some(u64::try_from(last_event_id).unwrap_or(0)),
    }))
}

/// Leases the instance and covers as many of its visible messages as a fetch takes. If the messages make no turn, the lease is
/// released and the messages are deleted or delayed.
fn claim(
    tx: &mut Transaction<'_>,
    ask: &TurnAsk,
    state: &mut FetchState,
    candidate: Candidate,
) -> Result<Claim> {
    let instance = candidate.instance;
    let only = candidate.is_only.then_some(candidate.oldest.id);
    let found = match only {
        Some(_) => Some(Visible { messages: vec![candidate.oldest], is_partial: false }),
        None => {
            let bound = state.large_turns.narrow(ask.bound);
            visible(tx, &instance, bound, state.large_turns.read_limit())?
        }
    };
    let bytes = found.as_ref().map_or(usize::MAX, |found| {
        found.messages.iter().map(CoveredMessage::bytes).fold(0, usize::saturating_add)
    });
    // `take` refuses a turn that was not read to its end, and records that it was passed over.
    let is_taken = state.large_turns.take(bytes);
    let Some(Visible { messages: mut covered, is_partial }) = found.filter(|_| is_taken) else {
        return Ok(Claim::PassedOver(instance));
    };
    // A damaged length may be zero although the text exists.
    let external_bytes = covered
        .iter()
        .filter_map(|message| message.external_bytes)
        .fold(0_usize, |all, bytes| all.saturating_add(bytes.max(1)));
    let covered_until = covered.iter().map(|message| message.available_at).max().filter(|_| is_partial);
    message::read_texts(tx.db, &mut covered)?;
    if defect::is_on(Defect::FetchReversed) {
        covered.reverse();
    }
    let ids: Vec<i64> = covered.iter().map(|message| message.id).collect();
    let total = covered.len();
    let (messages, damaged) = decode(&instance, &mut covered);
    let (known, damage) = match candidate.row {
        Ok(known) => (known, None),
        // The turn is handed out with the reason, so that the runtime reports it.
        Err(reason) => {
            let newest = history::newest_execution(tx.db, &instance)?;
            let reason = format!("rows of instance '{instance}': {reason}");
            let turn = ResolvedTurn {
                orchestration_name: String::new(),
                version: String::new(),
                execution_id: newest,
                last_event_id: Some(0),
            };
            (Some(turn), Some(reason))
        }
    };
    let at_fetch = TurnAtFetch {
        current_execution: known.as_ref().map_or(0, |known| known.execution_id),
        messages: covered.len(),
        is_partial,
        instance: instance.as_str(),
    };
    let facts = TurnFacts { kv_changed: candidate.kv_changed, external_bytes, covered_until, at_fetch };
    let token = Token::mint_for(tx.owner, tx.entropy, facts);
    let locked_until = tx.now.saturating_add(ask.lock_ms);
    let lease = (&instance, token.secret, column(locked_until), column(tx.now));
    if is_partial {
        tx.db.run(sql::UNCOVER_MESSAGES, (&instance, column(tx.now)))?;
    }
    if tx.db.run(sql::LOCK_INSTANCE, lease)? != 1 {
        return Ok(Claim::Nothing);
    }
    match (only, is_partial) {
        (Some(_), _) | (_, true) => {
            for id in ids {
                let row = (id, token.secret, column(locked_until));
                tx.db.run_exactly(1, "covering a message", sql::COVER_MESSAGE, row)?;
            }
        }
        (None, false) => {
            let rows = (&instance, token.secret, column(locked_until), column(tx.now));
            tx.db.run_exactly(total, "covering messages", sql::COVER_MESSAGES, rows)?;
        }
    }
    for (message, reason) in damaged {
        let attempts = message.attempts.saturating_sub(1);
        store_dead_letter(tx, DeadLetterQueue::Orchestrator, &instance, &message.text, &reason, attempts)?;
        message::delete(tx.db, message.id)?;
    }
    let resolved = match (messages.is_empty(), known) {
        (true, _) => None,
        (false, Some(known)) => Some(known),
        (false, None) => {
            let rowless = LeasedRowless {
                instance: &instance,
                secret: token.secret,
                messages: &messages,
                covered: &covered,
                covered_until: facts.covered_until(),
                is_partial,
                has_history: candidate.has_history,
            };
            match settle_rowless(tx, &rowless, ask.orphan_life_ms)? {
                Settled::Turn(resolved) => Some(resolved),
                Settled::Dropped => None,
                Settled::Delayed { until } if is_partial => {
                    // The messages that were not covered must not be delivered before the delayed ones.
                    let delay = (&instance, token.secret, column(until));
                    tx.db.run_exactly(1, "delaying an instance", sql::DELAY_INSTANCE, delay)?;
                    make_first_ready(tx, &instance)?;
                    return Ok(Claim::Nothing);
                }
                Settled::Delayed { .. } => None,
            }
        }
    };
    let Some(resolved) = resolved else {
        tx.db.run_exactly(1, "releasing a lease", sql::UNLOCK_INSTANCE, (&instance, token.secret))?;
        make_first_ready(tx, &instance)?;
        return Ok(if is_partial { Claim::Again } else { Claim::Nothing });
    };
    let next_lease_end = &mut state.next_lease_end.turns;
    *next_lease_end = (*next_lease_end).min(locked_until);
    tx.wakeups.schedule_poll(locked_until);
    let (replay, damage) = match ask.with_history && damage.is_none() {
        true => {
            let texts = match resolved.last_event_id {
                Some(_) => history::texts(tx.db, &instance, resolved.execution_id)?,
                None => Vec::new(),
            };
            match kv::snapshot(tx.db, &instance)? {
                Ok(snapshot) => (Some((texts, snapshot)), None),
                Err(reason) => (Some((texts, HashMap::new())), Some(reason)),
            }
        }
        false => (None, damage),
    };
    let turn = LeasedTurn {
        resolved,
        messages,
        lock_token: token.text,
        attempt_count: covered.iter().map(|message| message.attempts).max().unwrap_or(0),
        created_at_ms: candidate.created_at,
        has_ended: candidate.has_ended,
        now_ms: tx.now,
        instance,
    };
    Ok(Claim::Turn(Box::new(RawTurn { turn, replay, damage })))
}

/// An instance without a row, under a lease that covers messages.
struct LeasedRowless<'a> {
    instance: &'a str,
    secret: Secret,
    messages: &'a [WorkItem],
    covered: &'a [CoveredMessage],
    /// No covered message became available after this time.
    covered_until: i64,
    is_partial: bool,
    has_history: bool,
}

/// The result for the messages of an instance without a row.
enum Settled {
    /// The messages make a turn.
    Turn(ResolvedTurn),
    Dropped,
    /// The messages become visible at this time.
    Delayed {
        until: u64,
    },
}

/// Decides whether an instance without a row has a history, starts with these messages, or does not exist. Messages that make no
/// turn are dropped or delayed.
fn settle_rowless(
    tx: &mut Transaction<'_>,
    leased: &LeasedRowless<'_>,
    orphan_life_ms: u64,
) -> Result<Settled> {
    let &LeasedRowless { instance, secret, messages, covered, covered_until, is_partial, has_history } =
        leased;
    let (newest, texts) = match has_history {
        true => {
            let newest = history::newest_execution(tx.db, instance)?;
            (newest, history::texts(tx.db, instance, newest)?)
        }
        false => (1, Vec::new()),
    };
    let events = rows::decode_history(instance, newest, texts.iter().map(String::as_str));
    let known = events.as_ref().map(Vec::as_slice).map_err(String::as_str);
    let context = resolve(messages, newest, known);
    let available_at: Vec<u64> = covered.iter().map(|message| message.available_at).collect();
    let batch =
        RowlessBatch { instance, available_at: &available_at, is_partial, now: tx.now, orphan_life_ms };
    match orphans::decide(context, &batch, || start_due(tx, instance))? {
        Rowless::Turn { name, version, execution_id, has_history } => {
            let last_event_id = match has_history {
                true => Some(history::last_event_id(tx.db, instance, execution_id)?),
                false => None,
            };
            Ok(Settled::Turn(ResolvedTurn { orchestration_name: name, version, execution_id, last_event_id }))
        }
        Rowless::Drop => {
            tracing::warn!(
                target: "duroxide::providers::sqlite",
                instance, messages = covered.len(), "queue messages for an unknown instance were dropped"
            );
            let deleted = (instance, secret, covered_until);
            tx.db.run(sql::DELETE_COVERED_TEXTS, deleted)?;
            tx.db.run_exactly(covered.len(), "dropping orphans", sql::DELETE_COVERED_MESSAGES, deleted)?;
            Ok(Settled::Dropped)
        }
        Rowless::Delay { until, fates } => {
            delay(tx, leased, until, &fates)?;
            Ok(Settled::Delayed { until })
        }
    }
}

/// Carries out the fates of messages that make no turn yet: delays them, or replaces them by dead letters.
fn delay(tx: &mut Transaction<'_>, leased: &LeasedRowless<'_>, until: u64, fates: &[Fate]) -> Result<()> {
    let &LeasedRowless { instance, secret, covered, covered_until, .. } = leased;
    let undone = (instance, secret, covered_until);
    tx.db.run_exactly(covered.len(), "delaying messages", sql::UNDO_COVER, undone)?;
    tx.wakeups.schedule_poll(until);
    for (message, fate) in covered.iter().zip(fates) {
        match fate {
            Fate::Delayed => {
                let row = (message.id, column(until));
                tx.db.run_exactly(1, "delaying a message", sql::DELAY_MESSAGE, row)?;
            }
            Fate::DeadLetter(reason) => {
                let attempts = message.attempts.saturating_sub(1);
                store_dead_letter(
                    tx,
                    DeadLetterQueue::Orchestrator,
                    instance,
                    &message.text,
                    reason,
                    attempts,
                )?;
                message::delete(tx.db, message.id)?;
            }
        }
    }
    Ok(())
}
