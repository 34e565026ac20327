//! Turns and histories that run again on a fresh call of the code, without dispatchers and without a store.

use super::misfit::Cause;
use crate::RuntimeOptions;
use crate::dispatch::call;
use crate::registry::OrchestrationRegistry;
use outlast_engine::{
    Admission, Execution, KvValue, Opening, ParentClosePolicy, Past, Setup, SystemCall, TurnInput, TurnOutput,
};
use outlast_model::codec::Codec;
use outlast_model::limits::Limits;
use outlast_model::{Event, EventKind, TurnCommit, WorkItem};
use outlast_provider::{KvEntry, LoadedTurn};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The orchestrations of a build, and the options that replay depends on.
#[derive(Clone)]
pub struct Build {
    /// The orchestrations.
    pub orchestrations: OrchestrationRegistry,
    /// The codec for typed values.
    pub codec: Codec,
    /// The limits for new decisions.
    pub limits: Arc<Limits>,
    /// The policy for children that run when their parent ends.
    pub parent_close: ParentClosePolicy,
    /// Whether new executions keep early events.
    pub buffers_early_signals: bool,
}

/// A turn that a runtime ran.
#[derive(Debug, Clone)]
pub struct Turn {
    /// The instance.
    pub instance: String,
    /// The execution that the store reported.
    pub execution_id: u64,
    /// The messages of the batch.
    pub messages: Vec<WorkItem>,
    /// The time of the turn.
    pub now_ms: u64,
}

impl Build {
    /// Orchestrations with the options of a runtime.
    pub fn new(orchestrations: OrchestrationRegistry, options: &RuntimeOptions) -> Self {
        Self {
            orchestrations,
            codec: options.codec,
            limits: Arc::new(options.limits.clone()),
            parent_close: options.parent_close,
            buffers_early_signals: options.buffer_early_signals,
        }
    }

    /// Runs a turn on an execution that is built from the store, before the turn is committed. `None` if the result cannot be
    /// compared with the turn: the batch runs no code, or the turn drew a unique id.
    pub fn run_again(&self, turn: &Turn, loaded: LoadedTurn) -> Option<TurnCommit> {
        let past = Past::of_history(&loaded.history);
        let admission =
            outlast_engine::admit(&turn.instance, turn.execution_id, &past, turn.messages.clone());
        let Admission::Run(admitted) = admission else { return None };
        let stored = loaded.history.first().filter(|_| !admitted.is_new);
        let stamp = stored.map_or_else(
            || outlast_engine::new_stamp(self.buffers_early_signals),
            |first| first.duroxide_version.clone(),
        );
        let id = admitted.execution_id;
        let ends_at_start = admitted.is_cancelled_at_start();
        let is_child = admitted.opening.parent.is_some();
        let (opening, kv) = (admitted.opening, loaded.kv_snapshot);
        let runs_code = !(ends_at_start && is_child);
        let found = runs_code
            .then(|| self.cold(&turn.instance, id, opening.clone(), stamp.clone(), kv.clone()).ok())
            .flatten();
        let mut execution = match found {
            Some(execution) => execution,
            // A child, and a root whose orchestration the build lacks, end without running their code.
            None if ends_at_start => {
                let resolved =
                    self.orchestrations.resolve_opening(&opening).map(|(version, _)| version.to_string());
                let version = resolved.or_else(|| opening.version.clone());
                let opening = Opening { version, ..opening };
                Execution::without_code(self.setup(&turn.instance, id, opening, stamp, kv))
            }
            None => return None,
        };
        let input = TurnInput {
            history: if admitted.is_new { Vec::new() } else { loaded.history },
            messages: admitted.messages,
            notices: admitted.notices,
            now_ms: turn.now_ms,
            random: &mut || 0,
            parent_close: self.parent_close,
        };
        Some(outlast_engine::run(&mut execution, input).commit).filter(|commit| !draws_an_id(commit))
    }

    /// Replays a history and returns the decisions that the code makes after it. `None` if the build has no code for it.
    pub fn replay(
        &self,
        instance: &str,
        execution_id: u64,
        history: Vec<Event>,
        kv: HashMap<String, KvEntry>,
        now_ms: u64,
    ) -> Option<TurnCommit> {
        let opening = Past::of_history(&history).opening?;
        let stamp = history.first()?.duroxide_version.clone();
        let mut execution = self.cold(instance, execution_id, opening, stamp, kv).ok()?;
        Some(self.run(&mut execution, history, now_ms).commit)
    }

    /// Runs a turn without messages.
    pub(super) fn run(&self, execution: &mut Execution, history: Vec<Event>, now_ms: u64) -> TurnOutput {
        let input = TurnInput {
            history,
            messages: Vec::new(),
            notices: Vec::new(),
            now_ms,
            random: &mut || 0,
            parent_close: self.parent_close,
        };
        outlast_engine::run(execution, input)
    }

    fn setup(
        &self,
        instance: &str,
        execution_id: u64,
        opening: Opening,
        stamp: String,
        kv: HashMap<String, KvEntry>,
    ) -> Setup {
        let entry = |entry: KvEntry| KvValue { value: entry.value, updated_at_ms: entry.last_updated_at_ms };
        let kv: BTreeMap<String, KvValue> = kv.into_iter().map(|(key, value)| (key, entry(value))).collect();
        let limits = Arc::clone(&self.limits);
        Setup { instance: instance.to_string(), execution_id, opening, stamp, kv, limits }
    }

    /// An execution in which no code has run yet.
    pub(super) fn cold(
        &self,
        instance: &str,
        execution_id: u64,
        opening: Opening,
        stamp: String,
        kv: HashMap<String, KvEntry>,
    ) -> Result<Execution, Cause> {
        let (version, handler) = self.orchestrations.resolve_opening(&opening).ok_or(Cause::NoCode)?;
        let opening = Opening { version: Some(version.to_string()), ..opening };
        let setup = self.setup(instance, execution_id, opening, stamp, kv);
        let execution = Execution::new(setup, |context, input| call(handler, context, input));
        let execution = execution.map_err(|_| Cause::Panics)?;
        Ok(execution.with_codec(self.codec))
    }
}

/// Whether the turn asked for a unique id, which differs in every run of the turn.
fn draws_an_id(commit: &TurnCommit) -> bool {
    let guid = SystemCall::NewGuid.activity_name();
    let is_it = |kind: &EventKind| matches!(kind, EventKind::ActivityScheduled { name, .. } if *name == guid);
    commit.history_delta.iter().any(|event| is_it(&event.kind))
}
