//! The store behind its traits.

use crate::commit::{Commit, check_messages, visible_at};
use crate::fetch::Ask;
use crate::rules::{Defect, Rules};
use crate::state::State;
use crate::watch::Watches;
use crate::work::WorkAsk;
use async_trait::async_trait;
use outlast_provider::model::{Event, EventKind, ExecutionStatus, SystemStats, WorkItem, json};
use outlast_provider::{
    Clock, Completion, DispatcherCapabilityFilter, Entropy, ExecutionMetadata, FetchedTurn, FetchedWork,
    InstanceOutcome, InstanceWatch, Interest, LoadedTurn, MessageBound, OrchestrationItem, OsEntropy,
    Provider, ProviderAdmin, ProviderError, ScheduledActivityIdentifier, SessionFetchConfig, StartOutcome,
    StartRequest, SystemClock, TagFilter, TurnAhead, TurnCommit, TurnRequest, WorkRequest, saturating_ms,
};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// A store that keeps everything in memory and nothing beyond the process.
///
/// A fetch without work waits for `poll_timeout` and returns as soon as work becomes visible.
pub struct MemoryProvider {
    state: Mutex<State>,
    changed: Notify,
    watches: Watches,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    rules: Rules,
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
        Self::with_parts(clock, Arc::new(OsEntropy), Rules::default())
    }

    /// An empty store with everything given: for simulations and for tests of tests.
    pub fn with_parts(clock: Arc<dyn Clock>, entropy: Arc<dyn Entropy>, rules: Rules) -> Self {
        Self {
            state: Mutex::default(),
            changed: Notify::new(),
            watches: Watches::default(),
            clock,
            entropy,
            rules,
            bound: MessageBound::default(),
        }
    }

    /// The same store with another bound for the messages of one fetch.
    pub fn with_message_bound(self, bound: MessageBound) -> Self {
        Self { bound, ..self }
    }

    /// The tables. A panic while they were locked left them as they were between two statements, so go on.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells those who watch instances that these are gone.
    pub(crate) fn deleted(&self, instances: &[String]) {
        for instance in instances {
            self.watches.committed(instance, true);
        }
    }

    pub(crate) fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Changes the tables at a moment, and lets waiting fetches look again.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut State, u64, &Rules) -> T) -> T {
        let result = change(&mut self.state(), self.clock.now_ms(), &self.rules);
        if !self.rules.broken(Defect::LostWakeUp) {
            self.changed.notify_waiters();
        }
        result
    }

    fn token(&self) -> String {
        match self.rules.broken(Defect::TokensRepeat) {
            true => "lock_1".to_string(),
            false => format!("lock_{:032x}", self.entropy.next_u128()),
        }
    }

    /// Tries until there is a result, the caller's patience ends, or an error.
    async fn wait_for<T>(
        &self,
        patience: Duration,
        mut attempt: impl FnMut(&mut State, u64) -> Result<Option<T>, ProviderError>,
    ) -> Result<Option<T>, ProviderError> {
        let give_up_at = self.clock.now_ms().saturating_add(saturating_ms(patience));
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let (now, next_due) = {
                let mut state = self.state();
                let now = self.clock.now_ms();
                if let Some(found) = attempt(&mut state, now)? {
                    return Ok(Some(found));
                }
                let due =
                    [state.messages.next_due(now), state.work.next_due(now), state.next_session_end(now)];
                (now, due.into_iter().flatten().min().unwrap_or(u64::MAX))
            };
            if now >= give_up_at || self.rules.broken(Defect::NeverWaits) {
                return Ok(None);
            }
            let until = match self.rules.broken(Defect::LostWakeUp) {
                true => give_up_at,
                false => next_due.min(give_up_at),
            };
            let pause = Duration::from_millis(until - now);
            // Either way the loop looks again.
            let _ = tokio::time::timeout(pause, changed).await;
        }
    }

    async fn fetch(&self, request: TurnRequest<'_>) -> Result<Option<FetchedTurn>, ProviderError> {
        let called_at = self.clock.now_ms();
        let fetched = self
            .wait_for(request.poll_timeout, |state, now| {
                let from = if self.rules.broken(Defect::LeaseStartsAtCall) { called_at } else { now };
                let ask = Ask {
                    now,
                    locked_until: from.saturating_add(saturating_ms(request.lock_timeout)),
                    filter: request.filter,
                    token: self.token(),
                    with_history: request.with_history,
                    bound: self.bound,
                };
                state.fetch_turn(&ask, &self.rules)
            })
            .await?;
        self.linger(fetched.is_some()).await;
        Ok(fetched)
    }

    async fn fetch_work(&self, request: WorkRequest<'_>) -> Result<Vec<FetchedWork>, ProviderError> {
        if *request.tag_filter == TagFilter::None || request.max_items == 0 {
            return Ok(Vec::new());
        }
        let called_at = self.clock.now_ms();
        let fetched = self
            .wait_for(request.poll_timeout, |state, now| {
                let from = if self.rules.broken(Defect::LeaseStartsAtCall) { called_at } else { now };
                let mut all: Vec<FetchedWork> = Vec::new();
                while all.len() < request.max_items {
                    let ask = WorkAsk {
                        now,
                        locked_until: from.saturating_add(saturating_ms(request.lock_timeout)),
                        session: request.session,
                        tags: request.tag_filter,
                        token: self.token(),
                    };
                    match state.fetch_work(&ask, &self.rules) {
                        Ok(Some(work)) => all.push(work),
                        Ok(None) => break,
                        Err(_) if !all.is_empty() => break,
                        Err(error) => return Err(error),
                    }
                }
                if self.rules.broken(Defect::BatchHandsOutTwice) && all.len() > 1 {
                    all.extend(all.first().cloned());
                }
                Ok(Some(all).filter(|all| !all.is_empty()))
            })
            .await?;
        self.linger(fetched.is_some()).await;
        Ok(fetched.unwrap_or_default())
    }

    /// Nothing is awaited between taking a lease and returning it, so a dropped fetch holds none; except in a store
    /// that gets this wrong.
    async fn linger(&self, holds_lease: bool) {
        if holds_lease && self.rules.broken(Defect::DroppedFetchKeepsLease) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

impl MemoryProvider {
    /// Commits a turn; returns the time at which it did.
    fn commit(&self, lock_token: &str, turn: Commit) -> Result<u64, ProviderError> {
        let ended = turn.metadata.execution_status().is_some_and(ExecutionStatus::ends_instance);
        let (committed, at) = self.change(|state, now, rules| {
            state.commit(lock_token, turn, now, rules).map(|committed| (committed, now))
        })?;
        if let Some(instance) = committed {
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
        let completed =
            self.change(|state, now, rules| state.complete_with_turn(token, completion, turn, now, rules))?;
        if matches!(completed, Completion::WithTurn { .. }) {
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
        self.change(|state, now, rules| state.abandon_turn(lock_token, delay, ignore_attempt, now, rules))
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
        if self.rules.broken(Defect::CorruptReadShortened) {
            let texts = state.event_texts(instance, execution_id);
            return Ok(texts.filter_map(|text| json::decode_event(text).ok()).collect());
        }
        state.events(instance, execution_id).map_err(|reason| ProviderError::permanent("read", reason))
    }

    async fn append_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
        new_events: Vec<Event>,
    ) -> Result<(), ProviderError> {
        self.change(|state, now, rules| {
            state.append_checked(instance, execution_id, &new_events, now, rules)
        })?;
        self.watches.committed(instance, false);
        Ok(())
    }

    async fn enqueue_for_worker(&self, item: WorkItem) -> Result<(), ProviderError> {
        self.change(|state, now, _| state.push_work(item, now))
    }

    async fn fetch_work_item(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        session: Option<&SessionFetchConfig>,
        tag_filter: &TagFilter,
    ) -> Result<Option<(WorkItem, String, u32)>, ProviderError> {
        let request = WorkRequest { max_items: 1, lock_timeout, poll_timeout, session, tag_filter };
        let fetched = self.fetch_work(request).await?;
        Ok(fetched.into_iter().next().map(|work| (work.item, work.lock_token, work.attempt_count)))
    }

    async fn ack_work_item(&self, token: &str, completion: Option<WorkItem>) -> Result<(), ProviderError> {
        self.change(|state, now, rules| state.ack_work(token, completion, now, rules))
    }

    async fn renew_work_item_lock(&self, token: &str, extend_for: Duration) -> Result<(), ProviderError> {
        self.change(|state, now, rules| state.renew_work(token, extend_for, now, rules))
    }

    async fn renew_session_lock(
        &self,
        owner_ids: &[&str],
        extend_for: Duration,
        idle_timeout: Duration,
    ) -> Result<usize, ProviderError> {
        Ok(self.change(|state, now, rules| {
            state.renew_sessions(owner_ids, extend_for, idle_timeout, now, rules)
        }))
    }

    async fn cleanup_orphaned_sessions(&self, _idle_timeout: Duration) -> Result<usize, ProviderError> {
        Ok(self.change(|state, now, rules| state.cleanup_sessions(now, rules)))
    }

    async fn abandon_work_item(
        &self,
        token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        self.change(|state, now, rules| state.abandon_work(token, delay, ignore_attempt, now, rules))
    }

    async fn renew_orchestration_item_lock(
        &self,
        token: &str,
        extend_for: Duration,
    ) -> Result<(), ProviderError> {
        self.change(|state, now, rules| state.renew_turn(token, extend_for, now, rules))
    }

    async fn enqueue_for_orchestrator(
        &self,
        item: WorkItem,
        delay: Option<Duration>,
    ) -> Result<(), ProviderError> {
        check_messages("enqueue_for_orchestrator", std::slice::from_ref(&item))?;
        self.change(|state, now, rules| {
            if rules.broken(Defect::InstanceCreatedOnEnqueue)
                && matches!(item, WorkItem::StartOrchestration { .. })
            {
                state.create_instance(item.target_instance(), 1, None, now);
            }
            let visible_at =
                if rules.broken(Defect::LostDelay) { now } else { visible_at(&item, now, delay) };
            state.push_message(&item, visible_at)
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
        Ok(self.state().kv_view(instance, &self.rules).remove(key))
    }

    async fn get_kv_all_values(&self, instance: &str) -> Result<HashMap<String, String>, ProviderError> {
        Ok(self.state().kv_view(instance, &self.rules).into_iter().collect())
    }

    async fn get_instance_stats(&self, instance: &str) -> Result<Option<SystemStats>, ProviderError> {
        let state = self.state();
        let Some(row) = state.instances.get(instance) else { return Ok(None) };
        let texts: Vec<&String> = state.event_texts(instance, row.current_execution_id).collect();
        let size = |text: &str| match self.rules.broken(Defect::SizesInCharacters) {
            true => text.chars().count() as u64,
            false => text.len() as u64,
        };
        let carried = match texts.first().map(|text| json::decode_event(text)) {
            Some(Err(_)) if self.rules.broken(Defect::StatsSwallowErrors) => 0,
            Some(Err(error)) => {
                return Err(ProviderError::permanent("get_instance_stats", format!("'{instance}': {error}")));
            }
            Some(Ok(Event {
                kind: EventKind::OrchestrationStarted { carry_forward_events, .. }, ..
            })) => carry_forward_events.map_or(0, |carried| carried.len() as u64),
            Some(Ok(_)) | None => 0,
        };
        let mut kv = state.kv_view(instance, &self.rules);
        if self.rules.broken(Defect::StatsCountRemovedKeys) {
            kv.extend(
                state.kv_store.get(instance).into_iter().flatten().map(|(k, v)| (k.clone(), v.value.clone())),
            );
        }
        Ok(Some(SystemStats {
            history_event_count: texts.len() as u64,
            history_size_bytes: texts.iter().map(|text| size(text)).sum(),
            queue_pending_count: carried,
            kv_user_key_count: kv.len() as u64,
            kv_total_value_bytes: kv.values().map(|value| size(value)).sum(),
        }))
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
        self.fetch_work(request).await
    }

    async fn read_outcome(&self, instance: &str) -> Result<Option<InstanceOutcome>, ProviderError> {
        Ok(self.state().outcome(instance, &self.rules))
    }

    async fn enqueue_within(&self, item: WorkItem, most_waiting: usize) -> Result<bool, ProviderError> {
        check_messages("enqueue_within", std::slice::from_ref(&item))?;
        self.change(|state, now, _| {
            let waiting = state.messages.of_instance(item.target_instance(), |_| true).len();
            if waiting >= most_waiting {
                return Ok(false);
            }
            state.push_message(&item, visible_at(&item, now, None))?;
            Ok(true)
        })
    }

    async fn start_orchestration(&self, request: StartRequest) -> Result<StartOutcome, ProviderError> {
        self.change(|state, now, rules| state.start(&request, now, rules))
    }

    fn watch_instance(&self, instance: &str, interest: Interest) -> Option<InstanceWatch> {
        Some(self.watches.watch(instance, interest))
    }
}
