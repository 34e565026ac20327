//! The store as the runtime of a worker sees it. It forwards every call; commits are counted and logged, and pause at a
//! point until the worker is killed if the supervisor ordered it.

use super::pause_points::{PausePoints, Point};
use crate::commit_log::{Commit, CommitLog, CommitStep, size_of};
use crate::job::Sabotage;
use async_trait::async_trait;
use outlast::Event;
use outlast::providers::{
    Completion, ExecutionMetadata, FusedCompletion, LeasedOutcome, Provider, ProviderError,
    ScheduledActivityIdentifier, TurnAhead, TurnCommit, WorkItem, forward_provider,
};
use std::sync::Arc;

pub(super) struct PausingStore {
    pub(super) inner: Arc<dyn Provider>,
    pub(super) pause_points: Arc<PausePoints>,
    pub(super) commit_log: Arc<CommitLog>,
    pub(super) sabotage: Option<Sabotage>,
    pub(super) name: String,
}

type Answer<T> = Result<T, ProviderError>;

impl PausingStore {
    async fn commit<T>(&self, commit: Option<Commit>, call: impl Future<Output = Answer<T>>) -> Answer<T> {
        let point = self.pause_points.take_point();
        if point == Some(Point::Before) {
            return announce_and_wait(Point::Before).await;
        }
        let _in_flight = self.commit_log.begin();
        self.log(CommitStep::Begun, commit.as_ref());
        if point == Some(Point::Within) {
            announce(Point::Within);
        }
        let answer = call.await;
        self.log(if answer.is_ok() { CommitStep::Stored } else { CommitStep::NotStored }, commit.as_ref());
        self.commit_log.change(|state| match &answer {
            Ok(_) => state.stored += 1,
            Err(error) if error.is_retryable() => state.failed += 1,
            Err(_) => state.refused += 1,
        });
        if point == Some(Point::After) {
            return announce_and_wait(Point::After).await;
        }
        answer
    }

    /// Holds back a turn of at least the ordered size until the supervisor releases it.
    async fn hold_large(&self, events: &[Event]) {
        if let Some(least) = self.pause_points.held_from()
            && size_of(events) >= least
        {
            self.commit_log.change(|state| state.held += 1);
            self.pause_points.released().await;
        }
    }

    /// An incomplete log would hide errors, so the worker exits if it cannot write.
    fn log(&self, step: CommitStep, commit: Option<&Commit>) {
        if let Some(Err(error)) = commit.map(|commit| self.commit_log.log(step, commit)) {
            eprintln!("the commit log cannot be written: {error}");
            std::process::exit(4);
        }
    }

    fn sabotage_turn(&self, commit: &mut TurnCommit, record: Option<&Commit>) -> bool {
        let (Some(sabotage), Some(record)) = (self.sabotage, record) else { return false };
        if sabotage.affects(Sabotage::DoubleComplete, record.instance()) {
            commit.worker_items.extend(commit.worker_items.clone());
        }
        // Each process drops other turns, so that the instance ends at last.
        sabotage.affects(Sabotage::SilentOk, &format!("{} {:?}", self.name, record.subject()))
    }
}

fn announce(point: Point) {
    println!("{}{}", super::AT, point.name());
}

/// Prints the point and waits until the process is killed.
async fn announce_and_wait<T>(point: Point) -> T {
    announce(point);
    std::future::pending().await
}

fn commit_of_activity(completion: Option<&WorkItem>) -> Option<Commit> {
    match completion {
        Some(
            WorkItem::ActivityCompleted { instance, execution_id, id, .. }
            | WorkItem::ActivityFailed { instance, execution_id, id, .. },
        ) => Some(Commit::Activity { instance: instance.clone(), execution: *execution_id, activity: *id }),
        _ => None,
    }
}

#[async_trait]
impl Provider for PausingStore {
    forward_provider!(
        Provider,
        |this| this.inner,
        except(
            commit_turn,
            ack_orchestration_item,
            ack_work_item,
            complete_with_turn,
            complete_all_with_turn,
            start_with_turn
        )
    );

