//! The store behind the provider trait.

use crate::activity::{AbandonNoted, ActivityAsk, Complete, CompleteAllWithTurn, CompleteWithTurn};
use crate::command::{Apply, CallInfo, Command, PendingCall};
use crate::commit::CommitTurn;
use crate::counters::{Counters, SqliteStats};
use crate::executor::{Answer, Executor};
use crate::fetch::TurnAsk;
use crate::history::{Append, ExecutionKey};
use crate::hold::HoldTurn;
use crate::leased::{self, Abandon, Guarded, RawTurn, Renew};
use crate::message::{Enqueue, EnqueueKeyed, EnqueueWithin};
use crate::park::{Ask, Fetch};
use crate::session::RenewSessions;
use crate::start::{StartPlan, StartWithTurn};
use crate::url::{self, Location};
use crate::{
    SqliteError, SqliteOptions, activity, commit, history, hold, kv, message, open, session, start, watched,
};
use async_trait::async_trait;
use outlast_model::defect::{self, Defect};
use outlast_model::{Event, SystemStats, WorkItem};
use outlast_provider::{
    BoundedTurn, Completion, DispatcherCapabilityFilter, EagerStart, EnqueueOnce, ExecutionMetadata,
    FetchedTurn, FetchedWork, FusedCompletion, HistoryBound, Hold, HoldOutcome, InstanceOutcome,
    InstanceWatch, Interest, LeasedOutcome, LoadedTurn, OrchestrationItem, Provider, ProviderAdmin,
    ProviderError, ScheduledActivityIdentifier, SessionFetchConfig, StartOutcome, StartRequest, TagFilter,
    TurnAhead, TurnCommit, TurnRequest, WorkRequest,
};
use outlast_provider_kit::fetch::answer_within;
use outlast_provider_kit::migrations::SchemaState;
use outlast_provider_kit::plan::{
    activity_row, check_completion, checked_id, checked_key, completion_row, history_rows, message_row,
};
use outlast_provider_kit::{CommitPlan, Watches};
use std::borrow::Borrow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;

/// A store in one SQLite file, or in memory.
///
/// All methods are cancellation safe: a call whose future is dropped is either stored completely or not at all, and a
/// dropped fetch gives its leases back without counting the delivery. Methods that wait need a tokio runtime with its timer
/// enabled.
pub struct SqliteProvider {
    pub(crate) executor: Executor,
    pub(crate) location: Location,
    pub(crate) options: SqliteOptions,
    counters: Arc<Counters>,
    watches: Arc<Watches>,
}

impl SqliteProvider {
    /// Opens a store: `sqlite:PATH` (created if it is missing), `sqlite:PATH?mode=rw` (must exist),
    /// `sqlite:PATH?mode=ro` (read only, for tools), or `sqlite::memory:` (private to this provider).
    pub async fn new(database_url: &str, options: Option<SqliteOptions>) -> Result<Self, SqliteError> {
        let location = url::parse(database_url)?;
        let options = options.unwrap_or_default();
        let counters = Arc::new(Counters::default());
        let executor = Executor::start(&location, &options, &counters).await?;
        Ok(Self { executor, location, options, counters, watches: Arc::default() })
    }

    /// The schema of an existing store, without applying migrations and without writing. It blocks the thread for a few reads.
    ///
    /// # Errors
    ///
    /// If there is no file, it is no store, or a newer release wrote it.
    pub fn schema_state(database_url: &str) -> Result<SchemaState, SqliteError> {
        open::schema_state(&url::parse(database_url)?)
    }

    /// A store in memory. It belongs to this provider and ends with it.
    pub async fn new_in_memory() -> Result<Self, SqliteError> {
        Self::new_in_memory_with_options(None).await
    }

    /// [`SqliteProvider::new_in_memory`] with options.
    pub async fn new_in_memory_with_options(options: Option<SqliteOptions>) -> Result<Self, SqliteError> {
        Self::new("sqlite::memory:", options).await
    }

