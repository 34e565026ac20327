//! Fetches of turns.

use crate::queue::Message;
use crate::rules::{FetchRules, LeaseRules};
use crate::state::{Lease, State};
use outlast_provider::model::{Event, EventKind, WorkItem, json};
use outlast_provider::{
    DeadLetter, DeadLetterQueue, DispatcherCapabilityFilter, FetchedTurn, MessageBound, OrchestrationItem,
    ProviderError,
};

/// An orphan message is delivered again after its age, within these limits.
const ORPHAN_RETRY_MS: (u64, u64) = (1_000, 60_000);
/// An orphan message of this age becomes a dead letter.
pub(crate) const ORPHAN_LIFE_MS: u64 = 24 * 60 * 60 * 1_000;

/// The conditions of one turn fetch.
pub(crate) struct TurnAsk<'a> {
    pub(crate) now: u64,
    pub(crate) locked_until: u64,
    pub(crate) filter: Option<&'a DispatcherCapabilityFilter>,
    pub(crate) token: String,
    pub(crate) with_history: bool,
    pub(crate) bound: MessageBound,
}

/// The messages of an instance that one fetch takes.
struct Batch {
    messages: Vec<(u64, WorkItem)>,
    /// Visible messages are left behind.
    is_partial: bool,
}

/// The result of an attempt to deliver an instance.
enum Attempt {
    Turn(Box<FetchedTurn>),
    /// The messages of the instance were removed or delayed.
    Nothing,
    /// None of the messages that the fetch took decodes, and the instance has more.
    Retry,
}

/// The state of an instance that has messages.
enum Context {
    /// The instance can be delivered. An execution that starts now has no history.
    Known { name: String, version: String, execution_id: u64, history: Option<Result<Vec<Event>, String>> },
    /// The instance does not exist, and all messages are queue messages.
    QueueOrphan,
    /// The instance does not exist, and some message is not a queue message.
    ControlOrphan,
}

