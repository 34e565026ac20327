//! Turns: recall the instance, let the engine decide, commit.

use super::aside::Aside;
use super::commit::Committing;
use super::history::{self, Known, Unknown};
use super::lease::{Kind, Lease};
use super::slot::{Fetched, Queue, hand_off};
use super::undecodable;
use super::unregistered;
use super::warm::Position;
use crate::core::Core;
use crate::handler::OrchestrationHandler;
use crate::observability::Stopwatch;
use outlast_engine::{
    Admission, Admitted, Code, Ended, Execution, KvValue, Opening, OrchestrationContext, Past, Poison,
    Report, Setup, TurnInput, TurnOutput,
};
use outlast_model::{AppErrorKind, ErrorDetails, Event, PoisonMessageType, TurnCommit, WorkItem};
use outlast_provider::{FetchedTurn, LoadedTurn, ProviderError, TurnRequest};
use semver::Version;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// The queue of orchestrations.
pub(crate) struct Turns;

impl Queue for Turns {
    type Item = FetchedTurn;

    fn name(&self) -> &'static str {
        "orchestrations"
    }

    fn waiting<'a>(&self, core: &'a Core) -> &'a Notify {
        &core.turns_waiting
    }

    fn aside<'a>(&self, core: &'a Core) -> &'a Aside {
        &core.turns_aside
    }

    async fn fetch(&self, core: &Core, _slot: usize) -> Result<Fetched<FetchedTurn>, ProviderError> {
        let request = TurnRequest {
            lock_timeout: core.options.orchestrator_lock_timeout,
            poll_timeout: core.options.dispatcher_long_poll_timeout,
            filter: Some(&core.filter),
            // Loaded apart where it is needed, within the limits.
            with_history: false,
        };
        let fetched = core.store.fetch_turn(request).await?;
        Ok(fetched.map_or(Fetched::Nothing, Fetched::Item))
    }

    async fn process(&self, core: &Arc<Core>, slot: usize, mut fetched: FetchedTurn) {
        core.metrics.record_orch_dispatcher_items_fetched(1);
        let since = Stopwatch::start();
        let instance: Arc<str> = fetched.item.instance.as_str().into();
        let token = std::mem::take(&mut fetched.lock_token);
        let lease = core.leases.hold(core, Kind::Turn, token, Arc::clone(&instance));
        #[cfg(feature = "test-hooks")]
        if let Some(delay) = crate::test_hooks::get_orch_processing_delay(&instance) {
            tokio::time::sleep(delay).await;
        }
        let worker_id = format!("orch-{slot}-{}", core.runtime_id);
        let turn = Turn { core: Arc::clone(core), instance, worker_id, created_at_ms: fetched.created_at_ms };
        let verdict = turn.decide(&lease, &mut fetched).await;
        let carried_out = async move {
            turn.carry_out(lease, verdict).await;
            let ms = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
            turn.core.metrics.record_orch_dispatcher_processing_duration(ms);
        };
        hand_off(core, self.name(), Box::pin(carried_out)).await;
    }
}

/// What becomes of a fetched turn.
pub(super) enum Verdict {
    Commit { output: Box<TurnOutput>, keep: Keep },
    GiveBack { delay: Duration, ignore_attempt: bool },
}

/// What is remembered of the instance once the turn is committed.
pub(super) enum Keep {
    Execution(Box<Execution>),
    /// That it has ended, as before.
    Ended(Position),
    Nothing,
}

struct Turn {
    core: Arc<Core>,
    instance: Arc<str>,
    worker_id: String,
    created_at_ms: Option<u64>,
}

