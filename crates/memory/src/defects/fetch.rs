//! Broken fetches of turns.

use super::{Defect, Rules};
use crate::fetch::{ORPHAN_LIFE_MS, TurnAsk};
use crate::queue::Message;
use crate::rules::{Contract, FetchRules};
use crate::state::{Instance, State};
use outlast_provider::model::{Event, WorkItem, json};
use outlast_provider::{DispatcherCapabilityFilter, MessageBound, ProviderError};

impl FetchRules for Rules {
    fn due_instances(&self, state: &State, ask: &TurnAsk<'_>) -> Vec<String> {
        let mut due = Contract.due_instances(state, ask);
        let is_free = |instance: &String| state.live_lease(instance, ask.now).is_none();
        let hides_the_rest = match self.defect {
            Some(Defect::FilterHidesTheRest) => due
                .iter()
                .position(|instance| is_free(instance) && !self.is_admitted(state, instance, ask.filter)),
            Some(Defect::OrphanBlocksQueue) => due.iter().position(|instance| {
                is_free(instance)
                    && !state.instances.contains_key(instance)
                    && state.start_due(instance).is_none()
            }),
            _ => None,
        };
        if let Some(position) = hides_the_rest {
            due.truncate(position + 1);
        }
        due
    }

    fn is_available(&self, state: &mut State, instance: &str, ask: &TurnAsk<'_>) -> bool {
        match self.defect {
            Some(Defect::LeaseNotExclusive) => self.is_admitted(state, instance, ask.filter),
            Some(Defect::FilterAfterLock) => {
                let is_available = Contract.is_available(state, instance, ask);
                if !is_available && state.live_lease(instance, ask.now).is_none() {
                    let rows = state.messages.visible(instance, ask.now);
                    state.claim(instance, &rows, false, ask);
                }
                is_available
            }
            Some(Defect::EndedTakesNothing) if state.has_ended(instance) => {
                if Contract.is_available(state, instance, ask) {
                    let rows = state.messages.of_instance(instance, |_| true);
                    rows.into_iter().for_each(|ordinal| drop(state.messages.remove(ordinal)));
                }
                false
            }
            _ => Contract.is_available(state, instance, ask),
        }
    }

    fn is_admitted(
        &self,
        state: &State,
        instance: &str,
        filter: Option<&DispatcherCapabilityFilter>,
    ) -> bool {
        let is_pinned = state.current_execution(instance).is_some_and(|row| row.pinned.is_some());
        match self.defect {
            Some(Defect::FilterIgnored) => true,
            Some(Defect::UnpinnedExcluded) if filter.is_some() && !is_pinned => false,
            _ => Contract.is_admitted(state, instance, filter),
        }
    }

    fn within(&self, state: &State, visible: &[u64], bound: MessageBound) -> Vec<u64> {
        match self.defect {
            Some(Defect::FetchUnbounded) => visible.to_vec(),
            _ => Contract.within(state, visible, bound),
        }
    }

    fn taking_order(&self, state: &State, visible: &[u64]) -> Vec<u64> {
        let mut order = Contract.taking_order(state, visible);
        match self.defect {
            Some(Defect::BoundLeavesStartBehind) => order.sort_by_key(|ordinal| {
                (state.messages.get(*ordinal).map(|message| message.available_at), *ordinal)
            }),
            Some(Defect::BoundTakesNewest) => order.reverse(),
            _ => {}
        }
        order
    }

    fn delivery_order(&self, state: &State, taken: Vec<u64>) -> Vec<u64> {
        match self.defect {
            Some(Defect::InsertionOrder) => taken,
            _ => Contract.delivery_order(state, taken),
        }
    }

    fn move_message_to_dead_letters(&self, state: &mut State, message: &Message, reason: String, now: u64) {
        if self.defect != Some(Defect::UndecodableMessageDropped) {
            Contract.move_message_to_dead_letters(state, message, reason, now);
        }
    }

