//! The tables of the first provider, as maps.

use duroxide::providers::{
    DispatcherCapabilityFilter, ExecutionMetadata, KvEntry, ProviderError, ScheduledActivityIdentifier,
    SessionFetchConfig, TagFilter, WorkItem,
};
use duroxide::{Event, EventKind};
use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

#[derive(Default)]
pub(super) struct State {
    pub(super) history: HashMap<(String, u64), BTreeMap<u64, Event>>,
    pub(super) executions: HashMap<String, BTreeMap<u64, Execution>>,
    pub(super) instances: HashMap<String, Instance>,
    pub(super) instance_locks: HashMap<String, Lease>,
    pub(super) orchestrator_queue: Vec<Row>,
    pub(super) worker_queue: Vec<Row>,
    pub(super) sessions: HashMap<String, Session>,
    pub(super) kv_store: HashMap<String, HashMap<String, KvEntry>>,
    /// The keys that the current execution wrote; `None` hides a stored key.
    pub(super) kv_delta: HashMap<String, HashMap<String, Option<KvEntry>>>,
    tokens: u64,
}

#[derive(Default)]
pub(super) struct Execution {
    pub(super) status: Option<String>,
    pub(super) output: Option<String>,
    pub(super) pinned: Option<semver::Version>,
}

pub(super) struct Instance {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) current_execution_id: u64,
    pub(super) custom_status: Option<String>,
    pub(super) custom_status_version: u64,
}

pub(super) struct Lease {
    pub(super) token: String,
    pub(super) locked_until: u64,
}

pub(super) struct Session {
    pub(super) owner: String,
    pub(super) locked_until: u64,
    pub(super) last_activity_at: u64,
}

pub(super) struct Row {
    pub(super) item: WorkItem,
    pub(super) visible_at: u64,
    pub(super) lock_token: Option<String>,
    /// Used by the worker queue only: the orchestrator queue is locked by instance.
    pub(super) locked_until: u64,
    pub(super) attempt_count: u32,
}

impl Row {
    pub(super) fn new(item: WorkItem, visible_at: u64) -> Self {
        Self { item, visible_at, lock_token: None, locked_until: 0, attempt_count: 0 }
    }

    pub(super) fn has_token(&self, token: &str) -> bool {
        self.lock_token.as_deref() == Some(token)
    }

    pub(super) fn release(&mut self, visible_at: Option<u64>, ignore_attempt: bool) {
        self.lock_token = None;
        self.locked_until = 0;
        self.visible_at = visible_at.unwrap_or(self.visible_at);
        self.attempt_count = self.attempt_count.saturating_sub(u32::from(ignore_attempt));
    }

    fn session_id(&self) -> Option<&String> {
        match &self.item {
            WorkItem::ActivityExecute { session_id, .. } => session_id.as_ref(),
            _ => None,
        }
    }
}

#[allow(clippy::disallowed_methods, reason = "an outside provider reads the machine's clock")]
pub(super) fn system_time_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64
}

