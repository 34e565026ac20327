//! Turns: load the instance, run the engine, commit its decisions.

use super::commit::Committing;
use super::history::{self, InstanceState, LoadError};
use super::lease::{Kind, Lease};
use super::older_code;
use super::park_instance;
use super::paused;
use super::slot::{Fetched, Queue, commit_in_task};
use super::start::Started;
use super::undecodable;
use super::unregistered;
use super::unregistered_pause::UnregisteredPause;
use super::warm::Position;
use crate::core::Core;
use crate::handler::OrchestrationHandler;
use crate::observability::Stopwatch;
use outlast_engine::{
    Admission, Admitted, Code, Ended, Execution, KvValue, Opening, OrchestrationContext, Past, Poison,
    Report, Setup, TurnInput, TurnOutput,
};
use outlast_model::defect::{self, Defect};
use outlast_model::{ErrorDetails, Event, PoisonMessageType, TurnCommit, WorkItem};
use outlast_provider::{FetchedTurn, LoadedTurn, ProviderError, TurnRequest};
use semver::Version;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// The queue of turns.
pub(crate) struct TurnQueue;

impl Queue for TurnQueue {
    type Item = FetchedTurn;

    fn kind(&self) -> Kind {
        Kind::Turn
    }

    fn name(&self) -> &'static str {
        "orchestrations"
    }

    fn waiting<'a>(&self, core: &'a Core) -> &'a Notify {
        &core.turns_waiting
    }

    fn unregistered_pause<'a>(&self, core: &'a Core) -> &'a UnregisteredPause {
        &core.turn_backoff
    }

    async fn fetch(&self, core: &Core, _slot: usize) -> Result<Fetched<FetchedTurn>, ProviderError> {
        let request = TurnRequest {
            lock_timeout: core.options.orchestrator_lock_timeout,
            poll_timeout: core.options.dispatcher_long_poll_timeout,
            filter: Some(&core.filter),
            // A turn that is not warm loads its history itself, bounded by the limits.
            with_history: false,
        };
        let fetched = core.store.fetch_turn(request).await?;
        Ok(fetched.map_or(Fetched::Nothing, Fetched::Item))
    }

    fn hold(&self, core: &Core, fetched: &mut FetchedTurn) -> (Lease, u32) {
        core.metrics.record_orch_dispatcher_items_fetched(1);
        core.store_time.reported(fetched.now_ms);
        let token = std::mem::take(&mut fetched.lock_token);
        let instance = fetched.item.instance.as_str().into();
        (core.leases.hold(core, Kind::Turn, token, instance), fetched.attempt_count)
    }

    async fn process(&self, core: &Arc<Core>, mut fetched: FetchedTurn, lease: Lease, started: Started<'_>) {
        let since = Stopwatch::start();
        let Some(lease) = paused::or_hold(core, &fetched, lease).await else { return };
        let instance: Arc<str> = fetched.item.instance.as_str().into();
        #[cfg(feature = "test-hooks")]
        if let Some(delay) = crate::test_hooks::get_orch_processing_delay(&instance) {
            tokio::time::sleep(delay).await;
        }
        let worker_id = format!("orch-{}-{}", started.worker(), core.runtime_id);
        let turn = Turn { core: Arc::clone(core), instance, worker_id, created_at_ms: fetched.created_at_ms };
        let decision = turn.decide(&lease, &mut fetched).await;
        let only_redelivered = started.code_ended(core);
        let bytes = decision.bytes();
        let finished = async move {
            turn.commit_or_give_back(lease, decision).await;
            drop(only_redelivered);
            turn.core.metrics.record_orch_dispatcher_processing_duration(since.whole_ms());
        };
        commit_in_task(core, self.name(), bytes, Box::pin(finished)).await;
    }
}

