//! Run-ahead: the next turn of an instance, run by the worker before the activity's outcome is in the store.
//!
//! If an orchestration waits for one activity only, or for activities whose outcomes have gathered (`gather.rs`), and its execution
//! is warm, the worker runs the next turn as soon as the last activity returns, and the store commits outcomes and turn in one
//! step. The store commits the turn only if the instance still ends with the event that the turn follows and no other message waits
//! for the instance. Otherwise the outcomes are queued as usual, and the runtime discards the warm execution, because it holds
//! uncommitted events.

use super::commit::{CommitSummary, find_parents, kept, reset_refusals};
use super::lease::{Kind, Lease};
use super::park_instance;
use super::warm::{Announced, Position};
use crate::core::Core;
use crate::uncounted::UncountedCommit;
use crate::{observe, observer};
use outlast_engine::{Execution, Report, TurnInput, TurnOutput};
use outlast_model::WorkItem;
use outlast_model::defect::{self, Defect};
use outlast_provider::TurnAhead;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// A turn that was run ahead and is not committed yet.
pub(super) struct RunAhead<'a> {
    core: &'a Core,
    instance: Arc<str>,
    execution: Box<Execution>,
    announced: Announced<'a>,
    summary: CommitSummary,
    report: Report,
    worker_id: String,
    turn: TurnAhead,
    /// Dropped when the metrics count the turn, or when the store has rejected it.
    _uncounted: UncountedCommit,
}

/// The longest wait for the permit to run a turn. The outcome of the activity is not stored meanwhile.
const LONGEST_WAIT: Duration = Duration::from_millis(10);

/// Runs the turn that follows from the outcomes of activities. `None` if the instance is in backoff, its execution is not warm, the
/// execution waits for other activities than these or for a child, its orchestration is paused, as many turns run as
/// `orchestration_concurrency` says, or the turn parks the instance.
pub(super) async fn run<'a>(
    core: &'a Core,
    lease: &Lease,
    instance: &Arc<str>,
    completions: Vec<WorkItem>,
    now_ms: u64,
    worker: usize,
) -> Option<RunAhead<'a>> {
    let (execution_id, ids) = activities_of(&completions)?;
    if core.options.orchestration_concurrency == 0 || !core.run_ahead_backoff.may_run_ahead(instance) {
        return None;
    }
    let paused = core.paused.current(core).await.ok()?;
    // Waits before it takes the permit: other turns can run meanwhile.
    core.warm.wait_for_commit(instance).await?;
    let permit = core.permits(Kind::Turn).take(worker);
    let permit = tokio::time::timeout(LONGEST_WAIT, permit).await.ok()??;
    let may_run_ahead = |execution: &Execution| {
        execution.execution_id() == execution_id
            && execution.waits_for_activities().is_some_and(|open| *open == ids)
            && !paused.contains_key(execution.orchestration_name())
    };
    let (mut execution, announced) = core.warm.take_if(instance, may_run_ahead).await?;
    let after_event_id = execution.last_event_id();
    let entropy = &core.options.entropy;
    let input = TurnInput {
        history: Vec::new(),
        messages: match defect::is_on(Defect::AheadForgetsOutcome) {
            true => completions.into_iter().skip(1).collect(),
            false => completions,
        },
        notices: Vec::new(),
        now_ms,
        random: &mut || entropy.next_u128(),
        parent_close: core.options.parent_close,
    };
    let worker_id = format!("orch-ahead-{worker}-{}", core.runtime_id);
    let span = tracing::debug_span!(
        target: "duroxide::runtime",
        "turn",
        instance_id = %instance,
        execution_id,
        orchestration_name = execution.orchestration_name(),
        attempt = 1,
        worker_id = %worker_id
    );
    lease.set_probe(execution.probe());
    let TurnOutput { mut commit, report } = span.in_scope(|| outlast_engine::run(&mut execution, input));
    drop(permit);
    // The outcomes are queued, and the turn that takes them parks the instance or is given back.
    if park_instance::parks(core, &report) || report.missing_patch.is_some() {
        return None;
    }
    observer::note_detached(core, instance, &mut commit);
    find_parents(core, &mut commit.orchestrator_items).await.ok()?;
    let position = Position { execution_id: commit.execution_id, last_event_id: execution.last_event_id() };
    // Set before the commit, because the store may return the next turn of the instance before it answers the commit.
    announced.position.get_or_init(|| position);
    core.retries.announce(instance, &report);
    Some(RunAhead {
        core,
        instance: Arc::clone(instance),
        announced,
        summary: CommitSummary::of(&commit),
        report,
        worker_id,
        _uncounted: core.uncounted.enter(instance),
        turn: TurnAhead { after_event_id, ran_at_ms: now_ms, commit },
        execution,
    })
}

