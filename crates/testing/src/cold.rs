//! Turns and histories that run again on a fresh call of the code, without a runtime.

use crate::story;
use outlast_engine::{
    Admission, Execution, KvValue, Opening, ParentClosePolicy, Past, Setup, SystemCall, TurnInput,
};
use outlast_model::codec::Codec;
use outlast_model::limits::Limits;
use outlast_model::{Event, EventKind, TurnCommit, WorkItem};
use outlast_provider::{KvEntry, LoadedTurn};
use outlast_runtime::registry::OrchestrationRegistry;
use outlast_runtime::{OrchestrationHandler, RuntimeOptions};
use semver::Version;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;
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

    /// Runs a turn on an execution that is built from the store, before the turn is committed. `None` where there is nothing to compare:
    /// the batch runs no code, or the turn drew a unique id.
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
            .then(|| self.cold(&turn.instance, id, opening.clone(), stamp.clone(), kv.clone()))
            .flatten();
        let mut execution = match found {
            Some(execution) => execution,
            // A child, and a root whose orchestration the build lacks, end without running their code.
            None if ends_at_start => {
                let resolved = self.resolve(&opening).map(|(version, _)| version.to_string());
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
        let mut execution = self.cold(instance, execution_id, opening, stamp, kv)?;
        let input = TurnInput {
            history,
            messages: Vec::new(),
            notices: Vec::new(),
            now_ms,
            random: &mut || 0,
            parent_close: self.parent_close,
        };
        Some(outlast_engine::run(&mut execution, input).commit)
    }

    /// The version and the code that the build runs for an execution, if it has it.
    fn resolve(&self, opening: &Opening) -> Option<(Version, Arc<dyn OrchestrationHandler>)> {
        match &opening.version {
            Some(text) => {
                let version = Version::parse(text).ok()?;
                let handler = self.orchestrations.resolve_handler_exact(&opening.name, &version)?;
                Some((version, handler))
            }
            None => self.orchestrations.resolve_handler(&opening.name),
        }
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

    fn cold(
        &self,
        instance: &str,
        execution_id: u64,
        opening: Opening,
        stamp: String,
        kv: HashMap<String, KvEntry>,
    ) -> Option<Execution> {
        let (version, handler) = self.resolve(&opening)?;
        let opening = Opening { version: Some(version.to_string()), ..opening };
        let call = |context, input| -> outlast_engine::Code {
            Box::pin(async move { handler.invoke(context, input).await })
        };
        let execution = Execution::new(self.setup(instance, execution_id, opening, stamp, kv), call);
        execution.ok().map(|execution| execution.with_codec(self.codec))
    }
}

/// Whether the turn asked for a unique id, which differs in every run of the turn.
fn draws_an_id(commit: &TurnCommit) -> bool {
    let guid = SystemCall::NewGuid.activity_name();
    let is_it = |kind: &EventKind| matches!(kind, EventKind::ActivityScheduled { name, .. } if *name == guid);
    commit.history_delta.iter().any(|event| is_it(&event.kind))
}

/// Compares the commit of a runtime with the commit of the same turn from a cold start.
///
/// # Errors
///
/// The first difference, with both sides.
pub fn compare(again: &TurnCommit, first: &TurnCommit) -> Result<(), String> {
    compare_events(&again.history_delta, &first.history_delta)?;
    same("activities", &again.worker_items, &first.worker_items)?;
    same("messages", &again.orchestrator_items, &first.orchestrator_items)?;
    same("cancelled activities", &again.cancelled_activities, &first.cancelled_activities)
}

fn compare_events(again: &[Event], first: &[Event]) -> Result<(), String> {
    let longest = again.len().max(first.len());
    let Some(at) = (0..longest).find(|at| again.get(*at) != first.get(*at)) else { return Ok(()) };
    let side = |events: &[Event]| match events.get(at) {
        Some(event) => format!("`{}`", story::words(event, events)),
        None => "no decision".to_string(),
    };
    let id = first.get(at).or(again.get(at)).map_or(0, |event| event.event_id);
    Err(format!("event {id}: the first run decided {}, the replay decided {}", side(first), side(again)))
}

fn same<T: PartialEq + Debug>(what: &str, again: &[T], first: &[T]) -> Result<(), String> {
    match again == first {
        true => Ok(()),
        false => Err(format!("{what}: first {first:?}, again {again:?}")),
    }
}
