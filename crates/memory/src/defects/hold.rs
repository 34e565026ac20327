//! Broken holds.

use super::{Defect, Rules};
use crate::rules::{Contract, Fence, HoldRules};
use crate::state::State;
use outlast_provider::HeldInstance;
use outlast_provider::model::WorkItem;

impl HoldRules for Rules {
    fn runs_until(&self, state: &State, instance: &str, now: u64) -> Option<u64> {
        match self.defect {
            Some(Defect::HoldIgnoresTurn) => None,
            _ => Contract.runs_until(state, instance, now),
        }
    }

    fn is_held(&self, state: &State, instance: &str) -> bool {
        let held = state.holds.get(instance);
        match (self.defect, held) {
            (Some(Defect::HoldIgnored), _) => false,
            (Some(Defect::HoldMissesLaterMessages), Some(held)) => {
                let arrived = state.messages.of_instance(instance, |row| row.available_at > held.held_at_ms);
                arrived.is_empty()
            }
            _ => Contract.is_held(state, instance),
        }
    }

    fn ahead_is_not_held(&self, state: &State, instance: &str) -> bool {
        self.defect == Some(Defect::AheadIgnoresHold) || Contract.ahead_is_not_held(state, instance)
    }

    fn hold_fence(&self, fence: Fence<String>) -> Fence<String> {
        match (self.defect, fence) {
            (Some(Defect::HoldTurnIgnoresExpiry), Fence::Expired(instance)) => Fence::Holds(instance),
            (_, fence) => Contract.hold_fence(fence),
        }
    }

    fn attempts_after_hold(&self, attempts: u32) -> u32 {
        match self.defect {
            Some(Defect::HoldCountsDelivery) => attempts,
            _ => Contract.attempts_after_hold(attempts),
        }
    }

    fn return_messages(&self, state: &mut State, held: &HeldInstance) {
        let ordinals = state.messages.of_instance(&held.instance_id, |_| true);
        match self.defect {
            Some(Defect::ReleaseLosesLaterMessages) => {
                for ordinal in ordinals {
                    let row = state.messages.get(ordinal);
                    if row.is_some_and(|row| row.available_at > held.held_at_ms) {
                        state.messages.remove(ordinal);
                    }
                }
            }
            Some(Defect::ReleaseReordersMessages) => {
                for (place, ordinal) in ordinals.into_iter().rev().enumerate() {
                    state.messages.update(ordinal, |row| row.available_at = place as u64);
                }
            }
            _ => Contract.return_messages(state, held),
        }
    }

    fn ends_hold(&self, item: &WorkItem) -> bool {
        self.defect != Some(Defect::CancelWaitsForRelease) && Contract.ends_hold(item)
    }

    fn counts_as_waiting(&self, state: &State, instance: &str) -> bool {
        self.defect == Some(Defect::DepthsCountHeld) || Contract.counts_as_waiting(state, instance)
    }

    fn is_paused(&self, state: &State, orchestration: &str) -> bool {
        self.defect != Some(Defect::SecondPauseReplacesFirst) && Contract.is_paused(state, orchestration)
    }

    fn remove_pause(&self, state: &mut State, orchestration: &str) -> bool {
        if self.defect == Some(Defect::ResumeEndsEveryPause) && state.paused.contains_key(orchestration) {
            state.paused.clear();
            return true;
        }
        Contract.remove_pause(state, orchestration)
    }

    fn delete_hold(&self, state: &mut State, instance: &str) {
        if self.defect != Some(Defect::DeleteKeepsHold) {
            Contract.delete_hold(state, instance);
        }
    }
}
