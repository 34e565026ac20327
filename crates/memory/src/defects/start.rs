//! Broken starts.

use super::{Defect, Rules};
use crate::commit::Commit;
use crate::rules::{Contract, StartRules};
use crate::state::State;
use outlast_provider::ProviderError;
use outlast_provider::model::WorkItem;
use std::time::Duration;

impl StartRules for Rules {
    fn enqueue(
        &self,
        state: &mut State,
        item: &WorkItem,
        delay: Option<Duration>,
        now: u64,
    ) -> Result<(), ProviderError> {
        match (self.defect, item) {
            (Some(Defect::InstanceCreatedOnEnqueue), WorkItem::StartOrchestration { .. }) => {
                state.create_instance(item.target_instance(), 1, None, now);
            }
            (Some(Defect::LostDelay), _) => return state.push_message(item, now),
            _ => {}
        }
        Contract.enqueue(state, item, delay, now)
    }

    fn is_taken(&self, state: &State, instance: &str) -> bool {
        self.defect != Some(Defect::StartPolicyIgnored) && Contract.is_taken(state, instance)
    }

    fn is_unknown(&self, state: &State, instance: &str) -> bool {
        match self.defect {
            Some(Defect::StartTurnIgnoresMessages) => !state.instances.contains_key(instance),
            _ => Contract.is_unknown(state, instance),
        }
    }

    fn refuse_first_turn(
        &self,
        state: &mut State,
        instance: &str,
        turn: Commit,
        now: u64,
    ) -> Result<(), ProviderError> {
        match self.defect {
            Some(Defect::RefusedStartKeepsTurn) if !state.instances.contains_key(instance) => {
                state.apply_turn(instance, turn, now)
            }
            _ => Contract.refuse_first_turn(state, instance, turn, now),
        }
    }

    fn outcome_execution(&self, state: &State, instance: &str) -> u64 {
        match self.defect {
            Some(Defect::OutcomeOfFirstExecution) => 1,
            _ => Contract.outcome_execution(state, instance),
        }
    }
}
