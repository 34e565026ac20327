//! Changes of operators and of runtimes on the management interface, and their records in the audit.

use super::FaultyStore;
use crate::audit::{Answer, Owed};
use async_trait::async_trait;
use outlast_model::HoldKind;
use outlast_provider::{
    AuditEntry, Hold, HoldOutcome, ProviderAdmin, ProviderError, ReleaseOutcome, ResetOutcome, ResetPlan,
    forward_provider,
};

const PAUSED: &[&str] = &["instance.pause"];
pub(super) const PARKED: &[&str] = &["instance.park"];
/// By a client, or by a runtime of another build.
const RELEASED: &[&str] = &["instance.resume", "instance.unpark"];
const ORCHESTRATION_PAUSED: &[&str] = &["orchestration.pause"];
const ORCHESTRATION_RESUMED: &[&str] = &["orchestration.resume"];

impl FaultyStore {
    #[allow(clippy::expect_used, reason = "every store of a world has a management interface")]
    fn admin(&self) -> &dyn ProviderAdmin {
        self.inner().as_management_capability().expect("a store with a management interface")
    }

    fn owed(&self, actions: &'static [&'static str], target: &str, by: Option<(&str, &str)>) -> Owed {
        Owed {
            node: self.caller.node,
            disturbances: self.disturbances(),
            at_ms: self.shared.now_ms(),
            actions,
            target: target.to_string(),
            by: by.map(|(actor, reason)| (actor.to_string(), reason.to_string())),
        }
    }

    /// Records that the caller must record a change.
    pub(super) fn owes(&self, actions: &'static [&'static str], target: &str, by: Option<(&str, &str)>) {
        let owed = self.owed(actions, target, by);
        self.shared.performed().audit.owes(owed);
    }

    /// The caller must record a pause that was made, and may record one that failed after it was made, when it repeats the pause.
    fn paused(
        &self,
        actions: &'static [&'static str],
        target: &str,
        by: (&str, &str),
        outcome: &Result<HoldOutcome, ProviderError>,
    ) {
        match outcome {
            Ok(HoldOutcome::Held) => self.owes(actions, target, Some(by)),
            Err(_) if self.shared.backend.statements.may_hide_commits() => {
                let pause = self.owed(actions, target, Some(by));
                self.shared.performed().audit.may_record(pause);
            }
            Ok(_) | Err(_) => {}
        }
    }

    /// The hold of an instance, read without faults.
    async fn hold_of(&self, instance: &str) -> Result<Option<HoldKind>, ProviderError> {
        let was_armed = self.shared.backend.statements.arm(false);
        let held = self.admin().held_instance(instance).await;
        self.shared.backend.statements.arm(was_armed);
        held.map(|held| held.map(|held| held.hold.kind))
    }

    /// I15: no fetch returns a turn of a held instance.
    pub(super) async fn must_not_be_held(&self, instance: &str) -> Result<(), String> {
        match self.hold_of(instance).await {
            Ok(Some(kind)) => Err(format!("I15: a turn of '{instance}' was fetched, which is {kind}")),
            Ok(None) => Ok(()),
            Err(error) => Err(format!("I15: the hold of '{instance}' cannot be read: {error}")),
        }
    }

    /// What the answer to a call says about the record that the call writes.
    fn record_of<T>(&self, answer: &Result<T, ProviderError>, is_stored: impl Fn(&T) -> bool) -> Answer {
        match answer {
            Ok(value) if is_stored(value) => Answer::Stored,
            Err(_) if self.shared.backend.may_hide_commits() => Answer::InDoubt,
            Ok(_) | Err(_) => Answer::NotStored,
        }
    }
}

#[async_trait]
impl ProviderAdmin for FaultyStore {
    forward_provider!(
        ProviderAdmin,
        |this| this.admin(),
        except(
            hold_instance,
            release_instance,
            pause_orchestration,
            resume_orchestration,
            reset_instance,
            append_audit,
        )
    );

    async fn hold_instance(&self, instance: &str, hold: &Hold) -> Result<HoldOutcome, ProviderError> {
        let outcome = self.admin().hold_instance(instance, hold).await;
        self.paused(PAUSED, instance, (&hold.actor, &hold.reason), &outcome);
        outcome
    }

    async fn release_instance(&self, instance: &str) -> Result<ReleaseOutcome, ProviderError> {
        let kind = self.hold_of(instance).await?;
        let outcome = self.admin().release_instance(instance).await?;
        // The record of a paused orchestration covers the instances that runtimes hold and release because of it.
        let is_covered = self.caller.node.is_some() && kind == Some(HoldKind::OrchestrationPaused);
        if outcome == ReleaseOutcome::Released && !is_covered {
            self.owes(RELEASED, instance, None);
        }
        Ok(outcome)
    }

    async fn pause_orchestration(
        &self,
        orchestration: &str,
        actor: &str,
        reason: &str,
    ) -> Result<HoldOutcome, ProviderError> {
        let outcome = self.admin().pause_orchestration(orchestration, actor, reason).await;
        self.paused(ORCHESTRATION_PAUSED, orchestration, (actor, reason), &outcome);
        outcome
    }

    async fn resume_orchestration(&self, orchestration: &str) -> Result<ReleaseOutcome, ProviderError> {
        let outcome = self.admin().resume_orchestration(orchestration).await?;
        if outcome == ReleaseOutcome::Released {
            self.owes(ORCHESTRATION_RESUMED, orchestration, None);
        }
        Ok(outcome)
    }

    async fn reset_instance(&self, plan: &ResetPlan) -> Result<ResetOutcome, ProviderError> {
        let answer = self.admin().reset_instance(plan).await;
        let record = self.record_of(&answer, |outcome| matches!(outcome, ResetOutcome::Done));
        self.shared.performed().audit.written(&plan.audit, record);
        answer
    }

    async fn append_audit(&self, entry: &AuditEntry) -> Result<bool, ProviderError> {
        let answer = self.admin().append_audit(entry).await;
        let record = self.record_of(&answer, |is_stored| *is_stored);
        let appended = self.shared.performed().audit.appended(self.caller.node, entry, record);
        self.shared.require(appended);
        answer
    }
}
