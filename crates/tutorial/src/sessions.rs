//! Step 7: sessions bind activities to one owner.

use crate::state::{Session, State, after};
use outlast_provider::{SessionFetchConfig, saturating_ms};
use std::time::Duration;

// guide: sessions
impl State {
    /// Whether the caller may take an activity of this session.
    pub(crate) fn session_admits(
        &self,
        session: Option<&str>,
        caller: Option<&SessionFetchConfig>,
        now: u64,
    ) -> bool {
        match (session, caller) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(id), Some(caller)) => self
                .sessions
                .get(id)
                .is_none_or(|session| session.locked_until <= now || session.owner == caller.owner_id),
        }
    }

    pub(crate) fn claim_session(&mut self, id: String, caller: &SessionFetchConfig, now: u64) {
        let owner = caller.owner_id.clone();
        let locked_until = after(now, caller.lock_timeout);
        self.sessions.insert(id, Session { owner, locked_until, last_activity_at: now });
    }

    /// Notes that an activity of a leased session was completed or renewed, by any owner.
    pub(crate) fn touch_session(&mut self, session: Option<&str>, now: u64) {
        let session = session.and_then(|id| self.sessions.get_mut(id));
        if let Some(session) = session.filter(|session| session.locked_until > now) {
            session.last_activity_at = now;
        }
    }

    pub(crate) fn renew_sessions(
        &mut self,
        owners: &[&str],
        extend_for: Duration,
        idle_timeout: Duration,
        now: u64,
    ) -> usize {
        let idle_since = now.checked_sub(saturating_ms(idle_timeout));
        let is_active = |session: &Session| idle_since.is_none_or(|since| session.last_activity_at > since);
        let mut renewed = 0;
        for session in self.sessions.values_mut() {
            let is_held = session.locked_until > now;
            if owners.contains(&session.owner.as_str()) && is_held && is_active(session) {
                session.locked_until = session.locked_until.max(after(now, extend_for));
                renewed += 1;
            }
        }
        renewed
    }

    pub(crate) fn cleanup_sessions(&mut self, now: u64) -> usize {
        let before = self.sessions.len();
        let has_activity =
            |id: &str| self.activities.values().any(|activity| activity.session.as_deref() == Some(id));
        self.sessions.retain(|id, session| session.locked_until >= now || has_activity(id));
        before - self.sessions.len()
    }
}
// guide: end
