//! Handing out a turn.

use crate::queue::Message;
use crate::rules::{Defect, Rules};
use crate::state::{Lease, State};
use outlast_provider::model::{Event, EventKind, WorkItem, json};
use outlast_provider::{
    DeadLetter, DeadLetterQueue, DispatcherCapabilityFilter, FetchedTurn, MessageBound, OrchestrationItem,
    ProviderError,
};

/// A message for nobody is looked at again after its age, but at least and at most after these.
const ORPHAN_RETRY_MS: (u64, u64) = (1_000, 60_000);
/// A message for nobody is set aside after this long.
const ORPHAN_LIFE_MS: u64 = 24 * 60 * 60 * 1_000;

/// What a fetch asks for.
pub(crate) struct Ask<'a> {
    pub(crate) now: u64,
    pub(crate) locked_until: u64,
    pub(crate) filter: Option<&'a DispatcherCapabilityFilter>,
    pub(crate) token: String,
    pub(crate) with_history: bool,
    pub(crate) bound: MessageBound,
}

/// What a fetch takes of an instance's messages.
struct Batch {
    messages: Vec<(u64, WorkItem)>,
    /// Visible messages are left.
    is_partial: bool,
}

/// What became of an instance that was to be handed out.
enum Tried {
    Turn(Box<FetchedTurn>),
    /// Its messages are gone or put off.
    Nothing,
    /// None of the messages that were looked at can be delivered, and it has more.
    Again,
}

/// What the store knows about an instance that messages wait for.
enum Context {
    /// Its turn can be handed out. One that starts now has no history, whatever is stored under its id.
    Known { name: String, version: String, execution_id: u64, history: Option<Result<Vec<Event>, String>> },
    /// Only queue messages, for an instance that does not exist: they are dropped.
    QueueOrphan,
    /// Something else for an instance that does not exist: kept, in case it starts.
    ControlOrphan,
}

