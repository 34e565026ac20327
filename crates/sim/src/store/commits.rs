//! Commits of a turn, and of an outcome with the turn that follows it. Some turns run again from a cold start and must
//! decide the same.

use super::record::{kinds, short};
use super::{FaultyStore, sabotage};
use crate::bug::Bug;
use crate::check::replay;
use crate::fault::Fault;
use crate::performed::Turn;
use outlast_model::WorkItem;
use outlast_provider::{Clock, Completion, ProviderError, TurnAhead, TurnCommit};

impl FaultyStore {
    pub(super) async fn commit(
        &self,
        lock_token: &str,
        mut commit: TurnCommit,
    ) -> Result<Option<u64>, ProviderError> {
        let status = commit.metadata.status.as_deref().unwrap_or("");
        let detail = format!(
            "{} /{} +{} events, work {}, [{}] {status}",
            short(lock_token),
            commit.execution_id,
            commit.history_delta.len(),
            commit.worker_items.len(),
            kinds(&commit.orchestrator_items)
        );
        let call_spec = self.begin_call("ack_turn", detail);
        if call_spec.fault == Some(Fault::ErrorBefore) && self.shared.has(Bug::OutageFailsInstance) {
            commit = sabotage::failed_by_outage(self.shared.clock.now_ms(), &commit).unwrap_or(commit);
            let _ = self.inner().commit_turn(lock_token, commit.clone()).await;
        }
        let fault = call_spec.fault;
        let call = async {
            let turn = self.shared.performed().turns.get(lock_token).cloned();
            let mut again = None;
            if let Some(turn) = turn.as_ref().filter(|_| self.shared.rng().per_mille(250)) {
                again = replay::again(&self.shared, turn, self.is_old_build).await;
            }
            let compared = again.map(|again| replay::compare(&again, &commit));
            let instance = turn.map(|turn| turn.instance).unwrap_or_default();
            sabotage::commit(&self.shared, &instance, &mut commit);
            let execution_id = commit.execution_id;
            let duplicate_item =
                commit.orchestrator_items.iter().find(|item| may_arrive_twice(item)).cloned();
            let committed_at =
                self.under_lease(lock_token, self.inner().commit_turn(lock_token, commit)).await?;
            self.record_commit(lock_token);
            self.shared.performed().turns.remove(lock_token);
            self.shared.tally().turns += 1;
            self.compared(&instance, execution_id, compared);
            if let Some(item) = duplicate_item.filter(|_| fault == Some(Fault::Duplicate)) {
                self.duplicate(&item).await;
            }
            Ok(committed_at)
        };
        self.shared.call(&self.caller, call_spec, |_| Some("ok".to_string()), call).await
    }

    /// Completes an activity together with the turn that follows it.
    pub(super) async fn complete(
        &self,
        token: &str,
        completion: WorkItem,
        mut ahead: TurnAhead,
    ) -> Result<Completion, ProviderError> {
        let instance = completion.target_instance().to_string();
        let commit = &ahead.commit;
        let detail = format!(
            "{} {} of {instance} /{} +{} events, work {}, [{}] {}",
            short(token),
            completion.kind_name(),
            commit.execution_id,
            commit.history_delta.len(),
            commit.worker_items.len(),
            kinds(&commit.orchestrator_items),
            commit.metadata.status.as_deref().unwrap_or("")
        );
        let call_spec = self.begin_call("ack_ahead", detail);
        let fault = call_spec.fault;
        let call = async {
            let compared = self.again(&instance, vec![completion.clone()], &ahead).await;
            sabotage::commit(&self.shared, &instance, &mut ahead.commit);
            let execution_id = ahead.commit.execution_id;
            let disturbances_before = self.disturbances();
            let call = self.inner().complete_with_turn(token, completion.clone(), ahead);
            let completed = self.under_lease(token, call).await?;
            self.record_commit(token);
            self.record_outcome(&completion);
            if let Completion::WithTurn { .. } = completed {
                self.committed_ahead(&instance, execution_id, compared, disturbances_before);
            }
            if fault == Some(Fault::Duplicate) {
                self.duplicate(&completion).await;
            }
            Ok(completed)
        };
        let show = |completed: &Completion| match completed {
            Completion::WithTurn { .. } => Some("ok".to_string()),
            Completion::Queued => Some("queued".to_string()),
        };
        self.shared.call(&self.caller, call_spec, show, call).await
    }

    /// Runs some turns ahead again from a cold start. Returns the comparison.
    pub(super) async fn again(
        &self,
        instance: &str,
        messages: Vec<WorkItem>,
        ahead: &TurnAhead,
    ) -> Option<Result<(), String>> {
        let first = ahead.commit.history_delta.first()?;
        if !self.shared.rng().per_mille(250) {
            return None;
        }
        let turn = Turn {
            instance: instance.to_string(),
            execution_id: ahead.commit.execution_id,
            messages,
            now_ms: first.timestamp_ms,
            attempts: 1,
        };
        let again = replay::again(&self.shared, &turn, self.is_old_build).await;
        again.map(|again| replay::compare(&again, &ahead.commit))
    }

    /// Records a turn that was committed without a lease of its instance.
    pub(super) fn committed_ahead(
        &self,
        instance: &str,
        execution_id: u64,
        compared: Option<Result<(), String>>,
        disturbances_before: u64,
    ) {
        self.was_alone(instance, disturbances_before);
        self.shared.tally().turns += 1;
        self.compared(instance, execution_id, compared);
    }

    /// I6: no node holds the instance of a turn that was committed without a lease. A node that was disturbed since it sent the turn to a
    /// task of its store may learn late that it was committed, when another node has leased the instance.
    pub(super) fn was_alone(&self, instance: &str, disturbances_before: u64) {
        if self.shared.backend.has_tasks() && self.disturbances() != disturbances_before {
            return;
        }
        let now = self.shared.clock.now_ms();
        let alone = self.shared.performed().leases.committed_without_lease(&format!("'{instance}'"), now);
        self.shared.require(alone);
    }

    /// Records the comparison of a turn with the same turn from a cold start.
    pub(super) fn compared(&self, instance: &str, execution_id: u64, compared: Option<Result<(), String>>) {
        let Some(compared) = compared else { return };
        self.shared.tally().turns_compared += 1;
        self.shared.require(compared.map_err(|difference| {
            format!(
                "I9: a turn of '{instance}', execution {execution_id}, run again from a cold start decides \
                 otherwise: {difference}"
            )
        }));
    }
}

/// Whether the engine drops a second delivery of this message.
fn may_arrive_twice(item: &WorkItem) -> bool {
    match item {
        WorkItem::TimerFired { .. }
        | WorkItem::SubOrchCompleted { .. }
        | WorkItem::SubOrchFailed { .. }
        | WorkItem::CancelInstance { .. } => true,
        WorkItem::StartOrchestration { parent_instance, .. } => parent_instance.is_some(),
        _ => false,
    }
}
