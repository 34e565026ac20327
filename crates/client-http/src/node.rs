//! The nodes that report to the store.

use crate::HttpClient;
use outlast::ClientError;
use outlast::client::{ListedNode, LostLeases};
use outlast::providers::{NodeLease, NodeLoad, NodeOrchestration, NodeRecord, NodeReport, NodeTags};
use serde::Deserialize;

impl HttpClient {
    /// The nodes of the store by ascending id, at most 1,000, each lost one with its leases that have not ended. `None` if the store
    /// keeps no reports.
    ///
    /// # Errors
    ///
    /// An error of the server or of the connection.
    pub async fn list_nodes(&self) -> Result<Option<Vec<ListedNode>>, ClientError> {
        let nodes = self.get::<Nodes>("", "/nodes").await?.value;
        Ok(nodes.supported.then(|| nodes.items.into_iter().map(Node::into_listed).collect()))
    }
}

impl HttpClient {
    /// The reports of the nodes of the store by ascending id, at most 1,000. `None` if the store keeps no reports.
    ///
    /// # Errors
    ///
    /// An error of the server or of the connection.
    pub async fn node_records(&self) -> Result<Option<Vec<NodeRecord>>, ClientError> {
        Ok(self.list_nodes().await?.map(|nodes| nodes.into_iter().map(|node| node.record).collect()))
    }
}

#[derive(Deserialize)]
struct Nodes {
    items: Vec<Node>,
    supported: bool,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    host: String,
    pid: u32,
    build: String,
    started_at_ms: u64,
    seen_ms_ago: u64,
    expires_in_ms: u64,
    turns: NodeLoad,
    activities: NodeLoad,
    orchestrations: Vec<NodeOrchestration>,
    activity_names: Vec<String>,
    omitted_handlers: u64,
    tags: NodeTags,
    leases: Vec<NodeLease>,
    omitted_leases: u64,
    lost_leases: u64,
    lost_leases_end_in_ms: u64,
}

impl Node {
    fn into_listed(self) -> ListedNode {
        let mut report = NodeReport::new(self.id);
        report.host = self.host;
        report.pid = self.pid;
        report.build = self.build;
        report.started_at_ms = self.started_at_ms;
        report.orchestrations = self.orchestrations;
        report.activities = self.activity_names;
        report.omitted_handlers = self.omitted_handlers;
        report.tags = self.tags;
        report.running_turns = self.turns;
        report.running_activities = self.activities;
        report.leases = self.leases;
        report.omitted_leases = self.omitted_leases;
        ListedNode {
            record: NodeRecord { report, seen_ms_ago: self.seen_ms_ago, expires_in_ms: self.expires_in_ms },
            lost_leases: LostLeases { count: self.lost_leases, end_in_ms: self.lost_leases_end_in_ms },
        }
    }
}