/// Why a batch was delivered too often.
enum Cause {
    /// This node does not have the orchestration, so that it can say which one.
    Unregistered(String),
    /// The start of a successor is missing.
    NoStart,
    /// This node has the orchestration, and nothing is known of the deliveries before.
    NoCommit,
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

/// How long an instance rests that this node must not touch, or whose data does not decode.
const UNTOUCHABLE: Duration = Duration::from_secs(1);

impl Turn {
    async fn decide(&self, lease: &Lease, fetched: &mut FetchedTurn) -> Verdict {
        let now_ms = fetched.now_ms.unwrap_or_else(|| self.core.now_ms());
        let known = match history::recall(&self.core, fetched).await {
            Ok(known) => known,
            Err(Unknown::Undecodable(error)) => {
                return undecodable::decide(&self.core, fetched, error, now_ms).await;
            }
            Err(Unknown::Store(error)) => {
                tracing::warn!(target: "duroxide::runtime", instance_id = %self.instance, %error, "history could not be loaded");
                return Verdict::GiveBack { delay: UNTOUCHABLE, ignore_attempt: true };
            }
        };
        if !self.may_replay(&known) {
            // No delivery: nodes that cannot run an instance must not count it to death (C8).
            return Verdict::GiveBack { delay: UNTOUCHABLE, ignore_attempt: true };
        }
        let messages = std::mem::take(&mut fetched.item.messages);
        let attempts = fetched.attempt_count;
        let too_often = attempts > self.core.options.max_attempts;
        let batch = too_often.then(|| serde_json::to_string(&messages).unwrap_or_default());
        let current = fetched.item.execution_id;
        match (outlast_engine::admit(&self.instance, current, &known.past, messages), batch) {
            (Admission::Ended(notices), _) => {
                let position =
                    fetched.last_event_id.map(|last| Position { execution_id: current, last_event_id: last });
                self.nothing_but(current, notices, position.map_or(Keep::Nothing, Keep::Ended))
            }
            (Admission::Nameless, _) => {
                tracing::warn!(target: "duroxide::runtime", instance_id = %self.instance, "messages for an instance without history or start are dropped");
                self.core.metrics.record_dropped_messages("nameless", 1);
                self.nothing_but(current, Vec::new(), Keep::Nothing)
            }
            (Admission::SuccessorMissing(_), None) => self.unregistered_delay(attempts),
            (Admission::SuccessorMissing(notices), Some(batch)) => {
                // Who waits for the instance is not kept in memory once an execution is over.
                let Some(history) = self.stored_history(known.history, fetched, current).await else {
                    return Verdict::GiveBack { delay: UNTOUCHABLE, ignore_attempt: true };
                };
                let details = self.poisoned(current + 1, attempts, batch, Cause::NoStart);
                let opening = missing_successor(Past::of_history(&history));
                self.end_without_code(known.kv, current + 1, opening, Vec::new(), details, notices, now_ms)
            }
            (Admission::Run(admitted), Some(batch)) => {
                let cause = match unregistered::orchestration(&self.core, &admitted.opening) {
                    Some(cause) => Cause::Unregistered(cause),
                    None => Cause::NoCommit,
                };
                let details = self.poisoned(admitted.execution_id, attempts, batch, cause);
                self.poison(known, fetched, *admitted, details, now_ms).await
            }
            (Admission::Run(admitted), None) => match known.oversized.clone().filter(|_| !admitted.is_new) {
                None => self.run(lease, known, *admitted, attempts, now_ms),
                Some(message) => {
                    let kind = AppErrorKind::OrchestrationFailed;
                    let details = ErrorDetails::Application { kind, message, retryable: false };
                    match self.poison(known, fetched, *admitted, details, now_ms).await {
                        Verdict::Commit { mut output, keep } => {
                            output.report.broke_limit = true;
                            Verdict::Commit { output, keep }
                        }
                        given_back => given_back,
                    }
                }
            },
        }
    }