/// How a fetched turn ends.
pub(super) enum TurnDecision {
    Commit {
        output: Box<TurnOutput>,
        keep: Keep,
    },
    GiveBack {
        delay: Duration,
        ignore_attempt: bool,
    },
    /// The instance is held for the reason. If the store cannot hold the instance, the turn ends as `otherwise` says.
    ParkInstance {
        reason: String,
        otherwise: Box<TurnDecision>,
    },
}

impl TurnDecision {
    /// The bytes of text of the events that the commit adds to the history; 0 without a commit.
    fn bytes(&self) -> usize {
        match self {
            Self::Commit { output, .. } => output.commit.history_delta.iter().map(Event::text_bytes).sum(),
            Self::GiveBack { .. } => 0,
            Self::ParkInstance { otherwise, .. } => otherwise.bytes(),
        }
    }
}

/// The entry of the warm cache after the commit.
pub(super) enum Keep {
    Execution(Box<Execution>),
    /// The position of an instance that had ended before this turn.
    Ended(Position),
    Nothing,
}

pub(super) struct Turn {
    pub(super) core: Arc<Core>,
    pub(super) instance: Arc<str>,
    pub(super) worker_id: String,
    pub(super) created_at_ms: Option<u64>,
}

/// The cause for which a batch exceeded `max_attempts` deliveries.
enum Cause {
    /// The orchestration is not registered on this node: the message that names it.
    Unregistered(String),
    /// The message that starts the execution after a continue-as-new is missing.
    NoStart,
    /// The orchestration is registered on this node; the earlier deliveries ended without a commit for an unknown reason.
    NoCommit,
}

/// An execution that ends without running its code, and the messages to send with its end.
struct UnrunExecution {
    execution_id: u64,
    opening: Opening,
    kv: BTreeMap<String, KvValue>,
    history: Vec<Event>,
    notices: Vec<WorkItem>,
}

/// The reason for which `Turn::new_execution` created no execution.
enum NoExecution {
    Unregistered,
    /// The handler panicked when it was called.
    Panicked(ErrorDetails),
}

impl Cause {
    fn text(&self) -> &str {
        match self {
            Self::Unregistered(cause) => cause,
            Self::NoStart => {
                "the execution before it continued as new and the message that starts this one is not in the queue: the \
                 store is damaged, or its clock was set back"
            }
            Self::NoCommit => {
                "no delivery led to a commit: the process ended or lost its lease during the turn, or nodes that do not \
                 have the orchestration took the messages; this node has it"
            }
        }
    }
}

/// The decision for an instance that this node cannot load or must not replay. The delivery is not counted: a node that cannot run
/// an instance must not poison it (C8).
const GIVE_BACK_UNCOUNTED: TurnDecision =
    TurnDecision::GiveBack { delay: Duration::from_secs(1), ignore_attempt: true };

