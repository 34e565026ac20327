//! Commits of turns, abandons of turns, and renewals of their leases.

use crate::rules::{CommitRules, Fence, HoldRules, KvRules, LeaseRules, Purpose, Rules};
use crate::state::{Execution, Instance, Lease, State, is_final, refuse};
use outlast_provider::model::{Event, EventKind, ExecutionStatus, WorkItem, check_instance_id, json};
use outlast_provider::{
    ExecutionMetadata, ProviderError, ScheduledActivityIdentifier, TurnCommit, saturating_ms,
};
use std::time::Duration;

pub(crate) const ACK: &str = "ack_orchestration_item";

/// A turn to commit: the fields of `TurnCommit`, under the names of this store.
pub(crate) struct Commit {
    pub(crate) execution_id: u64,
    pub(crate) delta: Vec<Event>,
    pub(crate) activities: Vec<WorkItem>,
    pub(crate) messages: Vec<WorkItem>,
    pub(crate) metadata: ExecutionMetadata,
    pub(crate) cancelled: Vec<ScheduledActivityIdentifier>,
}

impl Commit {
    /// The checks that do not depend on stored rows.
    pub(crate) fn check(&self, instance: &str, rules: Rules) -> Result<(), ProviderError> {
        rules.check_event_ids(ACK, instance, self.execution_id, &self.delta)?;
        check_activities(ACK, &self.activities)?;
        check_messages(ACK, &self.messages)
    }

    /// Whether the turn ends its instance.
    pub(crate) fn ends_instance(&self) -> bool {
        self.metadata.execution_status().is_some_and(ExecutionStatus::ends_instance)
    }
}

impl From<TurnCommit> for Commit {
    fn from(commit: TurnCommit) -> Self {
        Self {
            execution_id: commit.execution_id,
            delta: commit.history_delta,
            activities: commit.worker_items,
            messages: commit.orchestrator_items,
            metadata: commit.metadata,
            cancelled: commit.cancelled_activities,
        }
    }
}

impl State {
    /// Commits the whole turn or nothing: every check precedes the first write.
    pub(crate) fn commit(&mut self, token: &str, turn: Commit, now: u64) -> Result<(), ProviderError> {
        let rules = self.rules;
        let instance = match rules.turn_fence(Purpose::Commit, self, token, now) {
            Fence::Holds(instance) => instance,
            Fence::Expired(instance) => return refuse(ACK, expired(token, &instance)),
            Fence::Unknown => return rules.unknown_token(ACK, released(token)),
        };
        rules.check_turn(self, &instance, token, &turn)?;
        self.consume(&instance, token);
        self.apply_turn(&instance, turn, now)?;
        rules.release_turn(self, &instance);
        Ok(())
    }

    /// Writes a turn that was checked.
    pub(crate) fn apply_turn(&mut self, instance: &str, turn: Commit, now: u64) -> Result<(), ProviderError> {
        let rules = self.rules;
        let stored_under = rules.execution_of_events(self, instance, &turn);
        self.record_execution(instance, &turn, now);
        self.append(instance, stored_under, &turn.delta, now)?;
        self.apply_custom_status(instance, &turn.delta);
        self.apply_kv(instance, &turn.delta, now);
        if rules.merges_kv(turn.metadata.status.as_deref().is_some_and(is_final)) {
            self.merge_kv(instance);
        }
        rules.change_activities(self, turn.activities, &turn.cancelled, now)?;
        for item in turn.messages {
            rules.send(self, item, now)?;
        }
        Ok(())
    }

    /// Deletes the messages that the turn has processed.
    pub(crate) fn consume(&mut self, instance: &str, token: &str) {
        for ordinal in self.rules.consumed(&self.messages, instance, token) {
            self.messages.remove(ordinal);
        }
    }

