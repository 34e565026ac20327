//! Reports of nodes: a runtime tells the store what it registers, what it runs, and which leases it holds.

use crate::limits::{MAX_NODE_HANDLERS, MAX_NODE_LEASES, MAX_NODE_REPORT_BYTES};
use serde::{Deserialize, Serialize};

/// What a node reports about itself. It has no payloads.
///
/// A store keeps the JSON of the report. Fields that a build does not know are skipped, and missing ones have their default, so that
/// nodes of several builds can report to one store.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct NodeReport {
    /// The id of the node: the name that its options give it, or a random one. 1 to
    /// [`MAX_NODE_ID_BYTES`](crate::limits::MAX_NODE_ID_BYTES) bytes.
    pub node_id: String,
    /// The name of its host; empty if it is unknown.
    pub host: String,
    /// The id of its process.
    pub pid: u32,
    /// The name of its build, an option of the runtime; empty without a name.
    pub build: String,
    /// When the runtime started, by its own clock.
    pub started_at_ms: u64,
    /// The registered orchestrations.
    pub orchestrations: Vec<NodeOrchestration>,
    /// The names of the registered activities.
    pub activities: Vec<String>,
    /// The number of orchestrations and activities that the report leaves out because it is bounded.
    pub omitted_handlers: u64,
    /// The tags of the activities that the node fetches.
    pub tags: NodeTags,
    /// The turns that run and may run.
    pub running_turns: NodeLoad,
    /// The activities that run and may run.
    pub running_activities: NodeLoad,
    /// The leases that the node holds, those that it holds longest first.
    pub leases: Vec<NodeLease>,
    /// The number of leases that the report leaves out because it is bounded.
    pub omitted_leases: u64,
    /// The patches of histories that the code of the node did not ask for: it gave their turns back for nodes with newer code.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing_patches: Vec<NodePatch>,
}

/// A patch of an orchestration.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default)]
pub struct NodePatch {
    /// The name of the orchestration.
    pub orchestration: String,
    /// The name of the patch.
    pub patch: String,
}

/// A registered orchestration of a node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeOrchestration {
    /// The name.
    pub name: String,
    /// Its versions, ascending.
    pub versions: Vec<String>,
}

/// The activities that a node fetches, by their tags.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeTags {
    /// Whether the node fetches activities without a tag.
    pub untagged: bool,
    /// Whether the node fetches activities with any tag.
    pub any: bool,
    /// The tags that the node fetches, ascending.
    pub named: Vec<String>,
}

impl NodeTags {
    /// Whether the node fetches activities with this tag, or without a tag.
    pub fn take(&self, tag: Option<&str>) -> bool {
        match tag {
            None => self.untagged,
            Some(tag) => self.any || self.named.iter().any(|own| own == tag),
        }
    }
}

/// A number of running turns or activities, and its limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeLoad {
    /// Those that run.
    pub running: u64,
    /// The most that run at the same time.
    pub limit: u64,
}

/// A lease that a node holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeLease {
    /// The instance of the turn or activity.
    pub instance: String,
    /// The execution and scheduling event of an activity; `None` for a turn.
    pub activity: Option<(u64, u64)>,
}

/// The report of a node as a store lists it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeRecord {
    /// The newest report.
    pub report: NodeReport,
    /// The time since the report was stored, by the store's clock.
    pub seen_ms_ago: u64,
    /// The time until the report expires, by the store's clock; 0 if it has expired: the node is lost.
    pub expires_in_ms: u64,
}

impl NodeRecord {
    /// Whether the node has not reported in time: it has ended without a shutdown, or cannot reach the store.
    pub fn is_lost(&self) -> bool {
        self.expires_in_ms == 0
    }
}

impl NodeReport {
    /// A report of a node without handlers and leases.
    pub fn new(node_id: impl Into<String>) -> Self {
        Self { node_id: node_id.into(), ..Self::default() }
    }

    /// Whether the node registers the orchestration, in the given version if there is one.
    pub fn registers(&self, orchestration: &str, version: Option<&str>) -> bool {
        let own = self.orchestrations.iter().find(|own| own.name == orchestration);
        own.is_some_and(|own| version.is_none_or(|wanted| own.versions.iter().any(|one| one == wanted)))
    }

    /// Whether the report leaves handlers out, so that the node may register more.
    pub fn is_partial(&self) -> bool {
        self.omitted_handlers > 0
    }