    /// Figures since the store was opened.
    pub fn stats(&self) -> SqliteStats {
        self.counters.read()
    }

    pub(crate) fn watches(&self) -> Arc<Watches> {
        Arc::clone(&self.watches)
    }

    pub(crate) fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// Applies a call in the writer's next transaction; returns after the commit.
    pub(crate) async fn write<A, B, T>(&self, info: CallInfo, args: A, apply: Apply<B, T>) -> Answer<T>
    where
        A: Borrow<B> + Send + 'static,
        B: ?Sized + 'static,
        T: Send + 'static,
    {
        self.write_then(info, args, apply, |_, _| {}).await
    }

    /// Applies a call in the writer's next transaction; returns after the commit. `on_commit` runs after the commit even if this
    /// future was dropped.
    pub(crate) async fn write_then<A, B, T>(
        &self,
        info: CallInfo,
        args: A,
        apply: Apply<B, T>,
        on_commit: impl FnOnce(&B, &T) + Send + 'static,
    ) -> Answer<T>
    where
        A: Borrow<B> + Send + 'static,
        B: ?Sized + 'static,
        T: Send + 'static,
    {
        let operation = info.operation;
        let permit = self.executor.permit(info.bytes).await;
        let (call, answer) = PendingCall::new(info, args, apply, on_commit, permit);
        self.submit(Command::Call(Box::new(call)));
        Ok(answer.await.unwrap_or_else(|_| Err(SqliteError::Closed.classified(operation)))?)
    }

    /// Sends a fetch to the writer and waits for its leases. If this future is dropped, the leases are given back.
    pub(crate) async fn fetch<A: Ask>(
        &self,
        ask: A,
        poll_timeout: Duration,
        command: impl FnOnce(Fetch<A>, Option<OwnedSemaphorePermit>) -> Command + Send,
    ) -> Answer<Option<A::Leases>> {
        let (fetch, mut answer) = Fetch::<A>::new(ask, poll_timeout);
        let permit = self.executor.permit(0).await;
        self.submit(command(fetch, permit));
        let answered = match &self.executor {
            Executor::Inline(inline) if !poll_timeout.is_zero() => {
                self.poll_inline::<A::Leases>(inline, &mut answer, poll_timeout).await
            }
            Executor::Threaded(_) | Executor::Inline(_) => answer_within(answer, poll_timeout).await,
        };
        match answered {
            Ok(None) => Ok(None),
            Ok(Some(leases)) => Ok(leases?.and_then(Guarded::take)),
            Err(_) => Err(SqliteError::Closed.during(A::OPERATION)),
        }
    }

    /// Sends a command to the writer. Without a writer the command is dropped, and its caller gets the error `Closed`.
    pub(crate) fn submit(&self, command: Command) {
        match &self.executor {
            Executor::Threaded(threads) => drop(threads.commands.send(command)),
            Executor::Inline(_) => self.executor.handle().submit(command),
        }
    }
}

#[async_trait]
impl Provider for SqliteProvider {
    fn name(&self) -> &str {
        "sqlite"
    }

    fn version(&self) -> &str {
        env!("CARGO_PKG_VERSION")
    }

