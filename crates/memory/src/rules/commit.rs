//! Commits of turns, abandons, and completions that carry a turn.

use crate::commit::{ACK, Commit, exists, visible_at};
use crate::queue::MessageQueue;
use crate::rules::{Fence, LeaseRules, Purpose};
use crate::state::{Instance, State, is_final, refuse};
use outlast_provider::model::{Event, WorkItem, json};
use outlast_provider::{LeasedOutcome, ProviderError, ScheduledActivityIdentifier, saturating_ms};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

pub(crate) trait CommitRules {
    /// A commit is checked before it changes any row.
    fn check_turn(
        &self,
        state: &mut State,
        instance: &str,
        _token: &str,
        turn: &Commit,
    ) -> Result<(), ProviderError> {
        turn.check(instance, state.rules)?;
        state.rules.check_new_events(state, ACK, instance, turn.execution_id, &turn.delta)
    }

    /// Event ids count from 1, and each id occurs once in a call.
    fn check_event_ids(
        &self,
        operation: &str,
        instance: &str,
        execution_id: u64,
        events: &[Event],
    ) -> Result<(), ProviderError> {
        let mut seen = BTreeSet::new();
        for event in events {
            let (id, kind) = (event.event_id, event.kind.type_name());
            if id == 0 {
                return refuse(
                    operation,
                    format!("event {kind} of '{instance}' has id 0: the runtime assigns ids from 1"),
                );
            }
            if !seen.insert(id) {
                return refuse(operation, exists(id, instance, execution_id));
            }
        }
        Ok(())
    }

    /// An event that is stored is never written again. The stored events are not decoded for this.
    fn check_new_events(
        &self,
        state: &State,
        operation: &str,
        instance: &str,
        execution_id: u64,
        events: &[Event],
    ) -> Result<(), ProviderError> {
        let stored = state.history.get(&(instance.to_string(), execution_id));
        let ids = events.iter().map(|event| event.event_id);
        let known = ids.into_iter().find(|id| stored.is_some_and(|stored| stored.contains_key(id)));
        match known {
            Some(id) => refuse(operation, exists(id, instance, execution_id)),
            None => Ok(()),
        }
    }

    /// Events are stored under the execution that the turn belongs to.
    fn execution_of_events(&self, _state: &State, _instance: &str, turn: &Commit) -> u64 {
        turn.execution_id
    }

    /// An event is stored with the timestamp and the contract version that it came with.
    fn store_event(
        &self,
        stored: &mut BTreeMap<u64, String>,
        event: &Event,
        _now: u64,
    ) -> Result<(), json::JsonError> {
        stored.insert(event.event_id, json::encode_event(event)?);
        Ok(())
    }

    /// A commit deletes the messages that its fetch covered, and no message that came later.
    fn consumed(&self, messages: &MessageQueue, instance: &str, token: &str) -> Vec<u64> {
        messages.tagged(instance, token)
    }

    /// A commit releases the lease, so that its token cannot be used again.
    fn release_turn(&self, state: &mut State, instance: &str) {
        state.leases.remove(instance);
    }

    /// The current execution is the highest one that was ever committed.
    fn current_execution(&self, stored: u64, committed: u64) -> u64 {
        stored.max(committed)
    }

    /// An execution has a time of completion when its status is final.
    fn completed_at(&self, status: &str, now: u64) -> Option<u64> {
        is_final(status).then_some(now)
    }

    /// The version pin of the last commit counts.
    fn pin(&self, _stored: Option<&semver::Version>, committed: &semver::Version) -> semver::Version {
        committed.clone()
    }

    /// The last status event of a turn counts, and a turn raises the status version by one.
    fn apply_custom_status(&self, row: &mut Instance, changes: &[&Option<String>]) {
        if let Some(last) = changes.last() {
            row.custom_status.clone_from(last);
            row.custom_status_version += 1;
        }
    }

    /// A turn's activities are stored unchanged before the cancelled activities are removed: an activity that the same turn
    /// schedules and cancels never runs.
    fn change_activities(
        &self,
        state: &mut State,
        scheduled: Vec<WorkItem>,
        cancelled: &[ScheduledActivityIdentifier],
        now: u64,
    ) -> Result<(), ProviderError> {
        for item in scheduled {
            state.push_activity(item, now)?;
        }
        state.cancel(cancelled);
        Ok(())
    }

    /// A turn's messages are stored unchanged. A timer becomes visible at its time.
    fn send(&self, state: &mut State, item: WorkItem, now: u64) -> Result<(), ProviderError> {
        state.push_message(&item, visible_at(&item, now, None))
    }

    /// An abandon gives back the messages that its fetch covered, and no others.
    fn returned(&self, messages: &MessageQueue, instance: &str, token: &str) -> Vec<u64> {
        messages.tagged(instance, token)
    }

    /// An abandoned message becomes visible after the delay; without a delay it keeps its place in line.
    fn message_returns_at(&self, visible_at: u64, delay: Option<Duration>, now: u64) -> u64 {
        delay.map_or(visible_at, |delay| now.saturating_add(saturating_ms(delay)))
    }

    /// Messages that a partial fetch left behind wait for the fetched messages, which return after a delay.
    fn holds_rest_back(&self, is_partial: bool) -> bool {
        is_partial
    }

    /// A run-ahead turn is accepted if its runner's clock agrees with the store's clock.
    fn ahead_is_timely(&self, is_of_now: bool) -> bool {
        is_of_now
    }

    /// A run-ahead turn is accepted if the running execution still ends with the event that the turn followed.
    fn ahead_is_in_place(
        &self,
        state: &State,
        instance: &str,
        execution_id: u64,
        after_event_id: u64,
    ) -> bool {
        state.instances.get(instance).is_some_and(|row| row.current_execution_id == execution_id)
            && state.is_running(instance)
            && state.last_event_id(instance, execution_id) == after_event_id
    }

    /// A run-ahead turn does not overtake messages that wait for the instance.
    fn ahead_overtakes_no_message(&self, messages: &MessageQueue, instance: &str, now: u64) -> bool {
        messages.visible(instance, now).is_empty()
    }

    /// A turn of several outcomes is committed under the live leases of their activities, each of which counts once.
    fn all_fences_hold(&self, state: &State, outcomes: &[LeasedOutcome], now: u64) -> bool {
        let mut held = BTreeSet::new();
        outcomes.iter().all(|outcome| {
            match state.rules.activity_fence(Purpose::Commit, state, &outcome.lock_token, now) {
                Fence::Holds(ordinal) => held.insert(ordinal),
                Fence::Expired(_) | Fence::Unknown => false,
            }
        })
    }

    /// An activity whose outcome is committed with a turn of several outcomes is removed.
    fn complete_fused(
        &self,
        state: &mut State,
        outcome: &LeasedOutcome,
        now: u64,
    ) -> Result<(), ProviderError> {
        state.ack_activity(&outcome.lock_token, None, now)
    }

    /// A run-ahead turn is committed under the live lease of its activity.
    fn complete_ahead(&self, state: &mut State, token: &str, now: u64) -> Result<(), ProviderError> {
        state.ack_activity(token, None, now)
    }
}
