//! The store behind the provider trait.

use crate::activity::ActivityAsk;
use crate::commit::{Commit, check_messages, visible_at};
use crate::fetch::TurnAsk;
use crate::rules::{ActivityRules, FetchRules, LeaseRules, StartRules};
use crate::state::State;
use crate::watch::Watches;
use async_trait::async_trait;
use outlast_provider::model::{Event, ExecutionStatus, SystemStats, WorkItem};
use outlast_provider::{
    Clock, Completion, DispatcherCapabilityFilter, EagerStart, EnqueueOnce, Entropy, ExecutionMetadata,
    FetchedTurn, FetchedWork, FusedCompletion, Hold, HoldOutcome, InstanceOutcome, InstanceWatch, Interest,
    LeasedOutcome, LoadedTurn, MessageBound, OrchestrationItem, OsEntropy, Provider, ProviderAdmin,
    ProviderError, ScheduledActivityIdentifier, SessionFetchConfig, StartOutcome, StartRequest, SystemClock,
    TagFilter, TurnAhead, TurnCommit, TurnRequest, WorkRequest, saturating_ms,
};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// A store in memory. Its data is lost when the process ends.
///
/// A fetch without work waits for `poll_timeout` and returns as soon as work becomes visible.
pub struct MemoryProvider {
    state: Mutex<State>,
    pub(crate) changed: Notify,
    watches: Watches,
    pub(crate) clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    bound: MessageBound,
}

impl Default for MemoryProvider {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryProvider {
    /// An empty store on the machine's clock.
    pub fn new() -> Self {
        Self::with_clock(Arc::new(SystemClock))
    }

    /// An empty store on a given clock.
    pub fn with_clock(clock: Arc<dyn Clock>) -> Self {
        Self::with_parts(clock, Arc::new(OsEntropy))
    }

    /// An empty store on a given clock, with a given source of lock tokens. For simulations.
    pub fn with_parts(clock: Arc<dyn Clock>, entropy: Arc<dyn Entropy>) -> Self {
        Self {
            state: Mutex::default(),
            changed: Notify::new(),
            watches: Watches::default(),
            clock,
            entropy,
            bound: MessageBound::default(),
        }
    }

    /// The same store with another bound for the messages of one fetch.
    pub fn with_message_bound(self, bound: MessageBound) -> Self {
        Self { bound, ..self }
    }

    /// The same store with other rules.
    #[cfg(feature = "defects")]
    pub fn with_rules(self, rules: crate::Rules) -> Self {
        self.state().rules = rules;
        self
    }

    /// The tables. A panic under the lock leaves them between two statements, which is a valid state.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Resolves the watches of deleted instances.
    pub(crate) fn deleted(&self, instances: &[String]) {
        for instance in instances {
            self.watches.committed(instance, true);
        }
    }

    /// Resolves the watches of an instance that goes on with another execution.
    pub(crate) fn was_reset(&self, instance: &str) {
        self.watches.committed(instance, false);
    }

    /// The token and the end of a lease that is taken now.
    fn lease(&self, state: &State, called_at: u64, now: u64, lock_timeout: Duration) -> (String, u64) {
        let start = state.rules.lease_start(called_at, now);
        (state.rules.token(&*self.entropy), start.saturating_add(saturating_ms(lock_timeout)))
    }

    async fn fetch(&self, request: TurnRequest<'_>) -> Result<Option<FetchedTurn>, ProviderError> {
        let called_at = self.clock.now_ms();
        self.park(request.poll_timeout, |state, now| {
            let (token, locked_until) = self.lease(state, called_at, now, request.lock_timeout);
            state.fetch_turn(&TurnAsk {
                now,
                locked_until,
                filter: request.filter,
                token,
                with_history: request.with_history,
                bound: self.bound,
            })
        })
        .await
    }

    async fn fetch_activities(&self, request: WorkRequest<'_>) -> Result<Vec<FetchedWork>, ProviderError> {
        if *request.tag_filter == TagFilter::None || request.max_items == 0 {
            return Ok(Vec::new());
        }
        let called_at = self.clock.now_ms();
        let fetched = self.park(request.poll_timeout, |state, now| {
            let mut leased: Vec<FetchedWork> = Vec::new();
            while leased.len() < request.max_items {
                let (token, locked_until) = self.lease(state, called_at, now, request.lock_timeout);
                let (session, tags) = (request.session, request.tag_filter);
                match state.fetch_activity(&ActivityAsk { now, locked_until, session, tags, token }) {
                    Ok(Some(activity)) => leased.push(activity),
                    Ok(None) => break,
                    // The caller must learn of the leases that it holds already.
                    Err(_) if !leased.is_empty() => break,
                    Err(error) => return Err(error),
                }
            }
            Ok(Some(state.rules.activity_batch(leased)).filter(|leased| !leased.is_empty()))
        });
        Ok(fetched.await?.unwrap_or_default())
    }