    /// Writes the instance row, the execution row, its status and its version pin.
    fn record_execution(&mut self, instance: &str, turn: &Commit, now: u64) {
        let (rules, metadata) = (self.rules, &turn.metadata);
        if let (Some(name), Some(version)) = (&metadata.orchestration_name, &metadata.orchestration_version) {
            self.create_instance(instance, turn.execution_id, metadata.parent_instance_id.clone(), now);
            if let Some(row) = self.instances.get_mut(instance) {
                row.orchestration_name.clone_from(name);
                row.orchestration_version.clone_from(version);
            }
        }
        if let Some(row) = self.instances.get_mut(instance) {
            row.current_execution_id = rules.current_execution(row.current_execution_id, turn.execution_id);
            row.updated_at = now;
        }
        let executions = self.executions.entry(instance.to_string()).or_default();
        let execution = executions.entry(turn.execution_id).or_insert_with(|| Execution {
            status: ExecutionStatus::Running.to_string(),
            output: None,
            started_at: now,
            completed_at: None,
            pinned: None,
        });
        if let Some(status) = &metadata.status {
            execution.status.clone_from(status);
            execution.output.clone_from(&metadata.output);
            execution.completed_at = rules.completed_at(status, now);
        }
        if let Some(pin) = &metadata.pinned_duroxide_version {
            execution.pinned = Some(rules.pin(execution.pinned.as_ref(), pin));
        }
    }

    pub(crate) fn create_instance(
        &mut self,
        instance: &str,
        execution_id: u64,
        parent: Option<String>,
        now: u64,
    ) {
        self.instances_created += 1;
        let created_nth = self.instances_created;
        self.instances.entry(instance.to_string()).or_insert_with(|| Instance {
            orchestration_name: String::new(),
            orchestration_version: String::new(),
            current_execution_id: execution_id,
            parent_instance_id: parent,
            custom_status: None,
            custom_status_version: 0,
            created_at: now,
            updated_at: now,
            created_nth,
        });
    }

    fn append(
        &mut self,
        instance: &str,
        execution_id: u64,
        events: &[Event],
        now: u64,
    ) -> Result<(), ProviderError> {
        if events.is_empty() {
            return Ok(());
        }
        let stored = self.history.entry((instance.to_string(), execution_id)).or_default();
        for event in events {
            encoded(ACK, self.rules.store_event(stored, event, now))?;
        }
        Ok(())
    }

    /// Appends events outside of a turn.
    pub(crate) fn append_checked(
        &mut self,
        instance: &str,
        execution_id: u64,
        events: &[Event],
        now: u64,
    ) -> Result<(), ProviderError> {
        const APPEND: &str = "append_with_execution";
        check_id(APPEND, instance)?;
        self.rules.check_event_ids(APPEND, instance, execution_id, events)?;
        self.rules.check_new_events(self, APPEND, instance, execution_id, events)?;
        self.append(instance, execution_id, events, now)
    }

    fn apply_custom_status(&mut self, instance: &str, delta: &[Event]) {
        let changes: Vec<&Option<String>> = delta
            .iter()
            .filter_map(|event| match &event.kind {
                EventKind::CustomStatusUpdated { status } => Some(status),
                _ => None,
            })
            .collect();
        if let Some(row) = self.instances.get_mut(instance) {
            self.rules.apply_custom_status(row, &changes);
        }
    }

    /// Removes the activities that a turn cancels.
    pub(crate) fn cancel(&mut self, cancelled: &[ScheduledActivityIdentifier]) {
        for wanted in cancelled {
            self.activities.remove_where(|activity| {
                activity.instance == wanted.instance
                    && activity.execution_id == wanted.execution_id
                    && activity.activity_id == wanted.activity_id
            });
        }
    }

    pub(crate) fn push_message(&mut self, item: &WorkItem, visible_at: u64) -> Result<(), ProviderError> {
        let text = encoded("enqueue_for_orchestrator", json::encode_work_item(item))?;
        self.messages.push(item.target_instance(), text, visible_at);
        self.cancels_hold(item);
        Ok(())
    }

    /// Releases the instance of a cancellation.
    pub(crate) fn cancels_hold(&mut self, item: &WorkItem) {
        if self.rules.ends_hold(item) {
            self.release(item.target_instance());
        }
    }

