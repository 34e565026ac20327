//! A provider as programs for `duroxide` have it: the required methods only, maps instead of tables, short polling, no
//! management interface, and the paths of the contract only. `whole_suite.rs` lists the validations that it fails.

mod state;
mod validations;
mod whole_suite;

use async_trait::async_trait;
use duroxide::providers::{
    DispatcherCapabilityFilter, ExecutionMetadata, OrchestrationItem, Provider, ProviderError,
    ScheduledActivityIdentifier, SessionFetchConfig, TagFilter, WorkItem,
};
use duroxide::{Event, EventKind};
use state::{Lease, Row, Session, State, after, extract_instance};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

pub(crate) struct MyProvider {
    state: Mutex<State>,
    current_time_ms: Box<dyn Fn() -> u64 + Send + Sync>,
}

impl Default for MyProvider {
    fn default() -> Self {
        Self::with_clock(state::system_time_ms)
    }
}

impl MyProvider {
    pub(crate) fn with_clock(current_time_ms: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self { state: Mutex::default(), current_time_ms: Box::new(current_time_ms) }
    }

    fn now(&self) -> u64 {
        (self.current_time_ms)()
    }

    /// Each method takes the lock once and keeps it to the end: that makes it atomic.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}

fn lost(operation: &str) -> ProviderError {
    ProviderError::permanent(operation, "Invalid lock token: released, replaced or expired")
}

#[async_trait]
impl Provider for MyProvider {
    fn name(&self) -> &str {
        "mine"
    }

    // === History ===

    async fn read(&self, instance: &str) -> Result<Vec<Event>, ProviderError> {
        let state = self.state();
        Ok(state.events(instance, state.latest_execution_id(instance)))
    }

    async fn read_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<Event>, ProviderError> {
        Ok(self.state().events(instance, execution_id))
    }

    async fn append_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
        new_events: Vec<Event>,
    ) -> Result<(), ProviderError> {
        self.state().append(instance, execution_id, new_events)
    }

    // === Worker queue ===

    async fn enqueue_for_worker(&self, item: WorkItem) -> Result<(), ProviderError> {
        if !matches!(item, WorkItem::ActivityExecute { .. }) {
            return Err(ProviderError::permanent("enqueue_for_worker", "not an activity"));
        }
        self.state().worker_queue.push(Row::new(item, self.now()));
        Ok(())
    }

    async fn fetch_work_item(
        &self,
        lock_timeout: Duration,
        _poll_timeout: Duration, // Ignored: short polling
        session: Option<&SessionFetchConfig>,
        tag_filter: &TagFilter,
    ) -> Result<Option<(WorkItem, String, u32)>, ProviderError> {
        let mut state = self.state();
        let now = self.now();
        let found =
            state.worker_queue.iter().position(|row| state.is_eligible(row, now, session, tag_filter));
        let Some(index) = found else { return Ok(None) };
        let token = state.new_token();
        let row = &mut state.worker_queue[index];
        row.lock_token = Some(token.clone());
        row.locked_until = after(now, lock_timeout);
        row.attempt_count += 1;
        let (item, attempt_count) = (row.item.clone(), row.attempt_count);
        if let (Some(caller), WorkItem::ActivityExecute { session_id: Some(id), .. }) = (session, &item) {
            let claimed = Session {
                owner: caller.owner_id.clone(),
                locked_until: after(now, caller.lock_timeout),
                last_activity_at: now,
            };
            state.sessions.insert(id.clone(), claimed);
        }
        Ok(Some((item, token, attempt_count)))
    }

    async fn ack_work_item(&self, token: &str, completion: Option<WorkItem>) -> Result<(), ProviderError> {
        let mut state = self.state();
        let now = self.now();
        let held = state.worker_queue.iter().position(|row| row.has_token(token) && row.locked_until > now);
        let index = held.ok_or_else(|| lost("ack_work_item"))?;
        match &completion {
            None | Some(WorkItem::ActivityCompleted { .. } | WorkItem::ActivityFailed { .. }) => {}
            Some(_) => return Err(ProviderError::permanent("ack_work_item", "not a completion")),
        }
        state.touch_session(index, now);
        state.worker_queue.remove(index);
        if let Some(completion) = completion {
            state.enqueue_message(completion, now);
        }
        Ok(())
    }

    async fn abandon_work_item(
        &self,
        token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        let mut state = self.state();
        let now = self.now();
        let row = state.worker_queue.iter_mut().find(|row| row.has_token(token));
        row.ok_or_else(|| lost("abandon_work_item"))?
            .release(Some(after(now, delay.unwrap_or_default())), ignore_attempt);
        Ok(())
    }

    async fn renew_work_item_lock(&self, token: &str, extend_for: Duration) -> Result<(), ProviderError> {
        let mut state = self.state();
        let now = self.now();
        let held = state.worker_queue.iter().position(|row| row.has_token(token) && row.locked_until > now);
        let index = held.ok_or_else(|| lost("renew_work_item_lock"))?;
        let row = &mut state.worker_queue[index];
        row.locked_until = row.locked_until.max(after(now, extend_for));
        state.touch_session(index, now);
        Ok(())
    }

    // === Orchestrator queue ===

    async fn enqueue_for_orchestrator(
        &self,
        item: WorkItem,
        delay: Option<Duration>,
    ) -> Result<(), ProviderError> {
        if matches!(item, WorkItem::ActivityExecute { .. }) {
            return Err(ProviderError::permanent("enqueue_for_orchestrator", "an activity is for workers"));
        }
        let visible_at = after(self.now(), delay.unwrap_or_default());
        self.state().enqueue_message(item, visible_at);
        Ok(())
    }