impl State {
    /// Leases the longest waiting instance that can be delivered.
    pub(crate) fn fetch_turn(&mut self, ask: &TurnAsk<'_>) -> Result<Option<FetchedTurn>, ProviderError> {
        if ask.filter.is_some_and(|filter| filter.supported_duroxide_versions.is_empty()) {
            return Ok(None);
        }
        let rules = self.rules;
        'scan: loop {
            for instance in rules.due_instances(self, ask) {
                if !rules.is_available(self, &instance, ask) {
                    continue;
                }
                match self.try_instance(&instance, ask)? {
                    Attempt::Turn(turn) => return Ok(Some(*turn)),
                    Attempt::Retry => {
                        self.leases.remove(&instance);
                        continue 'scan;
                    }
                    // Only a lease that is over is left from before.
                    Attempt::Nothing if self.live_lease(&instance, ask.now).is_none() => {
                        self.leases.remove(&instance);
                    }
                    Attempt::Nothing => {}
                }
            }
            return Ok(None);
        }
    }

    fn try_instance(&mut self, instance: &str, ask: &TurnAsk<'_>) -> Result<Attempt, ProviderError> {
        let rules = self.rules;
        let Batch { messages, is_partial } = self.decode_batch(instance, ask);
        if messages.is_empty() {
            if !is_partial {
                return Ok(Attempt::Nothing);
            }
            // The instance loses its place in line together with the messages that do not decode.
            self.uncover(instance);
            return Ok(Attempt::Retry);
        }
        let (rows, messages): (Vec<u64>, Vec<WorkItem>) = rules.batch(messages).into_iter().unzip();
        let (name, version, execution_id, history) = match self.context(instance, &messages) {
            Context::Known { name, version, execution_id, history } => (name, version, execution_id, history),
            orphans => {
                self.delay_orphans(instance, &orphans, &rows, is_partial, ask.now);
                return Ok(Attempt::Nothing);
            }
        };
        let attempt_count = self.claim(instance, &rows, is_partial, ask);
        let last_event_id = match history {
            Some(_) => rules.reported_event_id(self, instance, execution_id),
            None => 0,
        };
        let history = history.unwrap_or_else(|| Ok(Vec::new()));
        let (history, history_error) = rules.delivered_history(self, instance, execution_id, history)?;
        let item = OrchestrationItem {
            instance: instance.to_string(),
            orchestration_name: name,
            execution_id,
            version,
            history: if ask.with_history { history } else { Vec::new() },
            messages,
            history_error: history_error.filter(|_| ask.with_history),
            kv_snapshot: if ask.with_history { self.kv_snapshot(instance) } else { Default::default() },
        };
        Ok(Attempt::Turn(Box::new(FetchedTurn {
            item,
            lock_token: ask.token.clone(),
            attempt_count,
            last_event_id: Some(last_event_id),
            history_loaded: ask.with_history,
            has_ended: Some(self.has_ended(instance)),
            created_at_ms: self.instances.get(instance).map(|row| row.created_at),
            now_ms: Some(ask.now),
        })))
    }

    /// Decodes the visible messages of the instance, as many as one fetch takes, and buries those that do not decode.
    fn decode_batch(&mut self, instance: &str, ask: &TurnAsk<'_>) -> Batch {
        let rules = self.rules;
        let visible = self.messages.visible(instance, ask.now);
        let taken = rules.within(self, &visible, ask.bound);
        let is_partial = taken.len() < visible.len();
        let mut messages = Vec::new();
        for ordinal in rules.delivery_order(self, taken) {
            let Some(message) = self.messages.get(ordinal).cloned() else { continue };
            match json::decode_work_item(&message.text) {
                Ok(item) => messages.push((ordinal, item)),
                Err(reason) => {
                    self.messages.remove(ordinal);
                    rules.move_message_to_dead_letters(self, &message, reason.to_string(), ask.now);
                }
            }
        }
        Batch { messages, is_partial }
    }

    /// Removes the cover of a lease that is over from the messages of the instance.
    pub(crate) fn uncover(&mut self, instance: &str) {
        for ordinal in self.messages.of_instance(instance, |message| message.token.is_some()) {
            self.messages.update(ordinal, |message| {
                message.token = None;
                message.fetch_at = message.visible_at;
            });
        }
    }

    /// Delays or drops messages for an instance that does not exist.
    fn delay_orphans(&mut self, instance: &str, orphans: &Context, rows: &[u64], is_partial: bool, now: u64) {
        let rules = self.rules;
        let again_at = match (rules.start_due(self, instance), orphans) {
            (Some(start_due), _) => {
                // The start was delayed or abandoned: these messages are delivered with it, in order.
                let again_at = start_due.max(now.saturating_add(1));
                for ordinal in rows {
                    self.messages.update(*ordinal, |message| {
                        message.visible_at = again_at;
                        message.fetch_at = again_at;
                    });
                }
                again_at
            }
            // A message that was left behind may be a control message, with which the queue messages are kept.
            (None, Context::QueueOrphan) if !is_partial => return rules.drop_orphans(self, rows),
            (None, _) => rules.put_off_orphans(self, rows, now),
        };
        if is_partial {
            self.uncover(instance);
            self.leases.insert(instance.to_string(), Lease::of_rest(again_at));
        }
    }

    fn context(&self, instance: &str, messages: &[WorkItem]) -> Context {
        let start = messages.iter().find_map(|message| match message {
            WorkItem::StartOrchestration { orchestration, version, .. }
            | WorkItem::ContinueAsNew { orchestration, version, .. } => Some((orchestration, version)),
            _ => None,
        });
        if let Some(row) = self.instances.get(instance) {
            let (name, version) = self.rules.name_and_version(row, start);
            return Context::Known {
                name,
                version,
                execution_id: row.current_execution_id,
                history: Some(self.events(instance, row.current_execution_id)),
            };
        }
        let unknown = || "unknown".to_string();
        let execution_id = self.latest_execution(instance);
        let history = self.events(instance, execution_id);
        let recorded = history.iter().flatten().find_map(|event| match &event.kind {
            EventKind::OrchestrationStarted { name, version, .. } => Some((name.clone(), version.clone())),
            _ => None,
        });
        match (recorded, start, history) {
            (Some((name, version)), _, history) => {
                Context::Known { name, version, execution_id, history: Some(history) }
            }
            (None, start, Err(reason)) => {
                let name = start.map_or_else(unknown, |(name, _)| name.clone());
                Context::Known { name, version: unknown(), execution_id, history: Some(Err(reason)) }
            }
            (None, Some((name, version)), Ok(_)) => Context::Known {
                name: name.clone(),
                version: version.clone().unwrap_or_else(unknown),
                execution_id: 1,
                history: None,
            },
            (None, None, Ok(_)) => {
                let queue_only = messages.iter().all(|m| matches!(m, WorkItem::QueueMessage { .. }));
                if queue_only { Context::QueueOrphan } else { Context::ControlOrphan }
            }
        }
    }

    /// Leases the instance and covers these messages; returns the delivery count of the batch.
    pub(crate) fn claim(&mut self, instance: &str, rows: &[u64], is_partial: bool, ask: &TurnAsk<'_>) -> u32 {
        let rules = self.rules;
        if is_partial {
            self.uncover(instance);
        }
        let (token, locked_until) = (ask.token.clone(), ask.locked_until);
        rules.take_over(self, instance, Lease { token, locked_until, is_partial, is_rest: false });
        let mut attempts = Vec::new();
        for ordinal in rows {
            self.messages.update(*ordinal, |message| {
                rules.cover(message, ask);
                attempts.push(message.attempts);
            });
        }
        rules.delivery_count(&attempts)
    }
}

/// Delays messages for an instance that does not exist, each time longer, and buries those that have waited for 24 hours.
/// The messages of one batch keep the same time, because a queue message that is delivered alone would be dropped. Returns
/// that time.
pub(crate) fn put_off_orphans(state: &mut State, rows: &[u64], now: u64) -> u64 {
    let available = rows.iter().filter_map(|ordinal| state.messages.get(*ordinal)).map(|m| m.available_at);
    let waited = now.saturating_sub(available.min().unwrap_or(now));
    let again_at = now + waited.clamp(ORPHAN_RETRY_MS.0, ORPHAN_RETRY_MS.1);
    for ordinal in rows {
        let Some(message) = state.messages.get(*ordinal) else { continue };
        if now.saturating_sub(message.available_at) >= ORPHAN_LIFE_MS {
            let reason = format!("instance '{}' did not start within 24 hours", message.instance);
            let letter = dead_message(message, reason, now);
            state.bury(letter);
            state.messages.remove(*ordinal);
            continue;
        }
        state.messages.update(*ordinal, |message| {
            message.token = None;
            message.visible_at = again_at;
            message.fetch_at = again_at;
        });
    }
    again_at
}

pub(crate) fn dead_message(message: &Message, reason: String, now: u64) -> DeadLetter {
    DeadLetter {
        queue: DeadLetterQueue::Orchestrator,
        instance_id: Some(message.instance.clone()),
        work_item: message.text.clone(),
        reason,
        attempt_count: message.attempts,
        dead_at: now,
    }
}
