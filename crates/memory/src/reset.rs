//! Resets and forks of instances.

use crate::commit::{Commit, check_id, check_messages};
use crate::rules::{CommitRules, ResetRules};
use crate::state::{State, Stored};
use outlast_provider::model::{EventKind, ExecutionStatus};
use outlast_provider::{AuditRecord, ProviderError, ResetOutcome, ResetPlan};

const RESET: &str = "reset_instance";

impl State {
    /// Begins the new execution of a plan, unless the source has changed, a turn of it runs, or the id of a fork is taken.
    pub(crate) fn reset(&mut self, plan: &ResetPlan, now: u64) -> Result<ResetOutcome, ProviderError> {
        let rules = self.rules;
        let begin = Commit::from(plan.begin.clone());
        check_id(RESET, &plan.target)?;
        check_messages(RESET, &plan.first_messages)?;
        begin.check(&plan.target, rules)?;
        if !self.instances.contains_key(&plan.source) {
            return Ok(ResetOutcome::NotFound);
        }
        if !plan.is_fork()
            && let Some(locked_until_ms) = rules.turn_before_reset(self, &plan.source, now)
        {
            return Ok(ResetOutcome::InTurn { locked_until_ms });
        }
        if !rules.plan_is_current(self, plan) {
            return Ok(ResetOutcome::Changed);
        }
        if plan.is_fork() && rules.fork_is_taken(self, &plan.target) {
            return Ok(ResetOutcome::Taken);
        }
        rules.check_new_events(self, RESET, &plan.target, begin.execution_id, &begin.delta)?;
        self.apply_reset(plan, begin, now)?;
        Ok(ResetOutcome::Done)
    }

    fn apply_reset(&mut self, plan: &ResetPlan, begin: Commit, now: u64) -> Result<(), ProviderError> {
        let (rules, target) = (self.rules, plan.target.as_str());
        let held = self.holds.get(target).cloned();
        // A rest stays: it still keeps messages from overtaking delayed ones.
        if self.leases.get(target).is_some_and(|lease| !lease.is_rest) {
            self.leases.remove(target);
            self.uncover(target);
        }
        rules.end_source(self, plan, now)?;
        rules.replace_keys(self, plan);
        let version = self.instances.get(target).map_or(0, |row| row.custom_status_version);
        let first_available = rules.first_available(self, plan, now);
        // Before the messages that the first turn sends to its own instance.
        for message in &plan.first_messages {
            self.push_message(message, first_available)?;
        }
        let begin = rules.begin_after_reset(begin);
        self.apply_turn(target, begin, now)?;
        if let Some(row) = self.instances.get_mut(target) {
            rules.set_custom_status(row, plan, version + 1);
        }
        rules.audit_reset(self, plan, now);
        rules.keep_hold(self, target, held);
        Ok(())
    }

    /// Ends the execution of the source as continued. Its keys are not merged.
    pub(crate) fn end_source(&mut self, plan: &ResetPlan, now: u64) -> Result<(), ProviderError> {
        let Some(end) = &plan.end else { return Ok(()) };
        let output = match &end.kind {
            EventKind::OrchestrationContinuedAsNew { input } => Some(input.clone()),
            _ => None,
        };
        let executions = self.executions.entry(plan.source.clone()).or_default();
        if let Some(row) = executions.get_mut(&plan.execution_id) {
            row.status = ExecutionStatus::ContinuedAsNew.to_string();
            row.output = output;
            row.completed_at = Some(now);
        }
        self.append_checked(&plan.source, plan.execution_id, std::slice::from_ref(end), now)
    }

    /// The time of the message that has waited longest for the instance.
    pub(crate) fn earliest_message(&self, instance: &str) -> Option<u64> {
        let waiting = self.messages.of_instance(instance, |_| true);
        waiting.into_iter().filter_map(|ordinal| self.messages.get(ordinal)).map(|row| row.available_at).min()
    }

    /// Replaces all keys of the target.
    pub(crate) fn replace_keys(&mut self, plan: &ResetPlan) {
        self.kv_delta.remove(&plan.target);
        let keys = plan.keys.iter().map(|(key, entry)| {
            let stored = Stored { value: entry.value.clone(), last_updated_at_ms: entry.last_updated_at_ms };
            (key.clone(), stored)
        });
        self.kv_store.insert(plan.target.clone(), keys.collect());
    }

    /// Records the reset.
    pub(crate) fn audit_reset(&mut self, plan: &ResetPlan, now: u64) {
        let id = self.next_record();
        self.audit.push(AuditRecord { id, at_ms: now, entry: plan.audit.clone() });
    }
}
