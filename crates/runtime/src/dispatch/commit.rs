//! Commits a turn.
//!
//! | the store answers | then |
//! |---|---|
//! | ok | the execution is warm, waiting slots are woken, the report is published; then waiting clients of this process return |
//! | a retryable error | the commit is repeated, for the length of a lease |
//! | a permanent error | the turn is given back, and its messages are delivered again |
//!
//! An error of the store never fails an instance.

use super::backoff::backoff;
use super::lease::Lease;
use super::turn::Keep;
use super::warm::{Kept, Position};
use crate::core::Core;
use crate::observability::Stopwatch;
use crate::{observe, observer};
use outlast_engine::{Execution, TurnOutput, UNKNOWN_EXECUTION};
use outlast_model::defect::{self, Defect};
use outlast_model::{ExecutionStatus, INITIAL_EXECUTION_ID, TurnCommit, WorkItem};
use outlast_provider::ProviderError;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

pub(super) struct Committing<'a> {
    pub(super) core: &'a Arc<Core>,
    pub(super) instance: &'a Arc<str>,
    pub(super) worker_id: &'a str,
    pub(super) created_at_ms: Option<u64>,
    pub(super) lease: Lease,
}

/// Instances whose refusals are counted.
const MOST_REFUSED: usize = 10_000;
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

impl Committing<'_> {
    /// Commits the output of a turn, as the table at the top of this file says. `keep` is the entry of the warm cache after the
    /// commit.
    pub(super) async fn commit(self, output: TurnOutput, keep: Keep) {
        let TurnOutput { mut commit, report } = output;
        let (core, instance) = (self.core, self.instance);
        observer::note_detached(core, instance, &mut commit);
        if let Err(error) = find_parents(core, &mut commit.orchestrator_items).await {
            return give_back_refused(core, instance, self.lease, &error).await;
        }
        let position = match &keep {
            Keep::Execution(execution) => {
                Some(Position { execution_id: commit.execution_id, last_event_id: execution.last_event_id() })
            }
            Keep::Ended(position) => Some(*position),
            Keep::Nothing => None,
        };
        let announced = position.map(|position| core.warm.announce(instance, position, self.created_at_ms));
        let summary = CommitSummary::of(&commit);
        core.retries.announce(instance, &report);
        let counting = core.uncounted.enter(instance);
        let written = self.write(&commit).await;
        let Committing { lease, .. } = self;
        match written {
            Ok(committed_at_ms) => {
                lease.settle();
                reset_refusals(core, instance);
                summary.wake_local(core, instance);
                // The report comes before the next turn can take the warm execution: turns of one instance are reported in their order.
                observer::turn(core, instance, &commit);
                if let (Some(announced), Some(kept)) = (announced, keep.kept(&summary)) {
                    let evicted = announced.confirm(kept, committed_at_ms);
                    core.metrics.record_warm_evictions(evicted as u64);
                }
                observe::turn(core, instance, self.worker_id, &report);
                drop(counting);
            }
            Err(error) => {
                drop(counting);
                // The warm execution holds events that were not stored, so it is dropped together with the cache entry.
                drop(announced);
                drop(keep);
                observe::traces(core, instance, &report);
                give_back_refused(core, instance, lease, &error).await;
            }
        }
    }

    /// Sends the commit to the store. Retries retryable errors for the length of a lease.
    async fn write(&self, commit: &TurnCommit) -> Result<Option<u64>, ProviderError> {
        let (since, patience) = (Stopwatch::start(), self.core.options.orchestrator_lock_timeout);
        let mut failures = 0;
        loop {
            let written = self.core.store.commit_turn(self.lease.token(), commit.clone()).await;
            match written {
                // The retries end although the lease is renewed meanwhile, because other instances need the slot.
                Err(error)
                    if error.is_retryable()
                        && !self.lease.lost().is_cancelled()
                        && since.elapsed() < patience =>
                {
                    failures += 1;
                    self.core.metrics.record_commit_retry("turn");
                    tracing::warn!(target: "duroxide::runtime", instance_id = %self.instance, %error, failures, "commit is tried again");
                    let pause =
                        backoff(FIRST_PAUSE, LONGEST_PAUSE, failures, self.core.options.entropy.as_ref());
                    tokio::select! {
                        biased;
                        () = self.lease.lost().cancelled() => return Err(error),
                        () = tokio::time::sleep(pause) => {}
                    }
                }
                other => return other,
            }
        }
    }
}

