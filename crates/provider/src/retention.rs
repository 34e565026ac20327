//! Instances in order of creation, for retention.

/// An instance as retention sees it. Times are milliseconds since the Unix epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OldInstance {
    /// The instance.
    pub instance_id: String,
    /// Its orchestration.
    pub orchestration_name: String,
    /// Status of the current execution.
    pub status: String,
    /// Whether the instance has no parent.
    pub is_root: bool,
    /// When the instance was created.
    pub created_at: u64,
    /// When the current execution ended; `None` while it runs.
    pub ended_at: Option<u64>,
}

/// One page of [`ProviderAdmin::oldest_instances`](crate::ProviderAdmin::oldest_instances).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OldestPage {
    /// The instances, oldest first. A page before the last one may have fewer instances than requested, or none.
    pub instances: Vec<OldInstance>,
    /// The position of the last examined instance, after which the next page begins; `None` at the end.
    pub next: Option<u64>,
}
