//! A store that records its calls and acknowledgements.

use super::call_log::{CallLog, CallState};
use async_trait::async_trait;
use outlast_model::{Event, WorkItem};
use outlast_provider::{
    Completion, EagerStart, ExecutionMetadata, FusedCompletion, LeasedOutcome, Provider, ProviderError,
    ScheduledActivityIdentifier, StartOutcome, StartRequest, TurnAhead, TurnCommit, forward_provider,
};
use std::sync::Arc;
use std::time::Duration;

/// Wraps the shipped store. Every method is forwarded; calls that change the store are recorded before, as unanswered,
/// and after, as acknowledged.
pub(crate) struct RecordingStore {
    pub(crate) inner: Arc<dyn Provider>,
    pub(crate) call_log: Arc<CallLog>,
}

#[async_trait]
impl Provider for RecordingStore {
    forward_provider!(
        Provider,
        |this| this.inner,
        except(
            ack_orchestration_item,
            ack_work_item,
            complete_with_turn,
            complete_all_with_turn,
            enqueue_for_orchestrator,
            commit_turn,
            enqueue_within,
            start_orchestration,
            start_with_turn
        )
    );

    async fn ack_orchestration_item(
        &self,
        lock_token: &str,
        execution_id: u64,
        history_delta: Vec<Event>,
        worker_items: Vec<WorkItem>,
        orchestrator_items: Vec<WorkItem>,
        metadata: ExecutionMetadata,
        cancelled_activities: Vec<ScheduledActivityIdentifier>,
    ) -> Result<(), ProviderError> {
        let delta = history_delta.clone();
        self.call_log.committing(&delta);
        let call = self.inner.ack_orchestration_item(
            lock_token,
            execution_id,
            history_delta,
            worker_items,
            orchestrator_items,
            metadata,
            cancelled_activities,
        );
        call.await.inspect(|()| self.call_log.committed(&delta))
    }

    async fn ack_work_item(&self, token: &str, completion: Option<WorkItem>) -> Result<(), ProviderError> {
        self.call_log.activity_state(completion.as_ref(), CallState::Unanswered);
        let done = self.inner.ack_work_item(token, completion.clone()).await;
        done.inspect(|()| self.call_log.activity_state(completion.as_ref(), CallState::Acknowledged))
    }

    async fn complete_with_turn(
        &self,
        token: &str,
        completion: WorkItem,
        turn: TurnAhead,
    ) -> Result<Completion, ProviderError> {
        let delta = turn.commit.history_delta.clone();
        self.call_log.activity_state(Some(&completion), CallState::Unanswered);
        self.call_log.committing(&delta);
        let done = self.inner.complete_with_turn(token, completion.clone(), turn).await;
        done.inspect(|completed| {
            self.call_log.activity_state(Some(&completion), CallState::Acknowledged);
            if let Completion::WithTurn { .. } = completed {
                self.call_log.committed(&delta);
            }
        })
    }

    async fn complete_all_with_turn(
        &self,
        outcomes: Vec<LeasedOutcome>,
        turn: TurnAhead,
    ) -> Result<FusedCompletion, ProviderError> {
        let delta = turn.commit.history_delta.clone();
        let completions: Vec<WorkItem> = outcomes.iter().map(|outcome| outcome.completion.clone()).collect();
        for completion in &completions {
            self.call_log.activity_state(Some(completion), CallState::Unanswered);
        }
        self.call_log.committing(&delta);
        let done = self.inner.complete_all_with_turn(outcomes, turn).await;
        done.inspect(|completed| {
            if let FusedCompletion::WithTurn { .. } = completed {
                for completion in &completions {
                    self.call_log.activity_state(Some(completion), CallState::Acknowledged);
                }
                self.call_log.committed(&delta);
            }
        })
    }

    async fn start_with_turn(&self, start: WorkItem, turn: TurnAhead) -> Result<EagerStart, ProviderError> {
        let delta = turn.commit.history_delta.clone();
        self.call_log.sending(&start);
        self.call_log.committing(&delta);
        let done = self.inner.start_with_turn(start.clone(), turn).await;
        done.inspect(|started| {
            if let EagerStart::WithTurn { .. } = started {
                self.call_log.sent(&start);
                self.call_log.committed(&delta);
            }
        })
    }

    async fn enqueue_for_orchestrator(
        &self,
        item: WorkItem,
        delay: Option<Duration>,
    ) -> Result<(), ProviderError> {
        self.call_log.sending(&item);
        self.inner.enqueue_for_orchestrator(item.clone(), delay).await.inspect(|()| self.call_log.sent(&item))
    }

    async fn commit_turn(&self, lock_token: &str, commit: TurnCommit) -> Result<Option<u64>, ProviderError> {
        let delta = commit.history_delta.clone();
        self.call_log.committing(&delta);
        self.inner.commit_turn(lock_token, commit).await.inspect(|_| self.call_log.committed(&delta))
    }

    async fn enqueue_within(&self, item: WorkItem, most_waiting: usize) -> Result<bool, ProviderError> {
        self.call_log.sending(&item);
        let done = self.inner.enqueue_within(item.clone(), most_waiting).await;
        done.inspect(|enqueued| {
            if *enqueued {
                self.call_log.sent(&item)
            }
        })
    }

    async fn start_orchestration(&self, request: StartRequest) -> Result<StartOutcome, ProviderError> {
        let items: Vec<WorkItem> = [&request.start].into_iter().chain(&request.messages).cloned().collect();
        items.iter().for_each(|item| self.call_log.sending(item));
        let done = self.inner.start_orchestration(request).await;
        if matches!(done, Ok(StartOutcome::Started)) {
            items.iter().for_each(|item| self.call_log.sent(item));
        }
        done
    }
}
