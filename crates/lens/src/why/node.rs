//! What the reports of nodes say: which live nodes have code, and which node holds a lease.

use super::evidence::Evidence;
use super::words::one_line;
use crate::time::span;
use outlast_model::{NodeRecord, NodeReport};

/// The live nodes that have the code of a turn or activity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Registering {
    /// No node reports, or a live node reports only a part of its handlers.
    Unknown,
    /// The number of live nodes.
    Nodes(usize),
}

/// Counts the live nodes whose reports match.
pub(super) fn registering(evidence: &Evidence<'_>, matches: impl Fn(&NodeReport) -> bool) -> Registering {
    let Some(nodes) = evidence.nodes else { return Registering::Unknown };
    let live = || nodes.iter().filter(|node| !node.is_lost()).map(|node| &node.report);
    match live().filter(|report| matches(report)).count() {
        0 if live().any(NodeReport::is_partial) => Registering::Unknown,
        count => Registering::Nodes(count),
    }
}

/// The node that holds the lease of a turn, or of an activity by its execution and scheduling event, if a report names the lease. Of
/// several reports the live one that is newest counts.
pub(super) fn owner<'a>(evidence: &Evidence<'a>, activity: Option<(u64, u64)>) -> Option<&'a NodeRecord> {
    let holds = |node: &&NodeRecord| {
        let mut leases = node.report.leases.iter();
        leases.any(|lease| lease.instance == evidence.instance && lease.activity == activity)
    };
    let nodes = evidence.nodes.unwrap_or_default().iter();
    nodes.filter(holds).min_by_key(|node| (node.is_lost(), node.seen_ms_ago))
}

/// ` on node a1 (host-1, pid 811)`, and for a lost node how long it has been silent; nothing without an owner.
pub(super) fn on_node(owner: Option<&NodeRecord>) -> String {
    let Some(owner) = owner else { return String::new() };
    let NodeReport { node_id, host, pid, .. } = &owner.report;
    let (node, host) = (one_line(node_id), one_line(host));
    let place = match host.is_empty() {
        true => format!("pid {pid}"),
        false => format!("{host}, pid {pid}"),
    };
    match owner.is_lost() {
        true => format!(" on lost node {node} ({place}), silent for {},", span(owner.seen_ms_ago)),
        false => format!(" on node {node} ({place})"),
    }
}