impl Turn {
    /// Loads the instance and decides how its turn ends. Runs the orchestration's code if the batch is for an execution that goes
    /// on, was not delivered too often, and has a handler on this node.
    async fn decide(&self, lease: &Lease, fetched: &mut FetchedTurn) -> TurnDecision {
        let of_store = fetched.now_ms.filter(|_| !defect::is_on(Defect::TurnAtProcessTime));
        let now_ms = of_store.unwrap_or_else(|| self.core.now_ms());
        let state = match history::load_instance(&self.core, fetched).await {
            Ok(state) => state,
            Err(LoadError::Undecodable(error)) => {
                return undecodable::decide(&self.core, fetched, error, now_ms).await;
            }
            Err(LoadError::Store(error)) => {
                tracing::warn!(target: "duroxide::runtime", instance_id = %self.instance, %error, "history could not be loaded");
                return GIVE_BACK_UNCOUNTED;
            }
        };
        if !self.may_replay(&state) {
            return GIVE_BACK_UNCOUNTED;
        }
        let messages = std::mem::take(&mut fetched.item.messages);
        let attempts = fetched.attempt_count;
        let too_often = attempts > self.core.options.max_attempts;
        let batch = too_often.then(|| serde_json::to_string(&messages).unwrap_or_default());
        let current = fetched.item.execution_id;
        match (outlast_engine::admit(&self.instance, current, &state.past, messages), batch) {
            (Admission::Ended(notices), _) => {
                let position =
                    fetched.last_event_id.map(|last| Position { execution_id: current, last_event_id: last });
                commit_messages(current, notices, position.map_or(Keep::Nothing, Keep::Ended))
            }
            (Admission::Nameless, _) => {
                tracing::warn!(target: "duroxide::runtime", instance_id = %self.instance, "messages for an instance without history or start are dropped");
                self.core.metrics.record_dropped_messages("nameless", 1);
                commit_messages(current, Vec::new(), Keep::Nothing)
            }
            (Admission::SuccessorMissing(_), None) => self.give_back_delayed(attempts),
            (Admission::SuccessorMissing(notices), Some(batch)) => {
                self.fail_missing_successor(state, fetched, notices, batch, now_ms).await
            }
            (Admission::Run(admitted), Some(batch)) => {
                let unregistered = unregistered::orchestration(&self.core, &admitted.opening);
                let cause = match unregistered.clone() {
                    Some(cause) => Cause::Unregistered(cause),
                    None => Cause::NoCommit,
                };
                let details = self.poisoned(admitted.execution_id, attempts, batch, cause);
                let failed = self.fail_admitted(state, fetched, *admitted, details, now_ms).await;
                park_instance::or_park(&self.core, unregistered, failed)
            }
            (Admission::Run(admitted), None) => match state.oversized.clone().filter(|_| !admitted.is_new) {
                None => self.run(Some(lease), state, *admitted, attempts, now_ms),
                Some(message) => {
                    let details = ErrorDetails::refusal(&message, &fetched.item.instance);
                    let mut decision = self.fail_admitted(state, fetched, *admitted, details, now_ms).await;
                    if let TurnDecision::Commit { output, .. } = &mut decision {
                        output.report.broke_limit = true;
                    }
                    decision
                }
            },
        }
    }

    /// Fails the successor of an execution that continued as new, because its start message is missing.
    async fn fail_missing_successor(
        &self,
        state: InstanceState,
        fetched: &mut FetchedTurn,
        notices: Vec<WorkItem>,
        batch: String,
        now_ms: u64,
    ) -> TurnDecision {
        let predecessor = fetched.item.execution_id;
        // The opening names the parent, and the warm cache does not keep the opening of an execution that has ended.
        let Some(history) = self.stored_history(state.history, fetched, predecessor).await else {
            return GIVE_BACK_UNCOUNTED;
        };
        let execution_id = predecessor + 1;
        let details = self.poisoned(execution_id, fetched.attempt_count, batch, Cause::NoStart);
        let opening = opening_of_successor(Past::of_history(&history));
        let successor = UnrunExecution { execution_id, opening, kv: state.kv, history: Vec::new(), notices };
        self.fail_without_code(successor, details, now_ms)
    }

    /// Whether this runtime can replay the contract version that started the instance. The store filters fetches by the same
    /// versions; this check covers a store that does not.
    fn may_replay(&self, state: &InstanceState) -> bool {
        let Some(first) = state.history.iter().find(|event| Opening::of_event(&event.kind).is_some()) else {
            return true;
        };
        let Ok(version) = Version::parse(&first.duroxide_version) else { return true };
        let plain = without_build(version);
        let compatible = self.core.filter.is_compatible(&plain);
        if !compatible {
            tracing::warn!(
                target: "duroxide::runtime",
                instance = %self.instance,
                version = %plain,
                "incompatible version: the instance was started under a contract that this runtime does not replay"
            );
        }
        compatible
    }

    /// Gives the turn back with the delay for missing handlers; the delivery is counted.
    fn give_back_delayed(&self, attempts: u32) -> TurnDecision {
        let delay = self.core.options.unregistered_backoff.delay(attempts);
        TurnDecision::GiveBack { delay, ignore_attempt: false }
    }

