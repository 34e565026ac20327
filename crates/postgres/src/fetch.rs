//! Fetches a turn: decodes the leased messages on the caller's task, and settles messages that cannot be delivered.

use crate::ask::TurnAsk;
use crate::db::{Param, Result, column};
use crate::functions::{FATE_DEAD_LETTER, FATE_DROPPED, FATE_PUT_OFF};
use crate::leased::{Guarded, Leases, RawTurn};
use crate::message::{self, Decoded};
use crate::parked::Fetch;
use crate::provider::PostgresProvider;
use crate::request::{Answer, Attempts, Lease, ReadTexts, Request, Seen};
use crate::shared::Shared;
use crate::text::owned;
use crate::{history, kv};
use outlast_provider::{ClassifiedError, FetchedTurn, OrchestrationItem, TurnRequest, saturating_ms};
use outlast_provider_kit::{Context, orphans, resolve, rows};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_postgres::types::Type;

const FETCH: &str = "fetch_orchestration_item";

/// The fate of a message that is not delivered.
enum Fate {
    DeadLetter(String),
    Dropped,
    PutOff,
}

/// Name, version, execution and last event; no last event means that no stored history belongs to the turn.
type Resolved = (String, String, u64, Option<u64>);

/// The meaning of the messages of a leased turn.
enum Meaning {
    Turn(Resolved),
    /// No message can be delivered: the fate of each, and the time at which messages that are put off become visible.
    Nothing(Vec<(i64, Fate)>, u64),
}

impl PostgresProvider {
    pub(crate) async fn fetch_within(&self, request: &TurnRequest<'_>) -> Answer<Option<FetchedTurn>> {
        let nobody = request.filter.is_some_and(|filter| filter.supported_duroxide_versions.is_empty());
        let begun = Instant::now();
        loop {
            let patience = request.poll_timeout.saturating_sub(begun.elapsed());
            if nobody {
                tokio::time::sleep(patience).await;
                return Ok(None);
            }
            let (caller, answer) = oneshot::channel();
            let ask = TurnAsk {
                lock_ms: saturating_ms(request.lock_timeout),
                filter: request.filter.cloned(),
                bound: self.shared.config.message_bound,
            };
            let parks = !patience.is_zero();
            self.shared.fetch_turn(Fetch { ask, parks, is_new: true, caller });
            let Some(mut leased) = wait(&self.shared, answer, patience, FETCH).await? else {
                return Ok(None);
            };
            if !self.read_texts(&mut leased).await? {
                // The lease ended meanwhile, and another fetch has taken it.
                drop(leased.take());
                continue;
            }
            let turn = self.hand_out(leased, request.with_history).await;
            if let Some(turn) = turn.map_err(|error| error.during(FETCH))? {
                return Ok(Some(turn));
            }
        }
    }

    /// Reads the texts of messages that the fetch has left out. Returns whether the lease was still there.
    async fn read_texts(&self, leased: &mut Guarded<RawTurn>) -> Answer<bool> {
        let Some(raw) = leased.peek_mut() else { return Ok(true) };
        let (Some(bytes), Some(lease)) = (raw.bytes_apart, raw.leases().pop()) else { return Ok(true) };
        let ids = raw.messages.iter().map(|message| message.id).collect();
        let read =
            |reply| Request::ReadTexts(ReadTexts { lease, ids, bytes, reply, attempts: Attempts::default() });
        let mut texts = self.ask(FETCH, read).await?;
        for message in &mut raw.messages {
            let Some(text) = texts.remove(&message.id) else { return Ok(false) };
            message.text = text;
        }
        Ok(true)
    }

