//! Outcomes of several activities of one instance, committed with the turn that they lead to.

use super::record::kinds;
use super::{FaultyStore, sabotage};
use crate::check::Recorder;
use crate::fault::Fault;
use outlast_model::WorkItem;
use outlast_provider::{FusedCompletion, LeasedOutcome, ProviderError, TurnAhead};

impl FaultyStore {
    /// Completes activities together with the turn that follows from their outcomes.
    pub(super) async fn complete_all(
        &self,
        outcomes: Vec<LeasedOutcome>,
        mut ahead: TurnAhead,
    ) -> Result<FusedCompletion, ProviderError> {
        let instance = LeasedOutcome::instance_of(&outcomes).unwrap_or_default().to_string();
        let completions: Vec<WorkItem> = outcomes.iter().map(|outcome| outcome.completion.clone()).collect();
        let commit = &ahead.commit;
        let detail = format!(
            "[{}] of {instance} /{} +{} events, work {}, [{}] {}",
            kinds(&completions),
            commit.execution_id,
            commit.history_delta.len(),
            commit.worker_items.len(),
            kinds(&commit.orchestrator_items),
            commit.metadata.status.as_deref().unwrap_or("")
        );
        let call_spec = self.begin_call("ack_fused", detail);
        let fault = call_spec.fault;
        let call = async {
            let compared = self.again(&instance, completions.clone(), &ahead).await;
            sabotage::commit(&self.shared, &instance, &mut ahead.commit);
            let execution_id = ahead.commit.execution_id;
            let disturbances_before = self.disturbances();
            let tokens: Vec<&str> = outcomes.iter().map(|outcome| outcome.lock_token.as_str()).collect();
            let call = self.inner().complete_all_with_turn(outcomes.clone(), ahead);
            let completed = self.under_leases(&tokens, call).await?;
            if let FusedCompletion::WithTurn { .. } = completed {
                for outcome in &outcomes {
                    self.record_commit(&outcome.lock_token);
                    self.record_outcome(&outcome.completion);
                }
                self.committed_ahead(&instance, execution_id, compared, disturbances_before);
                let stored_once = self.none_is_queued(&instance, &completions).await;
                self.shared.require(stored_once);
                if let (Some(completion), Some(Fault::Duplicate)) = (completions.first(), fault) {
                    self.duplicate(completion).await;
                }
            }
            Ok(completed)
        };
        let show = |completed: &FusedCompletion| match completed {
            FusedCompletion::WithTurn { .. } => Some("ok".to_string()),
            FusedCompletion::Unchanged => Some("unchanged".to_string()),
        };
        self.shared.call(&self.caller, call_spec, show, call).await
    }

    /// I3: an outcome that a turn was committed with is not in the queue. No fault happens during the read.
    async fn none_is_queued(&self, instance: &str, completions: &[WorkItem]) -> Result<(), String> {
        let was_armed = self.shared.backend.statements.arm(false);
        let dump = self.shared.backend.dump().await;
        self.shared.backend.statements.arm(was_armed);
        let snapshot = Recorder::default().record(&dump?)?;
        match snapshot.messages.iter().any(|message| completions.contains(&message.item)) {
            true => Err(format!("I3: an outcome of '{instance}' is committed with its turn and queued too")),
            false => Ok(()),
        }
    }
}