    /// Commits a turn; returns the time of the commit.
    fn commit(&self, lock_token: &str, turn: Commit) -> Result<u64, ProviderError> {
        let ended = turn.ends_instance();
        let (instance, at) = self.change(|state, now| {
            let instance = state.instance_of_token(lock_token);
            state.commit(lock_token, turn, now).map(|()| (instance, now))
        })?;
        if let Some(instance) = instance {
            self.watches.committed(&instance, ended);
        }
        Ok(at)
    }
}

#[async_trait]
impl Provider for MemoryProvider {
    fn name(&self) -> &str {
        "memory"
    }

    fn version(&self) -> &str {
        env!("CARGO_PKG_VERSION")
    }

    async fn fetch_orchestration_item(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        filter: Option<&DispatcherCapabilityFilter>,
    ) -> Result<Option<(OrchestrationItem, String, u32)>, ProviderError> {
        let fetched =
            self.fetch(TurnRequest { lock_timeout, poll_timeout, filter, with_history: true }).await?;
        Ok(fetched.map(|turn| (turn.item, turn.lock_token, turn.attempt_count)))
    }

    async fn ack_orchestration_item(
        &self,
        lock_token: &str,
        execution_id: u64,
        delta: Vec<Event>,
        activities: Vec<WorkItem>,
        messages: Vec<WorkItem>,
        metadata: ExecutionMetadata,
        cancelled: Vec<ScheduledActivityIdentifier>,
    ) -> Result<(), ProviderError> {
        let turn = Commit { execution_id, delta, activities, messages, metadata, cancelled };
        self.commit(lock_token, turn).map(drop)
    }

    async fn commit_turn(&self, lock_token: &str, commit: TurnCommit) -> Result<Option<u64>, ProviderError> {
        self.commit(lock_token, commit.into()).map(Some)
    }

    async fn complete_with_turn(
        &self,
        token: &str,
        completion: WorkItem,
        turn: TurnAhead,
    ) -> Result<Completion, ProviderError> {
        let ended = turn.commit.metadata.execution_status().is_some_and(ExecutionStatus::ends_instance);
        let instance = completion.target_instance().to_string();
        let completed = self.change(|state, now| state.complete_with_turn(token, completion, turn, now))?;
        if matches!(completed, Completion::WithTurn { .. }) {
            self.watches.committed(&instance, ended);
        }
        Ok(completed)
    }

    fn fuses_outcomes(&self) -> bool {
        true
    }

    async fn complete_all_with_turn(
        &self,
        outcomes: Vec<LeasedOutcome>,
        turn: TurnAhead,
    ) -> Result<FusedCompletion, ProviderError> {
        let ended = turn.commit.metadata.execution_status().is_some_and(ExecutionStatus::ends_instance);
        let instance = LeasedOutcome::instance_of(&outcomes).unwrap_or_default().to_string();
        let completed = self.change(|state, now| state.complete_all_with_turn(&outcomes, turn, now))?;
        if let FusedCompletion::WithTurn { .. } = completed {
            self.watches.committed(&instance, ended);
        }
        Ok(completed)
    }

    async fn abandon_orchestration_item(
        &self,
        lock_token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        self.change(|state, now| state.abandon_turn(lock_token, delay, ignore_attempt, now))
    }

    async fn read(&self, instance: &str) -> Result<Vec<Event>, ProviderError> {
        let execution_id = self.state().latest_execution(instance);
        self.read_with_execution(instance, execution_id).await
    }

    async fn read_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<Event>, ProviderError> {
        let state = self.state();
        let events = state.rules.read_history(&state, instance, execution_id);
        events.map_err(|reason| ProviderError::permanent("read", reason))
    }

    async fn append_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
        new_events: Vec<Event>,
    ) -> Result<(), ProviderError> {
        self.change(|state, now| state.append_checked(instance, execution_id, &new_events, now))?;
        self.watches.committed(instance, false);
        Ok(())
    }

    async fn enqueue_for_worker(&self, item: WorkItem) -> Result<(), ProviderError> {
        self.change(|state, now| state.push_activity(item, now))
    }

    async fn fetch_work_item(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        session: Option<&SessionFetchConfig>,
        tag_filter: &TagFilter,
    ) -> Result<Option<(WorkItem, String, u32)>, ProviderError> {
        let request = WorkRequest { max_items: 1, lock_timeout, poll_timeout, session, tag_filter };
        let fetched = self.fetch_activities(request).await?;
        Ok(fetched
            .into_iter()
            .next()
            .map(|fetched| (fetched.item, fetched.lock_token, fetched.attempt_count)))
    }

    async fn ack_work_item(&self, token: &str, completion: Option<WorkItem>) -> Result<(), ProviderError> {
        self.change(|state, now| state.ack_activity(token, completion, now))
    }

    async fn renew_work_item_lock(&self, token: &str, extend_for: Duration) -> Result<(), ProviderError> {
        self.change(|state, now| state.renew_activity(token, extend_for, now))
    }

    async fn renew_session_lock(
        &self,
        owner_ids: &[&str],
        extend_for: Duration,
        idle_timeout: Duration,
    ) -> Result<usize, ProviderError> {
        Ok(self.change(|state, now| state.renew_sessions(owner_ids, extend_for, idle_timeout, now)))
    }

