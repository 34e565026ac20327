//! The store as a process of a test sees it: every call can have the fault of a sweep, and every turn runs again from a cold start.

use crate::cold::{self, Turn};
use crate::fault::{CallFault, Moment, Op};
use crate::shared::{Leased, Shared};
use crate::story;
use crate::trouble::Trouble;
use async_trait::async_trait;
use outlast_engine::SYSTEM_CALL_PREFIX;
use outlast_model::{Event, WorkItem};
use outlast_provider::{
    BoundedTurn, Completion, EnqueueOnce, FetchedTurn, FetchedWork, HistoryBound, Hold, HoldOutcome,
    LoadedTurn, Provider, ProviderError, StartOutcome, StartRequest, TurnAhead, TurnCommit, TurnRequest,
    WorkRequest, forward_provider,
};
use std::sync::Arc;
use std::time::Duration;

/// The store of a process.
pub(crate) struct ProcessStore(pub(crate) Arc<Shared>);

/// Rounds of all tasks that a stalled process waits, so that another slot runs the item that was delivered again.
const STALL_ROUNDS: usize = 256;

impl ProcessStore {
    fn inner(&self) -> &dyn Provider {
        self.0.store.as_ref()
    }

    /// Makes a call with its fault. `token` is the lease that the call needs.
    async fn call<T>(
        &self,
        op: Op,
        detail: impl Fn() -> String,
        token: Option<&str>,
        call: impl Future<Output = Result<T, ProviderError>>,
    ) -> Result<T, ProviderError> {
        let fault = self.fault(op, &detail);
        match fault {
            Some(CallFault::CrashBefore) => self.crash(|| format!("before the call: {}", detail())).await,
            Some(CallFault::LostLease) => {
                self.0.note(|| format!("STALL: the lease is lost before the call: {}", detail()));
                if let Some(token) = token {
                    self.expire(token).await;
                }
                for _ in 0..STALL_ROUNDS {
                    tokio::task::yield_now().await;
                }
            }
            Some(CallFault::CancelBefore) => self.0.cancel().await,
            _ => {}
        }
        let answer = call.await;
        if answer.is_ok() && token.is_some() {
            self.0.state().held.remove(token.unwrap_or_default());
        }
        match (fault, &answer) {
            (Some(CallFault::LostAnswer), Ok(_)) => {
                self.0.note(|| format!("LOST ANSWER of the call: {}", detail()));
                Err(ProviderError::retryable("store", "the answer was lost by the test"))
            }
            (Some(CallFault::CrashAfter), _) => {
                self.crash(|| format!("after the call: {}", detail())).await;
                answer
            }
            (Some(CallFault::CancelAfter), _) => {
                self.0.cancel().await;
                answer
            }
            _ => answer,
        }
    }

    /// Counts a fetch that leased an item, with its fault.
    async fn fetched(&self, detail: &impl Fn() -> String) {
        match self.fault(Op::Fetch, detail) {
            Some(CallFault::CrashAfter) => self.crash(|| format!("after the call: {}", detail())).await,
            Some(CallFault::CancelAfter) => self.0.cancel().await,
            _ => {}
        }
    }

    /// Counts a moment; returns its fault if it is the target.
    fn fault(&self, op: Op, detail: &impl Fn() -> String) -> Option<CallFault> {
        self.0.count_call();
        self.0.calls.on_moment(Moment { op, detail: detail() })
    }

    /// Ends the process. This future is never polled again.
    async fn crash(&self, place: impl Fn() -> String) {
        self.0.note(|| format!("CRASH {}", place()));
        // No other task of the process runs any more.
        if let Some(gate) = &self.0.state().gate {
            gate.stall();
        }
        self.0.kill.notify_one();
        std::future::pending::<()>().await;
    }

    /// Ends a lease, as its expiry does.
    async fn expire(&self, token: &str) {
        let leased = self.0.state().held.remove(token);
        if let Some(leased) = leased {
            expire(self.inner(), token, leased).await;
        }
    }

    fn check_activity(&self, item: &WorkItem) {
        let WorkItem::ActivityExecute { name, instance, .. } = item else { return };
        let is_known = name.starts_with(SYSTEM_CALL_PREFIX) || self.0.state().activities.has(name);
        if !is_known {
            self.0.fail(Trouble::Unregistered(format!(
                "instance '{instance}' calls activity '{name}', which the test does not have: add it to module![..], or call \
                 .mock::<{name}>(..)"
            )));
        }
    }

    fn check_orchestration(&self, turn: &FetchedTurn) {
        let name = &turn.item.orchestration_name;
        let is_known = self.0.state().build.as_ref().is_none_or(|build| build.orchestrations.has(name));
        if !is_known {
            self.0.fail(Trouble::Unregistered(format!(
                "instance '{}' runs orchestration '{name}', which the test does not have: add it to module![..], or call \
                 .mock_child::<{name}>(..)",
                turn.item.instance
            )));
        }
    }

