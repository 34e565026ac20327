//! Fetching several activities at once.

use crate::{SessionFetchConfig, TagFilter};
use outlast_model::WorkItem;
use std::time::Duration;

/// What [`Provider::fetch_work_items`](crate::Provider::fetch_work_items) is asked for.
#[derive(Debug, Clone, Copy)]
pub struct WorkRequest<'a> {
    /// The most activities to lock.
    pub max_items: usize,
    /// How long each lease lasts.
    pub lock_timeout: Duration,
    /// How long to wait for the first activity.
    pub poll_timeout: Duration,
    /// The owner that asks for activities of sessions; `None` skips such activities.
    pub session: Option<&'a SessionFetchConfig>,
    /// Which tags the activities may have.
    pub tag_filter: &'a TagFilter,
}

/// A locked activity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedWork {
    /// The activity.
    pub item: WorkItem,
    /// The token of the lease.
    pub lock_token: String,
    /// How often it was delivered, this time included.
    pub attempt_count: u32,
    /// Name and version of the orchestration that scheduled it, where the store knows them, so that no worker has
    /// to read a history to learn them.
    pub orchestration: Option<(String, String)>,
    /// The store's time at the fetch, where the store overrides
    /// [`Provider::complete_with_turn`](crate::Provider::complete_with_turn). A runtime that is told the time runs turns
    /// ahead; other stores say `None`, since they never take such a turn.
    pub now_ms: Option<u64>,
}