    async fn commit_turn(&self, lock_token: &str, mut commit: TurnCommit) -> Answer<Option<u64>> {
        self.hold_large(&commit.history_delta).await;
        let record = Commit::of_turn(&commit.history_delta);
        if self.sabotage_turn(&mut commit, record.as_ref()) {
            return self.commit(record, async { Ok(None) }).await;
        }
        self.commit(record, self.inner.commit_turn(lock_token, commit)).await
    }

    async fn ack_orchestration_item(
        &self,
        lock_token: &str,
        execution_id: u64,
        history_delta: Vec<Event>,
        worker_items: Vec<WorkItem>,
        orchestrator_items: Vec<WorkItem>,
        metadata: ExecutionMetadata,
        cancelled_activities: Vec<ScheduledActivityIdentifier>,
    ) -> Answer<()> {
        let record = Commit::of_turn(&history_delta);
        let call = self.inner.ack_orchestration_item(
            lock_token,
            execution_id,
            history_delta,
            worker_items,
            orchestrator_items,
            metadata,
            cancelled_activities,
        );
        self.commit(record, call).await
    }

    async fn ack_work_item(&self, token: &str, completion: Option<WorkItem>) -> Answer<()> {
        let record = commit_of_activity(completion.as_ref());
        self.commit(record, self.inner.ack_work_item(token, completion)).await
    }

    async fn complete_with_turn(
        &self,
        token: &str,
        completion: WorkItem,
        mut turn: TurnAhead,
    ) -> Answer<Completion> {
        let (work, ahead) =
            (commit_of_activity(Some(&completion)), Commit::of_turn(&turn.commit.history_delta));
        if self.sabotage_turn(&mut turn.commit, ahead.as_ref()) {
            return self.commit(work, async { Ok(Completion::WithTurn { at_ms: 0 }) }).await;
        }
        let completed = async {
            let completed = self.inner.complete_with_turn(token, completion, turn).await?;
            if let Completion::WithTurn { .. } = completed {
                self.log(CommitStep::Begun, ahead.as_ref());
                self.log(CommitStep::Stored, ahead.as_ref());
            }
            Ok(completed)
        };
        self.commit(work, completed).await
    }

    async fn complete_all_with_turn(
        &self,
        outcomes: Vec<LeasedOutcome>,
        mut turn: TurnAhead,
    ) -> Answer<FusedCompletion> {
        let ahead = Commit::of_turn(&turn.commit.history_delta);
        let is_dropped = self.sabotage_turn(&mut turn.commit, ahead.as_ref());
        let works = outcomes.iter().filter_map(|outcome| commit_of_activity(Some(&outcome.completion)));
        let records: Vec<Commit> = works.chain(ahead).collect();
        let completed = async {
            records.iter().for_each(|record| self.log(CommitStep::Begun, Some(record)));
            let completed = match is_dropped {
                true => Ok(FusedCompletion::WithTurn { at_ms: 0 }),
                false => self.inner.complete_all_with_turn(outcomes, turn).await,
            };
            let step = match completed {
                Ok(FusedCompletion::WithTurn { .. }) => CommitStep::Stored,
                _ => CommitStep::NotStored,
            };
            records.iter().for_each(|record| self.log(step, Some(record)));
            completed
        };
        // The records are logged above: an answer may be `Unchanged`.
        self.commit(None, completed).await
    }

    /// Never sabotaged: no process would try again to start the instance.
    async fn start_with_turn(&self, start: WorkItem, turn: TurnAhead) -> Answer<Completion> {
        let first = Commit::of_turn(&turn.commit.history_delta);
        let started = async {
            let started = self.inner.start_with_turn(start, turn).await?;
            if let Completion::WithTurn { .. } = started {
                self.log(CommitStep::Begun, first.as_ref());
                self.log(CommitStep::Stored, first.as_ref());
            }
            Ok(started)
        };
        self.commit(None, started).await
    }
}
