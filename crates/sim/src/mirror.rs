//! I12: the SQLite store and the memory store receive the same calls at the same times. They must give the same answers
//! and hold the same rows.
//!
//! A waiting fetch waits in the SQLite store only. The memory store is asked when the SQLite store has served it, before any other call
//! (`parked.rs`). Tokens are random, so each store receives its own.

mod parked;

use crate::backend::sqlite_rows;
use async_trait::async_trait;
use outlast_memory::MemoryProvider;
use outlast_model::{Event, SystemStats, WorkItem};
use outlast_provider::{
    AuditEntry, AuditRecord, BoundedTurn, Completion, DispatcherCapabilityFilter, EagerStart,
    ExecutionMetadata, FetchedTurn, FetchedWork, FusedCompletion, HistoryBound, Hold, HoldOutcome,
    InstanceOutcome, LeasedOutcome, LoadedTurn, OrchestrationItem, PausedOrchestration, Provider,
    ProviderAdmin, ProviderError, ReleaseOutcome, ResetOutcome, ResetPlan, ScheduledActivityIdentifier,
    SessionFetchConfig, StartOutcome, StartRequest, TagFilter, TurnAhead, TurnCommit, TurnRequest,
    WorkRequest, forward_provider,
};
use outlast_sqlite::SqliteProvider;
use parked::ParkedFetches;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

type Answer<T> = Result<T, ProviderError>;

/// The store under test and the memory store, which is the specification.
pub(crate) struct Mirror {
    store: Arc<SqliteProvider>,
    model: Arc<MemoryProvider>,
    state: Mutex<MirrorState>,
    /// Whether fetches wait.
    waits: bool,
    parked_turn_fetches: ParkedFetches<Option<FetchedTurn>>,
    parked_activity_fetches: ParkedFetches<Vec<FetchedWork>>,
}

#[derive(Default)]
struct MirrorState {
    /// The specification's token for each token of the store.
    tokens: BTreeMap<String, String>,
    difference: Option<String>,
}