    /// Whether the rules that the instance was started under are ours. The store filters by the same, but may be wrong.
    fn may_replay(&self, known: &Known) -> bool {
        let Some(first) = known.history.iter().find(|event| Opening::of_event(&event.kind).is_some()) else {
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

    fn unregistered_delay(&self, attempts: u32) -> Verdict {
        let delay = self.core.options.unregistered_backoff.delay(attempts);
        Verdict::GiveBack { delay, ignore_attempt: false }
    }

    /// A turn that only takes its messages off the queue.
    fn nothing_but(&self, execution_id: u64, notices: Vec<WorkItem>, keep: Keep) -> Verdict {
        Verdict::Commit { output: Box::new(only_messages(execution_id, notices)), keep }
    }

    fn run(&self, lease: &Lease, known: Known, admitted: Admitted, attempts: u32, now_ms: u64) -> Verdict {
        if admitted.ignored_starts > 0 {
            tracing::warn!(target: "duroxide::runtime", instance_id = %self.instance, "a start was ignored: the instance exists");
        }
        let Known { warm, history, kv, .. } = known;
        let mut execution = match warm.filter(|_| !admitted.is_new) {
            Some(execution) => execution,
            None if self.ends_before_it_runs(&admitted) => {
                let found = unregistered::resolve(&self.core, &admitted.opening);
                let version = found.map(|(version, _)| version.to_string());
                let mut opening = admitted.opening.clone();
                opening.version = version.or(opening.version);
                let stamp = self.stamp(&history, admitted.is_new);
                Box::new(Execution::without_code(self.setup(admitted.execution_id, opening, stamp, kv)))
            }
            None => {
                let Some((version, handler)) = self.find_handler(&admitted.opening, attempts) else {
                    self.core.turns_aside.after(self.core.options.unregistered_backoff.delay(attempts));
                    return self.unregistered_delay(attempts);
                };
                let stamp = self.stamp(&history, admitted.is_new);
                let opening = Opening { version: Some(version.to_string()), ..admitted.opening.clone() };
                let setup = self.setup(admitted.execution_id, opening, stamp, kv);
                match Execution::new(setup, |context, input| call(handler, context, input)) {
                    Ok(execution) => Box::new(execution.with_codec(self.core.options.codec)),
                    Err(details) => {
                        let Admitted { execution_id, opening, notices, .. } = admitted;
                        let kv = BTreeMap::new();
                        return self.end_without_code(
                            kv,
                            execution_id,
                            opening,
                            history,
                            details,
                            notices,
                            now_ms,
                        );
                    }
                }
            }
        };
        let history = if admitted.is_new { Vec::new() } else { history };
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
        lease.runs(execution.probe());
        let output = span.in_scope(|| outlast_engine::run(&mut execution, input));
        lease.rests();
        Verdict::Commit { output: Box::new(output), keep: Keep::Execution(execution) }
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
        stored.unwrap_or_else(|| outlast_engine::new_stamp(self.core.options.buffer_early_signals))
    }

    /// Whether a batch cancels an execution that has not begun and whose code must not or cannot run: a child that its
    /// parent dropped in the turn that scheduled it, or an orchestration that is not registered here.
    fn ends_before_it_runs(&self, admitted: &Admitted) -> bool {
        admitted.is_cancelled_at_start()
            && (admitted.opening.parent.is_some()
                || unregistered::resolve(&self.core, &admitted.opening).is_none())
    }

    fn find_handler(
        &self,
        opening: &Opening,
        attempt_count: u32,
    ) -> Option<(Version, Arc<dyn OrchestrationHandler>)> {
        let found = unregistered::resolve(&self.core, opening);
        if found.is_none() {
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
        found
    }

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

    async fn poison(
        &self,
        known: Known,
        fetched: &mut FetchedTurn,
        admitted: Admitted,
        details: ErrorDetails,
        now_ms: u64,
    ) -> Verdict {
        let history = match admitted.is_new {
            true => Vec::new(),
            false => match self.stored_history(known.history, fetched, admitted.execution_id).await {
                Some(history) => history,
                // Without the warm copy the next delivery finds out what is wrong with it.
                None => return Verdict::GiveBack { delay: UNTOUCHABLE, ignore_attempt: true },
            },
        };
        let Admitted { execution_id, opening, notices, .. } = admitted;
        self.end_without_code(known.kv, execution_id, opening, history, details, notices, now_ms)
    }

    /// The stored events of an execution, if they can be read now: as they are known, as they came with the turn, or from
    /// the store, which is asked only if it does not deliver them with turns.
    async fn stored_history(
        &self,
        known: Vec<Event>,
        fetched: &mut FetchedTurn,
        execution_id: u64,
    ) -> Option<Vec<Event>> {
        if !known.is_empty() {
            return Some(known);
        }
        if fetched.history_loaded {
            return Some(std::mem::take(&mut fetched.item.history));
        }
        match self.core.store.load_turn(&self.instance, execution_id).await {
            Ok(LoadedTurn { history, history_error: None, .. }) => Some(history),
            Ok(_) | Err(_) => None,
        }
    }

    #[allow(clippy::too_many_arguments, reason = "they are the parts of one value that is built here")]
    fn end_without_code(
        &self,
        kv: BTreeMap<String, KvValue>,
        execution_id: u64,
        opening: Opening,
        history: Vec<Event>,
        details: ErrorDetails,
        notices: Vec<WorkItem>,
        now_ms: u64,
    ) -> Verdict {
        let stamp = self.stamp(&history, history.is_empty());
        let setup = self.setup(execution_id, opening, stamp, kv);
        let parent_close = self.core.options.parent_close;
        let output =
            outlast_engine::poison(Poison { setup, history, details, notices, now_ms, parent_close });
        Verdict::Commit { output: Box::new(output), keep: Keep::Nothing }
    }

    async fn carry_out(&self, lease: Lease, verdict: Verdict) {
        match verdict {
            Verdict::GiveBack { delay, ignore_attempt } => {
                lease.give_back(&self.core, Some(delay), ignore_attempt).await;
            }
            Verdict::Commit { output, keep } => {
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

/// The author's function, suspended before its first line. tokio's cooperation budget would make a ready channel look
/// pending, which replay would not reproduce.
fn call(handler: Arc<dyn OrchestrationHandler>, context: OrchestrationContext, input: String) -> Code {
    Box::pin(tokio::task::unconstrained(async move { handler.invoke(context, input).await }))
}

/// A successor whose start never came is what its predecessor was, with the input that it was to get.
fn missing_successor(past: Past) -> Opening {
    let input = match past.ended {
        Some(Ended::Continued { input }) => input,
        _ => String::new(),
    };
    let opening = past.opening.unwrap_or_else(history::nobody);
    Opening { input, carried: Vec::new(), ..opening }
}

/// What a turn commits that takes its messages off the queue and sends others.
pub(super) fn only_messages(execution_id: u64, orchestrator_items: Vec<WorkItem>) -> TurnOutput {
    let commit = TurnCommit { execution_id, orchestrator_items, ..TurnCommit::default() };
    TurnOutput { commit, report: Report::default() }
}

/// Build metadata says how an execution replays, not which contract it was started under.
fn without_build(version: Version) -> Version {
    Version { build: semver::BuildMetadata::EMPTY, ..version }
}

#[cfg(test)]
mod tests;
