//! Sessions: work that stays with one owner.

use crate::rules::{Defect, Rules};
use crate::state::{Session, State};
use outlast_provider::SessionFetchConfig;
use outlast_provider::saturating_ms;
use std::time::Duration;

impl State {
    /// Whether the caller may take work of this session.
    pub(crate) fn session_admits(
        &self,
        session_id: Option<&str>,
        caller: Option<&SessionFetchConfig>,
        now: u64,
        rules: &Rules,
    ) -> bool {
        let (Some(session_id), Some(caller)) = (session_id, caller) else {
            return session_id.is_none() || rules.broken(Defect::SessionIgnored);
        };
        match self.sessions.get(session_id) {
            Some(session) if session.locked_until > now => {
                session.owner == caller.owner_id || rules.broken(Defect::SessionStolen)
            }
            _ => true,
        }
    }

    pub(crate) fn claim_session(&mut self, session_id: &str, caller: &SessionFetchConfig, now: u64) {
        let session = Session {
            owner: caller.owner_id.clone(),
            locked_until: now.saturating_add(saturating_ms(caller.lock_timeout)),
            last_activity_at: now,
        };
        self.sessions.insert(session_id.to_string(), session);
    }

    /// Work of a session was completed or renewed: the session is in use, whoever holds it.
    pub(crate) fn stamp_session(&mut self, session_id: Option<&str>, now: u64, rules: &Rules) {
        let session = session_id.and_then(|id| self.sessions.get_mut(id));
        if let Some(session) = session.filter(|session| session.locked_until > now)
            && !rules.broken(Defect::SessionActivityNotStamped)
        {
            session.last_activity_at = now;
        }
    }

    pub(crate) fn renew_sessions(
        &mut self,
        owners: &[&str],
        extend_for: Duration,
        idle: Duration,
        now: u64,
        rules: &Rules,
    ) -> usize {
        let locked_until = now.saturating_add(saturating_ms(extend_for));
        let active_since = now.checked_sub(saturating_ms(idle));
        let mut renewed = 0;
        for session in self.sessions.values_mut() {
            let live = session.locked_until > now || rules.broken(Defect::SessionRenewRevives);
            // A window that reaches back before the epoch covers everything.
            let active = active_since.is_none_or(|since| session.last_activity_at > since)
                || rules.broken(Defect::SessionIdleIgnored);
            if owners.contains(&session.owner.as_str()) && live && active {
                session.locked_until = session.locked_until.max(locked_until);
                renewed += 1;
            }
        }
        renewed
    }

    pub(crate) fn cleanup_sessions(&mut self, now: u64, rules: &Rules) -> usize {
        let before = self.sessions.len();
        let rows = &self.work.rows;
        self.sessions.retain(|id, session| {
            let wanted = rows.values().any(|work| work.session_id.as_deref() == Some(id));
            session.locked_until >= now || (wanted && !rules.broken(Defect::CleanupIgnoresPendingWork))
        });
        before - self.sessions.len()
    }

    /// When the next session lease ends, which may free its work.
    pub(crate) fn next_session_end(&self, now: u64) -> Option<u64> {
        self.sessions.values().map(|session| session.locked_until).filter(|at| *at > now).min()
    }
}
