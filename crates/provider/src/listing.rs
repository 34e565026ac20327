//! Listing instances page by page.

use crate::InstanceInfo;

/// Selects and orders a page of instances: newest first, all given conditions must hold.
#[derive(Debug, Clone, Default)]
pub struct InstanceQuery {
    /// Only with this status of the current execution.
    pub status: Option<String>,
    /// Only of this orchestration.
    pub orchestration_name: Option<String>,
    /// Only ids that start with this text.
    pub id_prefix: Option<String>,
    /// Only direct children of this instance.
    pub parent_instance_id: Option<String>,
    /// Only instances created at or after this time.
    pub created_from: Option<u64>,
    /// Only instances created before this time.
    pub created_before: Option<u64>,
    /// At most this many; 100 if not given, never more than 1000.
    pub limit: Option<u32>,
    /// The position at which the previous page ended: its [`InstancePage::next`].
    pub after: Option<String>,
}

impl InstanceQuery {
    /// The page size in force.
    pub fn page_size(&self) -> usize {
        self.limit.unwrap_or(100).clamp(1, 1_000) as usize
    }

    /// Whether an instance fulfils every condition (the page position aside).
    pub fn matches(&self, info: &InstanceInfo) -> bool {
        fn same(wanted: &Option<String>, found: &str) -> bool {
            wanted.as_deref().is_none_or(|wanted| wanted == found)
        }
        same(&self.status, &info.status)
            && same(&self.orchestration_name, &info.orchestration_name)
            && self.id_prefix.as_deref().is_none_or(|prefix| info.instance_id.starts_with(prefix))
            && (self.parent_instance_id.is_none() || self.parent_instance_id == info.parent_instance_id)
            && self.created_from.is_none_or(|from| info.created_at >= from)
            && self.created_before.is_none_or(|before| info.created_at < before)
    }
}

/// One page.
#[derive(Debug, Clone, Default)]
pub struct InstancePage {
    /// The instances, newest first. A page before the last one may have fewer instances than requested, or none, because a store
    /// examines a bounded number of instances for each page.
    pub instances: Vec<InstanceInfo>,
    /// Pass it as [`InstanceQuery::after`] to go on; `None` at the end.
    pub next: Option<String>,
}
