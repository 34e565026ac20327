//! Broken resets.

use super::{Defect, Rules};
use crate::commit::Commit;
use crate::rules::{Contract, ResetRules};
use crate::state::{Instance, State};
use outlast_provider::{HeldInstance, ProviderError, ResetPlan};

impl ResetRules for Rules {
    fn turn_before_reset(&self, state: &State, instance: &str, now: u64) -> Option<u64> {
        match self.defect {
            Some(Defect::ResetIgnoresTurn) => None,
            _ => Contract.turn_before_reset(state, instance, now),
        }
    }

    fn plan_is_current(&self, state: &State, plan: &ResetPlan) -> bool {
        match self.defect {
            Some(Defect::ResetIgnoresPosition) => state.latest_execution(&plan.source) == plan.execution_id,
            _ => Contract.plan_is_current(state, plan),
        }
    }

    fn fork_is_taken(&self, state: &State, target: &str) -> bool {
        match self.defect {
            Some(Defect::ForkIgnoresWaitingStart) => state.instances.contains_key(target),
            _ => Contract.fork_is_taken(state, target),
        }
    }

    fn end_source(&self, state: &mut State, plan: &ResetPlan, now: u64) -> Result<(), ProviderError> {
        match self.defect {
            Some(Defect::ResetLeavesExecutionRunning) => Ok(()),
            _ => Contract.end_source(state, plan, now),
        }
    }

    fn replace_keys(&self, state: &mut State, plan: &ResetPlan) {
        match self.defect {
            Some(Defect::ResetKeepsKeys) => {}
            Some(Defect::ResetMergesKeys) => state.merge_kv(&plan.target),
            _ => Contract.replace_keys(state, plan),
        }
    }

    fn begin_after_reset(&self, mut begin: Commit) -> Commit {
        if self.defect == Some(Defect::ResetKeepsActivities) {
            begin.cancelled.clear();
        }
        begin
    }

    fn set_custom_status(&self, row: &mut Instance, plan: &ResetPlan, version: u64) {
        if self.defect != Some(Defect::ResetKeepsCustomStatus) {
            Contract.set_custom_status(row, plan, version);
        }
    }

    fn first_available(&self, state: &State, plan: &ResetPlan, now: u64) -> u64 {
        match self.defect {
            Some(Defect::ResetMessagesComeLast) => now,
            Some(Defect::SecondResetMessagesComeLast) => plan.first_available_ms.min(now),
            _ => Contract.first_available(state, plan, now),
        }
    }

    fn audit_reset(&self, state: &mut State, plan: &ResetPlan, now: u64) {
        if self.defect != Some(Defect::ResetNotAudited) {
            Contract.audit_reset(state, plan, now);
        }
    }

    fn keep_hold(&self, state: &mut State, target: &str, held: Option<HeldInstance>) {
        match (self.defect, held) {
            (Some(Defect::ResetReleasesHold), Some(_)) => {
                state.release(target);
            }
            (_, held) => Contract.keep_hold(state, target, held),
        }
    }
}
