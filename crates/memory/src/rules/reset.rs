//! Resets and forks of instances.

use super::{HoldRules, StartRules};
use crate::commit::Commit;
use crate::state::{Instance, State};
use outlast_provider::{HeldInstance, ProviderError, ResetPlan};

pub(crate) trait ResetRules: HoldRules + StartRules {
    /// A reset is refused while a turn of the instance runs. Returns the end of its lease.
    fn turn_before_reset(&self, state: &State, instance: &str, now: u64) -> Option<u64> {
        state.live_lease(instance, now).filter(|lease| !lease.is_rest).map(|lease| lease.locked_until)
    }

    /// A plan is accepted while the newest execution of the source ends with the event that the plan was made with.
    fn plan_is_current(&self, state: &State, plan: &ResetPlan) -> bool {
        state.latest_execution(&plan.source) == plan.execution_id
            && state.last_event_id(&plan.source, plan.execution_id) == plan.last_event_id
    }

    /// A fork gets an id that no instance has and no start waits for.
    fn fork_is_taken(&self, state: &State, target: &str) -> bool {
        self.is_taken(state, target)
    }

    /// The execution of the source ends with the event of the plan, as continued.
    fn end_source(&self, state: &mut State, plan: &ResetPlan, now: u64) -> Result<(), ProviderError> {
        state.end_source(plan, now)
    }

    /// The keys of the plan replace all keys of the target.
    fn replace_keys(&self, state: &mut State, plan: &ResetPlan) {
        state.replace_keys(plan);
    }

    /// The first turn of the new execution is committed unchanged.
    fn begin_after_reset(&self, begin: Commit) -> Commit {
        begin
    }

    /// The custom status is that of the plan, and its version is raised by one.
    fn set_custom_status(&self, row: &mut Instance, plan: &ResetPlan, version: u64) {
        row.custom_status.clone_from(&plan.custom_status);
        row.custom_status_version = version;
    }

    /// The first messages of a plan are delivered before all messages that wait. Plans of one chain of resets have the same time, so
    /// that messages of an earlier reset can wait with the time of this plan.
    fn first_available(&self, state: &State, plan: &ResetPlan, now: u64) -> u64 {
        let available_at = plan.first_available_ms.min(now);
        let before_waiting = state.earliest_message(&plan.target).map(|earliest| earliest.saturating_sub(1));
        before_waiting.map_or(available_at, |before| before.min(available_at))
    }

    /// A reset is recorded in the audit.
    fn audit_reset(&self, state: &mut State, plan: &ResetPlan, now: u64) {
        state.audit_reset(plan, now);
    }

    /// A held instance stays held.
    fn keep_hold(&self, _state: &mut State, _target: &str, _held: Option<HeldInstance>) {}
}