impl State {
    /// Locks the longest waiting instance that can be handed out.
    pub(crate) fn fetch_turn(
        &mut self,
        ask: &Ask<'_>,
        rules: &Rules,
    ) -> Result<Option<FetchedTurn>, ProviderError> {
        if ask.filter.is_some_and(|filter| filter.supported_duroxide_versions.is_empty()) {
            return Ok(None);
        }
        'look: loop {
            for instance in self.messages.due_instances(ask.now) {
                let held = self.live_lease(&instance, ask.now).is_some();
                if held && !rules.broken(Defect::LeaseNotExclusive) {
                    continue;
                }
                if !self.is_admitted(&instance, ask.filter, rules) {
                    if rules.broken(Defect::FilterAfterLock) {
                        let rows = self.messages.visible(&instance, ask.now);
                        self.claim(&instance, &rows, false, ask, rules);
                    }
                    if rules.broken(Defect::FilterHidesTheRest) {
                        return Ok(None);
                    }
                    continue;
                }
                if rules.broken(Defect::EndedTakesNothing) && self.has_ended(&instance) {
                    let rows = self.messages.of_instance(&instance, |_| true);
                    rows.into_iter().for_each(|ordinal| drop(self.messages.remove(ordinal)));
                    continue;
                }
                match self.try_instance(&instance, ask, rules)? {
                    Tried::Turn(turn) => return Ok(Some(*turn)),
                    Tried::Again => {
                        self.leases.remove(&instance);
                        continue 'look;
                    }
                    Tried::Nothing if rules.broken(Defect::OrphanBlocksQueue) => return Ok(None),
                    // An older lease was over and is gone now, as the one that found nothing to hand out.
                    Tried::Nothing if self.live_lease(&instance, ask.now).is_none() => {
                        drop(self.leases.remove(&instance))
                    }
                    Tried::Nothing => {}
                }
            }
            return Ok(None);
        }
    }

    /// Whether the filter admits the pinned version of the instance's current execution.
    fn is_admitted(
        &self,
        instance: &str,
        filter: Option<&DispatcherCapabilityFilter>,
        rules: &Rules,
    ) -> bool {
        let Some(filter) = filter else { return true };
        if rules.broken(Defect::FilterIgnored) {
            return true;
        }
        match self.current_execution(instance).and_then(|execution| execution.pinned.as_ref()) {
            Some(pinned) => filter.is_compatible(pinned),
            None => !rules.broken(Defect::UnpinnedExcluded),
        }
    }

    fn try_instance(&mut self, instance: &str, ask: &Ask<'_>, rules: &Rules) -> Result<Tried, ProviderError> {
        let Batch { messages: mut batch, is_partial } = self.decode_batch(instance, ask, rules);
        if batch.is_empty() {
            if !is_partial {
                return Ok(Tried::Nothing);
            }
            // With the messages that do not decode, the instance has lost its place in line.
            self.uncover(instance);
            return Ok(Tried::Again);
        }
        if rules.broken(Defect::OneMessagePerFetch) {
            batch.truncate(1);
        }
        let messages: Vec<WorkItem> = batch.iter().map(|(_, item)| item.clone()).collect();
        let rows: Vec<u64> = batch.into_iter().map(|(ordinal, _)| ordinal).collect();
        let (name, version, execution_id, history) = match self.context(instance, &messages, rules) {
            Context::Known { name, version, execution_id, history } => (name, version, execution_id, history),
            Context::QueueOrphan | Context::ControlOrphan
                if self.start_due(instance).is_some() && !rules.broken(Defect::DelayedStartForgotten) =>
            {
                // Its start was delayed or given back: what came meanwhile is delivered with it, in order.
                let again_at = self.start_due(instance).unwrap_or(0).max(ask.now.saturating_add(1));
                for ordinal in rows {
                    self.messages.update(ordinal, |message| {
                        message.visible_at = again_at;
                        message.fetch_at = again_at;
                    });
                }
                self.rest(instance, is_partial, again_at);
                return Ok(Tried::Nothing);
            }
            Context::QueueOrphan if rules.broken(Defect::OrphanQueueMessagesKept) => {
                return Ok(Tried::Nothing);
            }
            // What was left behind may be a message for which the others are kept.
            Context::QueueOrphan if !is_partial => {
                rows.iter().for_each(|ordinal| drop(self.messages.remove(*ordinal)));
                return Ok(Tried::Nothing);
            }
            Context::QueueOrphan | Context::ControlOrphan => {
                let again_at = self.put_off_orphans(&rows, ask.now, rules);
                self.rest(instance, is_partial, again_at);
                return Ok(Tried::Nothing);
            }
        };
        let attempt_count = self.claim(instance, &rows, is_partial, ask, rules);
        let last_event_id = match history {
            Some(_) => self.last_event_id(instance, execution_id),
            None => 0,
        };
        let (history, history_error) = match history.unwrap_or_else(|| Ok(Vec::new())) {
            Ok(events) => (events, None),
            Err(reason) if rules.broken(Defect::CorruptHistoryIsAnError) => {
                return Err(ProviderError::permanent("fetch_orchestration_item", reason));
            }
            Err(_) if rules.broken(Defect::CorruptHistoryShortened) => {
                let texts = self.event_texts(instance, execution_id);
                (texts.filter_map(|text| json::decode_event(text).ok()).collect(), None)
            }
            Err(reason) => (Vec::new(), Some(reason)),
        };
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
        Ok(Tried::Turn(Box::new(FetchedTurn {
            item,
            lock_token: ask.token.clone(),
            attempt_count,
            last_event_id: Some(match rules.broken(Defect::StaleLastEventId) {
                true => last_event_id.saturating_sub(1),
                false => last_event_id,
            }),
            history_loaded: ask.with_history,
            has_ended: Some(self.has_ended(instance)),
            created_at_ms: self.instances.get(instance).map(|row| row.created_at),
            now_ms: Some(ask.now),
        })))
    }

    /// The instance's visible messages in order of availability, as many as a fetch takes. One that does not decode is set
    /// aside.
    fn decode_batch(&mut self, instance: &str, ask: &Ask<'_>, rules: &Rules) -> Batch {
        let now = ask.now;
        let visible = self.messages.visible(instance, now);
        let mut ordinals = match rules.broken(Defect::FetchUnbounded) {
            true => visible.clone(),
            false => self.within(visible.clone(), ask.bound, rules),
        };
        let is_partial = ordinals.len() < visible.len();
        if !rules.broken(Defect::InsertionOrder) {
            ordinals.sort_by_key(|ordinal| (self.messages.get(*ordinal).map(|m| m.available_at), *ordinal));
        }
        let mut batch = Vec::new();
        for ordinal in ordinals {
            let Some(message) = self.messages.get(ordinal).cloned() else { continue };
            match json::decode_work_item(&message.text) {
                Ok(item) => batch.push((ordinal, item)),
                Err(reason) => {
                    self.messages.remove(ordinal);
                    if !rules.broken(Defect::UndecodableMessageDropped) {
                        self.dead_letters.push(dead_message(&message, reason.to_string(), now));
                    }
                }
            }
        }
        Batch { messages: batch, is_partial }
    }

    /// Those of the messages that one fetch takes: starts first, since no turn is possible without the start of its execution.
    fn within(&self, mut ordinals: Vec<u64>, bound: MessageBound, rules: &Rules) -> Vec<u64> {
        let size = |ordinal: &u64| self.messages.get(*ordinal).map_or(0, |message| message.text.len());
        if ordinals.len() <= bound.messages && ordinals.iter().map(size).sum::<usize>() <= bound.bytes {
            return ordinals;
        }
        let rank = |text: &str| match json::decode_work_item(text) {
            _ if rules.broken(Defect::BoundLeavesStartBehind) => 0,
            Ok(WorkItem::ContinueAsNew { .. }) => 0,
            Ok(WorkItem::StartOrchestration { .. }) => 1,
            _ => 2,
        };
        ordinals.sort_by_cached_key(|ordinal| {
            let message = self.messages.get(*ordinal);
            message.map(|message| (rank(&message.text), message.available_at, *ordinal))
        });
        if rules.broken(Defect::BoundTakesNewest) {
            ordinals.reverse();
        }
        let mut bytes = 0;
        let mut taken = Vec::new();
        for ordinal in ordinals {
            let next = size(&ordinal);
            if !bound.takes(taken.len(), bytes, next) {
                break;
            }
            bytes += next;
            taken.push(ordinal);
        }
        taken
    }

    /// What a lease that is over covered is free again.
    fn uncover(&mut self, instance: &str) {
        for ordinal in self.messages.of_instance(instance, |message| message.token.is_some()) {
            self.messages.update(ordinal, |message| {
                message.token = None;
                message.fetch_at = message.visible_at;
            });
        }
    }

    /// Keeps messages that were left behind together with those that are put off.
    fn rest(&mut self, instance: &str, is_partial: bool, until: u64) {
        if is_partial {
            self.uncover(instance);
            let lease = Lease { token: String::new(), locked_until: until, is_partial: false, is_rest: true };
            self.leases.insert(instance.to_string(), lease);
        }
    }

    fn context(&self, instance: &str, messages: &[WorkItem], rules: &Rules) -> Context {
        let begun = messages.iter().find_map(|message| match message {
            WorkItem::StartOrchestration { orchestration, version, .. }
            | WorkItem::ContinueAsNew { orchestration, version, .. } => Some((orchestration, version)),
            _ => None,
        });
        let unknown = || "unknown".to_string();
        if let Some(row) = self.instances.get(instance) {
            let renamed = begun.filter(|_| rules.broken(Defect::StartRenamesInstance));
            let (name, version) = match renamed {
                Some((name, version)) => (name.clone(), version.clone().unwrap_or_else(unknown)),
                None => (row.orchestration_name.clone(), row.orchestration_version.clone()),
            };
            return Context::Known {
                name,
                version,
                execution_id: row.current_execution_id,
                history: Some(self.events(instance, row.current_execution_id)),
            };
        }
        let execution_id = self.latest_execution(instance);
        let history = self.events(instance, execution_id);
        let recorded = history.iter().flatten().find_map(|event| match &event.kind {
            EventKind::OrchestrationStarted { name, version, .. } => Some((name.clone(), version.clone())),
            _ => None,
        });
        match (recorded, begun, history) {
            (Some((name, version)), _, history) => {
                Context::Known { name, version, execution_id, history: Some(history) }
            }
            (None, begun, Err(reason)) => {
                let name = begun.map_or_else(unknown, |(name, _)| name.clone());
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

    /// Takes the lease and covers these messages with it; returns the delivery count of the batch.
    fn claim(&mut self, instance: &str, rows: &[u64], is_partial: bool, ask: &Ask<'_>, rules: &Rules) -> u32 {
        if is_partial {
            self.uncover(instance);
        }
        let (token, locked_until) = (ask.token.clone(), ask.locked_until);
        let lease = Lease { token, locked_until, is_partial, is_rest: false };
        if let Some(old) = self.leases.insert(instance.to_string(), lease) {
            self.lost_leases.insert(old.token, instance.to_string());
        }
        let mut attempts = Vec::new();
        for ordinal in rows {
            self.messages.update(*ordinal, |message| {
                if message.token.is_none() || !rules.broken(Defect::TakeoverKeepsOldCover) {
                    message.token = Some(ask.token.clone());
                }
                message.fetch_at = ask.locked_until;
                message.attempts += u32::from(!rules.broken(Defect::AttemptsNotCounted));
                attempts.push(message.attempts);
            });
        }
        let counted = match rules.broken(Defect::SmallestAttemptReported) {
            true => attempts.into_iter().min(),
            false => attempts.into_iter().max(),
        };
        counted.unwrap_or(0)
    }

    /// Messages for an instance that does not exist wait a little longer each time, and not for ever. They stay
    /// together: a queue message that came back alone would be dropped. Returns until when they wait.
    fn put_off_orphans(&mut self, rows: &[u64], now: u64, rules: &Rules) -> u64 {
        if rules.broken(Defect::OrphanBlocksQueue) {
            return now;
        }
        let oldest =
            rows.iter().filter_map(|ordinal| self.messages.get(*ordinal)).map(|m| m.available_at).min();
        let waited = now.saturating_sub(oldest.unwrap_or(now));
        let again_at = now + waited.clamp(ORPHAN_RETRY_MS.0, ORPHAN_RETRY_MS.1);
        for ordinal in rows {
            let Some(age) = self.messages.get(*ordinal).map(|m| now.saturating_sub(m.available_at)) else {
                continue;
            };
            if age >= ORPHAN_LIFE_MS || rules.broken(Defect::OrphanControlMessagesDropped) {
                let message = self.messages.remove(*ordinal);
                if let Some(message) = message.filter(|_| age >= ORPHAN_LIFE_MS) {
                    let reason = format!("instance '{}' did not start within 24 hours", message.instance);
                    self.dead_letters.push(dead_message(&message, reason, now));
                }
                continue;
            }
            self.messages.update(*ordinal, |message| {
                message.token = None;
                message.visible_at = again_at;
                message.fetch_at = again_at;
            });
        }
        again_at
    }
}

fn dead_message(message: &Message, reason: String, now: u64) -> DeadLetter {
    DeadLetter {
        queue: DeadLetterQueue::Orchestrator,
        instance_id: Some(message.instance.clone()),
        work_item: message.text.clone(),
        reason,
        attempt_count: message.attempts,
        dead_at: now,
    }
}
