//! Turns that are run ahead of the store.
//!
//! When the only thing that an orchestration waits for is an activity, and the execution is held in memory, its next turn is
//! run as soon as the activity returns: outcome and turn are then committed in one step instead of two. The store takes the
//! turn only if the instance stands where memory says and no other message waits for it. Otherwise it queues the outcome,
//! as ever, and the execution in memory, which has seen too much, is forgotten.

use super::commit::{Summary, find_parents, forgive, kept};
use super::lease::Lease;
use super::warm::{Announced, Position};
use crate::core::Core;
use crate::observe;
use crate::uncounted::Counting;
use outlast_engine::{Execution, Report, TurnInput, TurnOutput};
use outlast_model::WorkItem;
use outlast_provider::TurnAhead;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// A turn that waits for its commit.
pub(super) struct Ahead<'a> {
    core: &'a Core,
    instance: Arc<str>,
    execution: Box<Execution>,
    announced: Announced<'a>,
    summary: Summary,
    report: Report,
    worker_id: String,
    turn: TurnAhead,
    /// Dropped when the turn is counted, or known not to be committed.
    _counting: Counting,
}

/// Runs the turn that follows from an activity's outcome, if it can be run ahead.
pub(super) async fn run<'a>(
    core: &'a Core,
    lease: &Lease,
    instance: &Arc<str>,
    completion: &WorkItem,
    now_ms: u64,
    slot: usize,
) -> Option<Ahead<'a>> {
    let (WorkItem::ActivityCompleted { execution_id, id, .. }
    | WorkItem::ActivityFailed { execution_id, id, .. }) = completion
    else {
        return None;
    };
    if !core.crowded.may_run_ahead(instance) {
        return None;
    }
    let waits_for_it =
        |execution: &Execution| execution.execution_id() == *execution_id && execution.waits_only_for(*id);
    let (mut execution, created_at_ms) = core.warm.take_if(instance, waits_for_it).await?;
    let after_event_id = execution.last_event_id();
    let entropy = &core.options.entropy;
    let input = TurnInput {
        history: Vec::new(),
        messages: vec![completion.clone()],
        notices: Vec::new(),
        now_ms,
        random: &mut || entropy.next_u128(),
        parent_close: core.options.parent_close,
    };
    let worker_id = format!("orch-ahead-{slot}-{}", core.runtime_id);
    let span = tracing::debug_span!(
        target: "duroxide::runtime",
        "turn",
        instance_id = %instance,
        execution_id,
        orchestration_name = execution.orchestration_name(),
        attempt = 1,
        worker_id = %worker_id
    );
    lease.runs(execution.probe());
    let TurnOutput { mut commit, report } = span.in_scope(|| outlast_engine::run(&mut execution, input));
    find_parents(core, &mut commit.orchestrator_items).await.ok()?;
    let position = Position { execution_id: commit.execution_id, last_event_id: execution.last_event_id() };
    let announced = core.warm.announce(instance, position, created_at_ms);
    core.retries.announce(instance, &report);
    Some(Ahead {
        core,
        instance: Arc::clone(instance),
        announced,
        summary: Summary::of(&commit),
        report,
        worker_id,
        _counting: core.uncounted.enter(instance),
        turn: TurnAhead { after_event_id, ran_at_ms: now_ms, commit },
        execution,
    })
}

impl Ahead<'_> {
    pub(super) fn turn(&self) -> TurnAhead {
        self.turn.clone()
    }

    /// The store has taken it.
    pub(super) fn committed(self, at_ms: u64) {
        let core = self.core;
        forgive(core, &self.instance);
        core.crowded.ran_ahead(&self.instance);
        self.summary.wake_local(core, &self.instance);
        let evicted = self.announced.confirm(kept(self.execution, &self.summary), Some(at_ms));
        core.metrics.record_warm_evictions(evicted as u64);
        core.metrics.record_warm_hit();
        core.metrics.record_turn_ahead("committed");
        observe::turn(core, &self.instance, &self.worker_id, &self.report);
    }

    /// The store has queued the outcome instead.
    pub(super) fn queued(self) {
        self.core.crowded.collided(&self.instance);
        self.core.metrics.record_turn_ahead("queued");
    }
}

