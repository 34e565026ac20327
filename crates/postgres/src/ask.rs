//! The terms of a fetch: the number and duration of its leases, and the turns or activities for which it is eligible.

use outlast_provider::{DispatcherCapabilityFilter, MessageBound, SessionFetchConfig, TagFilter};

/// The operations that errors of fetches name.
pub(crate) const FETCH_TURN: &str = "fetch_orchestration_item";
pub(crate) const FETCH_ACTIVITIES: &str = "fetch_work_item";

/// A fetch of one turn.
#[derive(Debug, Clone)]
pub(crate) struct TurnAsk {
    pub(crate) lock_ms: u64,
    pub(crate) filter: Option<DispatcherCapabilityFilter>,
    pub(crate) bound: MessageBound,
}

/// A fetch of activities.
#[derive(Debug, Clone)]
pub(crate) struct ActivityAsk {
    pub(crate) max_items: usize,
    pub(crate) lock_ms: u64,
    pub(crate) session: Option<SessionFetchConfig>,
    pub(crate) tags: TagFilter,
}

/// The terms of a fetch that decide which leases it receives.
pub(crate) trait Ask {
    /// Whether one call of the server's function can serve both fetches.
    fn is_like(&self, other: &Self) -> bool;

    /// The number of leases that the fetch takes at most.
    fn wants(&self) -> usize;

    /// The duration of each lease.
    fn lock_ms(&self) -> u64;

    /// Whether a poll without results for `other` shows that the queue has no item for this fetch. `no_sessions`: the poll found
    /// no activity with a session.
    fn fails_with(&self, other: &Self, no_sessions: bool) -> bool;
}

impl Ask for TurnAsk {
    fn is_like(&self, other: &Self) -> bool {
        let same_filter = match (&self.filter, &other.filter) {
            (Some(ours), Some(theirs)) => {
                ours.supported_duroxide_versions == theirs.supported_duroxide_versions
            }
            (ours, theirs) => ours.is_none() && theirs.is_none(),
        };
        same_filter && self.lock_ms == other.lock_ms
    }

    fn wants(&self) -> usize {
        1
    }

    fn lock_ms(&self) -> u64 {
        self.lock_ms
    }

    fn fails_with(&self, other: &Self, _no_sessions: bool) -> bool {
        self.is_like(other)
    }
}

impl Ask for ActivityAsk {
    fn is_like(&self, other: &Self) -> bool {
        self.tags == other.tags && self.lock_ms == other.lock_ms
    }

    fn wants(&self) -> usize {
        self.max_items
    }

    fn lock_ms(&self) -> u64 {
        self.lock_ms
    }

    fn fails_with(&self, other: &Self, no_sessions: bool) -> bool {
        let owner = |ask: &Self| ask.session.as_ref().map(|session| session.owner_id.clone());
        self.is_like(other) && (no_sessions || owner(self) == owner(other))
    }
}
