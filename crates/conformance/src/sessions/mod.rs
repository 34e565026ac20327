//! An activity of a session goes to the worker that owns the session, while the session's lease lasts.
//!
//! All activities of one session belong to one instance here, so a store may keep sessions per instance or globally.

mod affinity;
mod cleanup;
mod expiry;
mod redelivery;
mod renewal;

pub use affinity::*;
pub use cleanup::*;
pub use expiry::*;
pub use redelivery::*;
pub use renewal::*;

use crate::support::*;
use outlast_provider::{Provider, SessionFetchConfig, TagFilter, WorkItem};
use std::time::Duration;

const INSTANCE: &str = "session-work";

/// An activity of this session.
fn bound(id: u64, session: &str) -> WorkItem {
    activity_with(INSTANCE, id, Some(session), None)
}

/// An activity without a session.
fn plain(id: u64) -> WorkItem {
    activity(INSTANCE, id)
}

/// Renews the sessions of these owners and returns their number.
async fn renew(provider: &dyn Provider, owners: &[&str], extend_for: Duration) -> usize {
    renew_if_used_within(provider, owners, extend_for, LONG).await
}

async fn renew_if_used_within(
    provider: &dyn Provider,
    owners: &[&str],
    extend_for: Duration,
    window: Duration,
) -> usize {
    provider.renew_session_lock(owners, extend_for, window).await.expect("renew_session_lock succeeds")
}

/// A worker, with checks of the activities that it gets. Its leases are long by default.
struct Worker<'a> {
    provider: &'a dyn Provider,
    session: Option<SessionFetchConfig>,
    activity_lease: Duration,
}

impl<'a> Worker<'a> {
    fn new(provider: &'a dyn Provider, owner_id: &str) -> Self {
        Self { session: Some(session_owner(owner_id, LONG)), ..Self::without_sessions(provider) }
    }

    fn without_sessions(provider: &'a dyn Provider) -> Self {
        Self { provider, session: None, activity_lease: LONG }
    }

    fn session_lease(mut self, lease: Duration) -> Self {
        self.session.as_mut().expect("a worker that takes sessions").lock_timeout = lease;
        self
    }

    fn activity_lease(self, lease: Duration) -> Self {
        Self { activity_lease: lease, ..self }
    }

    fn name(&self) -> &str {
        self.session.as_ref().map_or("a worker without sessions", |session| &session.owner_id)
    }

    async fn fetch(&self) -> Option<(WorkItem, String, u32)> {
        fetch_activity_as(self.provider, self.activity_lease, self.session.as_ref(), &TagFilter::default())
            .await
    }

    /// Fetches exactly this activity on its first delivery, and keeps its lease.
    async fn takes(&self, expected: &WorkItem) -> String {
        self.takes_delivery(1, expected).await
    }

    /// Fetches exactly this activity on its `count`th delivery, and keeps its lease.
    async fn takes_delivery(&self, count: u32, expected: &WorkItem) -> String {
        let name = self.name();
        let (item, token, attempt) =
            self.fetch().await.unwrap_or_else(|| panic!("{name} must get {expected:?}, got nothing"));
        assert_eq!((&item, attempt), (expected, count), "what {name} gets, and on which delivery");
        token
    }

    /// Fetches exactly this activity and completes it.
    async fn processes(&self, expected: &WorkItem) {
        let token = self.takes(expected).await;
        self.completes(&token, expected).await;
    }

    async fn completes(&self, token: &str, item: &WorkItem) {
        let WorkItem::ActivityExecute { instance, id, .. } = item else {
            panic!("{item:?} is not an activity");
        };
        let completion = Some(completed(instance, *id));
        self.provider
            .ack_work_item(token, completion)
            .await
            .expect("ack_work_item under a live lease succeeds");
    }

    async fn finds_nothing(&self, why: &str) {
        assert_eq!(self.fetch().await, None, "{} must get nothing: {why}", self.name());
    }
}