    /// Runs the turn in the engine, on the warm execution or on a new one that replays the history. A first turn that a client runs
    /// has no lease.
    pub(super) fn run(
        &self,
        lease: Option<&Lease>,
        state: InstanceState,
        admitted: Admitted,
        attempts: u32,
        now_ms: u64,
    ) -> TurnDecision {
        if admitted.ignored_starts > 0 {
            tracing::warn!(target: "duroxide::runtime", instance_id = %self.instance, "a start was ignored: the instance exists");
        }
        let InstanceState { warm, history, kv, .. } = state;
        let mut execution = match warm.filter(|_| !admitted.is_new) {
            Some(execution) => execution,
            None => match self.new_execution(&admitted, &history, kv, attempts) {
                Ok(execution) => execution,
                Err(NoExecution::Unregistered) => {
                    self.core.turn_backoff.plan_pause(self.core.options.unregistered_backoff.delay(attempts));
                    return self.give_back_delayed(attempts);
                }
                Err(NoExecution::Panicked(details)) => {
                    let Admitted { execution_id, opening, notices, .. } = admitted;
                    let kv = BTreeMap::new();
                    let unrun = UnrunExecution { execution_id, opening, kv, history, notices };
                    let reason = park_instance::reason(&details);
                    let failed = self.fail_without_code(unrun, details, now_ms);
                    return park_instance::or_park(&self.core, reason, failed);
                }
            },
        };
        let history = if admitted.is_new { Vec::new() } else { history };
        let last_event_id = history.last().map_or(0, |event| event.event_id);
        let cancels = older_code::cancels(&admitted.messages);
        let entropy = &self.core.options.entropy;
        let input = TurnInput {
            history,
            messages: admitted.messages,
            notices: admitted.notices,
            now_ms,
            random: &mut || entropy.next_u128(),
            parent_close: self.core.options.parent_close,
        };
        let span = tracing::debug_span!(
            target: "duroxide::runtime",
            "turn",
            instance_id = %self.instance,
            execution_id = admitted.execution_id,
            orchestration_name = %admitted.opening.name,
            attempt = attempts,
            worker_id = %self.worker_id
        );
        if let Some(lease) = lease {
            lease.set_probe(execution.probe());
        }
        let output = span.in_scope(|| outlast_engine::run(&mut execution, input));
        if let Some(lease) = lease {
            lease.clear_probe();
        }
        let older = older_code::give_back(&self.core, &self.instance, last_event_id, cancels, &output.report);
        if let Some(given_back) = older {
            return given_back;
        }
        let misfit = park_instance::misfit(&output.report);
        let decision = TurnDecision::Commit { output: Box::new(output), keep: Keep::Execution(execution) };
        park_instance::or_park(&self.core, misfit, decision)
    }

    /// Creates an execution in which no code has run yet.
    fn new_execution(
        &self,
        admitted: &Admitted,
        history: &[Event],
        kv: BTreeMap<String, KvValue>,
        attempts: u32,
    ) -> Result<Box<Execution>, NoExecution> {
        let stamp = self.stamp(history, admitted.is_new);
        if self.ends_before_it_runs(admitted) {
            let resolved = self.core.orchestrations.resolve_opening(&admitted.opening);
            let version = resolved.map(|(version, _)| version.to_string());
            let mut opening = admitted.opening.clone();
            opening.version = version.or(opening.version);
            let setup = self.setup(admitted.execution_id, opening, stamp, kv);
            return Ok(Box::new(Execution::without_code(setup)));
        }
        let handler = self.find_handler(&admitted.opening, attempts);
        let (version, handler) = handler.ok_or(NoExecution::Unregistered)?;
        let opening = Opening { version: Some(version.to_string()), ..admitted.opening.clone() };
        let setup = self.setup(admitted.execution_id, opening, stamp, kv);
        let execution = Execution::new(setup, |context, input| call(handler, context, input));
        let execution = execution.map_err(NoExecution::Panicked)?;
        Ok(Box::new(execution.with_codec(self.core.options.codec)))
    }

