//! I9: a stored history is enough. Every history replays from its first event, and a turn that ran on an execution in
//! memory decides the same on an execution that is built from the store.

use super::Snapshot;
use crate::performed::Turn;
use crate::program;
use crate::shared::Shared;
use outlast_model::{Event, TurnCommit};
use outlast_provider::{Clock, LoadedTurn};
use outlast_runtime::RuntimeOptions;
use outlast_testing::cold::{self, Build};

pub(crate) use outlast_testing::cold::compare;

/// Replays every running execution. A replay must make no new decision.
pub(super) async fn check(shared: &Shared, snapshot: &Snapshot) -> Result<(), String> {
    for (instance, current) in &snapshot.instances {
        let history = snapshot.history(instance, *current);
        if history.is_empty() || history.iter().any(Event::is_terminal) {
            continue;
        }
        // A reset or fork may cut a turn in two: the first turn after it, which a message wakes, makes the missing decisions.
        let is_for = |message: &super::snapshot::MessageRow| message.item.target_instance() == instance;
        if shared.plan.source_of(instance).is_some() && snapshot.messages.iter().any(is_for) {
            continue;
        }
        let Some(loaded) = load(shared, instance, *current).await else { continue };
        let replayed = build(shared, false).replay(
            instance,
            *current,
            history.to_vec(),
            loaded.kv_snapshot,
            shared.clock.now_ms(),
        );
        let Some(commit) = replayed else {
            return Err(format!("I9: '{instance}', execution {current}, cannot be built"));
        };
        shared.tally().replays += 1;
        if commit != (TurnCommit { execution_id: *current, ..TurnCommit::default() }) {
            return Err(format!(
                "I9: '{instance}', execution {current}, replayed at event {}, makes a new decision: {commit:?}",
                history.len()
            ));
        }
    }
    Ok(())
}

/// Loads an execution from the store. No fault happens during the load.
async fn load(shared: &Shared, instance: &str, execution_id: u64) -> Option<LoadedTurn> {
    let was_armed = shared.backend.statements.arm(false);
    let loaded = shared.store().load_turn(instance, execution_id).await;
    shared.backend.statements.arm(was_armed);
    loaded.ok()
}

/// Runs a turn again from the stored history instead of from memory, with the code of the same build. `None` if the turn cannot be
/// compared.
pub(crate) async fn again(shared: &Shared, turn: &Turn, is_old_build: bool) -> Option<TurnCommit> {
    if turn.attempts > shared.plan.max_attempts {
        return None;
    }
    let loaded = load(shared, &turn.instance, turn.execution_id).await?;
    let turn = cold::Turn {
        instance: turn.instance.clone(),
        execution_id: turn.execution_id,
        messages: turn.messages.clone(),
        now_ms: turn.now_ms,
    };
    build(shared, is_old_build).run_again(&turn, loaded)
}

/// The code of a node, and the options of all nodes that replay depends on.
fn build(shared: &Shared, is_old_build: bool) -> Build {
    let registry = if is_old_build { &shared.old_orchestrations } else { &shared.orchestrations };
    let options = RuntimeOptions { codec: program::codec(shared.plan.seed), ..RuntimeOptions::default() };
    Build::new(registry.clone(), &options)
}
