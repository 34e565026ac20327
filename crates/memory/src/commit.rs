//! Committing a turn, giving it back, keeping its lease.

use crate::rules::{Defect, Rules};
use crate::state::{Execution, Instance, Lease, State, is_final, refuse};
use outlast_provider::model::{
    CONTRACT_VERSION, Event, EventKind, ExecutionStatus, WorkItem, check_instance_id, json,
};
use outlast_provider::{
    ExecutionMetadata, ProviderError, ScheduledActivityIdentifier, TurnCommit, saturating_ms,
};
use std::collections::BTreeSet;
use std::time::Duration;

const ACK: &str = "ack_orchestration_item";

/// A turn to commit.
pub(crate) struct Commit {
    pub(crate) execution_id: u64,
    pub(crate) delta: Vec<Event>,
    pub(crate) activities: Vec<WorkItem>,
    pub(crate) messages: Vec<WorkItem>,
    pub(crate) metadata: ExecutionMetadata,
    pub(crate) cancelled: Vec<ScheduledActivityIdentifier>,
}

impl Commit {
    /// What can be refused whatever is stored.
    pub(crate) fn check(&self, instance: &str, rules: &Rules) -> Result<(), ProviderError> {
        check_ids(ACK, instance, self.execution_id, &self.delta, rules)?;
        check_work(ACK, &self.activities)?;
        check_messages(ACK, &self.messages)
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
    /// Commits all of the turn, or nothing: whatever can be refused is checked first. Says for which instance.
    pub(crate) fn commit(
        &mut self,
        token: &str,
        turn: Commit,
        now: u64,
        rules: &Rules,
    ) -> Result<Option<String>, ProviderError> {
        let Some(instance) = self.fence(token, now, rules)? else { return Ok(None) };
        if rules.broken(Defect::HalfABatchCommitted) {
            self.delete_tagged(&instance, token);
        }
        turn.check(&instance, rules)?;
        self.check_events(&instance, &turn, rules)?;
        self.delete_tagged(&instance, token);
        if rules.broken(Defect::AckDeletesLateArrivals) {
            for ordinal in self.messages.of_instance(&instance, |_| true) {
                self.messages.remove(ordinal);
            }
        }
        self.apply_turn(&instance, turn, now, rules)?;
        if !rules.broken(Defect::AckKeepsLease) {
            self.leases.remove(&instance);
        }
        Ok(Some(instance))
    }

    /// Everything that a turn writes, once it may.
    pub(crate) fn apply_turn(
        &mut self,
        instance: &str,
        turn: Commit,
        now: u64,
        rules: &Rules,
    ) -> Result<(), ProviderError> {
        let stored_under = match self.instances.get(instance) {
            Some(row) if rules.broken(Defect::SuccessorInPredecessor) => row.current_execution_id,
            _ => turn.execution_id,
        };
        self.record_execution(instance, &turn, now, rules);
        self.append(instance, stored_under, &turn.delta, now, rules)?;
        self.apply_custom_status(instance, &turn.delta, rules);
        self.apply_kv(instance, &turn.delta, now, rules);
        let ended = turn.metadata.status.as_deref().is_some_and(is_final);
        if (ended && !rules.broken(Defect::KvNeverMerged)) || rules.broken(Defect::KvMergedTooEarly) {
            self.merge_kv(instance);
        }
        if rules.broken(Defect::CancelBeforeEnqueue) {
            self.cancel(&turn.cancelled);
        }
        for mut item in turn.activities {
            if let WorkItem::ActivityExecute { session_id, tag, .. } = &mut item {
                if rules.broken(Defect::TagLostOnAck) {
                    *tag = None;
                }
                if rules.broken(Defect::SessionLostOnAck) {
                    *session_id = None;
                }
            }
            self.push_work(item, now)?;
        }
        if !rules.broken(Defect::CancelBeforeEnqueue) {
            self.cancel(&turn.cancelled);
        }
        for mut item in turn.messages {
            if let WorkItem::ContinueAsNew { carry_forward_events, parent_instance, .. } = &mut item {
                if rules.broken(Defect::CarriedMessagesLost) {
                    carry_forward_events.clear();
                }
                if rules.broken(Defect::SuccessorLosesParent) {
                    *parent_instance = None;
                }
            }
            let late = rules.broken(Defect::TimerVisibleAtOnce);
            self.push_message(&item, if late { now } else { visible_at(&item, now, None) })?;
        }
        Ok(())
    }

    /// The instance that the token holds now. `None` only for a store that does not care.
    fn fence(&self, token: &str, now: u64, rules: &Rules) -> Result<Option<String>, ProviderError> {
        let Some(instance) = self.instance_of_token(token) else {
            let lost = self.lost_leases.get(token).filter(|_| rules.broken(Defect::AckAfterTakeover));
            return match lost {
                Some(instance) => Ok(Some(instance.clone())),
                None if rules.broken(Defect::AckSkipsTokenCheck) => Ok(None),
                None => refuse(ACK, format!("Invalid lock token '{token}': it was released or taken over")),
            };
        };
        if self.live_lease(&instance, now).is_none() && !rules.broken(Defect::AckIgnoresExpiry) {
            return refuse(
                ACK,
                format!("Invalid lock token '{token}': the lease on '{instance}' has expired"),
            );
        }
        Ok(Some(instance))
    }

    /// What is stored already, a turn must not write again.
    pub(crate) fn check_events(
        &self,
        instance: &str,
        turn: &Commit,
        rules: &Rules,
    ) -> Result<(), ProviderError> {
        if rules.broken(Defect::AckReadsHistory) {
            let stored = self.events(instance, turn.execution_id);
            stored.map_err(|reason| ProviderError::permanent(ACK, reason))?;
        }
        self.check_new(ACK, instance, turn.execution_id, &turn.delta, rules)
    }

    fn check_new(
        &self,
        operation: &str,
        instance: &str,
        execution_id: u64,
        events: &[Event],
        rules: &Rules,
    ) -> Result<(), ProviderError> {
        let stored = self.history.get(&(instance.to_string(), execution_id));
        let known = events.iter().map(|event| event.event_id);
        let mut known = known.filter(|id| stored.is_some_and(|stored| stored.contains_key(id)));
        match known.next().filter(|_| !tolerates_duplicates(rules)) {
            Some(id) => refuse(operation, exists(id, instance, execution_id)),
            None => Ok(()),
        }
    }

    fn delete_tagged(&mut self, instance: &str, token: &str) {
        for ordinal in self.messages.tagged(instance, token) {
            self.messages.remove(ordinal);
        }
    }

    /// Instance row, execution row, status and pin.
    fn record_execution(&mut self, instance: &str, turn: &Commit, now: u64, rules: &Rules) {
        let metadata = &turn.metadata;
        if let (Some(name), Some(version)) = (&metadata.orchestration_name, &metadata.orchestration_version) {
            self.create_instance(instance, turn.execution_id, metadata.parent_instance_id.clone(), now);
            if let Some(row) = self.instances.get_mut(instance) {
                row.orchestration_name.clone_from(name);
                row.orchestration_version.clone_from(version);
            }
        }
        if let Some(row) = self.instances.get_mut(instance) {
            row.current_execution_id = match rules.broken(Defect::ExecutionIdAssigned) {
                true => turn.execution_id,
                false => row.current_execution_id.max(turn.execution_id),
            };
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
            let ended = is_final(status) || rules.broken(Defect::CompletedAtWhileRunning);
            execution.status.clone_from(status);
            execution.output.clone_from(&metadata.output);
            execution.completed_at = ended.then_some(now);
        }
        if let Some(pin) = &metadata.pinned_duroxide_version
            && !(rules.broken(Defect::PinIsWriteOnce) && execution.pinned.is_some())
        {
            execution.pinned = Some(pin.clone());
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
        rules: &Rules,
    ) -> Result<(), ProviderError> {
        if events.is_empty() {
            return Ok(());
        }
        let stored = self.history.entry((instance.to_string(), execution_id)).or_default();
        for event in events {
            let mut event = event.clone();
            if rules.broken(Defect::EventsRestamped) {
                event.timestamp_ms = now;
            }
            if rules.broken(Defect::StampsRewritten) {
                event.duroxide_version = CONTRACT_VERSION.to_string();
            }
            let text = encoded(ACK, json::encode_event(&event))?;
            if !(rules.broken(Defect::DuplicateEventIgnored) && stored.contains_key(&event.event_id)) {
                stored.insert(event.event_id, text);
            }
        }
        Ok(())
    }

    /// Appends outside of a turn.
    pub(crate) fn append_checked(
        &mut self,
        instance: &str,
        execution_id: u64,
        events: &[Event],
        now: u64,
        rules: &Rules,
    ) -> Result<(), ProviderError> {
        const APPEND: &str = "append_with_execution";
        check_id(APPEND, instance)?;
        check_ids(APPEND, instance, execution_id, events, rules)?;
        self.check_new(APPEND, instance, execution_id, events, rules)?;
        self.append(instance, execution_id, events, now, rules)
    }

    /// The last status event of a turn counts, and counts once.
    fn apply_custom_status(&mut self, instance: &str, delta: &[Event], rules: &Rules) {
        let mut changes: Vec<&Option<String>> = delta
            .iter()
            .filter_map(|event| match &event.kind {
                EventKind::CustomStatusUpdated { status } => Some(status),
                _ => None,
            })
            .collect();
        if rules.broken(Defect::FirstCustomStatusWins) {
            changes.truncate(1);
        }
        let (Some(last), Some(row)) = (changes.last(), self.instances.get_mut(instance)) else { return };
        if last.is_some() || !rules.broken(Defect::CustomStatusNotCleared) {
            row.custom_status.clone_from(last);
        }
        row.custom_status_version += match rules.broken(Defect::CustomStatusVersionPerEvent) {
            true => changes.len() as u64,
            false => 1,
        };
    }

    fn cancel(&mut self, cancelled: &[ScheduledActivityIdentifier]) {
        for wanted in cancelled {
            self.work.remove_where(|work| {
                work.instance == wanted.instance
                    && work.execution_id == wanted.execution_id
                    && work.activity_id == wanted.activity_id
            });
        }
    }

    pub(crate) fn push_message(&mut self, item: &WorkItem, visible_at: u64) -> Result<(), ProviderError> {
        let text = encoded("enqueue_for_orchestrator", json::encode_work_item(item))?;
        self.messages.push(item.target_instance(), text, visible_at);
        Ok(())
    }

    pub(crate) fn abandon_turn(
        &mut self,
        token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
        now: u64,
        rules: &Rules,
    ) -> Result<(), ProviderError> {
        let lost = || self.lost_leases.get(token).filter(|_| rules.broken(Defect::AbandonAfterTakeover));
        let Some(instance) = self.instance_of_token(token).or_else(|| lost().cloned()) else {
            return match rules.broken(Defect::AbandonUnknownTokenOk) {
                true => Ok(()),
                false => refuse("abandon_orchestration_item", format!("Invalid lock token '{token}'")),
            };
        };
        let is_partial = self.leases.remove(&instance).is_some_and(|lease| lease.is_partial);
        if let Some(delay) = delay
            && is_partial
            && !rules.broken(Defect::DelayLetsTheRestOvertake)
        {
            // What was left behind must not overtake what comes back later.
            let locked_until = now.saturating_add(saturating_ms(delay));
            let rest = Lease { token: String::new(), locked_until, is_partial: false, is_rest: true };
            self.leases.insert(instance.clone(), rest);
        }
        let rows = match rules.broken(Defect::AbandonTouchesAllRows) {
            true => self.messages.of_instance(&instance, |_| true),
            false => self.messages.tagged(&instance, token),
        };
        for ordinal in rows {
            self.messages.update(ordinal, |message| {
                message.token = None;
                match delay {
                    Some(_) if rules.broken(Defect::AbandonLosesDelay) => message.visible_at = now,
                    Some(delay) => message.visible_at = now.saturating_add(saturating_ms(delay)),
                    // One millisecond is enough to lose the place in line.
                    None if rules.broken(Defect::AbandonRewritesVisibility) => {
                        message.visible_at = now.saturating_add(1);
                    }
                    None => {}
                }
                message.fetch_at = message.visible_at;
                message.attempts = given_back(message.attempts, ignore_attempt, rules);
            });
        }
        Ok(())
    }

    pub(crate) fn renew_turn(
        &mut self,
        token: &str,
        extend_for: Duration,
        now: u64,
        rules: &Rules,
    ) -> Result<(), ProviderError> {
        const RENEW: &str = "renew_orchestration_item_lock";
        let Some(instance) = self.instance_of_token(token) else {
            return refuse(RENEW, format!("Invalid lock token '{token}': it was released or taken over"));
        };
        let Some(lease) = self.leases.get_mut(&instance) else { return Ok(()) };
        if lease.locked_until <= now && !rules.broken(Defect::RenewRevives) {
            return refuse(
                RENEW,
                format!("Invalid lock token '{token}': the lease on '{instance}' has expired"),
            );
        }
        let locked_until = renewed(lease.locked_until, extend_for, now, rules);
        lease.locked_until = locked_until;
        for ordinal in self.messages.tagged(&instance, token) {
            self.messages.update(ordinal, |message| message.fetch_at = locked_until);
        }
        Ok(())
    }
}

/// A renewed deadline: never earlier than the old one.
pub(crate) fn renewed(old: u64, extend_for: Duration, now: u64, rules: &Rules) -> u64 {
    let extend_for = match rules.broken(Defect::RenewTruncatesToSeconds) {
        true => Duration::from_secs(extend_for.as_secs()),
        false => extend_for,
    };
    let new = now.saturating_add(saturating_ms(extend_for));
    let shortens = rules.broken(Defect::RenewShortens) || rules.broken(Defect::RenewTruncatesToSeconds);
    if shortens { new } else { new.max(old) }
}

/// The delivery count of something given back.
pub(crate) fn given_back(attempts: u32, ignore_attempt: bool, rules: &Rules) -> u32 {
    if !ignore_attempt || rules.broken(Defect::IgnoreAttemptIgnored) {
        attempts
    } else if rules.broken(Defect::AttemptBelowZero) {
        attempts.wrapping_sub(2)
    } else {
        attempts.saturating_sub(1)
    }
}

/// When a message becomes visible: a timer at its time, anything else after its delay.
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

/// Only activities go to the worker queue.
pub(crate) fn check_work(operation: &str, items: &[WorkItem]) -> Result<(), ProviderError> {
    for item in items {
        if !matches!(item, WorkItem::ActivityExecute { .. }) {
            return refuse(operation, format!("{} cannot go to the worker queue", item.kind_name()));
        }
        check_id(operation, item.target_instance())?;
    }
    Ok(())
}

/// Activities never go to the orchestrator queue.
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

pub(crate) fn encoded(
    operation: &str,
    text: Result<String, json::JsonError>,
) -> Result<String, ProviderError> {
    text.map_err(|error| ProviderError::permanent(operation, error.to_string()))
}

/// Ids count from 1, and each comes once.
fn check_ids(
    operation: &str,
    instance: &str,
    execution_id: u64,
    events: &[Event],
    rules: &Rules,
) -> Result<(), ProviderError> {
    let mut seen = BTreeSet::new();
    for event in events {
        let id = event.event_id;
        if id == 0 && !rules.broken(Defect::EventIdZeroAccepted) {
            let what = event.kind.type_name();
            return refuse(
                operation,
                format!("event {what} of '{instance}' has id 0: the runtime assigns ids from 1"),
            );
        }
        if !seen.insert(id) && !tolerates_duplicates(rules) {
            return refuse(operation, exists(id, instance, execution_id));
        }
    }
    Ok(())
}

fn tolerates_duplicates(rules: &Rules) -> bool {
    rules.broken(Defect::DuplicateEventIgnored) || rules.broken(Defect::DuplicateEventOverwrites)
}

fn exists(id: u64, instance: &str, execution_id: u64) -> String {
    format!("event {id} of '{instance}', execution {execution_id}, exists already")
}