    fn setup(
        &self,
        execution_id: u64,
        opening: Opening,
        stamp: String,
        kv: BTreeMap<String, KvValue>,
    ) -> Setup {
        Setup {
            instance: self.instance.to_string(),
            execution_id,
            opening,
            stamp,
            kv,
            limits: Arc::clone(&self.core.limits),
        }
    }

    fn stamp(&self, history: &[Event], is_new: bool) -> String {
        let stored = history.first().filter(|_| !is_new).map(|event| event.duroxide_version.clone());
        #[cfg(feature = "replay-version-test")]
        let stored = stored.or_else(|| self.core.options.stamp.clone());
        stored.unwrap_or_else(|| outlast_engine::new_stamp(self.core.options.buffer_early_signals))
    }

    /// Whether the batch cancels an execution before its first turn, and the execution is a child or its orchestration is not
    /// registered on this node. A cancelled child must not run: its parent may have dropped it in the turn that scheduled it.
    fn ends_before_it_runs(&self, admitted: &Admitted) -> bool {
        admitted.is_cancelled_at_start()
            && (admitted.opening.parent.is_some()
                || self.core.orchestrations.resolve_opening(&admitted.opening).is_none())
    }

    /// The handler of the orchestration, and the version that it has. Logs and returns `None` if this node has no handler.
    fn find_handler(
        &self,
        opening: &Opening,
        attempt_count: u32,
    ) -> Option<(Version, Arc<dyn OrchestrationHandler>)> {
        let handler = self.core.orchestrations.resolve_opening(opening);
        if handler.is_none() {
            tracing::warn!(
                target: "duroxide::runtime",
                instance_id = %self.instance,
                orchestration_name = %opening.name,
                orchestration_version = opening.version.as_deref().unwrap_or("latest"),
                attempt_count,
                max_attempts = self.core.options.max_attempts,
                cause = unregistered::orchestration(&self.core, opening).unwrap_or_default(),
                "orchestration is not registered here; the instance waits for a node that has it"
            );
        }
        handler
    }

    /// The error of an instance that exceeded `max_attempts` deliveries. Logs the cause.
    fn poisoned(&self, execution_id: u64, attempt_count: u32, batch: String, cause: Cause) -> ErrorDetails {
        let max_attempts = self.core.options.max_attempts;
        tracing::warn!(target: "duroxide::runtime", instance_id = %self.instance, execution_id, attempt_count, max_attempts, cause = cause.text(), "instance is poisoned");
        let message = match &cause {
            Cause::Unregistered(cause) => ErrorDetails::message_with_cause(cause, &batch),
            Cause::NoStart | Cause::NoCommit => batch,
        };
        let instance = self.instance.to_string();
        let message_type = PoisonMessageType::Orchestration { instance, execution_id };
        ErrorDetails::Poison { attempt_count, max_attempts, message_type, message }
    }

    /// Fails the execution that the batch belongs to without running its code.
    async fn fail_admitted(
        &self,
        state: InstanceState,
        fetched: &mut FetchedTurn,
        admitted: Admitted,
        details: ErrorDetails,
        now_ms: u64,
    ) -> TurnDecision {
        let history = match admitted.is_new {
            true => Vec::new(),
            false => match self.stored_history(state.history, fetched, admitted.execution_id).await {
                Some(history) => history,
                // The warm execution is dropped here, so the next delivery loads the history and reports its error.
                None => return GIVE_BACK_UNCOUNTED,
            },
        };
        let Admitted { execution_id, opening, notices, .. } = admitted;
        let unrun = UnrunExecution { execution_id, opening, kv: state.kv, history, notices };
        self.fail_without_code(unrun, details, now_ms)
    }