    /// The turn, or `None` if no message of it can be delivered: then they are removed or put off.
    async fn hand_out(&self, leased: Guarded<RawTurn>, with_history: bool) -> Result<Option<FetchedTurn>> {
        let Some(raw) = leased.peek() else { return Ok(None) };
        let decoded = message::decode(&raw.instance, &raw.messages);
        let buried: Vec<(i64, Fate)> =
            decoded.damaged.iter().map(|(id, reason)| (*id, Fate::DeadLetter(reason.clone()))).collect();
        let (resolved, fates, again_at) = match self.meaning(raw, &decoded).await? {
            Meaning::Turn(resolved) => (Some(resolved), buried, 0),
            Meaning::Nothing(fates, again_at) => (None, buried.into_iter().chain(fates).collect(), again_at),
        };
        let is_over = resolved.is_none();
        if (is_over || !fates.is_empty()) && !self.settle(raw, &fates, again_at, is_over).await? {
            // The lease ended meanwhile, and another fetch has taken it.
            drop(leased.take());
            return Ok(None);
        }
        let Some((orchestration_name, version, execution_id, last_event_id)) = resolved else {
            drop(leased.take());
            return Ok(None);
        };
        let (history, kv_snapshot, history_error) = match (with_history, last_event_id) {
            (false, _) => Default::default(),
            (true, Some(_)) => {
                let loaded = history::load_turn(&self.shared.db, &raw.instance, execution_id).await?;
                (loaded.history, loaded.kv_snapshot, loaded.history_error)
            }
            (true, None) => (Vec::new(), kv::snapshot(&self.shared.db, &raw.instance).await?, None),
        };
        let Some(raw) = leased.take() else { return Ok(None) };
        let current_execution = raw.row.as_ref().map_or(0, |(_, _, execution, _)| *execution);
        let messages = i32::try_from(decoded.items.len()).unwrap_or(i32::MAX);
        let is_partial = raw.is_partial;
        let seen = Seen { current_execution, messages, is_partial, instance: raw.instance.clone() };
        Ok(Some(FetchedTurn {
            item: OrchestrationItem {
                instance: raw.instance,
                orchestration_name,
                execution_id,
                version,
                history,
                messages: decoded.items,
                history_error,
                kv_snapshot,
            },
            lock_token: Lease::Turn { secret: raw.secret, seen }.text(),
            attempt_count: decoded.attempts,
            last_event_id: Some(last_event_id.unwrap_or(0)),
            history_loaded: with_history,
            has_ended: Some(raw.has_ended),
            created_at_ms: raw.created_at,
            now_ms: Some(raw.now),
        }))
    }

    async fn meaning(&self, raw: &RawTurn, decoded: &Decoded) -> Result<Meaning> {
        if decoded.items.is_empty() {
            return Ok(Meaning::Nothing(Vec::new(), 0));
        }
        if let Some((name, version, execution_id, last_event)) = &raw.row {
            return Ok(Meaning::Turn((name.clone(), version.clone(), *execution_id, Some(*last_event))));
        }
        // An instance without a row: perhaps it has a history, perhaps it starts now, perhaps it does not exist.
        let db = &self.shared.db;
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
        let all = |fate: fn() -> Fate| decoded.kept.iter().map(|(id, _)| (*id, fate())).collect();
        Ok(match (context, raw.start_due) {
            (Context::Known { name, version, execution_id, has_history }, _) => {
                let last_event = match has_history {
                    true => Some(history::last_event_id(db, &raw.instance, execution_id).await?),
                    false => None,
                };
                Meaning::Turn((name, version, execution_id, last_event))
            }
            // The start was delayed or given back: messages that came meanwhile are delivered with it, in order.
            (_, Some(due)) => Meaning::Nothing(all(|| Fate::PutOff), due.max(raw.now.saturating_add(1))),
            // A partial fetch may have left behind the message that gives the others a meaning.
            (Context::QueueOrphan, None) if !raw.is_partial => {
                tracing::warn!(
                    target: "duroxide::providers::postgres",
                    instance = raw.instance, messages = decoded.kept.len(),
                    "queue messages for an unknown instance were dropped"
                );
                Meaning::Nothing(all(|| Fate::Dropped), 0)
            }
            (Context::QueueOrphan | Context::ControlOrphan, None) => self.put_off(raw, decoded),
        })
    }

