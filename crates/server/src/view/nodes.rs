//! The nodes that report to the store.

use super::rfc3339;
use crate::app::App;
use crate::problem::Problem;
use outlast::client::ListedNode;
use outlast::providers::{NodeLease, NodeLoad, NodeOrchestration, NodeTags};
use serde::Serialize;
use utoipa::ToSchema;

/// The nodes by ascending id, at most 1,000.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Nodes {
    pub(crate) items: Vec<NodeView>,
    pub(crate) live: usize,
    pub(crate) lost: usize,
    /// False if the store keeps no reports of nodes.
    pub(crate) supported: bool,
}

/// A node, by its newest report.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NodeView {
    pub(crate) id: String,
    /// `live`, or `lost` without a report for three intervals.
    pub(crate) state: &'static str,
    /// Empty if it is unknown.
    pub(crate) host: String,
    pub(crate) pid: u32,
    /// Empty without a name.
    pub(crate) build: String,
    /// When the runtime started, by its own clock.
    pub(crate) started_at: String,
    pub(crate) started_at_ms: u64,
    /// The time since the report, by the clock of the store.
    pub(crate) seen_ms_ago: u64,
    /// The time until the node counts as lost; 0 for a lost node.
    pub(crate) expires_in_ms: u64,
    pub(crate) turns: LoadView,
    pub(crate) activities: LoadView,
    pub(crate) orchestrations: Vec<OrchestrationView>,
    pub(crate) activity_names: Vec<String>,
    /// Handlers that the report leaves out, because it is bounded.
    pub(crate) omitted_handlers: u64,
    pub(crate) tags: TagsView,
    /// The leases of the node, oldest first, at most 64.
    pub(crate) leases: Vec<LeaseView>,
    /// Leases that the report leaves out, because it is bounded.
    pub(crate) omitted_leases: u64,
    /// Leases of a lost node that have not ended: their turns and activities are delivered again when they end.
    pub(crate) lost_leases: u64,
    /// The time until the last of them ends.
    pub(crate) lost_leases_end_in_ms: u64,
}

/// Running turns or activities, and their limit.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LoadView {
    pub(crate) running: u64,
    pub(crate) limit: u64,
}

/// A registered orchestration.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OrchestrationView {
    pub(crate) name: String,
    /// Ascending.
    pub(crate) versions: Vec<String>,
}

/// The activities that a node takes.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TagsView {
    /// Whether it takes activities without a tag.
    pub(crate) untagged: bool,
    /// Whether it takes activities with any tag.
    pub(crate) any: bool,
    pub(crate) named: Vec<String>,
}

/// A lease of a turn or activity.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LeaseView {
    pub(crate) instance: String,
    /// The execution and the scheduling event of an activity; null for a turn.
    #[schema(value_type = Option<Vec<u64>>)]
    pub(crate) activity: Option<(u64, u64)>,
}

pub(crate) async fn nodes(app: &App) -> Result<Nodes, Problem> {
    let listed = app.client.list_nodes().await?;
    let supported = listed.is_some();
    let items: Vec<NodeView> = listed.unwrap_or_default().into_iter().map(NodeView::from).collect();
    let lost = items.iter().filter(|node| node.is_lost()).count();
    Ok(Nodes { live: items.len() - lost, lost, items, supported })
}

impl NodeView {
    pub(crate) fn is_lost(&self) -> bool {
        self.expires_in_ms == 0
    }
}

impl From<ListedNode> for NodeView {
    fn from(node: ListedNode) -> Self {
        let (record, lost) = (node.record, node.lost_leases);
        Self {
            state: if record.is_lost() { "lost" } else { "live" },
            seen_ms_ago: record.seen_ms_ago,
            expires_in_ms: record.expires_in_ms,
            id: record.report.node_id,
            host: record.report.host,
            pid: record.report.pid,
            build: record.report.build,
            started_at: rfc3339(record.report.started_at_ms),
            started_at_ms: record.report.started_at_ms,
            turns: record.report.running_turns.into(),
            activities: record.report.running_activities.into(),
            orchestrations: record.report.orchestrations.into_iter().map(Into::into).collect(),
            activity_names: record.report.activities,
            omitted_handlers: record.report.omitted_handlers,
            tags: record.report.tags.into(),
            leases: record.report.leases.into_iter().map(Into::into).collect(),
            omitted_leases: record.report.omitted_leases,
            lost_leases: lost.count,
            lost_leases_end_in_ms: lost.end_in_ms,
        }
    }
}

impl From<NodeLoad> for LoadView {
    fn from(NodeLoad { running, limit }: NodeLoad) -> Self {
        Self { running, limit }
    }
}

impl From<NodeOrchestration> for OrchestrationView {
    fn from(NodeOrchestration { name, versions }: NodeOrchestration) -> Self {
        Self { name, versions }
    }
}

impl From<NodeTags> for TagsView {
    fn from(NodeTags { untagged, any, named }: NodeTags) -> Self {
        Self { untagged, any, named }
    }
}

impl From<NodeLease> for LeaseView {
    fn from(NodeLease { instance, activity }: NodeLease) -> Self {
        Self { instance, activity }
    }
}
