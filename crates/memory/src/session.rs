//! Sessions: activities that stay with one owner.

use crate::rules::ActivityRules;
use crate::state::{Session, State};
use outlast_provider::SessionFetchConfig;
use outlast_provider::saturating_ms;
use std::time::Duration;

impl State {
    /// Leases the session for the caller.
    pub(crate) fn claim_session(&mut self, session_id: &str, caller: &SessionFetchConfig, now: u64) {
        let session = Session {
            owner: caller.owner_id.clone(),
            locked_until: now.saturating_add(saturating_ms(caller.lock_timeout)),
            last_activity_at: now,
        };
        self.sessions.insert(session_id.to_string(), session);
    }

    /// Notes that an activity of a leased session was completed or renewed, by any owner.
    pub(crate) fn stamp_session(&mut self, session_id: Option<&str>, now: u64) {
        let session = session_id.and_then(|id| self.sessions.get_mut(id));
        if let Some(session) = session.filter(|session| session.locked_until > now) {
            self.rules.stamp_session(session, now);
        }
    }

    /// Extends the live and active sessions of these owners; returns how many.
    pub(crate) fn renew_sessions(
        &mut self,
        owners: &[&str],
        extend_for: Duration,
        idle: Duration,
        now: u64,
    ) -> usize {
        let rules = self.rules;
        let locked_until = now.saturating_add(saturating_ms(extend_for));
        let mut renewed = 0;
        for session in self.sessions.values_mut() {
            if owners.contains(&session.owner.as_str())
                && rules.session_is_live(session, now)
                && rules.session_is_active(session, idle, now)
            {
                session.locked_until = session.locked_until.max(locked_until);
                renewed += 1;
            }
        }
        renewed
    }

    /// Removes sessions whose lease is over and for which no activity waits; returns how many.
    pub(crate) fn cleanup_sessions(&mut self, now: u64) -> usize {
        let before = self.sessions.len();
        let (rules, activities) = (self.rules, &self.activities.rows);
        self.sessions.retain(|id, session| {
            session.locked_until >= now || rules.session_is_needed(activities.values(), id)
        });
        before - self.sessions.len()
    }

    /// When the next session lease ends. Its activities may become available then.
    pub(crate) fn next_session_end(&self, now: u64) -> Option<u64> {
        self.sessions.values().map(|session| session.locked_until).filter(|at| *at > now).min()
    }
}