    async fn fetch_orchestration_item(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        filter: Option<&DispatcherCapabilityFilter>,
    ) -> Answer<Option<(OrchestrationItem, String, u32)>> {
        let request = TurnRequest { lock_timeout, poll_timeout, filter, with_history: true };
        let fetched = self.fetch_turn(request).await?;
        Ok(fetched.map(|turn| (turn.item, turn.lock_token, turn.attempt_count)))
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

    async fn commit_turn(&self, lock_token: &str, commit: TurnCommit) -> Answer<Option<u64>> {
        let (plan, token) = (CommitPlan::of(commit)?, lock_token.to_string());
        let turn = CommitTurn { plan, token, watches: self.watches() };
        let bytes = turn.plan.bytes().saturating_add(leased::bytes_to_delete(lock_token));
        let info = CallInfo::turn("ack_orchestration_item", lock_token).bytes(bytes);
        Ok(self.write_then(info, turn, commit::commit, watched::after_turn).await?.answer)
    }

    async fn abandon_orchestration_item(
        &self,
        lock_token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Answer<()> {
        let info = CallInfo::turn("abandon_orchestration_item", lock_token);
        let abandoned = Abandon { token: lock_token.to_string(), delay, ignore_attempt };
        self.write(info, abandoned, commit::abandon).await
    }

    async fn read(&self, instance: &str) -> Answer<Vec<Event>> {
        self.read_with("read", instance.to_string(), history::read_newest).await
    }

    async fn read_with_execution(&self, instance: &str, execution_id: u64) -> Answer<Vec<Event>> {
        let key = ExecutionKey::of(instance, execution_id);
        self.read_with("read_with_execution", key, history::read).await
    }

    async fn append_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
        new_events: Vec<Event>,
    ) -> Answer<()> {
        const APPEND: &str = "append_with_execution";
        checked_id(APPEND, instance)?;
        let events = history_rows(APPEND, &new_events)?;
        let bytes = events.iter().map(|event| event.event_data.len()).sum();
        let info = CallInfo::of(APPEND).instance(instance).bytes(bytes);
        let appended = Append { key: ExecutionKey::of(instance, execution_id), events };
        let watches = self.watches();
        let resolve_watches = move |appended: &Append, (): &()| {
            watches.committed(&appended.key.instance, false);
        };
        self.write_then(info, appended, history::append, resolve_watches).await
    }

    async fn enqueue_for_worker(&self, item: WorkItem) -> Answer<()> {
        let row = activity_row("enqueue_for_worker", &item)?;
        let info = CallInfo::of("enqueue_for_worker").instance(&row.instance_id).bytes(row.work_item.len());
        self.write(info, row, activity::enqueue).await
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
        let first = fetched.into_iter().next();
        Ok(first.map(|activity| (activity.item, activity.lock_token, activity.attempt_count)))
    }

    async fn ack_work_item(&self, token: &str, completion: Option<WorkItem>) -> Answer<()> {
        const ACK: &str = "ack_work_item";
        let row = completion.as_ref().map(|item| completion_row(ACK, item)).transpose()?;
        let info = row.as_ref().map_or(CallInfo::of(ACK), |row| CallInfo::message(ACK, row));
        let completed = Complete { token: token.to_string(), completion: row };
        match self.write(info, completed, activity::complete).await {
            Err(error) if defect::is_on(Defect::BusyOutcomeLost) && error.message.contains("is busy") => {
                Ok(())
            }
            answer => answer,
        }
    }

    async fn complete_with_turn(
        &self,
        token: &str,
        completion: WorkItem,
        mut turn: TurnAhead,
    ) -> Answer<Completion> {
        const ACK: &str = "ack_work_item";
        let row = completion_row(ACK, &completion)?;
        let plan = CommitPlan::of(std::mem::take(&mut turn.commit))?;
        let info = CallInfo::message(ACK, &row).bytes(row.work_item.len() + plan.bytes());
        let (token, watches) = (token.to_string(), self.watches());
        let call = CompleteWithTurn { token, completion: row, ahead: turn, plan, watches };
        Ok(self.write_then(info, call, activity::complete_with_turn, watched::after_completion).await?.answer)
    }

    fn fuses_outcomes(&self) -> bool {
        true
    }

    async fn complete_all_with_turn(
        &self,
        outcomes: Vec<LeasedOutcome>,
        mut turn: TurnAhead,
    ) -> Answer<FusedCompletion> {
        const ACK: &str = "ack_work_item";
        let Some(instance) = LeasedOutcome::instance_of(&outcomes).map(str::to_string) else {
            return Err(ProviderError::permanent(
                ACK,
                "the outcomes are of different instances, or there are none",
            ));
        };
        let mut tokens = Vec::with_capacity(outcomes.len());
        for LeasedOutcome { lock_token, completion } in outcomes {
            check_completion(ACK, &completion)?;
            tokens.push(lock_token);
        }
        let plan = CommitPlan::of(std::mem::take(&mut turn.commit))?;
        let info = CallInfo::of(ACK).instance(&instance).bytes(plan.bytes());
        let call = CompleteAllWithTurn { tokens, instance, ahead: turn, plan, watches: self.watches() };
        Ok(self
            .write_then(info, call, activity::complete_all_with_turn, watched::after_fused_outcomes)
            .await?
            .answer)
    }

    async fn renew_work_item_lock(&self, token: &str, extend_for: Duration) -> Answer<()> {
        let renewed = Renew { token: token.to_string(), extend_for };
        self.write(CallInfo::of("renew_work_item_lock"), renewed, activity::renew).await
    }

    async fn renew_session_lock(
        &self,
        owner_ids: &[&str],
        extend_for: Duration,
        idle_timeout: Duration,
    ) -> Answer<usize> {
        if owner_ids.is_empty() {
            return Ok(0);
        }
        // An owner that is named twice is renewed and counted once.
        let mut owners: Vec<String> = owner_ids.iter().map(ToString::to_string).collect();
        owners.sort_unstable();
        owners.dedup();
        let renewed = RenewSessions { owners, extend_for, idle_timeout };
        self.write(CallInfo::of("renew_session_lock"), renewed, session::renew).await
    }

    async fn cleanup_orphaned_sessions(&self, _idle_timeout: Duration) -> Answer<usize> {
        self.write(CallInfo::of("cleanup_orphaned_sessions"), (), session::cleanup).await
    }

    async fn abandon_work_item(
        &self,
        token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Answer<()> {
        let abandoned = Abandon { token: token.to_string(), delay, ignore_attempt };
        self.write(CallInfo::of("abandon_work_item"), abandoned, activity::abandon).await
    }

    async fn abandon_work_noted(&self, token: &str, delay: Option<Duration>, error: &str) -> Answer<()> {
        let noted = AbandonNoted { token: token.to_string(), delay, error: error.to_string() };
        self.write(CallInfo::of("abandon_work_noted"), noted, activity::abandon_noted).await
    }

    async fn hold_turn(&self, lock_token: &str, hold: &Hold) -> Answer<HoldOutcome> {
        let held = HoldTurn { token: lock_token.to_string(), hold: hold.clone() };
        self.write(CallInfo::turn("hold_turn", lock_token), held, hold::turn).await
    }

    async fn renew_orchestration_item_lock(&self, token: &str, extend_for: Duration) -> Answer<()> {
        let info = CallInfo::turn("renew_orchestration_item_lock", token);
        let renewed = Renew { token: token.to_string(), extend_for };
        self.write(info, renewed, commit::renew).await
    }

    async fn enqueue_for_orchestrator(&self, item: WorkItem, delay: Option<Duration>) -> Answer<()> {
        let row = message_row("enqueue_for_orchestrator", &item)?;
        let info = CallInfo::message("enqueue_for_orchestrator", &row);
        self.write(info, Enqueue { row, delay }, message::enqueue).await
    }

    fn as_management_capability(&self) -> Option<&dyn ProviderAdmin> {
        Some(self)
    }

    async fn get_custom_status(
        &self,
        instance: &str,
        last_seen_version: u64,
    ) -> Answer<Option<(Option<String>, u64)>> {
        let newer_than = (instance.to_string(), last_seen_version);
        self.read_with("get_custom_status", newer_than, history::custom_status).await
    }

    async fn get_kv_value(&self, instance: &str, key: &str) -> Answer<Option<String>> {
        self.read_with("get_kv_value", (instance.to_string(), key.to_string()), kv::value).await
    }

    async fn get_kv_all_values(&self, instance: &str) -> Answer<HashMap<String, String>> {
        self.read_with("get_kv_all_values", instance.to_string(), kv::view).await
    }

    async fn get_instance_stats(&self, instance: &str) -> Answer<Option<SystemStats>> {
        self.read_with("get_instance_stats", instance.to_string(), history::stats).await
    }

    async fn fetch_turn(&self, request: TurnRequest<'_>) -> Answer<Option<FetchedTurn>> {
        let ask = TurnAsk::of(&request, &self.options);
        let fetched = self.fetch(ask, request.poll_timeout, Command::FetchTurn).await?;
        Ok(fetched.map(RawTurn::into_fetched))
    }

    async fn load_turn(&self, instance: &str, execution_id: u64) -> Answer<LoadedTurn> {
        let key = ExecutionKey::of(instance, execution_id);
        self.read_with("load_turn", key, history::load_turn).await
    }

    async fn load_turn_within(
        &self,
        instance: &str,
        execution_id: u64,
        bound: HistoryBound,
    ) -> Answer<BoundedTurn> {
        let key = ExecutionKey::of(instance, execution_id);
        self.read_with("load_turn", (key, bound), history::load_turn_within).await
    }

    async fn fetch_work_items(&self, request: WorkRequest<'_>) -> Answer<Vec<FetchedWork>> {
        if *request.tag_filter == TagFilter::None || request.max_items == 0 {
            return Ok(Vec::new());
        }
        let ask = ActivityAsk::of(&request);
        let fetched = self.fetch(ask, request.poll_timeout, Command::FetchActivities).await?;
        Ok(fetched.unwrap_or_default())
    }

    async fn read_outcome(&self, instance: &str) -> Answer<Option<InstanceOutcome>> {
        self.read_with("read_outcome", instance.to_string(), history::outcome).await
    }

    async fn enqueue_within(&self, item: WorkItem, most_waiting: usize) -> Answer<bool> {
        let row = message_row("enqueue_within", &item)?;
        let info = CallInfo::message("enqueue_within", &row);
        self.write(info, EnqueueWithin { row, most_waiting }, message::enqueue_within).await
    }

    async fn enqueue_once(&self, item: WorkItem, key: &str, most_waiting: usize) -> Answer<EnqueueOnce> {
        const ENQUEUE: &str = "enqueue_once";
        let row = message_row(ENQUEUE, &item)?;
        checked_key(ENQUEUE, key)?;
        let info = CallInfo::message(ENQUEUE, &row);
        let keyed = EnqueueKeyed { row, key: key.to_string(), most_waiting };
        self.write(info, keyed, message::enqueue_once).await
    }

    async fn start_orchestration(&self, request: StartRequest) -> Answer<StartOutcome> {
        const START: &str = "start_orchestration";
        request.checked_instance()?;
        let plan = StartPlan {
            start: message_row(START, &request.start)?,
            messages: request.messages.iter().map(|item| message_row(START, item)).collect::<Answer<_>>()?,
            delay: request.delay,
            policy: request.policy,
        };
        let bytes = plan.messages.iter().chain([&plan.start]).map(|row| row.work_item.len()).sum();
        let info = CallInfo::message(START, &plan.start).bytes(bytes);
        self.write(info, plan, start::start).await
    }

    async fn start_with_turn(&self, start: WorkItem, mut turn: TurnAhead) -> Answer<EagerStart> {
        const START: &str = "start_with_turn";
        let row = message_row(START, &start)?;
        let plan = CommitPlan::of(std::mem::take(&mut turn.commit))?;
        let info = CallInfo::message(START, &row).bytes(plan.bytes());
        let watches = self.watches();
        let resolve_watches = move |call: &StartWithTurn, started: &EagerStart| {
            if let EagerStart::WithTurn { .. } = started {
                watches.committed(&call.instance, call.plan.ends_instance());
            }
        };
        let call = StartWithTurn { instance: row.instance_id, ahead: turn, plan };
        self.write_then(info, call, start::start_with_turn, resolve_watches).await
    }

    fn watch_instance(&self, instance: &str, interest: Interest) -> Option<InstanceWatch> {
        Some(self.watches.watch(instance, interest))
    }
}