/// The parts of a commit that are needed after it was sent to the store.
pub(super) struct CommitSummary {
    execution_id: u64,
    cancelled: Vec<u64>,
    has_activities: bool,
    has_messages: bool,
    continued: bool,
    ended: bool,
}

impl CommitSummary {
    pub(super) fn of(commit: &TurnCommit) -> Self {
        let status = commit.metadata.execution_status();
        Self {
            execution_id: commit.execution_id,
            cancelled: commit.cancelled_activities.iter().map(|activity| activity.activity_id).collect(),
            has_activities: !commit.worker_items.is_empty(),
            has_messages: !commit.orchestrator_items.is_empty(),
            continued: status == Some(ExecutionStatus::ContinuedAsNew),
            ended: status.is_some(),
        }
    }

    /// Wakes the parts of this process that would otherwise learn of the commit from the store later.
    pub(super) fn wake_local(&self, core: &Core, instance: &Arc<str>) {
        for activity_id in &self.cancelled {
            core.running.cancel(instance, self.execution_id, *activity_id);
        }
        if self.has_activities {
            core.activities_waiting.notify_waiters();
        }
        if self.has_messages {
            core.turns_waiting.notify_waiters();
        }
    }
}

impl Keep {
    fn kept(self, summary: &CommitSummary) -> Option<Kept> {
        match self {
            Self::Execution(execution) => Some(kept(execution, summary)),
            Self::Ended(_) => Some(Kept::Ended),
            Self::Nothing => None,
        }
    }
}

/// The part of an execution that the warm cache keeps after a commit.
pub(super) fn kept(execution: Box<Execution>, summary: &CommitSummary) -> Kept {
    match summary {
        CommitSummary { continued: true, .. } if defect::is_on(Defect::WarmKeysForgotten) => {
            Kept::Continued(Default::default())
        }
        CommitSummary { continued: true, .. } => Kept::Continued(execution.keys()),
        CommitSummary { ended: true, .. } => Kept::Ended,
        _ => Kept::Suspended(execution),
    }
}

/// Sets the parent's execution in outcomes of children whose start did not name it, as starts of older versions: the outcome
/// goes to the current execution of the parent.
pub(super) async fn find_parents(core: &Core, items: &mut [WorkItem]) -> Result<(), ProviderError> {
    for item in items {
        let (WorkItem::SubOrchCompleted { parent_instance, parent_execution_id, .. }
        | WorkItem::SubOrchFailed { parent_instance, parent_execution_id, .. }) = item
        else {
            continue;
        };
        if *parent_execution_id == UNKNOWN_EXECUTION {
            let parent = core.store.read_outcome(parent_instance).await?;
            *parent_execution_id = parent.map_or(INITIAL_EXECUTION_ID, |parent| parent.execution_id);
        }
    }
    Ok(())
}

/// Gives back a turn whose commit failed. The delay of the next delivery grows with every refusal. The
/// delivery is not counted, because errors of the store must not poison an instance.
async fn give_back_refused(core: &Core, instance: &Arc<str>, lease: Lease, error: &ProviderError) {
    let failures = {
        let mut refused = core.refused.lock().unwrap_or_else(PoisonError::into_inner);
        // Entries of instances that another node has taken over are never removed, so the map is cleared at a size limit.
        if refused.len() >= MOST_REFUSED {
            refused.clear();
        }
        let failures = refused.entry(Arc::clone(instance)).or_insert(0);
        *failures = failures.saturating_add(1);
        *failures
    };
    tracing::warn!(target: "duroxide::runtime", instance_id = %instance, %error, failures, "turn was not committed and will be run again");
    let delay =
        backoff(Duration::from_millis(50), Duration::from_secs(60), failures, core.options.entropy.as_ref());
    lease.give_back(core, Some(delay), true).await;
}

/// Ends the count of refusals of an instance after a commit.
pub(super) fn reset_refusals(core: &Core, instance: &Arc<str>) {
    let mut refused = core.refused.lock().unwrap_or_else(PoisonError::into_inner);
    if !refused.is_empty() {
        refused.remove(instance);
    }
}

#[cfg(test)]
mod tests;