    /// The stored events of an execution: `loaded` if there are any, else the events of the fetched turn, else read from the store.
    /// `None` if the store cannot return them or they do not decode.
    async fn stored_history(
        &self,
        loaded: Vec<Event>,
        fetched: &mut FetchedTurn,
        execution_id: u64,
    ) -> Option<Vec<Event>> {
        if !loaded.is_empty() {
            return Some(loaded);
        }
        if fetched.history_loaded {
            return Some(std::mem::take(&mut fetched.item.history));
        }
        match self.core.store.load_turn(&self.instance, execution_id).await {
            Ok(LoadedTurn { history, history_error: None, .. }) => Some(history),
            Ok(_) | Err(_) => None,
        }
    }

    /// Commits the failure of an execution without running its code.
    fn fail_without_code(
        &self,
        execution: UnrunExecution,
        details: ErrorDetails,
        now_ms: u64,
    ) -> TurnDecision {
        let UnrunExecution { execution_id, opening, kv, history, notices } = execution;
        let stamp = self.stamp(&history, history.is_empty());
        let setup = self.setup(execution_id, opening, stamp, kv);
        let parent_close = self.core.options.parent_close;
        let output =
            outlast_engine::poison(Poison { setup, history, details, notices, now_ms, parent_close });
        TurnDecision::Commit { output: Box::new(output), keep: Keep::Nothing }
    }

    /// Executes the decision: commits the turn, gives it back, or parks the instance.
    async fn commit_or_give_back(&self, lease: Lease, decision: TurnDecision) {
        let (lease, decision) = match decision {
            TurnDecision::ParkInstance { reason, otherwise } => {
                match park_instance::park(&self.core, &self.instance, lease, reason).await {
                    Some(lease) => (lease, *otherwise),
                    None => return,
                }
            }
            decision => (lease, decision),
        };
        match decision {
            // `otherwise` is never `ParkInstance`.
            TurnDecision::ParkInstance { .. } => {}
            TurnDecision::GiveBack { delay, ignore_attempt } => {
                lease.give_back(&self.core, Some(delay), ignore_attempt).await;
            }
            TurnDecision::Commit { output, keep } => {
                let committing = Committing {
                    core: &self.core,
                    instance: &self.instance,
                    worker_id: &self.worker_id,
                    created_at_ms: self.created_at_ms,
                    lease,
                };
                committing.commit(*output, keep).await;
            }
        }
    }
}

/// The future of the orchestration's code; it has not been polled. It runs without tokio's cooperation budget, which could make a
/// ready channel return `Pending` in one run and not in its replay.
pub(crate) fn call(
    handler: Arc<dyn OrchestrationHandler>,
    context: OrchestrationContext,
    input: String,
) -> Code {
    Box::pin(tokio::task::unconstrained(async move { handler.invoke(context, input).await }))
}

/// The opening of a successor whose start message is missing: the opening of its predecessor, with the input of the continue-as-new.
fn opening_of_successor(past: Past) -> Opening {
    let input = match past.ended {
        Some(Ended::Continued { input }) => input,
        _ => String::new(),
    };
    let opening = past.opening.unwrap_or_else(history::empty_opening);
    Opening { input, carried: Vec::new(), ..opening }
}

/// Commits a turn that removes its batch from the queue and sends `notices`, without any event.
fn commit_messages(execution_id: u64, notices: Vec<WorkItem>, keep: Keep) -> TurnDecision {
    TurnDecision::Commit { output: Box::new(only_messages(execution_id, notices)), keep }
}

/// The output of a turn that has no events and sends these messages.
pub(super) fn only_messages(execution_id: u64, orchestrator_items: Vec<WorkItem>) -> TurnOutput {
    let commit = TurnCommit { execution_id, orchestrator_items, ..TurnCommit::default() };
    TurnOutput { commit, report: Report::default() }
}

/// The version without build metadata. The build metadata of a stamp selects replay rules and is not part of the contract version.
fn without_build(version: Version) -> Version {
    Version { build: semver::BuildMetadata::EMPTY, ..version }
}

#[cfg(test)]
mod tests;