/// Instances whose turns were run ahead in vain, since messages come while their activities run. Each such turn costs a
/// replay, so it is tried again only after more and more outcomes.
#[derive(Default)]
pub(crate) struct Crowded(Mutex<HashMap<Arc<str>, Crowd>>);

struct Crowd {
    /// How many outcomes are queued without a try.
    pause: u32,
    left: u32,
}

impl Crowded {
    const FIRST_PAUSE: u32 = 8;
    const LONGEST_PAUSE: u32 = 1_024;
    /// Forgetting all of them now and then costs one replay each.
    const MOST: usize = 10_000;

    fn may_run_ahead(&self, instance: &Arc<str>) -> bool {
        let mut crowds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(crowd) = crowds.get_mut(instance) else { return true };
        let Some(left) = crowd.left.checked_sub(1) else { return true };
        crowd.left = left;
        false
    }

    fn collided(&self, instance: &Arc<str>) {
        let mut crowds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if crowds.len() >= Self::MOST {
            crowds.clear();
        }
        let crowd = crowds.entry(Arc::clone(instance)).or_insert(Crowd { pause: 0, left: 0 });
        crowd.pause = (crowd.pause * 2).clamp(Self::FIRST_PAUSE, Self::LONGEST_PAUSE);
        crowd.left = crowd.pause;
    }

    fn ran_ahead(&self, instance: &Arc<str>) {
        let mut crowds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !crowds.is_empty() {
            crowds.remove(instance);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dispatch::fixture::{busy, core};
    use crate::dispatch::lease::Kind;
    use crate::dispatch::warm::Kept;

    /// Whether the outcome of an activity runs the next turn of an execution, which is the first and waits for activity 2.
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
        assert!(waiting.waits_only_for(2));
        let position = Position { execution_id: 1, last_event_id: waiting.last_event_id() };
        core.warm.announce(&instance, position, None).confirm(Kept::Suspended(Box::new(waiting)), None);
        let lease = core.leases.hold(core, Kind::Activity, "w".to_string(), Arc::clone(&instance));
        let completion = WorkItem::ActivityCompleted {
            instance: "i".to_string(),
            execution_id,
            id,
            result: String::new(),
        };
        let ahead = run(core, &lease, &instance, &completion, 2, 0).await;
        lease.settle();
        // Others have sent it something meanwhile.
        ahead.map(Ahead::queued).is_some()
    }

    #[tokio::test(start_paused = true)]
    async fn only_what_an_execution_waits_for_runs_it_ahead() {
        assert!(!runs_ahead(&core(), 2, 2).await, "of another execution");
        assert!(!runs_ahead(&core(), 1, 3).await, "another activity");
        assert!(runs_ahead(&core(), 1, 2).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_turn_that_was_run_in_vain_is_remembered() {
        let core = core();
        assert!(runs_ahead(&core, 1, 2).await);
        assert!(!runs_ahead(&core, 1, 2).await);
    }

    #[test]
    fn an_instance_that_is_crowded_is_left_alone_for_a_while_and_longer_each_time() {
        let (crowded, instance) = (Crowded::default(), Arc::from("a"));
        assert!(crowded.may_run_ahead(&instance));
        let mut pauses = Vec::new();
        for _ in 0..9 {
            crowded.collided(&instance);
            let mut pause = 0;
            while !crowded.may_run_ahead(&instance) {
                pause += 1;
            }
            pauses.push(pause);
        }
        assert_eq!(pauses, [8, 16, 32, 64, 128, 256, 512, 1_024, 1_024]);
        assert!(crowded.may_run_ahead(&Arc::from("b")), "others are not concerned");
        crowded.ran_ahead(&instance);
        crowded.collided(&instance);
        assert_eq!(crowded.0.lock().unwrap()[&instance].left, 8, "it begins anew");
    }

    #[test]
    fn the_crowded_are_bounded() {
        let crowded = Crowded::default();
        for n in 0..=Crowded::MOST {
            crowded.collided(&Arc::from(n.to_string()));
        }
        assert_eq!(crowded.0.lock().unwrap().len(), 1);
    }
}