    /// Puts messages for an instance that does not exist off, for longer each time, and sets them aside in the end.
    fn put_off(&self, raw: &RawTurn, decoded: &Decoded) -> Meaning {
        let life_ms = saturating_ms(self.shared.config.orphan_life);
        let oldest = decoded.kept.iter().map(|(_, available_at)| *available_at).min().unwrap_or(raw.now);
        let fate = |available_at| match orphans::has_expired(available_at, raw.now, life_ms) {
            true => Fate::DeadLetter(orphans::reason(&raw.instance, life_ms)),
            false => Fate::PutOff,
        };
        let fates = decoded.kept.iter().map(|(id, available_at)| (*id, fate(*available_at))).collect();
        Meaning::Nothing(fates, orphans::retry_at(oldest, raw.now))
    }

    /// Carries out the fates of messages of a leased turn. Returns whether the lease was still there.
    async fn settle(
        &self,
        raw: &RawTurn,
        fates: &[(i64, Fate)],
        again_at: u64,
        is_over: bool,
    ) -> Result<bool> {
        let db = &self.shared.db;
        let (mut ids, mut actions, mut reasons) = (Vec::new(), Vec::new(), Vec::new());
        for (id, fate) in fates {
            ids.push(*id);
            let (action, reason) = match fate {
                Fate::DeadLetter(reason) => (FATE_DEAD_LETTER, Some(owned(reason))),
                Fate::Dropped => (FATE_DROPPED, None),
                Fate::PutOff => (FATE_PUT_OFF, None),
            };
            actions.push(action);
            reasons.push(reason);
        }
        let dead = actions.iter().filter(|action| **action == FATE_DEAD_LETTER).count();
        if dead > 0 {
            // The reason may quote the message, so it goes to the table and not to the log.
            tracing::warn!(
                target: "duroxide::providers::postgres",
                instance = raw.instance, messages = dead, "messages were set aside, see dead_letters"
            );
            db.counters.dead_letters.add(dead);
        }
        let (instance, secret, visible_at) = (owned(&raw.instance), raw.secret.to_vec(), column(again_at));
        // Messages that a partial fetch left behind wait together with those that are put off.
        let is_put_off = fates.iter().any(|(_, fate)| matches!(fate, Fate::PutOff));
        let rests = raw.is_partial && is_over && again_at > 0;
        let params: [Param<'_>; 8] = [
            (&instance, Type::TEXT),
            (&secret, Type::BYTEA),
            (&ids, Type::INT8_ARRAY),
            (&actions, Type::INT4_ARRAY),
            (&reasons, Type::TEXT_ARRAY),
            (&visible_at, Type::INT8),
            (&is_over, Type::BOOL),
            (&rests, Type::BOOL),
        ];
        let row = db.one(&db.statements.settle_turn, &params).await?;
        if is_put_off || rests {
            self.shared.on_due_in(again_at.saturating_sub(raw.now));
        }
        row.map_or(Ok(false), |row| crate::db::cell(&row, crate::db::ONLY))
    }
}

/// Waits for the leases of a fetch. If the fetch gives up while leases are on their way, their guard gives them back.
pub(crate) async fn wait<L: Leases>(
    shared: &Shared,
    answer: oneshot::Receiver<std::result::Result<Option<Guarded<L>>, ClassifiedError>>,
    patience: Duration,
    operation: &'static str,
) -> Answer<Option<Guarded<L>>> {
    let answered = match patience.is_zero() {
        true => Some(answer.await),
        false => tokio::time::timeout(patience, answer).await.ok(),
    };
    match answered {
        None => Ok(None),
        Some(Ok(given)) => Ok(given?),
        Some(Err(_)) => Err(shared.dropped("of a fetch").during(operation)),
    }
}