    /// Whether the code of the node did not ask for this patch of the orchestration.
    pub fn misses(&self, orchestration: &str, patch: &str) -> bool {
        self.missing_patches.iter().any(|own| own.orchestration == orchestration && own.patch == patch)
    }

    /// The same report within its limits: lists that are too long lose their last entries, which are counted.
    #[must_use]
    pub fn bounded(mut self) -> Self {
        self.cut(MAX_NODE_HANDLERS, MAX_NODE_LEASES);
        let (mut handlers, mut leases) = (MAX_NODE_HANDLERS, MAX_NODE_LEASES);
        // Names and ids may be long. Each round halves both lists, so that the loop ends.
        while self.stored_bytes() > MAX_NODE_REPORT_BYTES && (handlers > 0 || leases > 0) {
            (handlers, leases) = (handlers / 2, leases / 2);
            self.cut(handlers, leases);
        }
        self
    }

    fn cut(&mut self, handlers: usize, leases: usize) {
        let before = self.orchestrations.len() + self.activities.len();
        self.orchestrations.truncate(handlers);
        self.activities.truncate(handlers);
        let after = self.orchestrations.len() + self.activities.len();
        self.omitted_handlers += (before - after) as u64;
        self.omitted_leases += self.leases.len().saturating_sub(leases) as u64;
        self.leases.truncate(leases);
        self.missing_patches.truncate(leases);
    }

    /// The stored text.
    pub fn stored(&self) -> String {
        // A struct of texts and numbers is always encoded.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The size of the stored text.
    pub fn stored_bytes(&self) -> usize {
        self.stored().len()
    }

    /// The report of a stored text; `None` if the text is no report: every report has an id.
    pub fn of_stored(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok().filter(|report: &Self| !report.node_id.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(instance: &str) -> NodeLease {
        NodeLease { instance: instance.to_string(), activity: Some((1, 2)) }
    }

    #[test]
    fn report_comes_back_from_its_text() {
        let mut report = NodeReport::new("a1");
        report.orchestrations =
            vec![NodeOrchestration { name: "Order".to_string(), versions: vec!["1.4.0".to_string()] }];
        report.missing_patches =
            vec![NodePatch { orchestration: "Order".to_string(), patch: "fraud".to_string() }];
        report.leases = vec![lease("o-1"), NodeLease { instance: "o-2\0".to_string(), activity: None }];
        assert_eq!(NodeReport::of_stored(&report.stored()), Some(report));
    }

    #[test]
    fn unknown_fields_are_skipped_and_missing_ones_have_defaults() {
        let report = NodeReport::of_stored(r#"{"node_id":"a1","zone":"b"}"#);
        assert_eq!(report, Some(NodeReport::new("a1")));
        assert_eq!(NodeReport::of_stored("[]"), None);
    }

    #[test]
    fn bounded_report_counts_omitted_entries() {
        let mut report = NodeReport::new("a1");
        report.activities = (0..MAX_NODE_HANDLERS + 3).map(|nth| nth.to_string()).collect();
        report.leases = (0..MAX_NODE_LEASES + 5).map(|nth| lease(&nth.to_string())).collect();
        let bounded = report.bounded();
        assert_eq!((bounded.activities.len(), bounded.omitted_handlers), (MAX_NODE_HANDLERS, 3));
        assert_eq!((bounded.leases.len(), bounded.omitted_leases), (MAX_NODE_LEASES, 5));
        assert!(bounded.is_partial());
    }

    #[test]
    fn bounded_report_of_long_names_fits() {
        let mut report = NodeReport::new("a1");
        report.leases = (0..60).map(|_| lease(&"i".repeat(4_096))).collect();
        let bounded = report.bounded();
        assert!(bounded.stored_bytes() <= MAX_NODE_REPORT_BYTES);
        assert_eq!(bounded.leases.len() as u64 + bounded.omitted_leases, 60);
        assert!(bounded.leases.len() > 3, "{}", bounded.leases.len());
    }

    #[test]
    fn tags_take_untagged_named_and_any() {
        let gpu = NodeTags { untagged: false, any: false, named: vec!["gpu".to_string()] };
        assert_eq!([gpu.take(None), gpu.take(Some("gpu")), gpu.take(Some("cpu"))], [false, true, false]);
        let any = NodeTags { untagged: true, any: true, named: Vec::new() };
        assert!(any.take(None) && any.take(Some("cpu")));
    }
}
