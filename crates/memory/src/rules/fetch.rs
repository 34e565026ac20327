//! Fetches of turns.

use crate::fetch::{TurnAsk, dead_message, put_off_orphans};
use crate::queue::Message;
use crate::rules::HoldRules;
use crate::state::{Instance, State};
use outlast_provider::model::{Event, WorkItem, json};
use outlast_provider::{DispatcherCapabilityFilter, MessageBound, ProviderError};

pub(crate) trait FetchRules {
    /// A fetch tries the instances with due messages in the order in which their messages became visible.
    fn due_instances(&self, state: &State, ask: &TurnAsk<'_>) -> Vec<String> {
        state.messages.due_instances(ask.now)
    }

    /// An instance is delivered unless it is leased, it is held or the filter excludes it. The store changes nothing for an
    /// instance that it passes over.
    fn is_available(&self, state: &mut State, instance: &str, ask: &TurnAsk<'_>) -> bool {
        state.live_lease(instance, ask.now).is_none()
            && !state.rules.is_held(state, instance)
            && state.rules.is_admitted(state, instance, ask.filter)
    }

    /// The filter compares the pinned version of the current execution. An execution without a pin is always admitted.
    fn is_admitted(
        &self,
        state: &State,
        instance: &str,
        filter: Option<&DispatcherCapabilityFilter>,
    ) -> bool {
        let pinned = state.current_execution(instance).and_then(|execution| execution.pinned.as_ref());
        match (filter, pinned) {
            (Some(filter), Some(pinned)) => filter.is_compatible(pinned),
            _ => true,
        }
    }

    /// One fetch takes a bounded number of messages and bytes.
    fn within(&self, state: &State, visible: &[u64], bound: MessageBound) -> Vec<u64> {
        let size = |ordinal: u64| state.messages.get(ordinal).map_or(0, |message| message.text.len());
        if visible.len() <= bound.messages
            && visible.iter().map(|ordinal| size(*ordinal)).sum::<usize>() <= bound.bytes
        {
            return visible.to_vec();
        }
        let mut bytes = 0;
        let mut taken = Vec::new();
        for ordinal in state.rules.taking_order(state, visible) {
            let next = size(ordinal);
            if !bound.takes(taken.len(), bytes, next) {
                break;
            }
            bytes += next;
            taken.push(ordinal);
        }
        taken
    }

    /// A bounded fetch takes starts first, because no turn is possible without the start of its execution, and then the
    /// oldest messages.
    fn taking_order(&self, state: &State, visible: &[u64]) -> Vec<u64> {
        let rank = |text: &str| match json::decode_work_item(text) {
            Ok(WorkItem::ContinueAsNew { .. }) => 0,
            Ok(WorkItem::StartOrchestration { .. }) => 1,
            _ => 2,
        };
        let mut ordinals = visible.to_vec();
        ordinals.sort_by_cached_key(|ordinal| {
            let message = state.messages.get(*ordinal);
            message.map(|message| (rank(&message.text), message.available_at, *ordinal))
        });
        ordinals
    }

    /// Messages are delivered in the order in which they first became visible.
    fn delivery_order(&self, state: &State, mut taken: Vec<u64>) -> Vec<u64> {
        taken.sort_by_key(|ordinal| {
            (state.messages.get(*ordinal).map(|message| message.available_at), *ordinal)
        });
        taken
    }

    /// A message that does not decode becomes a dead letter.
    fn move_message_to_dead_letters(&self, state: &mut State, message: &Message, reason: String, now: u64) {
        state.bury(dead_message(message, reason, now));
    }

    /// One fetch delivers all messages that it took.
    fn batch(&self, decoded: Vec<(u64, WorkItem)>) -> Vec<(u64, WorkItem)> {
        decoded
    }

    /// Messages for an instance whose start is delayed wait for the start.
    fn start_due(&self, state: &State, instance: &str) -> Option<u64> {
        state.start_due(instance)
    }

    /// Queue messages for an instance that does not exist are dropped.
    fn drop_orphans(&self, state: &mut State, rows: &[u64]) {
        rows.iter().for_each(|ordinal| drop(state.messages.remove(*ordinal)));
    }

    /// Other messages for an instance that does not exist are delayed and do not block other instances. Returns the time of
    /// the next attempt.
    fn put_off_orphans(&self, state: &mut State, rows: &[u64], now: u64) -> u64 {
        put_off_orphans(state, rows, now)
    }

    /// A start that waits for an existing instance does not change the instance's name and version.
    fn name_and_version(
        &self,
        row: &Instance,
        _start: Option<(&String, &Option<String>)>,
    ) -> (String, String) {
        (row.orchestration_name.clone(), row.orchestration_version.clone())
    }

    /// A history that does not decode is delivered as an error under a lease, never in part.
    fn delivered_history(
        &self,
        _state: &State,
        _instance: &str,
        _execution_id: u64,
        history: Result<Vec<Event>, String>,
    ) -> Result<(Vec<Event>, Option<String>), ProviderError> {
        Ok(match history {
            Ok(events) => (events, None),
            Err(reason) => (Vec::new(), Some(reason)),
        })
    }

    /// A read of a history that does not decode fails; it never returns a part.
    fn read_history(&self, state: &State, instance: &str, execution_id: u64) -> Result<Vec<Event>, String> {
        state.events(instance, execution_id)
    }

    /// A fetch reports the id of the last stored event.
    fn reported_event_id(&self, state: &State, instance: &str, execution_id: u64) -> u64 {
        state.last_event_id(instance, execution_id)
    }

    /// A lease covers every message that the fetch delivers, and counts the delivery.
    fn cover(&self, message: &mut Message, ask: &TurnAsk<'_>) {
        message.token = Some(ask.token.clone());
        message.fetch_at = ask.locked_until;
        message.attempts += 1;
    }

    /// A fetch reports the highest delivery count among its messages.
    fn delivery_count(&self, attempts: &[u32]) -> u32 {
        attempts.iter().copied().max().unwrap_or(0)
    }
}
