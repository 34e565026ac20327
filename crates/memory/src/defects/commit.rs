//! Broken commits and abandons.

use super::{Defect, Rules};
use crate::commit::{ACK, Commit};
use crate::queue::MessageQueue;
use crate::rules::{CommitRules, Contract};
use crate::state::{Instance, State};
use outlast_provider::model::{CONTRACT_VERSION, Event, WorkItem, json};
use outlast_provider::{LeasedOutcome, ProviderError, ScheduledActivityIdentifier};
use std::collections::BTreeMap;
use std::time::Duration;

impl CommitRules for Rules {
    fn check_turn(
        &self,
        state: &mut State,
        instance: &str,
        token: &str,
        turn: &Commit,
    ) -> Result<(), ProviderError> {
        if self.defect == Some(Defect::HalfABatchCommitted) {
            state.consume(instance, token);
        }
        Contract.check_turn(state, instance, token, turn)
    }

    fn check_event_ids(
        &self,
        operation: &str,
        instance: &str,
        execution_id: u64,
        events: &[Event],
    ) -> Result<(), ProviderError> {
        let only = |is_checked: fn(&Event) -> bool| -> Vec<Event> {
            events.iter().filter(|event| is_checked(event)).cloned().collect()
        };
        let checked = match self.defect {
            Some(Defect::EventIdZeroAccepted) => only(|event| event.event_id != 0),
            Some(Defect::DuplicateEventIgnored | Defect::DuplicateEventOverwrites) => {
                only(|event| event.event_id == 0)
            }
            _ => return Contract.check_event_ids(operation, instance, execution_id, events),
        };
        Contract.check_event_ids(operation, instance, execution_id, &checked)
    }

    fn check_new_events(
        &self,
        state: &State,
        operation: &str,
        instance: &str,
        execution_id: u64,
        events: &[Event],
    ) -> Result<(), ProviderError> {
        match self.defect {
            Some(Defect::DuplicateEventIgnored | Defect::DuplicateEventOverwrites) => return Ok(()),
            Some(Defect::AckReadsHistory) if operation == ACK => {
                let stored = state.events(instance, execution_id);
                stored.map_err(|reason| ProviderError::permanent(ACK, reason))?;
            }
            _ => {}
        }
        Contract.check_new_events(state, operation, instance, execution_id, events)
    }

    fn execution_of_events(&self, state: &State, instance: &str, turn: &Commit) -> u64 {
        match (self.defect, state.instances.get(instance)) {
            (Some(Defect::SuccessorInPredecessor), Some(row)) => row.current_execution_id,
            _ => Contract.execution_of_events(state, instance, turn),
        }
    }

    fn store_event(
        &self,
        stored: &mut BTreeMap<u64, String>,
        event: &Event,
        now: u64,
    ) -> Result<(), json::JsonError> {
        let mut event = event.clone();
        match self.defect {
            Some(Defect::EventsRestamped) => event.timestamp_ms = now,
            Some(Defect::StampsRewritten) => event.duroxide_version = CONTRACT_VERSION.to_string(),
            Some(Defect::DuplicateEventIgnored) if stored.contains_key(&event.event_id) => return Ok(()),
            _ => {}
        }
        Contract.store_event(stored, &event, now)
    }

    fn consumed(&self, messages: &MessageQueue, instance: &str, token: &str) -> Vec<u64> {
        match self.defect {
            Some(Defect::AckDeletesLateMessages) => messages.of_instance(instance, |_| true),
            _ => Contract.consumed(messages, instance, token),
        }
    }

    fn release_turn(&self, state: &mut State, instance: &str) {
        if self.defect != Some(Defect::AckKeepsLease) {
            Contract.release_turn(state, instance);
        }
    }

    fn current_execution(&self, stored: u64, committed: u64) -> u64 {
        match self.defect {
            Some(Defect::ExecutionIdAssigned) => committed,
            _ => Contract.current_execution(stored, committed),
        }
    }

    fn completed_at(&self, status: &str, now: u64) -> Option<u64> {
        match self.defect {
            Some(Defect::CompletedAtWhileRunning) => Some(now),
            _ => Contract.completed_at(status, now),
        }
    }

    fn pin(&self, stored: Option<&semver::Version>, committed: &semver::Version) -> semver::Version {
        match (self.defect, stored) {
            (Some(Defect::PinIsWriteOnce), Some(stored)) => stored.clone(),
            _ => Contract.pin(stored, committed),
        }
    }