    /// Releases the lease of a turn and makes its messages visible again. The lease may be over.
    pub(crate) fn abandon_turn(
        &mut self,
        token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
        now: u64,
    ) -> Result<(), ProviderError> {
        let rules = self.rules;
        let instance = match rules.turn_fence(Purpose::Abandon, self, token, now) {
            Fence::Holds(instance) | Fence::Expired(instance) => instance,
            Fence::Unknown => {
                let message = format!("Invalid lock token '{token}'");
                return rules.unknown_token("abandon_orchestration_item", message);
            }
        };
        let is_partial = self.leases.remove(&instance).is_some_and(|lease| lease.is_partial);
        if let Some(delay) = delay.filter(|_| rules.holds_rest_back(is_partial)) {
            let until = now.saturating_add(saturating_ms(delay));
            self.leases.insert(instance.clone(), Lease::of_rest(until));
        }
        for ordinal in rules.returned(&self.messages, &instance, token) {
            self.messages.update(ordinal, |message| {
                message.token = None;
                message.visible_at = rules.message_returns_at(message.visible_at, delay, now);
                message.fetch_at = message.visible_at;
                message.attempts = rules.attempts_after_abandon(message.attempts, ignore_attempt);
            });
        }
        Ok(())
    }

    pub(crate) fn renew_turn(
        &mut self,
        token: &str,
        extend_for: Duration,
        now: u64,
    ) -> Result<(), ProviderError> {
        const RENEW: &str = "renew_orchestration_item_lock";
        let instance = match self.rules.turn_fence(Purpose::Renew, self, token, now) {
            Fence::Holds(instance) => instance,
            Fence::Expired(instance) => return refuse(RENEW, expired(token, &instance)),
            Fence::Unknown => return refuse(RENEW, released(token)),
        };
        let Some(lease) = self.leases.get_mut(&instance) else { return Ok(()) };
        let locked_until = self.rules.renewed(lease.locked_until, extend_for, now);
        lease.locked_until = locked_until;
        for ordinal in self.messages.tagged(&instance, token) {
            self.messages.update(ordinal, |message| message.fetch_at = locked_until);
        }
        Ok(())
    }
}

/// When a message becomes visible: a timer at its time, any other message after its delay.
pub(crate) fn visible_at(item: &WorkItem, now: u64, delay: Option<Duration>) -> u64 {
    let earliest = now.saturating_add(delay.map_or(0, saturating_ms));
    match item {
        WorkItem::TimerFired { fire_at_ms, .. } => earliest.max(*fire_at_ms),
        _ => earliest,
    }
}

pub(crate) fn check_id(operation: &str, instance: &str) -> Result<(), ProviderError> {
    check_instance_id(instance).or_else(|error| refuse(operation, error.to_string()))
}

/// Checks that only activities go to the worker queue.
pub(crate) fn check_activities(operation: &str, items: &[WorkItem]) -> Result<(), ProviderError> {
    for item in items {
        if !matches!(item, WorkItem::ActivityExecute { .. }) {
            return refuse(operation, format!("{} cannot go to the worker queue", item.kind_name()));
        }
        check_id(operation, item.target_instance())?;
    }
    Ok(())
}

/// Checks that no activity goes to the orchestrator queue.
pub(crate) fn check_messages(operation: &str, items: &[WorkItem]) -> Result<(), ProviderError> {
    for item in items {
        if matches!(item, WorkItem::ActivityExecute { .. }) {
            return refuse(
                operation,
                "ActivityExecute cannot go to the orchestrator queue: use the worker queue",
            );
        }
        check_id(operation, item.target_instance())?;
    }
    Ok(())
}

pub(crate) fn encoded<T>(operation: &str, encoded: Result<T, json::JsonError>) -> Result<T, ProviderError> {
    encoded.map_err(|error| ProviderError::permanent(operation, error.to_string()))
}

pub(crate) fn exists(id: u64, instance: &str, execution_id: u64) -> String {
    format!("event {id} of '{instance}', execution {execution_id}, exists already")
}

fn released(token: &str) -> String {
    format!("Invalid lock token '{token}': it was released or taken over")
}

fn expired(token: &str, instance: &str) -> String {
    format!("Invalid lock token '{token}': the lease on '{instance}' has expired")
}