    async fn fetch_orchestration_item(
        &self,
        lock_timeout: Duration,
        _poll_timeout: Duration,
        filter: Option<&DispatcherCapabilityFilter>,
    ) -> Result<Option<(OrchestrationItem, String, u32)>, ProviderError> {
        let mut state = self.state();
        let now = self.now();
        for instance in state.candidates(now) {
            if !state.is_compatible(&instance, filter) {
                continue;
            }
            let Some((orchestration_name, version, execution_id)) = state.resolve(&instance, now) else {
                state.drop_orphans(&instance, now);
                continue;
            };
            let token = state.new_token();
            let lease = Lease { token: token.clone(), locked_until: after(now, lock_timeout) };
            state.instance_locks.insert(instance.clone(), lease);
            let (mut messages, mut attempt_count) = (Vec::new(), 0);
            for row in &mut state.orchestrator_queue {
                if row.visible_at <= now && extract_instance(&row.item) == instance {
                    row.lock_token = Some(token.clone());
                    row.attempt_count += 1;
                    attempt_count = attempt_count.max(row.attempt_count);
                    messages.push(row.item.clone());
                }
            }
            let item = OrchestrationItem {
                orchestration_name,
                execution_id,
                version,
                history: state.events(&instance, execution_id),
                messages,
                history_error: None,
                kv_snapshot: state.kv_store.get(&instance).cloned().unwrap_or_default(),
                instance,
            };
            return Ok(Some((item, token, attempt_count)));
        }
        Ok(None)
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
    ) -> Result<(), ProviderError> {
        let mut state = self.state();
        let now = self.now();
        let held = state.instance_locks.iter().find(|(_, lease)| lease.token == lock_token);
        let instance = match held {
            Some((instance, lease)) if lease.locked_until > now => instance.clone(),
            _ => return Err(lost("ack_orchestration_item")),
        };
        // The only step that can fail comes first, and changes nothing if it does.
        state.append(&instance, execution_id, history_delta.clone())?;
        state.update_metadata(&instance, execution_id, &metadata);
        let ended = matches!(metadata.status.as_deref(), Some("Completed" | "Failed" | "ContinuedAsNew"));
        state.apply_events(&instance, &history_delta, ended);
        state.worker_queue.extend(worker_items.into_iter().map(|item| Row::new(item, now)));
        state.cancel(&cancelled_activities);
        state.orchestrator_queue.retain(|row| !row.has_token(lock_token));
        for item in orchestrator_items {
            state.enqueue_message(item, now);
        }
        state.instance_locks.remove(&instance);
        Ok(())
    }

    async fn abandon_orchestration_item(
        &self,
        lock_token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        let mut state = self.state();
        let visible_at = delay.map(|delay| after(self.now(), delay));
        let leases = state.instance_locks.len();
        state.instance_locks.retain(|_, lease| lease.token != lock_token);
        if state.instance_locks.len() == leases {
            return Err(lost("abandon_orchestration_item"));
        }
        for row in state.orchestrator_queue.iter_mut().filter(|row| row.has_token(lock_token)) {
            row.release(visible_at, ignore_attempt);
        }
        Ok(())
    }

    async fn renew_orchestration_item_lock(
        &self,
        token: &str,
        extend_for: Duration,
    ) -> Result<(), ProviderError> {
        let mut state = self.state();
        let now = self.now();
        let held = state.instance_locks.values_mut().find(|lease| lease.token == token);
        match held {
            Some(lease) if lease.locked_until > now => {
                lease.locked_until = lease.locked_until.max(after(now, extend_for));
                Ok(())
            }
            _ => Err(lost("renew_orchestration_item_lock")),
        }
    }

    // === Sessions ===

    async fn renew_session_lock(
        &self,
        owner_ids: &[&str],
        extend_for: Duration,
        idle_timeout: Duration,
    ) -> Result<usize, ProviderError> {
        let now = self.now();
        let mut renewed = 0;
        for session in self.state().sessions.values_mut() {
            let busy = after(session.last_activity_at, idle_timeout) > now;
            if owner_ids.contains(&session.owner.as_str()) && session.locked_until > now && busy {
                session.locked_until = session.locked_until.max(after(now, extend_for));
                renewed += 1;
            }
        }
        Ok(renewed)
    }

    async fn cleanup_orphaned_sessions(&self, _idle_timeout: Duration) -> Result<usize, ProviderError> {
        let mut state = self.state();
        let now = self.now();
        let over = state.sessions.iter().filter(|(_, session)| session.locked_until < now);
        let orphans: Vec<String> =
            over.map(|(id, _)| id.clone()).filter(|id| !state.session_has_work(id)).collect();
        orphans.iter().for_each(|id| drop(state.sessions.remove(id)));
        Ok(orphans.len())
    }

    // === Custom status, key-value store, figures ===

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
        Ok(self.state().kv_view(instance))
    }

    async fn get_instance_stats(
        &self,
        instance: &str,
    ) -> Result<Option<duroxide::SystemStats>, ProviderError> {
        let state = self.state();
        let Some(row) = state.instances.get(instance) else { return Ok(None) };
        let history = state.events(instance, row.current_execution_id);
        let bytes = |event: &Event| serde_json::to_string(event).unwrap().len() as u64;
        let carried = match history.first().map(|event| &event.kind) {
            Some(EventKind::OrchestrationStarted { carry_forward_events: Some(carried), .. }) => {
                carried.len()
            }
            _ => 0,
        };
        let kv = state.kv_view(instance);
        Ok(Some(duroxide::SystemStats {
            history_event_count: history.len() as u64,
            history_size_bytes: history.iter().map(bytes).sum(),
            queue_pending_count: carried as u64,
            kv_user_key_count: kv.len() as u64,
            kv_total_value_bytes: kv.values().map(|value| value.len() as u64).sum(),
        }))
    }
}
