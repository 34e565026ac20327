//! Starts, and messages from outside of a turn.

use crate::commit::{Commit, visible_at};
use crate::state::State;
use outlast_provider::ProviderError;
use outlast_provider::model::WorkItem;
use std::time::Duration;

pub(crate) trait StartRules {
    /// A message is stored with its delay. It never creates an instance.
    fn enqueue(
        &self,
        state: &mut State,
        item: &WorkItem,
        delay: Option<Duration>,
        now: u64,
    ) -> Result<(), ProviderError> {
        state.push_message(item, visible_at(item, now, delay))
    }

    /// An instance id is taken if the store has a row or an event for it, or if its start waits.
    fn is_taken(&self, state: &State, instance: &str) -> bool {
        state.instances.contains_key(instance)
            || state.executions.contains_key(instance)
            || state.last_event_id(instance, 1) > 0
            || state.start_due(instance).is_some()
    }

    /// A first turn is committed with its start only if the store has no row, event, message and lease of the instance.
    fn is_unknown(&self, state: &State, instance: &str) -> bool {
        !self.is_taken(state, instance)
            && !state.leases.contains_key(instance)
            && state.messages.of_instance(instance, |_| true).is_empty()
    }

    /// Nothing of a first turn is stored if the store knows the instance.
    fn refuse_first_turn(
        &self,
        _state: &mut State,
        _instance: &str,
        _turn: Commit,
        _now: u64,
    ) -> Result<(), ProviderError> {
        Ok(())
    }

    /// The outcome of an instance is that of its newest execution.
    fn outcome_execution(&self, state: &State, instance: &str) -> u64 {
        state.latest_execution(instance)
    }
}
