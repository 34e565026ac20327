//! Sessions: activities that stay with one owner. A session is claimed before its activity; a claim without an activity expires.

use crate::client::{Op, is_conflict};
use crate::document::{Session, Versioned};
use crate::doubt::Verdict;
use crate::error::contended;
use crate::ids;
use crate::layout;
use crate::sql;
use crate::store::{Store, locked};
use outlast_provider::{ProviderError, SessionFetchConfig, saturating_ms};
use serde_json::Value;
use std::time::Duration;

const FETCH: &str = crate::fetch_activity::FETCH;
const ATTEMPTS: usize = 4;

impl Store {
    /// Leases a session for a caller. Returns the end of another owner's lease, if the session has one.
    pub(crate) async fn claim_session(
        &self,
        session_id: &str,
        caller: &SessionFetchConfig,
    ) -> Result<Option<u64>, ProviderError> {
        let known = locked(&self.sessions).get(session_id).cloned();
        let mut known = match known {
            Some(known) => known,
            None => self.read_session(session_id).await?,
        };
        for _ in 0..ATTEMPTS {
            let now = self.now();
            if let Some(session) = known.as_ref().map(|known| &known.document)
                && session.owner != caller.owner_id
                && self.over_at(session.until, session.holder) > now
            {
                return Ok(Some(self.over_at(session.until, session.holder)));
            }
            let session = Session {
                id: ids::session(session_id),
                partition: layout::session(session_id),
                t: "s".to_string(),
                session_id: session_id.to_string(),
                owner: caller.owner_id.clone(),
                holder: self.own,
                until: now.saturating_add(saturating_ms(caller.lock_timeout)),
                last_activity_at: now,
                w: self.uid(),
            };
            if self.write_session(FETCH, known.as_ref().map(|known| known.etag.as_str()), session).await? {
                return Ok(None);
            }
            known = self.read_session(session_id).await?;
        }
        Err(contended(FETCH, session_id))
    }

    async fn read_session(&self, session_id: &str) -> Result<Option<Versioned<Session>>, ProviderError> {
        let partition = layout::session(session_id);
        let read = self.client.read::<Session>(FETCH, &partition, &ids::session(session_id)).await?;
        locked(&self.sessions).insert(session_id.to_string(), read.clone());
        Ok(read)
    }

    /// Creates or replaces a session; false if it is not the one that was read. A write that is in doubt is read again.
    async fn write_session(
        &self,
        operation: &str,
        before: Option<&str>,
        session: Session,
    ) -> Result<bool, ProviderError> {
        let write = match before {
            Some(etag) => Op::replace(&session.id, &session, Some(etag))?,
            None => Op::create(&session)?,
        };
        let batched = self.client.batch(&session.partition, vec![write]).await?;
        let known = |etag: String| {
            let id = session.session_id.clone();
            let versioned = Versioned { etag, document: session.clone() };
            locked(&self.sessions).insert(id, Some(versioned));
        };
        match batched.verdict() {
            Verdict::Applied => {
                known(batched.etags.first().cloned().unwrap_or_default());
                Ok(true)
            }
            Verdict::Refused(refusal) if is_conflict(refusal) => Ok(false),
            Verdict::Refused(_) => Err(batched.error(operation)),
            Verdict::InDoubt => {
                let read = self.read_session(&session.session_id).await?;
                Ok(read.is_some_and(|read| read.document.w == session.w))
            }
        }
    }

    /// Notes that an activity of a leased session was completed or renewed. The note is advisory: a session that changes
    /// meanwhile gets none.
    pub(crate) async fn stamp_session(&self, session_id: Option<&str>) {
        const STAMP: &str = "stamp_session";
        let Some(session_id) = session_id else { return };
        let known = locked(&self.sessions).get(session_id).cloned().flatten();
        let mut known = match known {
            Some(known) => Some(known),
            None => self.read_session(session_id).await.ok().flatten(),
        };
        for _ in 0..ATTEMPTS {
            // The time at which the write is sent, not the time of the call.
            let now = self.now();
            let Some(found) = known.filter(|known| known.document.until > now) else { return };
            let session = Session { last_activity_at: now, w: self.uid(), ..found.document };
            match self.write_session(STAMP, Some(&found.etag), session).await {
                Ok(true) => return,
                Ok(false) => known = self.read_session(session_id).await.ok().flatten(),
                Err(error) => {
                    tracing::debug!(target: "duroxide::providers::cosmosdb", %error, "a session was not stamped");
                    return;
                }
            }
        }
    }

    /// Extends the live and active sessions of these owners; returns their number.
    pub(crate) async fn renew_sessions(
        &self,
        owners: &[&str],
        extend_for: Duration,
        idle: Duration,
    ) -> Result<usize, ProviderError> {
        const RENEW: &str = "renew_session_lock";
        let parameters = [("@owners", serde_json::json!(owners))];
        let mut renewed = 0;
        for found in self.all_sessions(RENEW, sql::SESSIONS_OF, &parameters).await? {
            let mut found = Some(found);
            for _ in 0..ATTEMPTS {
                let Some(Versioned { etag, document: session }) = found.take() else { break };
                let now = self.now();
                let since = now.checked_sub(saturating_ms(idle));
                let is_active = since.is_none_or(|since| session.last_activity_at > since);
                if session.until <= now || !is_active || !owners.contains(&session.owner.as_str()) {
                    break;
                }
                let until = session.until.max(now.saturating_add(saturating_ms(extend_for)));
                let id = session.session_id.clone();
                let next = Session { until, holder: self.own, w: self.uid(), ..session };
                if self.write_session(RENEW, Some(&etag), next).await? {
                    renewed += 1;
                    break;
                }
                found = self.read_session(&id).await?;
            }
        }
        Ok(renewed)
    }

    async fn all_sessions(
        &self,
        operation: &str,
        sql: &'static str,
        parameters: &[(&str, Value)],
    ) -> Result<Vec<Versioned<Session>>, ProviderError> {
        let partitions = layout::sessions();
        let queries =
            partitions.iter().map(|partition| self.client.query(operation, partition, sql, parameters));
        let found: Vec<Vec<Versioned<Session>>> = futures::future::try_join_all(queries).await?;
        Ok(found.into_iter().flatten().collect())
    }

    /// Removes sessions whose lease is over and for which no activity waits; returns their number.
    pub(crate) async fn clean_up_sessions(&self) -> Result<usize, ProviderError> {
        const CLEANUP: &str = "cleanup_orphaned_sessions";
        let mut removed = 0;
        for Versioned { etag, document: session } in self.all_sessions(CLEANUP, sql::SESSIONS, &[]).await? {
            if self.over_at(session.until, session.holder) >= self.now() {
                continue;
            }
            let parameters = [("@session", session.session_id.clone().into())];
            let waiting: Vec<Value> =
                self.client.query_all(CLEANUP, sql::WORK_OF_SESSION, &parameters, 1).await?;
            if !waiting.is_empty() {
                continue;
            }
            let removal = Op::delete(&session.id, Some(&etag));
            let batched = self.client.batch(&session.partition, vec![removal]).await?;
            match batched.verdict() {
                Verdict::Applied => {
                    locked(&self.sessions).remove(&session.session_id);
                    removed += 1;
                }
                Verdict::Refused(refusal) if is_conflict(refusal) => {}
                _ => return Err(batched.error(CLEANUP)),
            }
        }
        Ok(removed)
    }
}
