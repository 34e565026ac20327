//! I9: a stored history is enough. Every history replays from its first event, and a turn that ran on an execution in
//! memory decides the same on an execution that is built from the store.

use super::Snapshot;
use crate::accepted::Turn;
use crate::program;
use crate::shared::Shared;
use outlast_engine::{
    Admission, Execution, KvValue, Opening, ParentClosePolicy, Past, Setup, SystemCall, TurnInput,
};
use outlast_model::{Event, EventKind, TurnCommit, limits::Limits};
use outlast_provider::{Clock, KvEntry, LoadedTurn};
use outlast_runtime::OrchestrationHandler;
use semver::Version;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;
use std::sync::Arc;

/// Replays every running execution. A replay must make no new decision.
pub(super) async fn check(shared: &Shared, snapshot: &Snapshot) -> Result<(), String> {
    for (instance, current) in &snapshot.instances {
        let history = snapshot.history(instance, *current);
        if history.is_empty() || history.iter().any(Event::is_terminal) {
            continue;
        }
        let Some(opening) = Past::of_history(history).opening else { continue };
        let Some(loaded) = load(shared, instance, *current).await else { continue };
        let stamp = history[0].duroxide_version.clone();
        let Some(mut execution) = cold(shared, false, instance, *current, opening, stamp, loaded.kv_snapshot)
        else {
            return Err(format!("I9: '{instance}', execution {current}, cannot be built"));
        };
        shared.tally().replays += 1;
        let input = TurnInput {
            history: history.to_vec(),
            messages: Vec::new(),
            notices: Vec::new(),
            now_ms: shared.clock.now_ms(),
            random: &mut || 0,
            parent_close: ParentClosePolicy::default(),
        };
        let commit = outlast_engine::run(&mut execution, input).commit;
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

/// The same turn, from the stored history instead of from memory, with the code of the same build. `None` where there is nothing
/// to compare.
pub(crate) async fn again(shared: &Shared, turn: &Turn, is_old_build: bool) -> Option<TurnCommit> {
    if turn.attempts > shared.plan.max_attempts {
        return None;
    }
    let loaded = load(shared, &turn.instance, turn.execution_id).await?;
    let past = Past::of_history(&loaded.history);
    let admission = outlast_engine::admit(&turn.instance, turn.execution_id, &past, turn.messages.clone());
    let Admission::Run(admitted) = admission else { return None };
    let stored = loaded.history.first().filter(|_| !admitted.is_new);
    let stamp =
        stored.map_or_else(|| outlast_engine::new_stamp(false), |first| first.duroxide_version.clone());
    let id = admitted.execution_id;
    let ends_at_start = admitted.is_cancelled_at_start();
    let is_child = admitted.opening.parent.is_some();
    let (opening, kv) = (admitted.opening, loaded.kv_snapshot);
    let runs_code = !(ends_at_start && is_child);
    let found = runs_code
        .then(|| cold(shared, is_old_build, &turn.instance, id, opening.clone(), stamp.clone(), kv.clone()))
        .flatten();
    let mut execution = match found {
        Some(execution) => execution,
        // A child, and a root whose orchestration the build lacks, end without running their code.
        None if ends_at_start => {
            let resolved = resolve(shared, is_old_build, &opening).map(|(version, _)| version.to_string());
            let version = resolved.or_else(|| opening.version.clone());
            Execution::without_code(setup(&turn.instance, id, Opening { version, ..opening }, stamp, kv))
        }
        None => return None,
    };
    let input = TurnInput {
        history: if admitted.is_new { Vec::new() } else { loaded.history },
        messages: admitted.messages,
        notices: admitted.notices,
        now_ms: turn.now_ms,
        random: &mut || 0,
        parent_close: ParentClosePolicy::default(),
    };
    Some(outlast_engine::run(&mut execution, input).commit).filter(|commit| !draws_an_id(commit))
}

/// Whether the turn asked for a unique id, which differs in every run of the turn.
fn draws_an_id(commit: &TurnCommit) -> bool {
    let guid = SystemCall::NewGuid.activity_name();
    let is_it = |kind: &EventKind| matches!(kind, EventKind::ActivityScheduled { name, .. } if *name == guid);
    commit.history_delta.iter().any(|event| is_it(&event.kind))
}

/// The version and the code that a build runs for an execution, if it has it.
fn resolve(
    shared: &Shared,
    is_old_build: bool,
    opening: &Opening,
) -> Option<(Version, Arc<dyn OrchestrationHandler>)> {
    let registry = if is_old_build { &shared.old_orchestrations } else { &shared.orchestrations };
    match &opening.version {
        Some(text) => {
            let version = Version::parse(text).ok()?;
            let handler = registry.resolve_handler_exact(&opening.name, &version)?;
            Some((version, handler))
        }
        None => registry.resolve_handler(&opening.name),
    }
}

fn setup(
    instance: &str,
    execution_id: u64,
    opening: Opening,
    stamp: String,
    kv: HashMap<String, KvEntry>,
) -> Setup {
    let entry = |entry: KvEntry| KvValue { value: entry.value, updated_at_ms: entry.last_updated_at_ms };
    let kv: BTreeMap<String, KvValue> = kv.into_iter().map(|(key, value)| (key, entry(value))).collect();
    let limits = Arc::new(Limits::default());
    Setup { instance: instance.to_string(), execution_id, opening, stamp, kv, limits }
}

fn cold(
    shared: &Shared,
    is_old_build: bool,
    instance: &str,
    execution_id: u64,
    opening: Opening,
    stamp: String,
    kv: HashMap<String, KvEntry>,
) -> Option<Execution> {
    let (version, handler) = resolve(shared, is_old_build, &opening)?;
    let opening = Opening { version: Some(version.to_string()), ..opening };
    let call = |context, input| -> outlast_engine::Code {
        Box::pin(async move { handler.invoke(context, input).await })
    };
    let execution = Execution::new(setup(instance, execution_id, opening, stamp, kv), call);
    execution.ok().map(|execution| execution.with_codec(program::codec(shared.plan.seed)))
}

/// Compares the commit of a node with the commit of the same turn from a cold start.
pub(crate) fn compare(again: &TurnCommit, first: &TurnCommit) -> Result<(), String> {
    same("events", &again.history_delta, &first.history_delta)?;
    same("activities", &again.worker_items, &first.worker_items)?;
    same("messages", &again.orchestrator_items, &first.orchestrator_items)?;
    same("cancelled activities", &again.cancelled_activities, &first.cancelled_activities)
}

fn same<T: PartialEq + Debug>(what: &str, again: &[T], first: &[T]) -> Result<(), String> {
    match again == first {
        true => Ok(()),
        false => Err(format!("{what}: first {first:?}, again {again:?}")),
    }
}
