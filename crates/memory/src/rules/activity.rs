//! Activities and sessions.

use crate::queue::Activity;
use crate::state::{Session, State};
use outlast_provider::model::WorkItem;
use outlast_provider::{FetchedWork, ProviderError, SessionFetchConfig, TagFilter, WorkNotes, saturating_ms};
use std::time::Duration;

pub(crate) trait ActivityRules {
    /// A fetch tries the oldest activity first.
    fn activity_order(&self, state: &State) -> Vec<u64> {
        state.activities.rows.keys().copied().collect()
    }

    /// A fetch takes an activity whose tag its filter admits.
    fn tag_matches(&self, filter: &TagFilter, tag: Option<&str>) -> bool {
        filter.matches(tag)
    }

    /// An activity that does not decode becomes a dead letter, so that it does not block the activities behind it.
    fn move_activity_to_dead_letters(
        &self,
        state: &mut State,
        ordinal: u64,
        reason: String,
        now: u64,
    ) -> Result<(), ProviderError> {
        state.move_activity_to_dead_letters(ordinal, reason, now);
        Ok(())
    }

    /// A lease counts the delivery of its activity.
    fn counted_delivery(&self, attempts: u32) -> u32 {
        attempts + 1
    }

    /// A batch delivers each activity once.
    fn activity_batch(&self, leased: Vec<FetchedWork>) -> Vec<FetchedWork> {
        leased
    }

    /// A completion is stored in the step that removes its activity.
    fn store_completion(
        &self,
        state: &mut State,
        completion: &WorkItem,
        now: u64,
    ) -> Result<(), ProviderError> {
        state.push_message(completion, now)
    }

    /// An abandoned activity becomes visible after the delay.
    fn activity_returns_at(&self, delay: Option<Duration>, now: u64) -> u64 {
        now.saturating_add(delay.map_or(0, saturating_ms))
    }

    /// An activity whose handler has failed becomes visible after the delay.
    fn noted_returns_at(&self, delay: Option<Duration>, now: u64) -> u64 {
        now.saturating_add(delay.map_or(0, saturating_ms))
    }

    /// A delivery that reported a failure is taken off the delivery count, never below zero.
    fn attempts_after_note(&self, attempts: u32) -> u32 {
        attempts.saturating_sub(1)
    }

    /// A failure is counted, and its text replaces that of the failure before.
    fn note_failure(&self, notes: &mut WorkNotes, error: &str) {
        notes.failures = notes.failures.saturating_add(1);
        notes.last_error = Some(error.to_string());
    }

    /// An activity of a session goes to a caller with a session configuration, and while the session is leased only to its
    /// owner.
    fn session_admits(
        &self,
        state: &State,
        session_id: Option<&str>,
        caller: Option<&SessionFetchConfig>,
        now: u64,
    ) -> bool {
        let (Some(session_id), Some(caller)) = (session_id, caller) else { return session_id.is_none() };
        match state.sessions.get(session_id) {
            Some(session) if session.locked_until > now => session.owner == caller.owner_id,
            _ => true,
        }
    }

    /// The completion or renewal of an activity counts as activity of its leased session.
    fn stamp_session(&self, session: &mut Session, now: u64) {
        session.last_activity_at = now;
    }

    /// A session is renewed while its lease is live.
    fn session_is_live(&self, session: &Session, now: u64) -> bool {
        session.locked_until > now
    }

    /// A session is renewed if it was active within the idle timeout. A timeout that reaches back before the epoch includes
    /// every session.
    fn session_is_active(&self, session: &Session, idle: Duration, now: u64) -> bool {
        now.checked_sub(saturating_ms(idle)).is_none_or(|since| session.last_activity_at > since)
    }

    /// A cleanup keeps a session for which activities wait.
    fn session_is_needed<'a>(
        &self,
        mut activities: impl Iterator<Item = &'a Activity>,
        session_id: &str,
    ) -> bool {
        activities.any(|activity| activity.session_id.as_deref() == Some(session_id))
    }
}