    fn batch(&self, mut decoded: Vec<(u64, WorkItem)>) -> Vec<(u64, WorkItem)> {
        if self.defect == Some(Defect::OneMessagePerFetch) {
            decoded.truncate(1);
        }
        Contract.batch(decoded)
    }

    fn start_due(&self, state: &State, instance: &str) -> Option<u64> {
        match self.defect {
            Some(Defect::DelayedStartForgotten) => None,
            _ => Contract.start_due(state, instance),
        }
    }

    fn drop_orphans(&self, state: &mut State, rows: &[u64]) {
        if self.defect != Some(Defect::OrphanQueueMessagesKept) {
            Contract.drop_orphans(state, rows);
        }
    }

    fn put_off_orphans(&self, state: &mut State, rows: &[u64], now: u64) -> u64 {
        match self.defect {
            Some(Defect::OrphanBlocksQueue) => now,
            Some(Defect::OrphanControlMessagesDropped) => {
                for ordinal in rows {
                    let message = state.messages.get(*ordinal);
                    if message.is_some_and(|row| now.saturating_sub(row.available_at) < ORPHAN_LIFE_MS) {
                        state.messages.remove(*ordinal);
                    }
                }
                Contract.put_off_orphans(state, rows, now)
            }
            _ => Contract.put_off_orphans(state, rows, now),
        }
    }

    fn name_and_version(
        &self,
        row: &Instance,
        start: Option<(&String, &Option<String>)>,
    ) -> (String, String) {
        match (self.defect, start) {
            (Some(Defect::StartRenamesInstance), Some((name, version))) => {
                (name.clone(), version.clone().unwrap_or_else(|| "unknown".to_string()))
            }
            _ => Contract.name_and_version(row, start),
        }
    }

    fn delivered_history(
        &self,
        state: &State,
        instance: &str,
        execution_id: u64,
        history: Result<Vec<Event>, String>,
    ) -> Result<(Vec<Event>, Option<String>), ProviderError> {
        match (self.defect, history) {
            (Some(Defect::CorruptHistoryIsAnError), Err(reason)) => {
                Err(ProviderError::permanent("fetch_orchestration_item", reason))
            }
            (Some(Defect::CorruptHistoryShortened), Err(_)) => {
                Ok((decodable(state, instance, execution_id), None))
            }
            (_, history) => Contract.delivered_history(state, instance, execution_id, history),
        }
    }

    fn read_history(&self, state: &State, instance: &str, execution_id: u64) -> Result<Vec<Event>, String> {
        match self.defect {
            Some(Defect::CorruptReadShortened) => Ok(decodable(state, instance, execution_id)),
            _ => Contract.read_history(state, instance, execution_id),
        }
    }

    fn reported_event_id(&self, state: &State, instance: &str, execution_id: u64) -> u64 {
        let last = Contract.reported_event_id(state, instance, execution_id);
        match self.defect {
            Some(Defect::StaleLastEventId) => last.saturating_sub(1),
            _ => last,
        }
    }

    fn cover(&self, message: &mut Message, ask: &TurnAsk<'_>) {
        let (token, attempts) = (message.token.clone(), message.attempts);
        Contract.cover(message, ask);
        match self.defect {
            Some(Defect::TakeoverKeepsOldCover) if token.is_some() => message.token = token,
            Some(Defect::AttemptsNotCounted) => message.attempts = attempts,
            _ => {}
        }
    }

    fn delivery_count(&self, attempts: &[u32]) -> u32 {
        match self.defect {
            Some(Defect::SmallestAttemptReported) => attempts.iter().copied().min().unwrap_or(0),
            _ => Contract.delivery_count(attempts),
        }
    }
}

/// The events that decode, without those that do not.
fn decodable(state: &State, instance: &str, execution_id: u64) -> Vec<Event> {
    let texts = state.event_texts(instance, execution_id);
    texts.filter_map(|text| json::decode_event(text).ok()).collect()
}