/// The execution of the outcomes and their activities; `None` if the outcomes are of several executions.
fn activities_of(completions: &[WorkItem]) -> Option<(u64, BTreeSet<u64>)> {
    let (mut executions, mut ids) = (BTreeSet::new(), BTreeSet::new());
    for completion in completions {
        let (WorkItem::ActivityCompleted { execution_id, id, .. }
        | WorkItem::ActivityFailed { execution_id, id, .. }) = completion
        else {
            return None;
        };
        executions.insert(*execution_id);
        ids.insert(*id);
    }
    let execution_id = executions.pop_first()?;
    executions.is_empty().then_some((execution_id, ids))
}

impl RunAhead<'_> {
    pub(super) fn turn(&self) -> TurnAhead {
        self.turn.clone()
    }

    /// The store committed the turn together with the outcome.
    pub(super) fn on_committed(self, at_ms: u64) {
        let core = self.core;
        reset_refusals(core, &self.instance);
        core.run_ahead_backoff.on_committed(&self.instance);
        self.summary.wake_local(core, &self.instance);
        observer::turn(core, &self.instance, &self.turn.commit);
        let evicted = self.announced.confirm(kept(self.execution, &self.summary), Some(at_ms));
        core.metrics.record_warm_evictions(evicted as u64);
        core.metrics.record_warm_hit();
        core.metrics.record_turn_ahead("committed");
        observe::turn(core, &self.instance, &self.worker_id, &self.report);
    }

    /// The store queued the outcome and rejected the turn.
    pub(super) fn on_rejected(self) {
        if defect::is_on(Defect::RejectedAheadIsKept) {
            return self.on_committed(0);
        }
        self.core.run_ahead_backoff.on_rejected(&self.instance);
        self.core.metrics.record_turn_ahead("queued");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dispatch::fixture::{busy, core};
    use crate::dispatch::lease::Kind;
    use crate::dispatch::warm::Kept;

    /// Keeps execution 1 of an instance warm, which waits for activity 2. Returns whether the outcome of activity `id` of execution
    /// `execution_id` runs its next turn ahead. The store rejects that turn.
    async fn runs_ahead(core: &Core, execution_id: u64, id: u64) -> bool {
        let instance = Arc::from("i");
        let mut waiting = busy();
        let input = TurnInput {
            history: Vec::new(),
            messages: Vec::new(),
            notices: Vec::new(),
            now_ms: 1,
            random: &mut || 0,
            parent_close: core.options.parent_close,
        };
        outlast_engine::run(&mut waiting, input);
        assert_eq!(waiting.waits_for_activities(), Some(&BTreeSet::from([2])));
        let position = Position { execution_id: 1, last_event_id: waiting.last_event_id() };
        core.warm.announce(&instance, position, None).confirm(Kept::Suspended(Box::new(waiting)), None);
        let lease = core.leases.hold(core, Kind::Activity, "w".to_string(), Arc::clone(&instance));
        let completion = WorkItem::ActivityCompleted {
            instance: "i".to_string(),
            execution_id,
            id,
            result: String::new(),
        };
        let ahead = run(core, &lease, &instance, vec![completion], 2, 0).await;
        lease.settle();
        ahead.map(RunAhead::on_rejected).is_some()
    }

    #[tokio::test(start_paused = true)]
    async fn only_the_activity_that_an_execution_waits_for_runs_ahead() {
        assert!(!runs_ahead(&core(), 2, 2).await, "another execution");
        assert!(!runs_ahead(&core(), 1, 3).await, "another activity");
        assert!(runs_ahead(&core(), 1, 2).await);
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_rejected_run_ahead_the_instance_backs_off() {
        let core = core();
        assert!(runs_ahead(&core, 1, 2).await);
        assert!(!runs_ahead(&core, 1, 2).await);
    }
}