impl Mirror {
    pub(crate) fn new(store: Arc<SqliteProvider>, model: Arc<MemoryProvider>, waits: bool) -> Self {
        Self {
            store,
            model,
            state: Mutex::default(),
            waits,
            parked_turn_fetches: ParkedFetches::default(),
            parked_activity_fetches: ParkedFetches::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, MirrorState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The rows of both stores. Fails if the rows or any answer differed.
    pub(crate) async fn dump(&self) -> Result<Vec<String>, String> {
        if let Some(difference) = self.state().difference.take() {
            return Err(format!("I12: {difference}"));
        }
        let found = sqlite_rows(&self.store).await?;
        let expected = self.model.dump();
        match found.iter().zip(&expected).find(|(found, expected)| found != expected) {
            Some((found, expected)) => {
                Err(format!("I12: the store has '{found}', and must have '{expected}'"))
            }
            None if found.len() != expected.len() => {
                Err(format!("I12: the store has {} rows, and must have {}", found.len(), expected.len()))
            }
            None => Ok(found),
        }
    }

    /// The specification's token for a token of the store. A token that the specification lacks is passed on
    /// unchanged; the specification refuses it too.
    fn other_token(&self, token: &str) -> String {
        self.state().tokens.get(token).cloned().unwrap_or_else(|| token.to_string())
    }

    /// Records a difference, and settles the waiting fetches that the call has served; returns the store's answer.
    fn same<T: Debug>(&self, call: &str, found: Answer<T>, expected: &Answer<T>) -> Answer<T> {
        self.compare(call, &found, expected);
        self.settle();
        found
    }

    /// Records a difference.
    fn compare<T: Debug>(&self, call: &str, found: &Answer<T>, expected: &Answer<T>) {
        let describe = |answer: &Answer<T>| match answer {
            Ok(value) => format!("{value:?}"),
            Err(error) => format!("an error, retryable: {}", error.is_retryable()),
        };
        let (found_text, expected_text) = (describe(found), describe(expected));
        if found_text != expected_text {
            self.state()
                .difference
                .get_or_insert(format!("{call} answers {found_text}, and must answer {expected_text}"));
        }
    }
}

#[async_trait]
impl Provider for Mirror {
    forward_provider!(
        Provider,
        |this| this.store,
        except(
            as_management_capability,
            fetch_turn,
            load_turn,
            load_turn_within,
            commit_turn,
            abandon_orchestration_item,
            renew_orchestration_item_lock,
            fetch_work_items,
            ack_work_item,
            complete_with_turn,
            complete_all_with_turn,
            renew_work_item_lock,
            abandon_work_item,
            abandon_work_noted,
            hold_turn,
            renew_session_lock,
            cleanup_orphaned_sessions,
            enqueue_for_orchestrator,
            enqueue_within,
            enqueue_for_worker,
            start_orchestration,
            start_with_turn,
            append_with_execution,
            read,
            read_with_execution,
            read_outcome,
            get_custom_status,
            get_kv_value,
            get_kv_all_values,
            get_instance_stats,
            fetch_orchestration_item,
            fetch_work_item,
            ack_orchestration_item
        )
    );

    fn as_management_capability(&self) -> Option<&dyn ProviderAdmin> {
        Some(self)
    }

    async fn fetch_turn(&self, request: TurnRequest<'_>) -> Answer<Option<FetchedTurn>> {
        self.park_turn(request).await
    }

    async fn load_turn(&self, instance: &str, execution_id: u64) -> Answer<LoadedTurn> {
        let found = self.store.load_turn(instance, execution_id).await;
        let expected = self.model.load_turn(instance, execution_id).await;
        let comparable = |answer: &Answer<LoadedTurn>| match answer {
            Ok(turn) => {
                let keys: BTreeMap<_, _> = turn.kv_snapshot.clone().into_iter().collect();
                Ok(format!("{:?} {keys:?}", turn.history))
            }
            Err(error) => Err(error.clone()),
        };
        let _ = self.same("load_turn", comparable(&found), &comparable(&expected));
        found
    }

    async fn load_turn_within(
        &self,
        instance: &str,
        execution_id: u64,
        bound: HistoryBound,
    ) -> Answer<BoundedTurn> {
        let found = self.store.load_turn_within(instance, execution_id, bound).await;
        let expected = self.model.load_turn_within(instance, execution_id, bound).await;
        // Stores may measure an oversized history differently, so only the number of events is compared.
        let comparable = |answer: &Answer<BoundedTurn>| match answer {
            Ok(BoundedTurn::Whole(turn)) => Ok(format!("{:?}", turn.history)),
            Ok(BoundedTurn::Oversized(turn)) => Ok(format!("{} events", turn.events)),
            Err(error) => Err(error.clone()),
        };
        let _ = self.same("load_turn_within", comparable(&found), &comparable(&expected));
        found
    }

    async fn commit_turn(&self, lock_token: &str, commit: TurnCommit) -> Answer<Option<u64>> {
        let expected = self.model.commit_turn(&self.other_token(lock_token), commit.clone()).await;
        self.same("commit_turn", self.store.commit_turn(lock_token, commit).await, &expected)
    }

    async fn abandon_orchestration_item(
        &self,
        lock_token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Answer<()> {
        let token = self.other_token(lock_token);
        let expected = self.model.abandon_orchestration_item(&token, delay, ignore_attempt).await;
        let found = self.store.abandon_orchestration_item(lock_token, delay, ignore_attempt).await;
        self.same("abandon_orchestration_item", found, &expected)
    }

    async fn renew_orchestration_item_lock(&self, token: &str, extend_for: Duration) -> Answer<()> {
        let expected = self.model.renew_orchestration_item_lock(&self.other_token(token), extend_for).await;
        let found = self.store.renew_orchestration_item_lock(token, extend_for).await;
        self.same("renew_orchestration_item_lock", found, &expected)
    }

    async fn fetch_work_items(&self, request: WorkRequest<'_>) -> Answer<Vec<FetchedWork>> {
        self.park_work(request).await
    }

    async fn ack_work_item(&self, token: &str, completion: Option<WorkItem>) -> Answer<()> {
        let expected = self.model.ack_work_item(&self.other_token(token), completion.clone()).await;
        self.same("ack_work_item", self.store.ack_work_item(token, completion).await, &expected)
    }

    async fn complete_with_turn(
        &self,
        token: &str,
        completion: WorkItem,
        turn: TurnAhead,
    ) -> Answer<Completion> {
        let other = self.other_token(token);
        let expected = self.model.complete_with_turn(&other, completion.clone(), turn.clone()).await;
        let found = self.store.complete_with_turn(token, completion, turn).await;
        self.same("complete_with_turn", found, &expected)
    }

    async fn complete_all_with_turn(
        &self,
        outcomes: Vec<LeasedOutcome>,
        turn: TurnAhead,
    ) -> Answer<FusedCompletion> {
        let of_model = |outcome: &LeasedOutcome| LeasedOutcome {
            lock_token: self.other_token(&outcome.lock_token),
            completion: outcome.completion.clone(),
        };
        let expected =
            self.model.complete_all_with_turn(outcomes.iter().map(of_model).collect(), turn.clone()).await;
        let found = self.store.complete_all_with_turn(outcomes, turn).await;
        self.same("complete_all_with_turn", found, &expected)
    }

    async fn renew_work_item_lock(&self, token: &str, extend_for: Duration) -> Answer<()> {
        let expected = self.model.renew_work_item_lock(&self.other_token(token), extend_for).await;
        self.same("renew_work_item_lock", self.store.renew_work_item_lock(token, extend_for).await, &expected)
    }

    async fn abandon_work_item(
        &self,
        token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Answer<()> {
        let expected = self.model.abandon_work_item(&self.other_token(token), delay, ignore_attempt).await;
        let found = self.store.abandon_work_item(token, delay, ignore_attempt).await;
        self.same("abandon_work_item", found, &expected)
    }

    async fn abandon_work_noted(&self, token: &str, delay: Option<Duration>, error: &str) -> Answer<()> {
        let expected = self.model.abandon_work_noted(&self.other_token(token), delay, error).await;
        let found = self.store.abandon_work_noted(token, delay, error).await;
        self.same("abandon_work_noted", found, &expected)
    }

    async fn hold_turn(&self, token: &str, hold: &Hold) -> Answer<HoldOutcome> {
        let expected = self.model.hold_turn(&self.other_token(token), hold).await;
        let found = self.store.hold_turn(token, hold).await;
        self.same("hold_turn", found, &expected)
    }

    async fn renew_session_lock(
        &self,
        owner_ids: &[&str],
        extend_for: Duration,
        idle_timeout: Duration,
    ) -> Answer<usize> {
        let expected = self.model.renew_session_lock(owner_ids, extend_for, idle_timeout).await;
        let found = self.store.renew_session_lock(owner_ids, extend_for, idle_timeout).await;
        self.same("renew_session_lock", found, &expected)
    }

    async fn cleanup_orphaned_sessions(&self, idle_timeout: Duration) -> Answer<usize> {
        let expected = self.model.cleanup_orphaned_sessions(idle_timeout).await;
        let found = self.store.cleanup_orphaned_sessions(idle_timeout).await;
        self.same("cleanup_orphaned_sessions", found, &expected)
    }

    async fn enqueue_for_orchestrator(&self, item: WorkItem, delay: Option<Duration>) -> Answer<()> {
        let expected = self.model.enqueue_for_orchestrator(item.clone(), delay).await;
        let found = self.store.enqueue_for_orchestrator(item, delay).await;
        self.same("enqueue_for_orchestrator", found, &expected)
    }

    async fn enqueue_within(&self, item: WorkItem, most_waiting: usize) -> Answer<bool> {
        let expected = self.model.enqueue_within(item.clone(), most_waiting).await;
        self.same("enqueue_within", self.store.enqueue_within(item, most_waiting).await, &expected)
    }

    async fn enqueue_for_worker(&self, item: WorkItem) -> Answer<()> {
        let expected = self.model.enqueue_for_worker(item.clone()).await;
        self.same("enqueue_for_worker", self.store.enqueue_for_worker(item).await, &expected)
    }

    async fn start_orchestration(&self, request: StartRequest) -> Answer<StartOutcome> {
        let expected = self.model.start_orchestration(request.clone()).await;
        self.same("start_orchestration", self.store.start_orchestration(request).await, &expected)
    }

    async fn start_with_turn(&self, start: WorkItem, turn: TurnAhead) -> Answer<EagerStart> {
        let expected = self.model.start_with_turn(start.clone(), turn.clone()).await;
        self.same("start_with_turn", self.store.start_with_turn(start, turn).await, &expected)
    }

    async fn append_with_execution(&self, instance: &str, execution: u64, events: Vec<Event>) -> Answer<()> {
        let expected = self.model.append_with_execution(instance, execution, events.clone()).await;
        let found = self.store.append_with_execution(instance, execution, events).await;
        self.same("append_with_execution", found, &expected)
    }

    async fn read(&self, instance: &str) -> Answer<Vec<Event>> {
        let expected = self.model.read(instance).await;
        self.same("read", self.store.read(instance).await, &expected)
    }

    async fn read_with_execution(&self, instance: &str, execution_id: u64) -> Answer<Vec<Event>> {
        let expected = self.model.read_with_execution(instance, execution_id).await;
        let found = self.store.read_with_execution(instance, execution_id).await;
        self.same("read_with_execution", found, &expected)
    }

    async fn read_outcome(&self, instance: &str) -> Answer<Option<InstanceOutcome>> {
        let expected = self.model.read_outcome(instance).await;
        self.same("read_outcome", self.store.read_outcome(instance).await, &expected)
    }

    async fn get_custom_status(
        &self,
        instance: &str,
        last_seen: u64,
    ) -> Answer<Option<(Option<String>, u64)>> {
        let expected = self.model.get_custom_status(instance, last_seen).await;
        self.same("get_custom_status", self.store.get_custom_status(instance, last_seen).await, &expected)
    }

    async fn get_kv_value(&self, instance: &str, key: &str) -> Answer<Option<String>> {
        let expected = self.model.get_kv_value(instance, key).await;
        self.same("get_kv_value", self.store.get_kv_value(instance, key).await, &expected)
    }

    async fn get_kv_all_values(&self, instance: &str) -> Answer<HashMap<String, String>> {
        let expected = self.model.get_kv_all_values(instance).await.map(sorted);
        let found = self.store.get_kv_all_values(instance).await;
        let _ = self.same("get_kv_all_values", found.clone().map(sorted), &expected);
        found
    }

    async fn get_instance_stats(&self, instance: &str) -> Answer<Option<SystemStats>> {
        let expected = self.model.get_instance_stats(instance).await;
        self.same("get_instance_stats", self.store.get_instance_stats(instance).await, &expected)
    }

    async fn fetch_orchestration_item(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        filter: Option<&DispatcherCapabilityFilter>,
    ) -> Answer<Option<(OrchestrationItem, String, u32)>> {
        let fetched =
            self.fetch_turn(TurnRequest { lock_timeout, poll_timeout, filter, with_history: true }).await?;
        Ok(fetched.map(|turn| (turn.item, turn.lock_token, turn.attempt_count)))
    }

    async fn fetch_work_item(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        session: Option<&SessionFetchConfig>,
        tag_filter: &TagFilter,
    ) -> Answer<Option<(WorkItem, String, u32)>> {
        let request = WorkRequest { max_items: 1, lock_timeout, poll_timeout, session, tag_filter };
        let fetched = self.fetch_work_items(request).await?;
        Ok(fetched.into_iter().next().map(|work| (work.item, work.lock_token, work.attempt_count)))
    }

    async fn ack_orchestration_item(
        &self,
        lock_token: &str,
        execution_id: u64,
        history_delta: Vec<Event>,
        worker_items: Vec<WorkItem>,
        orchestrator_items: Vec<WorkItem>,
        metadata: ExecutionMetadata,
        cancelled_activities: Vec<ScheduledActivityIdentifier>,
    ) -> Answer<()> {
        let commit = TurnCommit {
            execution_id,
            history_delta,
            worker_items,
            orchestrator_items,
            metadata,
            cancelled_activities,
        };
        self.commit_turn(lock_token, commit).await.map(drop)
    }
}

fn sorted(values: HashMap<String, String>) -> BTreeMap<String, String> {
    values.into_iter().collect()
}

/// Calls that change messages or the audit are mirrored; the world makes no other management call that changes rows.
#[async_trait]
impl ProviderAdmin for Mirror {
    forward_provider!(
        ProviderAdmin,
        |this| this.store,
        except(
            hold_instance,
            release_instance,
            pause_orchestration,
            resume_orchestration,
            paused_orchestrations,
            reset_instance,
            append_audit,
            audit_page,
        )
    );

    async fn pause_orchestration(
        &self,
        orchestration: &str,
        actor: &str,
        reason: &str,
    ) -> Answer<HoldOutcome> {
        let found = self.store.pause_orchestration(orchestration, actor, reason).await;
        let expected = self.model.pause_orchestration(orchestration, actor, reason).await;
        self.same("pause_orchestration", found, &expected)
    }

    async fn resume_orchestration(&self, orchestration: &str) -> Answer<ReleaseOutcome> {
        let found = self.store.resume_orchestration(orchestration).await;
        let expected = self.model.resume_orchestration(orchestration).await;
        self.same("resume_orchestration", found, &expected)
    }

    async fn paused_orchestrations(&self) -> Answer<Option<Vec<PausedOrchestration>>> {
        let found = self.store.paused_orchestrations().await;
        let expected = self.model.paused_orchestrations().await;
        self.same("paused_orchestrations", found, &expected)
    }

    async fn append_audit(&self, entry: &AuditEntry) -> Answer<bool> {
        let found = self.store.append_audit(entry).await;
        let expected = self.model.append_audit(entry).await;
        self.same("append_audit", found, &expected)
    }

    async fn audit_page(&self, before: Option<u64>, limit: usize) -> Answer<Option<Vec<AuditRecord>>> {
        let found = self.store.audit_page(before, limit).await;
        let expected = self.model.audit_page(before, limit).await;
        self.same("audit_page", found, &expected)
    }

    async fn reset_instance(&self, plan: &ResetPlan) -> Answer<ResetOutcome> {
        let found = self.store.reset_instance(plan).await;
        let expected = self.model.reset_instance(plan).await;
        self.same("reset_instance", found, &expected)
    }

    async fn hold_instance(&self, instance: &str, hold: &Hold) -> Answer<HoldOutcome> {
        let found = self.store.hold_instance(instance, hold).await;
        let expected = self.model.hold_instance(instance, hold).await;
        self.same("hold_instance", found, &expected)
    }

    async fn release_instance(&self, instance: &str) -> Answer<ReleaseOutcome> {
        let found = self.store.release_instance(instance).await;
        let expected = self.model.release_instance(instance).await;
        self.same("release_instance", found, &expected)
    }
}