    /// Runs the turn again from the stored history and compares the decisions.
    async fn check_replay(&self, turn: Option<Turn>, commit: &TurnCommit) {
        let Some(turn) = turn.filter(|_| self.0.checks_replay) else { return };
        let Some(build) = self.0.state().build.clone() else { return };
        let Ok(loaded) = self.inner().load_turn(&turn.instance, turn.execution_id).await else { return };
        let compared = build.run_again(&turn, loaded).map(|again| cold::compare(&again, commit));
        if let Some(Err(difference)) = compared {
            let instance = &turn.instance;
            self.0.fail(Trouble::NotDeterministic(format!(
                "a turn of instance '{instance}' was run a second time from its history, and decided otherwise. {difference}. \
                 Does the code use a clock, a random number, the order of a HashMap, or state outside of the function? Use \
                 ctx.utc_now(), ctx.new_guid(), a BTreeMap, or an activity"
            )));
        }
    }
}

/// Ends a lease, as its expiry does: the item is delivered again, and counts a delivery.
pub(crate) async fn expire(store: &dyn Provider, token: &str, leased: Leased) {
    // An item that was cancelled meanwhile has no lease to end.
    let _ = match leased {
        Leased::Turn => store.abandon_orchestration_item(token, None, false).await,
        Leased::Activity => store.abandon_work_item(token, None, false).await,
    };
}

/// The new events of a commit in words.
fn decisions(events: &[Event]) -> String {
    let words: Vec<String> = events.iter().map(|event| story::words(event, events)).collect();
    words.join("; ")
}

#[async_trait]
impl Provider for ProcessStore {
    forward_provider!(
        Provider,
        |this| this.inner(),
        except(
            fetch_turn,
            load_turn,
            load_turn_within,
            commit_turn,
            abandon_orchestration_item,
            fetch_work_items,
            ack_work_item,
            complete_with_turn,
            // The default: the story of a test shows each outcome.
            fuses_outcomes,
            complete_all_with_turn,
            abandon_work_item,
            abandon_work_noted,
            hold_turn,
            enqueue_for_orchestrator,
            enqueue_once,
            enqueue_within,
            start_orchestration,
            // The default: the story of a test shows the start and the first turn.
            start_with_turn
        )
    );

    async fn fetch_turn(&self, request: TurnRequest<'_>) -> Result<Option<FetchedTurn>, ProviderError> {
        let fetched = self.inner().fetch_turn(request).await?;
        let Some(turn) = &fetched else { return Ok(fetched) };
        let kinds: Vec<&str> = turn.item.messages.iter().map(WorkItem::kind_name).collect();
        let detail = || format!("fetch a turn of '{}' ({})", turn.item.instance, kinds.join(", "));
        self.0.note(detail);
        self.check_orchestration(turn);
        let seen = Turn {
            instance: turn.item.instance.clone(),
            execution_id: turn.item.execution_id,
            messages: turn.item.messages.clone(),
            now_ms: turn.now_ms.unwrap_or_default(),
        };
        {
            let mut state = self.0.state();
            state.held.insert(turn.lock_token.clone(), Leased::Turn);
            state.turns.insert(turn.lock_token.clone(), seen);
        }
        self.fetched(&detail).await;
        Ok(fetched)
    }

    async fn load_turn(&self, instance: &str, execution_id: u64) -> Result<LoadedTurn, ProviderError> {
        let detail = || format!("load the history of '{instance}'");
        self.call(Op::Read, detail, None, self.inner().load_turn(instance, execution_id)).await
    }

    async fn load_turn_within(
        &self,
        instance: &str,
        execution_id: u64,
        bound: HistoryBound,
    ) -> Result<BoundedTurn, ProviderError> {
        let detail = || format!("load the history of '{instance}'");
        self.call(Op::Read, detail, None, self.inner().load_turn_within(instance, execution_id, bound)).await
    }

    async fn commit_turn(&self, lock_token: &str, commit: TurnCommit) -> Result<Option<u64>, ProviderError> {
        let turn = self.0.state().turns.remove(lock_token);
        let instance = turn.as_ref().map(|turn| turn.instance.clone()).unwrap_or_default();
        self.check_replay(turn, &commit).await;
        let decisions = decisions(&commit.history_delta);
        let detail = || format!("commit a turn of '{instance}': {decisions}");
        let call = async {
            let committed = self.inner().commit_turn(lock_token, commit).await;
            self.0.note(|| match &committed {
                Ok(_) => detail(),
                Err(error) => format!("{} is refused: {}", detail(), error.message),
            });
            committed
        };
        self.call(Op::Commit, detail, Some(lock_token), call).await
    }

    async fn abandon_orchestration_item(
        &self,
        lock_token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        self.0.count_call();
        self.0.state().held.remove(lock_token);
        self.inner().abandon_orchestration_item(lock_token, delay, ignore_attempt).await
    }