    fn apply_custom_status(&self, row: &mut Instance, changes: &[&Option<String>]) {
        match (self.defect, changes) {
            (Some(Defect::FirstCustomStatusWins), [first, ..]) => {
                Contract.apply_custom_status(row, &[*first])
            }
            (Some(Defect::CustomStatusNotCleared), [.., None]) => row.custom_status_version += 1,
            (Some(Defect::CustomStatusVersionPerEvent), [_, others @ ..]) => {
                Contract.apply_custom_status(row, changes);
                row.custom_status_version += others.len() as u64;
            }
            _ => Contract.apply_custom_status(row, changes),
        }
    }

    fn change_activities(
        &self,
        state: &mut State,
        mut scheduled: Vec<WorkItem>,
        cancelled: &[ScheduledActivityIdentifier],
        now: u64,
    ) -> Result<(), ProviderError> {
        for item in &mut scheduled {
            let WorkItem::ActivityExecute { session_id, tag, .. } = item else { continue };
            match self.defect {
                Some(Defect::TagLostOnAck) => *tag = None,
                Some(Defect::SessionLostOnAck) => *session_id = None,
                _ => {}
            }
        }
        if self.defect == Some(Defect::CancelBeforeEnqueue) {
            state.cancel(cancelled);
            return Contract.change_activities(state, scheduled, &[], now);
        }
        Contract.change_activities(state, scheduled, cancelled, now)
    }

    fn send(&self, state: &mut State, mut item: WorkItem, now: u64) -> Result<(), ProviderError> {
        match (self.defect, &mut item) {
            (Some(Defect::CarriedMessagesLost), WorkItem::ContinueAsNew { carry_forward_events, .. }) => {
                carry_forward_events.clear()
            }
            (Some(Defect::SuccessorLosesParent), WorkItem::ContinueAsNew { parent_instance, .. }) => {
                *parent_instance = None;
            }
            (Some(Defect::TimerVisibleAtOnce), item) => return state.push_message(item, now),
            _ => {}
        }
        Contract.send(state, item, now)
    }

    fn returned(&self, messages: &MessageQueue, instance: &str, token: &str) -> Vec<u64> {
        match self.defect {
            Some(Defect::AbandonTouchesAllRows) => messages.of_instance(instance, |_| true),
            _ => Contract.returned(messages, instance, token),
        }
    }

    fn message_returns_at(&self, visible_at: u64, delay: Option<Duration>, now: u64) -> u64 {
        match (self.defect, delay) {
            (Some(Defect::AbandonLosesDelay), Some(_)) => now,
            // One millisecond is enough to lose the place in line.
            (Some(Defect::AbandonRewritesVisibility), None) => now.saturating_add(1),
            _ => Contract.message_returns_at(visible_at, delay, now),
        }
    }

    fn holds_rest_back(&self, is_partial: bool) -> bool {
        match self.defect {
            Some(Defect::DelayLetsTheRestOvertake) => false,
            _ => Contract.holds_rest_back(is_partial),
        }
    }

    fn ahead_is_timely(&self, is_of_now: bool) -> bool {
        self.defect == Some(Defect::AheadIgnoresTime) || Contract.ahead_is_timely(is_of_now)
    }

    fn ahead_is_in_place(
        &self,
        state: &State,
        instance: &str,
        execution_id: u64,
        after_event_id: u64,
    ) -> bool {
        match self.defect {
            Some(Defect::AheadIgnoresPosition) => state.instances.contains_key(instance),
            _ => Contract.ahead_is_in_place(state, instance, execution_id, after_event_id),
        }
    }

    fn ahead_overtakes_no_message(&self, messages: &MessageQueue, instance: &str, now: u64) -> bool {
        self.defect == Some(Defect::AheadOvertakesMessages)
            || Contract.ahead_overtakes_no_message(messages, instance, now)
    }

    fn all_fences_hold(&self, state: &State, outcomes: &[LeasedOutcome], now: u64) -> bool {
        match self.defect {
            Some(Defect::FusedChecksOneLease) => Contract.all_fences_hold(state, &outcomes[..1], now),
            _ => Contract.all_fences_hold(state, outcomes, now),
        }
    }

    fn complete_fused(
        &self,
        state: &mut State,
        outcome: &LeasedOutcome,
        now: u64,
    ) -> Result<(), ProviderError> {
        match self.defect {
            Some(Defect::FusedChecksOneLease) => {
                let _ = Contract.complete_fused(state, outcome, now);
                Ok(())
            }
            Some(Defect::FusedQueuesToo) => {
                state.ack_activity(&outcome.lock_token, Some(outcome.completion.clone()), now)
            }
            _ => Contract.complete_fused(state, outcome, now),
        }
    }

    fn complete_ahead(&self, state: &mut State, token: &str, now: u64) -> Result<(), ProviderError> {
        match (self.defect, Contract.complete_ahead(state, token, now)) {
            (Some(Defect::AheadSkipsFence), Err(_)) => Ok(()),
            (_, completed) => completed,
        }
    }
}
