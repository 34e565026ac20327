//! Broken handling of activities and sessions.

use super::{Defect, Rules};
use crate::queue::Activity;
use crate::rules::{ActivityRules, Contract};
use crate::state::{Session, State, refuse};
use outlast_provider::model::WorkItem;
use outlast_provider::{FetchedWork, ProviderError, SessionFetchConfig, TagFilter, WorkNotes};
use std::time::Duration;

impl ActivityRules for Rules {
    fn activity_order(&self, state: &State) -> Vec<u64> {
        let mut order = Contract.activity_order(state);
        if self.defect == Some(Defect::WorkLifo) {
            order.reverse();
        }
        order
    }

    fn tag_matches(&self, filter: &TagFilter, tag: Option<&str>) -> bool {
        self.defect == Some(Defect::TagFilterIgnored) || Contract.tag_matches(filter, tag)
    }

    fn move_activity_to_dead_letters(
        &self,
        state: &mut State,
        ordinal: u64,
        reason: String,
        now: u64,
    ) -> Result<(), ProviderError> {
        match self.defect {
            Some(Defect::UndecodableWorkBlocks) => refuse("fetch_work_item", reason),
            _ => Contract.move_activity_to_dead_letters(state, ordinal, reason, now),
        }
    }

    fn counted_delivery(&self, attempts: u32) -> u32 {
        match self.defect {
            Some(Defect::WorkAttemptsNotCounted) => attempts,
            _ => Contract.counted_delivery(attempts),
        }
    }

    fn activity_batch(&self, mut leased: Vec<FetchedWork>) -> Vec<FetchedWork> {
        if self.defect == Some(Defect::BatchHandsOutTwice) && leased.len() > 1 {
            leased.extend(leased.first().cloned());
        }
        Contract.activity_batch(leased)
    }

    fn store_completion(
        &self,
        state: &mut State,
        completion: &WorkItem,
        now: u64,
    ) -> Result<(), ProviderError> {
        match self.defect {
            Some(Defect::WorkAckLosesCompletion) => Ok(()),
            _ => Contract.store_completion(state, completion, now),
        }
    }

    fn activity_returns_at(&self, delay: Option<Duration>, now: u64) -> u64 {
        match self.defect {
            Some(Defect::WorkAbandonLosesDelay) => now,
            _ => Contract.activity_returns_at(delay, now),
        }
    }

    fn noted_returns_at(&self, delay: Option<Duration>, now: u64) -> u64 {
        match self.defect {
            Some(Defect::NoteLosesDelay) => now,
            _ => Contract.noted_returns_at(delay, now),
        }
    }

    fn attempts_after_note(&self, attempts: u32) -> u32 {
        match self.defect {
            Some(Defect::NotedDeliveryCounted) => attempts,
            Some(Defect::NoteForgetsDeliveries) => 0,
            _ => Contract.attempts_after_note(attempts),
        }
    }

    fn note_failure(&self, notes: &mut WorkNotes, error: &str) {
        match self.defect {
            Some(Defect::NoteNotKept) => {}
            Some(Defect::NoteCountedTwice) => (0..2).for_each(|_| Contract.note_failure(notes, error)),
            Some(Defect::NoteKeepsFirstError) if notes.failures > 0 => notes.failures += 1,
            _ => Contract.note_failure(notes, error),
        }
    }

    fn session_admits(
        &self,
        state: &State,
        session_id: Option<&str>,
        caller: Option<&SessionFetchConfig>,
        now: u64,
    ) -> bool {
        match self.defect {
            Some(Defect::SessionIgnored) if caller.is_none() => true,
            Some(Defect::SessionStolen) if caller.is_some() => true,
            _ => Contract.session_admits(state, session_id, caller, now),
        }
    }

    fn stamp_session(&self, session: &mut Session, now: u64) {
        if self.defect != Some(Defect::SessionActivityNotStamped) {
            Contract.stamp_session(session, now);
        }
    }

    fn session_is_live(&self, session: &Session, now: u64) -> bool {
        self.defect == Some(Defect::SessionRenewRevives) || Contract.session_is_live(session, now)
    }

    fn session_is_active(&self, session: &Session, idle: Duration, now: u64) -> bool {
        self.defect == Some(Defect::SessionIdleIgnored) || Contract.session_is_active(session, idle, now)
    }

    fn session_is_needed<'a>(
        &self,
        activities: impl Iterator<Item = &'a Activity>,
        session_id: &str,
    ) -> bool {
        self.defect != Some(Defect::CleanupIgnoresPendingWork)
            && Contract.session_is_needed(activities, session_id)
    }
}