    async fn fetch_work_items(&self, request: WorkRequest<'_>) -> Result<Vec<FetchedWork>, ProviderError> {
        let fetched = self.inner().fetch_work_items(request).await?;
        for work in &fetched {
            let WorkItem::ActivityExecute { name, instance, .. } = &work.item else { continue };
            let detail =
                || format!("fetch activity {name} of '{instance}' (delivery {})", work.attempt_count);
            self.0.note(detail);
            self.check_activity(&work.item);
            self.0.state().held.insert(work.lock_token.clone(), Leased::Activity);
            self.fetched(&detail).await;
        }
        Ok(fetched)
    }

    async fn ack_work_item(&self, token: &str, completion: Option<WorkItem>) -> Result<(), ProviderError> {
        let words = completion.as_ref().map_or("drop a cancelled activity".to_string(), outcome);
        let call = async {
            let answer = self.inner().ack_work_item(token, completion).await;
            self.0.note(|| match &answer {
                Ok(()) => words.clone(),
                Err(error) => format!("{words} is refused: {}", error.message),
            });
            answer
        };
        self.call(Op::Commit, || words.clone(), Some(token), call).await
    }

    async fn complete_with_turn(
        &self,
        token: &str,
        completion: WorkItem,
        turn: TurnAhead,
    ) -> Result<Completion, ProviderError> {
        let instance = completion.target_instance().to_string();
        if let Some(first) = turn.commit.history_delta.first() {
            let turn_seen = Turn {
                instance,
                execution_id: turn.commit.execution_id,
                messages: vec![completion.clone()],
                now_ms: first.timestamp_ms,
            };
            self.check_replay(Some(turn_seen), &turn.commit).await;
        }
        let words =
            format!("{}, and the next turn: {}", outcome(&completion), decisions(&turn.commit.history_delta));
        let call = async {
            let answer = self.inner().complete_with_turn(token, completion, turn).await;
            self.0.note(|| match &answer {
                Ok(Completion::WithTurn { .. }) => words.clone(),
                Ok(Completion::Queued) => format!("{words} (the turn is queued)"),
                Err(error) => format!("{words} is refused: {}", error.message),
            });
            answer
        };
        self.call(Op::Commit, || words.clone(), Some(token), call).await
    }

    async fn abandon_work_item(
        &self,
        token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        self.0.count_call();
        self.0.state().held.remove(token);
        self.inner().abandon_work_item(token, delay, ignore_attempt).await
    }

    async fn abandon_work_noted(
        &self,
        token: &str,
        delay: Option<Duration>,
        error: &str,
    ) -> Result<(), ProviderError> {
        let detail = || format!("report a failed attempt of an activity: {error}");
        self.call(Op::Commit, detail, Some(token), self.inner().abandon_work_noted(token, delay, error)).await
    }

    async fn hold_turn(&self, token: &str, hold: &Hold) -> Result<HoldOutcome, ProviderError> {
        let detail = || format!("hold an instance that is {}: {}", hold.kind, hold.reason);
        self.call(Op::Commit, detail, Some(token), self.inner().hold_turn(token, hold)).await
    }

    async fn enqueue_for_orchestrator(
        &self,
        item: WorkItem,
        delay: Option<Duration>,
    ) -> Result<(), ProviderError> {
        let detail = sending(&item);
        self.call(Op::Send, || detail.clone(), None, self.inner().enqueue_for_orchestrator(item, delay)).await
    }

    async fn enqueue_once(
        &self,
        item: WorkItem,
        key: &str,
        most_waiting: usize,
    ) -> Result<EnqueueOnce, ProviderError> {
        let detail = sending(&item);
        let call = self.inner().enqueue_once(item, key, most_waiting);
        self.call(Op::Send, || detail.clone(), None, call).await
    }

    async fn enqueue_within(&self, item: WorkItem, most_waiting: usize) -> Result<bool, ProviderError> {
        let detail = sending(&item);
        self.call(Op::Send, || detail.clone(), None, self.inner().enqueue_within(item, most_waiting)).await
    }

    async fn start_orchestration(&self, request: StartRequest) -> Result<StartOutcome, ProviderError> {
        let detail = sending(&request.start);
        self.call(Op::Send, || detail.clone(), None, self.inner().start_orchestration(request)).await
    }
}

fn sending(item: &WorkItem) -> String {
    format!("send {} to '{}'", item.kind_name(), item.target_instance())
}

fn outcome(completion: &WorkItem) -> String {
    let words = match completion {
        WorkItem::ActivityCompleted { id, result, .. } => {
            format!("store the outcome of activity {id}: {result}")
        }
        WorkItem::ActivityFailed { id, .. } => format!("store the failure of activity {id}"),
        other => format!("store {}", other.kind_name()),
    };
    story::without_guids(&words)
}
