//! Fetches of several activities.

use crate::{SessionFetchConfig, TagFilter};
use outlast_model::WorkItem;
use std::time::Duration;

/// The arguments of [`Provider::fetch_work_items`](crate::Provider::fetch_work_items).
#[derive(Debug, Clone, Copy)]
pub struct WorkRequest<'a> {
    /// The most activities to lock.
    pub max_items: usize,
    /// How long each lease lasts.
    pub lock_timeout: Duration,
    /// How long to wait for the first activity.
    pub poll_timeout: Duration,
    /// The owner that takes activities of sessions; `None` skips these activities.
    pub session: Option<&'a SessionFetchConfig>,
    /// The tags that the caller takes.
    pub tag_filter: &'a TagFilter,
}

/// A leased activity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedWork {
    /// The activity.
    pub item: WorkItem,
    /// The token of the lease.
    pub lock_token: String,
    /// The number of deliveries, this one included, without those that ended with
    /// [`Provider::abandon_work_noted`](crate::Provider::abandon_work_noted).
    pub attempt_count: u32,
    /// The failures that the store keeps with the activity; `None` if the store keeps none.
    pub notes: Option<WorkNotes>,
    /// Name and version of the orchestration that scheduled the activity, if the store knows them. Without them a worker reads
    /// the history.
    pub orchestration: Option<(String, String)>,
    /// The store's time at the fetch, where the store overrides
    /// [`Provider::complete_with_turn`](crate::Provider::complete_with_turn). A runtime that knows the time runs turns
    /// ahead. Other stores return `None`, because they never commit such a turn.
    pub now_ms: Option<u64>,
}

/// The failures of an activity's handler that were reported by
/// [`Provider::abandon_work_noted`](crate::Provider::abandon_work_noted).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkNotes {
    /// The number of failures.
    pub failures: u32,
    /// The text of the last failure.
    pub last_error: Option<String>,
}
