//! Eager start: the first turn of an instance, run by a client in the process of a runtime and committed together with the start.
//!
//! The client and the runtime use the same store object. The store commits the turn only if it has no row of the instance.
//! Otherwise the runtime discards the turn, whose decisions no other part of the program has seen, and the client enqueues the
//! start.

use super::commit::{CommitSummary, kept, reset_refusals};
use super::history;
use super::lease::Kind;
use super::paused::Standing;
use super::skip::Skip;
use super::turn::{Keep, Turn, TurnDecision};
use super::warm::Position;
use crate::core::Core;
use crate::uncounted::StoreId;
use crate::{local, observe, observer};
use outlast_engine::{Admission, Execution, Report, TurnOutput};
use outlast_model::{INITIAL_EXECUTION_ID, WorkItem};
use outlast_provider::{EagerStart, Provider, ProviderError, TurnAhead};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Decides whether a start is tried with its first turn. A store that refused the last eager starts is asked less often: the store
/// may not support eager starts, and a refused start costs a turn that is discarded.
#[derive(Default)]
pub(crate) struct EagerBackoff(Mutex<Skip>);

impl EagerBackoff {
    fn lock(&self) -> MutexGuard<'_, Skip> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the next start is an eager one.
    fn may_start(&self) -> bool {
        self.lock().may_try()
    }

    fn on_committed(&self) {
        *self.lock() = Skip::default();
    }

    fn on_refused(&self) {
        self.lock().on_failure();
    }
}

/// Starts a root instance together with its first turn, if a runtime of this process can run the turn now and the store knows nothing
/// of the instance. `false` if nothing is stored, so that the caller enqueues the start. The instance of a paused orchestration is held
/// when its start is fetched.
pub(crate) async fn start(
    store: &Arc<dyn Provider>,
    store_id: StoreId,
    start: &WorkItem,
) -> Result<bool, ProviderError> {
    let cores = local::on(store_id);
    let WorkItem::StartOrchestration { orchestration, .. } = start else { return Ok(false) };
    let mut runs = Vec::new();
    for core in &cores {
        if core.paused.standing(core, orchestration).await == Standing::Runs {
            runs.push(core);
        }
    }
    match runs.into_iter().find_map(|core| FirstTurn::run(core, start)) {
        Some(turn) => turn.commit(store, start).await,
        None => Ok(false),
    }
}

/// A first turn that is not committed yet.
struct FirstTurn {
    core: Arc<Core>,
    instance: Arc<str>,
    worker_id: String,
    execution: Box<Execution>,
    report: Report,
    turn: TurnAhead,
}

impl FirstTurn {
    /// Runs the first turn. `None` if the runtime stops or does not have the orchestration, if no permit is free, if the runtime
    /// knows the instance, or if the time of the store is not known.
    fn run(core: &Arc<Core>, start: &WorkItem) -> Option<Self> {
        let instance: Arc<str> = start.target_instance().into();
        if core.stopping.is_cancelled() || core.warm.knows(&instance) {
            return None;
        }
        let ran_at_ms = core.store_time.now_ms()?;
        let state = history::new_instance();
        let admission =
            outlast_engine::admit(&instance, INITIAL_EXECUTION_ID, &state.past, vec![start.clone()]);
        let Admission::Run(admitted) = admission else { return None };
        core.orchestrations.resolve_opening(&admitted.opening)?;
        let permit = core.permits(Kind::Turn).try_take(0).filter(|_| core.eager_backoff.may_start())?;
        let worker_id = format!("orch-start-{}-{}", permit.number(), core.runtime_id);
        let turn = Turn { core: Arc::clone(core), instance, worker_id, created_at_ms: None };
        let decision = turn.run(None, state, *admitted, 1, ran_at_ms);
        drop(permit);
        let TurnDecision::Commit { output, keep: Keep::Execution(execution) } = decision else { return None };
        let TurnOutput { mut commit, report } = *output;
        let Turn { core, instance, worker_id, .. } = turn;
        observer::note_detached(&core, &instance, &mut commit);
        let turn = TurnAhead { after_event_id: 0, ran_at_ms, commit };
        Some(Self { core, instance, worker_id, execution, report, turn })
    }

    /// Stores the start and the turn. `false` if the store knows the instance, so that nothing is stored.
    async fn commit(self, store: &Arc<dyn Provider>, start: &WorkItem) -> Result<bool, ProviderError> {
        let Self { core, instance, worker_id, execution, report, turn } = self;
        let position =
            Position { execution_id: turn.commit.execution_id, last_event_id: execution.last_event_id() };
        let announced = core.warm.announce(&instance, position, None);
        let summary = CommitSummary::of(&turn.commit);
        core.retries.announce(&instance, &report);
        let uncounted = core.uncounted.enter(&instance);
        let observed = core.observer.as_ref().map(|_| turn.commit.clone());
        let is_committed = match store.start_with_turn(start.clone(), turn).await? {
            EagerStart::WithTurn { at_ms } => {
                reset_refusals(&core, &instance);
                summary.wake_local(&core, &instance);
                if let Some(commit) = &observed {
                    observer::turn(&core, &instance, commit);
                }
                let evicted = announced.confirm(kept(execution, &summary), Some(at_ms));
                core.metrics.record_warm_evictions(evicted as u64);
                core.metrics.record_turn_ahead("committed");
                core.eager_backoff.on_committed();
                observe::turn(&core, &instance, &worker_id, &report);
                true
            }
            EagerStart::Unchanged => {
                // The warm execution holds events that were not stored, so it is dropped together with the cache entry.
                drop((announced, execution));
                core.metrics.record_turn_ahead("queued");
                core.eager_backoff.on_refused();
                false
            }
        };
        drop(uncounted);
        Ok(is_committed)
    }
}

#[cfg(test)]
mod tests;