pub(super) fn after(now: u64, duration: Duration) -> u64 {
    now.saturating_add(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}

/// Where an item is delivered, as a program for duroxide finds out: by a match.
pub(super) fn extract_instance(item: &WorkItem) -> &str {
    match item {
        WorkItem::SubOrchCompleted { parent_instance, .. }
        | WorkItem::SubOrchFailed { parent_instance, .. } => parent_instance,
        WorkItem::StartOrchestration { instance, .. }
        | WorkItem::ActivityExecute { instance, .. }
        | WorkItem::ActivityCompleted { instance, .. }
        | WorkItem::ActivityFailed { instance, .. }
        | WorkItem::TimerFired { instance, .. }
        | WorkItem::ExternalRaised { instance, .. }
        | WorkItem::CancelInstance { instance, .. }
        | WorkItem::ContinueAsNew { instance, .. }
        | WorkItem::QueueMessage { instance, .. } => instance,
        #[cfg(feature = "replay-version-test")]
        WorkItem::ExternalRaised2 { instance, .. } => instance,
    }
}

impl State {
    pub(super) fn new_token(&mut self) -> String {
        self.tokens += 1;
        format!("lock_{}", self.tokens)
    }

    pub(super) fn latest_execution_id(&self, instance: &str) -> u64 {
        self.executions.get(instance).and_then(|all| all.keys().next_back().copied()).unwrap_or(1)
    }

    pub(super) fn events(&self, instance: &str, execution_id: u64) -> Vec<Event> {
        let history = self.history.get(&(instance.to_string(), execution_id));
        history.map(|events| events.values().cloned().collect()).unwrap_or_default()
    }

    /// All or nothing, as the unique index of a database would have it.
    pub(super) fn append(
        &mut self,
        instance: &str,
        execution_id: u64,
        new_events: Vec<Event>,
    ) -> Result<(), ProviderError> {
        let history = self.history.entry((instance.to_string(), execution_id)).or_default();
        let mut added = BTreeMap::new();
        for event in new_events {
            let id = event.event_id();
            if id == 0 || history.contains_key(&id) || added.insert(id, event).is_some() {
                return Err(ProviderError::permanent("append", format!("bad or duplicate event id {id}")));
            }
        }
        history.append(&mut added);
        Ok(())
    }

    /// Instances with visible messages and no live lease, the longest waiting first.
    pub(super) fn candidates(&self, now: u64) -> Vec<String> {
        let mut found: Vec<String> = Vec::new();
        for row in self.orchestrator_queue.iter().filter(|row| row.visible_at <= now) {
            let instance = extract_instance(&row.item);
            let locked = self.instance_locks.get(instance).is_some_and(|lease| lease.locked_until > now);
            if !locked && !found.iter().any(|known| known == instance) {
                found.push(instance.to_string());
            }
        }
        found
    }

    pub(super) fn is_compatible(&self, instance: &str, filter: Option<&DispatcherCapabilityFilter>) -> bool {
        let Some(filter) = filter else { return true };
        let current = self.instances.get(instance).map(|row| row.current_execution_id);
        let execution = current.and_then(|id| self.executions.get(instance)?.get(&id));
        match execution.and_then(|execution| execution.pinned.as_ref()) {
            Some(pinned) => filter.is_compatible(pinned),
            None => !filter.supported_duroxide_versions.is_empty(),
        }
    }

    /// Name, version and execution of a turn: from the instance, else from history, else from the start message.
    pub(super) fn resolve(&self, instance: &str, now: u64) -> Option<(String, String, u64)> {
        if let Some(row) = self.instances.get(instance) {
            return Some((row.name.clone(), row.version.clone(), row.current_execution_id));
        }
        let latest = self.latest_execution_id(instance);
        for event in self.events(instance, latest) {
            if let EventKind::OrchestrationStarted { name, version, .. } = event.kind {
                return Some((name, version, latest));
            }
        }
        self.visible_messages(instance, now).find_map(|item| match item {
            WorkItem::StartOrchestration { orchestration, version, .. }
            | WorkItem::ContinueAsNew { orchestration, version, .. } => {
                Some((orchestration.clone(), version.clone().unwrap_or_else(|| "unknown".to_string()), 1))
            }
            _ => None,
        })
    }

    pub(super) fn visible_messages<'a>(
        &'a self,
        instance: &'a str,
        now: u64,
    ) -> impl Iterator<Item = &'a WorkItem> {
        let visible = self.orchestrator_queue.iter().filter(move |row| row.visible_at <= now);
        visible.map(|row| &row.item).filter(move |item| extract_instance(item) == instance)
    }

    /// Queue messages for an instance that does not exist are dropped; other messages wait for it.
    pub(super) fn drop_orphans(&mut self, instance: &str, now: u64) {
        let is_queue_message = |item: &WorkItem| matches!(item, WorkItem::QueueMessage { .. });
        if self.visible_messages(instance, now).all(is_queue_message) {
            self.orchestrator_queue
                .retain(|row| row.visible_at > now || extract_instance(&row.item) != instance);
        }
    }

    pub(super) fn enqueue_message(&mut self, item: WorkItem, visible_at: u64) {
        let visible_at = match &item {
            WorkItem::TimerFired { fire_at_ms, .. } => visible_at.max(*fire_at_ms),
            _ => visible_at,
        };
        self.orchestrator_queue.push(Row::new(item, visible_at));
    }

    pub(super) fn update_metadata(
        &mut self,
        instance: &str,
        execution_id: u64,
        metadata: &ExecutionMetadata,
    ) {
        if let (Some(name), Some(version)) = (&metadata.orchestration_name, &metadata.orchestration_version) {
            let row = self.instances.entry(instance.to_string()).or_insert_with(|| Instance {
                name: String::new(),
                version: String::new(),
                current_execution_id: execution_id,
                custom_status: None,
                custom_status_version: 0,
            });
            row.name.clone_from(name);
            row.version.clone_from(version);
        }
        if let Some(row) = self.instances.get_mut(instance) {
            row.current_execution_id = row.current_execution_id.max(execution_id);
        }
        let execution =
            self.executions.entry(instance.to_string()).or_default().entry(execution_id).or_default();
        if metadata.status.is_some() {
            execution.status.clone_from(&metadata.status);
            execution.output.clone_from(&metadata.output);
        }
        if metadata.pinned_duroxide_version.is_some() {
            execution.pinned.clone_from(&metadata.pinned_duroxide_version);
        }
    }

    /// Applies the events that set the custom status and keys.
    pub(super) fn apply_events(&mut self, instance: &str, events: &[Event], ended: bool) {
        let mut new_status = None;
        let store = self.kv_store.entry(instance.to_string()).or_default();
        let delta = self.kv_delta.entry(instance.to_string()).or_default();
        for event in events {
            match &event.kind {
                EventKind::CustomStatusUpdated { status } => new_status = Some(status.clone()),
                EventKind::KeyValueSet { key, value, last_updated_at_ms } => {
                    let entry = KvEntry { value: value.clone(), last_updated_at_ms: *last_updated_at_ms };
                    delta.insert(key.clone(), Some(entry));
                }
                EventKind::KeyValueCleared { key } => drop(delta.insert(key.clone(), None)),
                EventKind::KeyValuesCleared => {
                    delta.values_mut().for_each(|entry| *entry = None);
                    delta.extend(store.keys().map(|key| (key.clone(), None)));
                }
                _ => {}
            }
        }
        if ended {
            for (key, entry) in delta.drain() {
                match entry {
                    Some(entry) => drop(store.insert(key, entry)),
                    None => drop(store.remove(&key)),
                }
            }
        }
        if let (Some(status), Some(row)) = (new_status, self.instances.get_mut(instance)) {
            row.custom_status = status;
            row.custom_status_version += 1;
        }
    }

    /// Stored values with the current execution's writes on top.
    pub(super) fn kv_view(&self, instance: &str) -> HashMap<String, String> {
        let stored = self.kv_store.get(instance).into_iter().flatten();
        let mut view: HashMap<String, String> =
            stored.map(|(key, entry)| (key.clone(), entry.value.clone())).collect();
        for (key, entry) in self.kv_delta.get(instance).into_iter().flatten() {
            match entry {
                Some(entry) => drop(view.insert(key.clone(), entry.value.clone())),
                None => drop(view.remove(key)),
            }
        }
        view
    }

    pub(super) fn cancel(&mut self, cancelled: &[ScheduledActivityIdentifier]) {
        self.worker_queue.retain(|row| {
            let WorkItem::ActivityExecute { instance, execution_id, id, .. } = &row.item else { return true };
            !cancelled.contains(&ScheduledActivityIdentifier {
                instance: instance.clone(),
                execution_id: *execution_id,
                activity_id: *id,
            })
        });
    }

    pub(super) fn is_eligible(
        &self,
        row: &Row,
        now: u64,
        session: Option<&SessionFetchConfig>,
        tag_filter: &TagFilter,
    ) -> bool {
        let WorkItem::ActivityExecute { session_id, tag, .. } = &row.item else { return false };
        let session_fits = match (session, session_id) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(caller), Some(id)) => self
                .sessions
                .get(id)
                .is_none_or(|session| session.locked_until <= now || session.owner == caller.owner_id),
        };
        row.visible_at <= now && row.locked_until <= now && tag_filter.matches(tag.as_deref()) && session_fits
    }

    /// Notes that a session was used, if the item belongs to one that is held.
    pub(super) fn touch_session(&mut self, row: usize, now: u64) {
        let session = self.worker_queue[row].session_id().and_then(|id| self.sessions.get_mut(id));
        if let Some(session) = session.filter(|session| session.locked_until > now) {
            session.last_activity_at = now;
        }
    }

    pub(super) fn session_has_work(&self, session_id: &str) -> bool {
        self.worker_queue.iter().any(|row| row.session_id().is_some_and(|id| id == session_id))
    }
}