    async fn cleanup_orphaned_sessions(&self, _idle_timeout: Duration) -> Result<usize, ProviderError> {
        Ok(self.change(|state, now| state.cleanup_sessions(now)))
    }

    async fn abandon_work_item(
        &self,
        token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        self.change(|state, now| state.abandon_activity(token, delay, ignore_attempt, now))
    }

    async fn abandon_work_noted(
        &self,
        token: &str,
        delay: Option<Duration>,
        error: &str,
    ) -> Result<(), ProviderError> {
        self.change(|state, now| state.abandon_noted(token, delay, error, now))
    }

    async fn hold_turn(&self, lock_token: &str, hold: &Hold) -> Result<HoldOutcome, ProviderError> {
        self.change(|state, now| state.hold_turn(lock_token, hold, now))
    }

    async fn renew_orchestration_item_lock(
        &self,
        token: &str,
        extend_for: Duration,
    ) -> Result<(), ProviderError> {
        self.change(|state, now| state.renew_turn(token, extend_for, now))
    }

    async fn enqueue_for_orchestrator(
        &self,
        item: WorkItem,
        delay: Option<Duration>,
    ) -> Result<(), ProviderError> {
        check_messages("enqueue_for_orchestrator", std::slice::from_ref(&item))?;
        self.change(|state, now| {
            let rules = state.rules;
            rules.enqueue(state, &item, delay, now)
        })
    }

    fn as_management_capability(&self) -> Option<&dyn ProviderAdmin> {
        Some(self)
    }

    async fn get_custom_status(
        &self,
        instance: &str,
        last_seen_version: u64,
    ) -> Result<Option<(Option<String>, u64)>, ProviderError> {
        let state = self.state();
        let row = state.instances.get(instance).filter(|row| row.custom_status_version > last_seen_version);
        Ok(row.map(|row| (row.custom_status.clone(), row.custom_status_version)))
    }

    async fn get_kv_value(&self, instance: &str, key: &str) -> Result<Option<String>, ProviderError> {
        Ok(self.state().kv_view(instance).remove(key))
    }

    async fn get_kv_all_values(&self, instance: &str) -> Result<HashMap<String, String>, ProviderError> {
        Ok(self.state().kv_view(instance).into_iter().collect())
    }

    async fn get_instance_stats(&self, instance: &str) -> Result<Option<SystemStats>, ProviderError> {
        self.state().stats(instance)
    }

    async fn fetch_turn(&self, request: TurnRequest<'_>) -> Result<Option<FetchedTurn>, ProviderError> {
        self.fetch(request).await
    }

    async fn load_turn(&self, instance: &str, execution_id: u64) -> Result<LoadedTurn, ProviderError> {
        let state = self.state();
        let kv_snapshot = state.kv_snapshot(instance);
        Ok(match state.events(instance, execution_id) {
            Ok(history) => LoadedTurn { history, kv_snapshot, history_error: None },
            Err(reason) => LoadedTurn { history: Vec::new(), kv_snapshot, history_error: Some(reason) },
        })
    }

    async fn fetch_work_items(&self, request: WorkRequest<'_>) -> Result<Vec<FetchedWork>, ProviderError> {
        self.fetch_activities(request).await
    }

    async fn read_outcome(&self, instance: &str) -> Result<Option<InstanceOutcome>, ProviderError> {
        Ok(self.state().outcome(instance))
    }

    async fn enqueue_within(&self, item: WorkItem, most_waiting: usize) -> Result<bool, ProviderError> {
        check_messages("enqueue_within", std::slice::from_ref(&item))?;
        self.change(|state, now| {
            let waiting = state.messages.of_instance(item.target_instance(), |_| true).len();
            if waiting >= most_waiting {
                return Ok(false);
            }
            state.push_message(&item, visible_at(&item, now, None))?;
            Ok(true)
        })
    }

    async fn enqueue_once(
        &self,
        item: WorkItem,
        key: &str,
        most_waiting: usize,
    ) -> Result<EnqueueOnce, ProviderError> {
        check_messages("enqueue_once", std::slice::from_ref(&item))?;
        self.change(|state, now| state.enqueue_once(&item, key, most_waiting, now))
    }

    async fn start_orchestration(&self, request: StartRequest) -> Result<StartOutcome, ProviderError> {
        self.change(|state, now| state.start(&request, now))
    }

    async fn start_with_turn(&self, start: WorkItem, turn: TurnAhead) -> Result<EagerStart, ProviderError> {
        let ended = turn.commit.metadata.execution_status().is_some_and(ExecutionStatus::ends_instance);
        let started = self.change(|state, now| state.start_with_turn(&start, turn, now))?;
        if let EagerStart::WithTurn { .. } = started {
            self.watches.committed(start.target_instance(), ended);
        }
        Ok(started)
    }

    fn watch_instance(&self, instance: &str, interest: Interest) -> Option<InstanceWatch> {
        Some(self.watches.watch(instance, interest))
    }
}
